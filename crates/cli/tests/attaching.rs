//! The live view of a goal that another process runs: it shows what happens, takes answers, and leaves without harm.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};

use support::terminal::Terminal;
use support::{Desk, finish};
use towline_testkit::hostile;

const HINT: &str = "type the answer, or: towline answer";
const CONTROL_C: &str = "\u{3}";

/// Asks for two permissions, one after the other.
fn begs_twice(dir: &Path) -> PathBuf {
    let body = r#"
beg() {
  printf '{"type":"control_request","request_id":"r%s","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"%s"},"tool_use_id":"toolu_%s"}}\n' $1 "$2" $1
}
await_prompt
init
beg 1 'make one'
IFS= read -r answer
beg 2 'make two'
IFS= read -r answer
beg 3 'rm -r out'
IFS= read -r answer
assistant 'Done.'
result false null 'Done.'
while IFS= read -r line; do :; done
"#;
    hostile::with_body(dir, "begs-twice", body)
}

#[test]
fn whoever_attaches_sees_the_goal_answers_it_and_leaves_it_running() {
    let desk = Desk::with_script(begs_twice);
    desk.agent_settings("permission = \"ask\"");
    let running = desk.start(["run", "make it", "--check", "true"]);
    let goal = desk.only_goal();
    let id = &goal[goal.len() - 8..];
    desk.wait_for_phase(&goal, "blocked");

    let mut first = Terminal::new();
    let attached = first.start(&desk.command(["attach", "@"]));
    first.wait_for(HINT, 1);
    first.press(CONTROL_C);
    let left = finish(attached);
    first.wait_for_the_end();
    assert_eq!(left.code, Some(0), "{left:?}");
    let keeps_running = format!("goal {id} keeps running; return to it with: towline attach {id}");
    assert!(first.shown().contains(&keeps_running), "{}", first.shown());
    assert_eq!(desk.show(&goal)["phase"], "blocked");

    let mut second = Terminal::new();
    let attached = second.start(&desk.command(["run", "--goal", &goal]));
    second.wait_for(HINT, 1);
    second.type_in("perhaps");
    second.wait_for("neither yes nor no", 1);
    second.type_in("always");
    second.wait_for("question 2 is allowed for this goal", 1);
    second.wait_for(HINT, 2);
    second.type_in("no");
    assert_eq!(finish(attached).code, Some(0), "{:#?}", second.screen());
    let ran = finish(running);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let decisions = desk.show(&goal)["attempts"][0]["decisions"].clone();
    let decided: Vec<_> = decisions.as_array().expect("decisions").iter().collect();
    let by: Vec<_> = decided.iter().map(|decision| (&decision["outcome"], &decision["by"])).collect();
    let wanted = [("allow", "person"), ("allow", "rule"), ("deny", "person")];
    assert!(by.iter().zip(wanted).all(|((outcome, by), (o, b))| *outcome == o && *by == b), "{by:?}");
    assert_eq!(by.len(), 3);
}
