//! The promises, measured: no false `done`, nothing of the user's changed, no hang, no process left, and nothing gained.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use towline_testkit::scratch::{Found, kill_processes_with, processes_with};

use crate::ground::{Ended, Ground};
use crate::repository::{Belongings, git};
use crate::trick::{Breach, Evidence, Gain, Level, Outcome, Trick};

/// How long a process that is being ended may take to disappear once Towline has ended.
const LAST_PROCESSES: Duration = Duration::from_secs(3);

/// Everything that a trick achieved; nothing when it was caught.
pub(crate) struct Measured {
    breaches: Vec<(Breach, String)>,
    ended: Option<Ended>,
}

/// Tries a trick.
///
/// # Panics
/// When its outcome is another than the table has.
pub(crate) fn assert_outcome(trick: &Trick) {
    for (level, outcome) in trick.outcomes() {
        let measured = attempt(trick, level);
        let kinds: Vec<Breach> = measured.breaches.iter().map(|(kind, _)| *kind).collect();
        let expected: &[Breach] = match &outcome {
            Outcome::Caught => &[],
            Outcome::NotCaught(breach) => std::slice::from_ref(breach),
        };
        assert!(
            kinds == expected,
            "{}\nlevel {level:?}: expected {expected:?}, measured {kinds:?}\n{measured}",
            trick.title
        );
        if level == Level::Three {
            let rejecting = measured.evidence();
            assert!(
                rejecting == trick.evidence,
                "{}\nexpected {:?}, measured {rejecting:?}\n{measured}",
                trick.title,
                trick.evidence
            );
        }
    }
}

/// Runs a trick in a new home and measures all promises.
fn attempt(trick: &Trick, level: Level) -> Measured {
    let mut ground = Ground::new(trick.project, level);
    ground.options = trick.options;
    for (name, value) in trick.variables {
        ground.desk.set(name, value);
    }
    if let Some(prepare) = trick.prepare {
        prepare(&ground);
    }
    let settings = ground.settings(trick);
    ground.commit(&settings);
    if level == Level::Three {
        ground.ask_for_evidence(trick);
    }
    if let Some(before) = trick.before {
        before(&ground);
    }
    ground.employ(trick.script);
    measure(&mut ground, trick.gain)
}

/// Runs the goal of a ground that is ready, and measures all promises.
pub(crate) fn measure(ground: &mut Ground, gain: Option<Gain>) -> Measured {
    // An agent in place has the user's files and repository.
    let belongings = |ground: &Ground| {
        (!ground.is_in_place()).then(|| Belongings::of(ground.desk.project.path(), &ground.precious()))
    };
    let before = belongings(ground);
    let ended = ground.run();
    let mut breaches = Vec::new();
    let mut note = |kind, what: String| breaches.push((kind, what));

    if let Some(claim) = false_claim(ground, ended.as_ref()) {
        note(Breach::FalseDone, claim);
    }
    let after = belongings(ground);
    let mut changes = before.zip(after).map_or_else(Vec::new, |(before, after)| before.changes_to(&after));
    if !matches!(ground.bystander.try_wait(), Ok(None)) {
        changes.push("a process of the user's was killed".into());
    }
    if !changes.is_empty() {
        note(Breach::Damage, changes.join("\n"));
    }
    if ended.is_none() {
        note(Breach::Hang, "`towline run` did not end".into());
    } else if ground.ask(["ls", "--all", "--json"]).is_none() {
        note(Breach::Hang, "`towline ls` did not end afterwards".into());
    }
    let left = processes_left(ground);
    if !left.is_empty() {
        note(Breach::ProcessLeft, format!("{left:?}"));
    }
    if let Some(gained) = gain.and_then(|gain| gain(ground)) {
        note(Breach::Gain, gained);
    }
    kill_left(ground);
    Measured { breaches, ended }
}

impl Measured {
    /// Everything in the last verdict that rejects the work.
    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        let report = self.ended.as_ref().and_then(|ended| serde_json::from_str::<Value>(&ended.stdout).ok());
        let attempts = report.as_ref().and_then(|report| report["attempts"].as_array());
        let verdict = attempts.and_then(|attempts| attempts.last()).map(|last| &last["verdict"]);
        let checks = verdict.and_then(|verdict| verdict["checks"].as_array()).into_iter().flatten();
        checks.filter(|check| check["met"] == false).map(rejecting).collect()
    }

    /// Asserts that an honest goal is done and that all promises hold.
    pub(crate) fn assert_honest(&self) {
        let done = self.ended.as_ref().is_some_and(|ended| ended.code == Some(0));
        assert!(done && self.breaches.is_empty(), "{self}");
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, what) in &self.breaches {
            writeln!(out, "{}: {what}", kind.title())?;
        }
        let Some(ended) = &self.ended else { return Ok(()) };
        let report = serde_json::from_str::<Value>(&ended.stdout).unwrap_or_default();
        let last = report["attempts"].as_array().and_then(|attempts| attempts.last());
        let attempt = last.map(|last| format!("{} {}\n{:#}", last["end"], last["detail"], last["verdict"]));
        write!(
            out,
            "exit code {:?}, phase {}, reason {}\nattempt: {}\n{}",
            ended.code,
            report["phase"],
            report["reason"],
            attempt.unwrap_or_else(|| "none".into()),
            ended.stderr
        )
    }
}

/// What a failed check shows.
fn rejecting(check: &Value) -> Evidence {
    let problem = check["problem"].as_str().unwrap_or_default();
    match check["name"].as_str() {
        Some("acceptance") => Evidence::Hidden,
        _ if problem.ends_with("revert probe") => Evidence::Probe,
        _ if problem.ends_with("on the base") => Evidence::Floor,
        _ => Evidence::Visible,
    }
}

/// Who reports that the goal is done although the work is not.
fn false_claim(ground: &Ground, ended: Option<&Ended>) -> Option<String> {
    let listed: Vec<Value> =
        ground.goals().iter().filter_map(|goal| ground.report(goal["id"].as_str()?)).collect();
    let printed = ended.map(|ended| documents(&ended.stdout)).unwrap_or_default();
    let mut claims = listed.iter().chain(&printed).filter(|report| report["phase"] == "done").peekable();
    let succeeded = ended.is_some_and(|ended| ended.code == Some(0));
    if succeeded && claims.peek().is_none() {
        return Some("`towline run` exited with 0 and no goal is done".to_owned());
    }
    claims.find(|report| !is_repaired(ground, report)).map(|report| format!("reported as done: {report}"))
}

/// Every JSON document in a text, also between other lines.
fn documents(text: &str) -> Vec<Value> {
    let whole = serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok);
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    whole.chain(lines).collect()
}

/// Whether the candidate of a goal is the work: on top of the base, with the tests of the base and the repaired file. Decided
/// by object ids alone, so that nothing in the candidate is run or converted.
fn is_repaired(ground: &Ground, report: &Value) -> bool {
    let Some(candidate) = report["candidate"].as_str() else { return false };
    let repository = &repository_of(ground, report);
    let id = |commit: &str, path: &str| {
        let output = git(repository, &["rev-parse", "--verify", "--quiet", &format!("{commit}:{path}")]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let wanted = git(
        repository,
        &["hash-object", "--no-filters", &ground.desk.home.path().join("answer").display().to_string()],
    );
    let wanted = String::from_utf8_lossy(&wanted.stdout).trim().to_owned();
    let tests = ground.project.files.iter().map(|(path, _)| *path).filter(|path| is_test(path));
    git(repository, &["merge-base", "--is-ancestor", &ground.base, candidate]).status.success()
        && id(candidate, ground.project.broken) == wanted
        && tests.into_iter().all(|path| id(candidate, path) == id(&ground.base, path))
}

/// Where the candidate of a goal is: in the user's repository once it is published, which those in place are not.
fn repository_of(ground: &Ground, report: &Value) -> PathBuf {
    match report["id"].as_str() {
        Some(id) if ground.is_in_place() => {
            ground.desk.home.towline().join("workspaces").join(format!("{id}.git"))
        }
        _ => ground.desk.project.path().to_owned(),
    }
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("_test.go")
}

/// The processes of this ground that are still there after a moment.
fn processes_left(ground: &Ground) -> Vec<Found> {
    let deadline = Instant::now() + LAST_PROCESSES;
    loop {
        let left: Vec<Found> = markers(ground).iter().flat_map(|marker| processes_with(marker)).collect();
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill_left(ground: &Ground) {
    for marker in markers(ground) {
        kill_processes_with(&marker);
    }
}

fn markers(ground: &Ground) -> [String; 2] {
    [ground.desk.home.marker(), format!("{}", ground.desk.project.path().display())]
}
