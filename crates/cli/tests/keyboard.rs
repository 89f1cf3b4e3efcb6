//! Somebody at the keyboard of a terminal in which a goal runs: what they type answers what they see, and nothing that
//! is asked later; a run in the background goes on without them.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{Desk, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

/// A text that is only in the block.
const BLOCK: &str = "── make it ──";
const HINT: &str = "type the answer, or: towline answer";

const BEG: &str = r#"
beg() {
  printf '{"type":"control_request","request_id":"r%s","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make %s"},"tool_use_id":"toolu_%s"}}\n' $1 $1 $1
}
finish() {
  assistant 'Done.'
  result false null 'Done.'
  while IFS= read -r line; do :; done
}
await_prompt
init
"#;

/// A desk where permissions are asked for.
fn desk(script: impl FnOnce(&Path) -> PathBuf) -> Desk {
    let desk = Desk::with_script(script);
    desk.agent_settings("permission = \"ask\"");
    desk
}

/// Asks for one permission, waits for the file `go` in its home, and asks for another.
fn begs_twice(dir: &Path) -> PathBuf {
    let body = r#"
beg 1
IFS= read -r answer
while [ ! -e "$HOME/go" ]; do sleep 0.05; done
beg 2
IFS= read -r answer
finish
"#;
    hostile::with_body(dir, "begs-twice", &format!("{BEG}{body}"))
}

/// Asks for three permissions at once.
fn begs_for_three(dir: &Path) -> PathBuf {
    let body = "beg 1\nbeg 2\nbeg 3\nfor n in 1 2 3; do IFS= read -r answer; done\nfinish\n";
    hostile::with_body(dir, "begs-for-three", &format!("{BEG}{body}"))
}

fn let_go(desk: &Desk) {
    std::fs::write(desk.home.path().join("go"), "").expect("the signal to go on");
}

/// What was asked for, in the order of the answers, and what was decided.
fn outcomes(desk: &Desk, goal: &str) -> Vec<Value> {
    let decisions = desk.show(goal)["attempts"][0]["decisions"].clone();
    decisions.as_array().expect("decisions").iter().map(|decision| decision["outcome"].clone()).collect()
}

#[test]
fn a_line_that_was_typed_before_a_question_does_not_answer_it() {
    let desk = desk(begs_twice);
    let mut terminal = Terminal::new();
    terminal.type_in("yes");
    let towline = terminal.start(&desk.command(["run", "make it", "--check", "true"]));
    let goal = desk.only_goal();
    terminal.wait_for(HINT, 1);
    terminal.type_in("no, make nothing");
    desk.wait_for_phase(&goal, "running");
    terminal.press("yes");
    terminal.wait_to_see("message> yes");
    let_go(&desk);
    terminal.wait_for(HINT, 2);
    // What was begun as a message stays one.
    terminal.wait_to_see("message> yes");
    let control_u = "\u{15}";
    terminal.press(control_u);
    terminal.wait_to_see("answer>");
    terminal.type_in("no, nothing at all");

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(outcomes(&desk, &goal), ["deny", "deny"]);
}

#[test]
fn a_run_that_is_put_into_the_background_goes_on_and_takes_typed_answers_again_in_front() {
    let desk = desk(begs_twice);
    let mut terminal = Terminal::new();
    let run = desk.command(["run", "make it", "--check", "true"]);
    let mut shell = clean_command("sh");
    let script = r#"set -m; "$@"; bg; until [ -e "$HOME/back" ]; do sleep 0.05; done; fg"#;
    shell.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args());
    shell.current_dir(desk.project.path());
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let shell = terminal.start(&shell);
    let goal = desk.only_goal();
    terminal.wait_for(HINT, 1);
    let control_z = "\u{1a}";
    terminal.press(control_z);

    let answered = desk.towline(["answer", &goal, "no"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    desk.wait_for_phase(&goal, "running");
    let_go(&desk);
    terminal.wait_for("waiting; answer with: towline answer", 1);
    let before = terminal.shown().matches("? 2 may it use Bash: make 2").count();
    std::fs::write(desk.home.path().join("back"), "").expect("the signal to come back");
    terminal.wait_for(HINT, 2);
    terminal.wait_for("? 2 may it use Bash: make 2", before + 1);
    terminal.type_in("yes");

    let ran = finish(shell);
    assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
    assert_eq!(outcomes(&desk, &goal), ["deny", "allow"]);
}

#[test]
fn a_resumed_goal_shows_its_question_and_takes_the_typed_answer() {
    let desk = desk(begs_twice);
    let_go(&desk);
    let mut first = desk.start(["run", "make it", "--check", "true"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    first.kill().expect("killed");
    first.wait().expect("gone");

    let mut terminal = Terminal::new();
    let towline = terminal.start(&desk.command(["run", "--goal", &goal]));
    terminal.wait_for(HINT, 1);
    terminal.type_in("no");
    terminal.wait_for(HINT, 2);
    terminal.type_in("yes");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(outcomes(&desk, &goal), ["deny", "allow"]);
    let screen = terminal.screen();
    let id = &goal[goal.len() - 8..];
    let wanted = [
        format!("goal {id}  make it"),
        "  ? may it use Bash: make 1".to_owned(),
        "      yes · no · always: allow \"Bash(make *)\" for this goal".to_owned(),
        format!("  {HINT} {id} …"),
        "  answered question 1: no".to_owned(),
    ];
    assert_eq!(screen[..wanted.len()], wanted, "{screen:#?}");
}

#[test]
fn of_several_questions_each_has_its_number_and_the_one_to_answer_is_last() {
    let desk = desk(begs_for_three);
    let mut terminal = Terminal::new();
    let towline = terminal.start(&desk.command(["run", "make it", "--check", "true"]));
    let goal = desk.only_goal();
    let id = &goal[goal.len() - 8..];
    terminal.wait_for(
        &format!("question 1 comes first; to answer this one: towline answer {id} --question 3 …"),
        1,
    );
    let listed = desk.towline(["questions"]).stdout;
    for number in 1..=3 {
        assert!(listed.contains(&format!("? {number} may it use Bash: make {number}")), "{listed}");
        assert!(
            listed.contains(&format!("answer it: towline answer {id} --question {number} …")),
            "{listed}"
        );
    }
    terminal.type_in("no");
    terminal.wait_for(&format!("type the answer to question 2, or: towline answer {id} --question 2 …"), 1);
    let again = terminal.screen();
    let answered = again.iter().position(|line| line == "  answered question 1: no").expect("an answer");
    assert_eq!(again[answered + 1], "  ? 2 may it use Bash: make 2", "{again:#?}");

    let answered = desk.towline(["answer", &goal, "no", "--question", "3"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(answered.stdout, "answered question 3: may it use Bash: make 3\n  no\n");
    desk.wait_for(&goal, "the third to be closed", |report| {
        report["attempts"][0]["decisions"][1] != json!(null)
    });
    terminal.type_in("yes");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(outcomes(&desk, &goal), ["deny", "deny", "allow"]);
}

#[test]
fn nothing_of_the_block_stays_on_the_screen() {
    let desk = desk(begs_twice);
    let mut terminal = Terminal::new();
    let towline = terminal.start(&desk.command(["run", "make it", "--check", "true"]));
    desk.only_goal();
    terminal.wait_for(HINT, 1);
    terminal.type_in("yes");
    terminal.wait_for("answered question 1", 1);
    terminal.wait_to_see(BLOCK);
    let_go(&desk);
    terminal.wait_for(HINT, 2);
    terminal.type_in("yes");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let screen = terminal.screen();
    assert!(!screen.iter().any(|line| line.contains(BLOCK)), "{screen:#?}");
    assert!(screen.iter().any(|line| line.starts_with("✓ done")), "{screen:#?}");
    assert_eq!(screen.iter().filter(|line| line.contains(HINT)).count(), 2, "{screen:#?}");
}

#[test]
fn ctrl_c_shows_what_happens_and_leaves_a_clean_screen() {
    let desk = desk(begs_twice);
    let mut terminal = Terminal::sized(60, 20);
    let towline = terminal.start(&desk.command(["run", "make it", "--check", "true"]));
    desk.only_goal();
    terminal.wait_for(HINT, 1);
    terminal.type_in("yes");
    terminal.wait_for("answered question 1", 1);
    terminal.wait_to_see(BLOCK);
    let control_c = "\u{3}";
    terminal.press(control_c);
    let ran = finish(towline);
    assert_eq!(ran.code, Some(130), "{ran:?}");

    let screen = terminal.screen();
    assert!(!screen.iter().any(|line| line.contains(BLOCK) || line.contains("^C")), "{screen:#?}");
    let count = |text: &str| screen.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("press Ctrl-C again"), count("cancelling")), (1, 1), "{screen:#?}");
    assert!(screen.iter().any(|line| line.starts_with("cancelled · 1 attempt")), "{screen:#?}");
}

#[test]
fn ctrl_z_leaves_a_clean_screen_and_the_block_comes_back_in_front() {
    let desk = desk(begs_twice);
    let mut terminal = Terminal::new();
    let run = desk.command(["run", "make it", "--check", "true"]);
    let mut shell = clean_command("sh");
    let script = r#"set -m; "$@"; echo resting; until [ -e "$HOME/back" ]; do sleep 0.05; done; fg"#;
    shell.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args());
    shell.current_dir(desk.project.path());
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let shell = terminal.start(&shell);
    desk.only_goal();
    terminal.wait_for(HINT, 1);
    terminal.type_in("yes");
    terminal.wait_for("answered question 1", 1);
    terminal.wait_to_see(BLOCK);
    let control_z = "\u{1a}";
    terminal.press(control_z);
    let resting = terminal.wait_to_see("resting");
    assert!(!resting.iter().any(|line| line.contains(BLOCK)), "{resting:#?}");
    std::fs::write(desk.home.path().join("back"), "").expect("the signal to come back");
    terminal.wait_to_see(BLOCK);
    let_go(&desk);
    terminal.wait_for(HINT, 2);
    terminal.type_in("yes");
    let ran = finish(shell);
    assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
    let screen = terminal.screen();
    assert!(!screen.iter().any(|line| line.contains(BLOCK)), "{screen:#?}");
}

/// Prints every line that it is given, and ends with the word `end`.
fn listens(dir: &Path) -> PathBuf {
    let body = r#"
beg 1
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$HOME/heard"
  case $line in *end*) break ;; esac
done
finish
"#;
    hostile::with_body(dir, "listens", &format!("{BEG}{body}"))
}

#[test]
fn a_typed_line_is_a_message_and_an_answer_where_something_is_asked() {
    let desk = desk(listens);
    let mut terminal = Terminal::new();
    let towline = terminal.start(&desk.command(["run", "make it", "--check", "true"]));
    let goal = desk.only_goal();
    terminal.wait_to_see("answer>");
    terminal.wait_for("\u{1b}]0;towline: needs an answer - make it\u{7}\u{7}", 1);
    terminal.type_in("");
    terminal.type_in("/tell mind the gap");
    terminal.wait_to_see("operator: mind the gap");
    assert_eq!(desk.show(&goal)["phase"], "blocked");
    terminal.type_in("yes");
    terminal.wait_to_see("message>");
    terminal.type_in("that is the end");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    terminal.wait_for_the_end();
    let events = desk.events(&goal);
    let sent: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"]["kind"] == "told")
        .map(|event| &event["event"]["text"])
        .collect();
    assert_eq!(sent, ["mind the gap", "that is the end"]);
    assert_eq!(outcomes(&desk, &goal), ["allow"]);
    assert!(terminal.shown().contains("\u{1b}]0;towline: done - make it\u{7}\u{7}"), "{}", terminal.shown());
    let screen = terminal.screen();
    assert!(!screen.iter().any(|line| line.contains("message>") || line.contains("answer>")), "{screen:#?}");
    assert!(
        !screen.iter().any(|line| line == "yes" || line.is_empty()),
        "debris of what was typed: {screen:#?}"
    );
}
