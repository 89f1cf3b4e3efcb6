//! Towline is killed at random moments of a goal that takes the real Claude Code two attempts, and the goal is resumed:
//! the agent is not disturbed, and nothing is lost or done twice.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "sleep 0.2; grep -x towline motto.txt";

const MOMENTS: u32 = 20;
/// Goals that run at the same time.
const AT_ONCE: usize = 4;
const SEED: u64 = 20_260_117;

/// A model that writes the wrong word first, and the right one when it hears of the failed check. It is slow enough
/// for a moment to fall into its answers.
fn model() -> ModelServer {
    let pace = Duration::from_millis(25);
    let bash =
        |command: &str| Reply::tool("Bash", json!({"command": command, "description": "do it"})).slow(pace);
    let corrects = Matcher::any_text_contains("# Checks that failed");
    ModelServer::start([
        Rule::when(corrects)
            .reply(bash("sleep 0.2; echo towline > motto.txt"))
            .then(Reply::text("Corrected.").slow(pace)),
        Rule::always()
            .reply(bash("sleep 0.2; echo tugboat > motto.txt"))
            .then(Reply::text("Written.").slow(pace)),
    ])
}

/// What is to be the same however often towline was killed.
#[derive(Debug, PartialEq)]
struct Story {
    /// How often the model was asked.
    asked: usize,
    /// What the agent did, without the ids that differ from run to run.
    actions: Vec<Value>,
}

/// Moments without a plan, and the same in every run of the test.
struct Dice(u64);

impl Dice {
    /// Between zero and one.
    fn roll(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Kills towline at its moment, unless it has ended by then.
fn kill_after(mut towline: Child, moment: Duration) {
    let deadline = Instant::now() + moment;
    while Instant::now() < deadline {
        if towline.try_wait().expect("waited").is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
}

fn start(desk: &Desk) -> Child {
    desk.start(["run", PROMPT, "--check", CHECK, "--json"])
}

/// The goal, when towline came so far as to make one.
fn goal_of(desk: &Desk) -> Option<String> {
    desk.towline(["ls", "--all", "--json"]).json()[0]["id"].as_str().map(str::to_owned)
}

/// Kills towline at each of these moments after its start, takes the goal up again, and lets it come to its end.
fn play(moments: &[Duration]) -> Story {
    let model = model();
    let desk = Desk::with_claude(&model);
    let mut goal = None;
    for moment in moments {
        kill_after(resume(&desk, goal.as_deref()), *moment);
        goal = goal_of(&desk);
    }
    let ran = finish(resume(&desk, goal.as_deref()));
    let goal = goal_of(&desk).expect("a goal");
    let report = desk.show(&goal);
    assert_eq!(report["phase"], "done", "{ran:?}\n{report:#}");
    // A goal that was done before it could be resumed is refused.
    assert!(ran.code == Some(0) || ran.stderr.contains("is done"), "{ran:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
    assert_nothing_is_missing(&report);
    Story { asked: model.turns().len(), actions: actions(&desk, &goal) }
}

fn resume(desk: &Desk, goal: Option<&str>) -> Child {
    match goal {
        Some(goal) => desk.start(["run", "--goal", goal, "--json"]),
        None => start(desk),
    }
}

/// Every byte that the supervisor counted is in the logs, and all attempts that came up are one conversation.
fn assert_nothing_is_missing(report: &Value) {
    for attempt in report["attempts"].as_array().expect("attempts") {
        let dir = Path::new(attempt["dir"].as_str().expect("a directory"));
        let Ok(record) = std::fs::read_to_string(dir.join("exit.json")) else {
            // Killed between the plan to start it and the start: nothing of it ever ran.
            assert_eq!(
                (&attempt["turns"], dir.join("stdout.log").exists()),
                (&json!(0), false),
                "{attempt:#}"
            );
            continue;
        };
        let record: Value = serde_json::from_str(&record).expect("a record");
        for stream in ["stdout", "stderr"] {
            let length = dir.join(format!("{stream}.log")).metadata().expect("a log").len();
            assert_eq!(record[format!("{stream}_bytes")], length, "{attempt:#}");
        }
        assert_eq!(attempt["end"], "completed", "{attempt:#}");
    }
    let sessions: BTreeSet<String> =
        of_attempts(report, "session").iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
    assert_eq!(sessions.len(), 1, "{report:#}");
}

/// What the agent did, from the log. The log itself has neither gaps nor repetitions.
fn actions(desk: &Desk, goal: &str) -> Vec<Value> {
    let events = desk.events(goal);
    let sequence: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(sequence, (1..=events.len() as u64).collect::<Vec<_>>());
    let agents =
        events.iter().filter(|event| event["source"] == "agent").map(|event| &event["event"]["event"]);
    let running = agents.clone().filter(|event| event["status"] == "running");
    let ids: Vec<&Value> = running.map(|event| &event["id"]).collect();
    let distinct: BTreeSet<&str> = ids.iter().filter_map(|id| id.as_str()).collect();
    assert_eq!(ids.len(), distinct.len(), "a tool call was recorded twice: {ids:?}");
    agents.map(|event| json!([event["kind"], event["status"], event["text"], event["used"]])).collect()
}

#[test]
fn towline_killed_at_any_moment_takes_the_goal_up_without_loss_or_repetition() {
    let begun = Instant::now();
    let undisturbed = play(&[]);
    let whole = begun.elapsed();
    assert_eq!(undisturbed.asked, 4);

    let mut dice = Dice(SEED);
    let rounds: Vec<Vec<Duration>> = (0..MOMENTS)
        .map(|round| {
            // Spread over the whole run; every other time the one that takes over is killed as well.
            let first = whole.mul_f64((f64::from(round) + dice.roll()) / f64::from(MOMENTS));
            let second = whole.mul_f64(dice.roll() / 2.0);
            if round % 2 == 0 { vec![first] } else { vec![first, second] }
        })
        .collect();
    let rounds = Mutex::new(rounds.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(moments) = rounds.lock().expect("no thread has failed").next() else { break };
                    let played = std::panic::catch_unwind(|| play(&moments));
                    let story =
                        played.unwrap_or_else(|_| panic!("killed at {moments:?} of {whole:?} (seed {SEED})"));
                    assert_eq!(story, undisturbed, "killed at {moments:?} of {whole:?} (seed {SEED})");
                }
            });
        }
    });
}

/// Kills towline as soon as its goal has this below a folder of the state directory, and takes the goal up at once.
fn kill_when_there_is(folder: &str, below: &str) {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo towline > motto.txt"));
    let mut towline = start(&desk);
    let folder = desk.home.towline().join(folder);
    let is_there = || {
        let entries = std::fs::read_dir(&folder).ok()?.flatten();
        // Towline's own repository of the goal is beside its workspace.
        let mut goals = entries.filter(|entry| !entry.file_name().to_string_lossy().ends_with(".git"));
        let goal = goals.find(|goal| goal.path().join(below).exists())?;
        Some(goal.file_name().to_string_lossy().into_owned())
    };
    let deadline = Instant::now() + LIMIT;
    let goal = loop {
        assert!(Instant::now() < deadline, "there never was {below} in {}", folder.display());
        // Not a moment is lost to sleep: what follows takes only milliseconds.
        if let Some(goal) = is_there() {
            break goal;
        }
    };
    towline.kill().expect("killed");
    towline.wait().expect("reaped");

    let ran = finish(resume(&desk, Some(&goal)));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
    assert_nothing_is_missing(&ran.json());
    actions(&desk, &goal);
    assert_eq!(hostile::received(&desk.home.path().join("doing")).len(), 1, "{ran:?}");
}

#[test]
fn towline_killed_as_it_makes_the_workspace_goes_on() {
    kill_when_there_is("workspaces", "");
}

#[test]
fn towline_killed_as_it_starts_the_agent_starts_it_once() {
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| kill_when_there_is("attempts", "1/launch.json"));
        }
    });
}

#[test]
fn towline_killed_as_it_begins_the_checks_goes_on() {
    kill_when_there_is("attempts", "1/checks");
}

#[test]
fn a_check_that_outlives_towline_is_waited_for_and_not_repeated() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo towline > motto.txt")).without_baseline();
    let [one, two] = ["one", "two"].map(|name| desk.home.path().join(name));
    let first = format!("echo run >> {}", one.display());
    let waits = format!("echo run >> {0}; until test -e {0}.go; do sleep 0.05; done", two.display());
    let mut towline = desk.start(["run", "a motto", "--check", &first, "--check", &waits, "--json"]);
    wait_for(LIMIT, "the second check", || two.exists());
    let goal = desk.only_goal();
    let is_recorded =
        || desk.towline(["logs", &goal, "--json"]).stdout.matches("\"start_time\":").count() == 2;
    wait_for(LIMIT, "its supervisor to be recorded", is_recorded);
    towline.kill().expect("killed");
    towline.wait().expect("reaped");

    let resumed = adopted(&desk, &goal);
    std::fs::write(two.with_extension("go"), "").expect("written");
    let ran = finish(resumed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for count in [one, two] {
        assert_eq!(std::fs::read_to_string(&count).expect("a count"), "run\n", "{}", count.display());
    }
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

/// Resumes a goal and waits until what runs of its verdict is adopted.
fn adopted(desk: &Desk, goal: &str) -> Child {
    let resumed = resume(desk, Some(goal));
    let is_adopted = || desk.towline(["logs", goal]).stdout.contains("still runs; waiting for its result");
    wait_for(LIMIT, "it to be adopted", is_adopted);
    resumed
}

#[test]
fn a_setup_command_of_a_verdict_that_outlives_towline_is_waited_for_and_not_repeated() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo towline > motto.txt")).without_baseline();
    // Before there is any work, it has nothing to do.
    let setup =
        "test ! -e motto.txt || { echo run >> $HOME/up; until test -e $HOME/go; do sleep 0.05; done; }";
    desk.agent_settings(&format!("[workspace]\nsetup = [{setup:?}]"));
    let goal = killed_in_a_check(&desk, "test -e motto.txt");
    let resumed = adopted(&desk, &goal);
    std::fs::write(desk.home.path().join("go"), "").expect("written");
    let ran = finish(resumed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(desk.home.path().join("up")).expect("a count"), "run\n");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

/// Runs a goal with one check, kills towline once there is a file `up` and what made it is recorded, and gives the goal.
fn killed_in_a_check(desk: &Desk, check: &str) -> String {
    let mut towline = desk.start(["run", "a motto", "--check", check, "--json"]);
    wait_for(LIMIT, "the check", || desk.home.path().join("up").exists());
    let goal = desk.only_goal();
    let is_recorded = || desk.towline(["logs", &goal, "--json"]).stdout.contains("\"start_time\":");
    wait_for(LIMIT, "its supervisor to be recorded", is_recorded);
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    goal
}

#[test]
fn a_check_that_hides_its_supervisor_does_not_run_beside_the_next_verdict() {
    for hide in ["rm $run/launch.json $run/shim.pid", "mv $run $HOME/elsewhere"] {
        let desk =
            Desk::with_script(|dir| hostile::doing(dir, "echo towline > motto.txt")).without_baseline();
        let run = desk.home.towline().join("attempts/*/1/checks/1-*");
        // The second run fails if the first one is still there.
        let check = format!(
            "test ! -e $HOME/up || {{ ! grep '^State:[^Z]*$' /proc/$(cat $HOME/up)/status; exit; }}; \
             run=$(echo {}); {hide}; echo $$ > $HOME/up.new; mv $HOME/up.new $HOME/up; sleep 600",
            run.display()
        );
        let goal = killed_in_a_check(&desk, &check);
        let ran = finish(resume(&desk, Some(&goal)));
        assert_eq!(ran.code, Some(0), "{hide}: {ran:?}");
        wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
    }
}

#[test]
fn a_goal_that_is_cancelled_or_paused_without_an_engine_leaves_no_check_running() {
    for (command, phase) in [("cancel", "cancelled"), ("pause", "paused")] {
        let desk =
            Desk::with_script(|dir| hostile::doing(dir, "echo towline > motto.txt")).without_baseline();
        let goal = killed_in_a_check(&desk, "touch $HOME/up; sleep 600");
        let done = desk.towline([command, &goal]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(desk.show(&goal)["phase"], phase);
        wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(5));
    }
}

#[test]
fn an_adopted_check_that_kills_its_supervisor_leaves_nothing_beside_the_next_verdict() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo towline > motto.txt")).without_baseline();
    // The second run fails if what the first one left is still there.
    let check = "test ! -e $HOME/left || { ! grep '^State:[^Z]*$' /proc/$(cat $HOME/left)/status; exit; }; \
                 setsid sh -c 'echo $$ > $HOME/left.new; mv $HOME/left.new $HOME/left; touch $HOME/up; sleep 600' & \
                 until test -e $HOME/kill; do sleep 0.02; done; kill -9 $PPID; sleep 600";
    let goal = killed_in_a_check(&desk, check);
    let resumed = adopted(&desk, &goal);
    std::fs::write(desk.home.path().join("kill"), "").expect("written");
    let ran = finish(resumed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn what_setup_left_without_an_engine_and_a_supervisor_ends_with_its_goal() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "true")).without_baseline();
    let setup = "setsid sleep 600 & echo $PPID > $HOME/new; mv $HOME/new $HOME/up; \
                 until test -e $HOME/kill; do sleep 0.02; done; kill -9 $PPID; sleep 600";
    desk.agent_settings(&format!("[workspace]\nsetup = [{setup:?}]"));
    let mut towline = desk.start(["run", "a motto", "--check", "true", "--json"]);
    let up = desk.home.path().join("up");
    wait_for(LIMIT, "the setup", || up.exists());
    let goal = desk.only_goal();
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    let supervisor = std::fs::read_to_string(up).expect("a number");
    std::fs::write(desk.home.path().join("kill"), "").expect("written");
    let command = Path::new("/proc").join(supervisor.trim()).join("cmdline");
    // One that nobody has reaped yet has no command line.
    let is_gone = || std::fs::read(&command).unwrap_or_default().is_empty();
    wait_for(LIMIT, "the supervisor to be gone", is_gone);
    let done = desk.towline(["cancel", &goal]);
    assert_eq!(done.code, Some(0), "{done:?}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(5));
}
