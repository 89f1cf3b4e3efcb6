//! Hidden checks: what an agent receives of them, and where they are refused.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::Desk;

/// In the command, the files and the output of the hidden check, and nowhere else.
const MARK: &str = "zebra-quagga";

/// Prints whatever an agent can find out, without the mark in its own text. It does the work in its second attempt.
const CURIOUS: &str = r#"
cat
echo "attempt in $PWD"
env
cat /proc/*/cmdline | tr '\0' '\n'
mark=$(printf 'zebra-%s' quagga)
cat "$home/hidden-tests/check.sh" "$elsewhere/check.sh" "$home/goal.md"
grep -rs "$mark" . "$home" "$project" "$state" "$elsewhere" "$TOWLINE_HOME" /tmp /var/tmp
TOWLINE_HOME="$state" "$towline" ls --all --json
TOWLINE_HOME="$state" "$towline" show @ --json
"$towline" show "$TOWLINE_GOAL" --json
if [ -e tried ]; then echo please > greeting; else touch tried; echo hi > greeting; fi
"#;

/// A desk with that agent, and a goal's file with a hidden check outside the repository.
struct Scene {
    desk: Desk,
    elsewhere: tempfile::TempDir,
}

impl Scene {
    fn new(sandbox: &str, hidden: &str) -> Self {
        let mut desk = if sandbox == "required" { Desk::new().in_sandbox() } else { Desk::new() };
        desk.leaves_nothing_to_replay("its agent prints what is in other logs");
        desk.project.write("greeting", "hello\n");
        desk.project.commit("a greeting");
        // A sandbox shows this folder unless it is hidden.
        let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let scene = Self { desk, elsewhere };
        let home = scene.home();
        fs::create_dir(home.join("hidden-tests")).expect("a folder");
        for folder in [&home.join("hidden-tests"), scene.elsewhere.path()] {
            fs::write(folder.join("check.sh"), format!("echo {MARK}\ngrep -q please greeting\n"))
                .expect("written");
        }
        let agent = home.join("agent.sh");
        fs::write(&agent, format!("{}{CURIOUS}", scene.preamble())).expect("written");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("executable");
        let agent = agent.display().to_string();
        scene.desk.configure(&format!(
            "defaults.agents = [\"curious\"]\nbudget.attempts = 3\n\
             [agents.curious]\nkind = \"command\"\ncommand = [\"sh\", {agent:?}]\n"
        ));
        scene.write_goal(&scene.goal_file(), hidden, &[]);
        scene
    }

    fn home(&self) -> PathBuf {
        self.desk.home.path()
    }

    fn goal_file(&self) -> PathBuf {
        self.home().join("goal.md")
    }

    fn preamble(&self) -> String {
        format!(
            "home='{}'\nproject='{}'\nstate='{}'\nelsewhere='{}'\ntowline='{}'\n",
            self.home().display(),
            self.desk.project.path().display(),
            self.desk.home.towline().display(),
            self.elsewhere.path().display(),
            env!("CARGO_BIN_EXE_towline"),
        )
    }

    fn write_goal(&self, path: &Path, hidden: &str, more_files: &[&str]) {
        let elsewhere = self.elsewhere.path().display().to_string();
        let files = [&["~/hidden-tests", elsewhere.as_str()], more_files].concat();
        let text = format!(
            "+++\n[[checks]]\nname = \"acceptance\"\n\
             run = \"sh ~/hidden-tests/check.sh && sh {elsewhere}/check.sh && : {MARK}\"\n\
             hidden = {hidden}\nfiles = {files:?}\n\
             [[checks]]\nname = \"exists\"\nrun = \"test -f greeting\"\n+++\nBe polite.\n"
        );
        fs::write(path, text).expect("written");
    }

    fn run(&self, file: &Path) -> support::Ran {
        self.desk.towline(["run", "--json", "--file", &file.display().to_string()])
    }

    /// What the agent received and printed in an attempt.
    fn logs(&self, report: &Value, attempt: usize) -> String {
        let goal = report["id"].as_str().expect("an id");
        let folder = self.desk.home.towline().join("attempts").join(goal).join(attempt.to_string());
        let read = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
        let bytes = ["stdin.log", "stdout.log", "stderr.log"].map(read).concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[test]
fn an_agent_in_a_sandbox_receives_nothing_of_a_hidden_check_but_its_name() {
    let scene = Scene::new("required", "true");
    let ran = scene.run(&scene.goal_file());
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(0), &json!("done")), "{ran:?}");
    let [first, second] = [1, 2].map(|attempt| scene.logs(&report, attempt));
    for (logs, expected) in
        [(&first, "- acceptance: hidden"), (&second, "This check is hidden. Result: it failed")]
    {
        assert!(logs.contains(expected) && logs.contains("attempt in "), "{logs}");
        assert!(!logs.contains(MARK) && !logs.contains("hidden-tests/check.sh &&"), "{logs}");
    }
    // People see everything. The hidden check runs last.
    let verdict = &report["attempts"][0]["verdict"]["checks"];
    let names = [&verdict[0]["name"], &verdict[1]["name"]];
    assert_eq!(names, [&json!("exists"), &json!("acceptance")], "{verdict}");
    assert_eq!(verdict[1]["evidence"], json!(format!("{MARK}\n")));
    let shown = scene.desk.towline(["show", "@"]).stdout;
    assert!(shown.contains(MARK), "{shown}");
}

#[test]
fn a_hidden_check_without_a_sandbox_is_refused_before_anything_is_created() {
    let scene = Scene::new("off", "true");
    let ran = scene.run(&scene.goal_file());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let output = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        output.contains("the check `acceptance` is hidden, and without a sandbox agents can read it"),
        "{output}"
    );
    assert!(
        output.contains("hidden = \\\"best-effort\\\"") || output.contains("hidden = \"best-effort\""),
        "{output}"
    );
    assert_eq!(scene.desk.towline(["ls", "--all", "--json"]).json(), json!([]));
}

#[test]
fn a_check_that_is_hidden_by_best_effort_is_not_in_the_prompts_without_a_sandbox() {
    let scene = Scene::new("off", "\"best-effort\"");
    fs::write(
        scene.home().join("agent.sh"),
        "cat\nif [ -e tried ]; then echo please > greeting; fi; touch tried\n",
    )
    .expect("written");
    let ran = scene.run(&scene.goal_file());
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(0), &json!("done")), "{ran:?}");
    for attempt in [1, 2] {
        let logs = scene.logs(&report, attempt);
        assert!(logs.contains("acceptance") && !logs.contains(MARK), "{logs}");
    }
}

#[test]
fn a_hidden_check_that_agents_would_find_in_the_repository_is_refused() {
    let scene = Scene::new("required", "true");
    let inside = scene.desk.project.path().join("goal.md");
    scene.write_goal(&inside, "true", &[]);
    let ran = scene.run(&inside);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let output = format!("{}{}", ran.stdout, ran.stderr);
    assert!(output.contains("the check `acceptance` cannot be hidden: agents read "), "{output}");
    for (file, problem) in [
        (scene.desk.project.path().join("greeting").display().to_string(), "agents read the repository"),
        ("~/nowhere".to_owned(), "the check `acceptance` cannot read ~/nowhere: "),
    ] {
        scene.write_goal(&scene.goal_file(), "true", &[&file]);
        let ran = scene.run(&scene.goal_file());
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == Some(2) && output.contains(problem), "{output}");
    }
    assert_eq!(scene.desk.towline(["ls", "--all", "--json"]).json(), json!([]));
}
