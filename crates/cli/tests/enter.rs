//! A person takes over the session of a goal's agent, and the goal continues from there.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{Desk, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

/// Works without an end when Towline drives it, and does what is typed when it has a terminal. Resumed after a visit, it
/// ends its turn.
fn agent(dir: &Path) -> PathBuf {
    let body = r#"
if [ -t 0 ]; then
  echo "session $session of a person"
  sleep 300 &
  while IFS= read -r line; do
    case "$line" in
      quit) exit 0 ;;
      die) kill -KILL $PPID; exit 1 ;;
      *) eval "$line" ;;
    esac
  done
  exit 1
fi
await_prompt
init
case "$line" in
  *'A person worked here'*)
    assistant 'Done.'
    result false null 'Done.'
    while IFS= read -r line; do :; done
    exit 0 ;;
esac
assistant 'Working.'
linger
"#;
    hostile::with_body(dir, "agent", body)
}

/// A goal whose agent is at work.
fn working() -> (Desk, std::process::Child, String) {
    let desk = Desk::with_script(agent);
    let run = desk.start(["run", "finish it", "--check", "test -s work.txt", "--json"]);
    let goal = desk.only_goal();
    desk.wait_for(&goal, "work", |report| {
        report["attempts"][0]["usage"]["output"].as_u64().is_some_and(|output| output > 0)
    });
    (desk, run, goal)
}

fn session_of(desk: &Desk, goal: &str) -> String {
    desk.show(goal)["attempts"][0]["session"].as_str().expect("a session").to_owned()
}

fn events_of(desk: &Desk, goal: &str, kind: &str) -> Vec<Value> {
    let events = desk.events(goal).into_iter().map(|event| event["event"].clone());
    events.filter(|event| event["kind"] == kind).collect()
}

#[test]
fn a_person_takes_over_a_running_goal_and_it_continues_from_there() {
    let (desk, run, goal) = working();
    let mut terminal = Terminal::new();
    let towline = terminal.start(&desk.command(["enter", &goal]));
    let session = session_of(&desk, &goal);
    terminal.wait_for(&format!("session {session} of a person"), 1);
    assert_eq!(finish(run).code, Some(143), "the goal was paused first");
    // Nobody else can have it meanwhile.
    for command in ["resume", "cancel", "enter"] {
        let refused = desk.towline([command, &goal]);
        assert_eq!(refused.code, Some(2), "{command}: {refused:?}");
    }
    terminal.type_in("echo done > work.txt; env > ../seen");
    // Programs in the session count as the agent, even while a person types.
    let [refusal, left] = ["refusal", "left"].map(|name| desk.home.path().join(name));
    let (home, program) = (desk.home.towline(), env!("CARGO_BIN_EXE_towline"));
    let gc = format!("TOWLINE_HOME={} {program} gc 2> {}", home.display(), refusal.display());
    terminal.type_in(&format!("{gc}; echo $? gc"));
    terminal.wait_for("2 gc", 1);
    let refusal = std::fs::read_to_string(refusal).expect("a refusal");
    assert!(refusal.contains("only the operator may change goals"), "{refusal}");
    let stray = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 300", left.display());
    terminal.type_in(&format!("(cd /; exec env -i setsid sh -c '{stray}') &"));
    wait_for(Duration::from_secs(30), "a stray process", || left.exists());
    // It belongs to the visit as long as that lasts, so that no other goal takes it for a leftover.
    let abandoned = desk.home.path().join("abandoned");
    terminal.type_in(&format!("(setsid sleep 300 & echo $! > {0}.new; mv {0}.new {0})", abandoned.display()));
    wait_for(Duration::from_secs(30), "an abandoned process", || abandoned.exists());
    let abandoned = std::fs::read_to_string(abandoned).expect("a number");
    let parent = format!("PPid:\t{}\n", towline.id());
    wait_for(Duration::from_secs(30), "its new parent", || {
        let status = std::fs::read_to_string(Path::new("/proc").join(abandoned.trim()).join("status"));
        status.is_ok_and(|status| status.contains(&parent))
    });
    terminal.type_in("quit");
    terminal.wait_for("continue it with: towline resume", 1);
    assert_eq!(finish(towline).code, Some(0));
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(5));
    let stray = std::fs::read_to_string(left).expect("a number");
    let status = std::fs::read_to_string(Path::new("/proc").join(stray.trim()).join("status"));
    let runs = status.is_ok_and(|status| !status.contains("State:\tZ"));
    assert!(!runs, "{stray}");

    assert_eq!(events_of(&desk, &goal, "entered")[0]["session"], json!(session));
    assert_eq!(events_of(&desk, &goal, "left"), [json!({"kind": "left", "code": 0})]);
    let logs = desk.towline(["logs", &goal]).stdout;
    assert!(logs.contains("a person took over the session of"), "{logs}");

    let resumed = desk.towline(["resume", &goal, "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let report = resumed.json();
    assert_eq!(of_attempts(&report, "end"), ["interrupted", "completed"]);
    assert_eq!(of_attempts(&report, "session"), [json!(session), json!(session)]);
    let refused = desk.towline(["enter", &goal]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is done, so there is nothing to take over"), "{refused:?}");
}

#[test]
fn a_visit_that_is_killed_leaves_the_goal_paused_and_its_work() {
    let (desk, run, goal) = working();
    let mut terminal = Terminal::new();
    let towline = terminal.start(&desk.command(["enter", &goal]));
    terminal.wait_for("of a person", 1);
    finish(run);
    terminal.type_in("echo done > work.txt");
    terminal.type_in("die");
    finish(towline);
    assert_eq!(desk.show(&goal)["phase"], "paused");
    assert_eq!(events_of(&desk, &goal, "left"), Vec::<Value>::new());
    let resumed = desk.towline(["resume", &goal, "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn without_a_terminal_the_command_to_type_is_printed_and_nothing_happens() {
    let (desk, run, goal) = working();
    let refused = desk.towline(["enter", &goal]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let command = format!("--resume {}", session_of(&desk, &goal));
    assert!(refused.stderr.contains("needs a terminal") && refused.stderr.contains(&command), "{refused:?}");
    assert_eq!(desk.show(&goal)["phase"], "running");
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    finish(run);
}

#[test]
fn what_a_person_writes_to_claude_code_is_part_of_the_conversation_that_continues() {
    let heard =
        Matcher::prompt_contains("A person worked here").and(Matcher::any_text_contains("heavy anchor"));
    let command = json!({"command": "echo towline > motto.txt", "description": "write it"});
    let model = ModelServer::start([
        Rule::when(heard).reply(Reply::tool("Bash", command)).then(Reply::text("Written.")),
        Rule::always().reply(Reply::text("Understood.")),
    ]);
    let desk = Desk::with_claude(&model).in_sandbox();
    let ran = desk.towline(["run", "write it", "--check", "test -s motto.txt", "--budget", "attempts=1"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let mut terminal = Terminal::new();
    let mut enter = desk.command(["enter", "@"]);
    // Its print mode needs nobody at the keyboard.
    enter.env("TOWLINE_SET_agents__claude__args", r#"["-p", "a heavy anchor"]"#);
    let towline = terminal.start(&enter);
    terminal.wait_for("continue it with: towline retry", 1);
    assert_eq!(finish(towline).code, Some(0));
    let retried = desk.towline(["retry", "@", "--budget", "attempts=+1", "--json"]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    let sessions = of_attempts(&retried.json(), "session");
    assert_eq!(sessions[0], sessions[1]);
}
