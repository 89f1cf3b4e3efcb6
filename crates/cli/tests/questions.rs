//! Questions and those who ask them: none is lost with its agent, and none gets an answer that was meant for another.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};

use support::{Desk, finish, of_attempts};
use towline_testkit::hostile;

/// Asks by its file and dies in this way; paints the door once it was answered.
fn asks_and_dies(dir: &Path, death: &str) -> PathBuf {
    let body = format!(
        r#"
await_prompt
case "$line" in
  *'deep blue'*)
    init
    echo blue > door
    assistant 'Painted.'
    result false null 'Painted.'
    while IFS= read -r line; do :; done
    exit 0 ;;
esac
printf '{{"question": "Which colour?"}}' > "$TOWLINE_QUESTION_FILE"
{death}
"#
    );
    hostile::with_body(dir, "asks-and-dies", &body)
}

#[test]
fn a_question_that_an_agent_left_in_its_file_is_asked_however_it_died() {
    for (death, end) in [
        ("init; result false null 'I have asked.'; exit 1", "asked"),
        ("init; exit 1", "crashed"),
        ("init; kill -KILL $$", "crashed"),
        ("exit 1", "crashed"),
    ] {
        let desk = Desk::with_script(|dir| asks_and_dies(dir, death));
        let towline = desk.start(["run", "Paint the door", "--check", "grep -x blue door", "--json"]);
        let goal = desk.only_goal();
        let blocked = desk.wait_for_phase(&goal, "blocked");
        assert_eq!(blocked["question"]["question"], "Which colour?", "{death}");
        assert_eq!(of_attempts(&blocked, "end"), [end], "{death}");
        assert_eq!(desk.towline(["answer", &goal, "deep", "blue"]).code, Some(0), "{death}");
        let ran = finish(towline);
        assert_eq!(ran.code, Some(0), "{death}: {ran:?}");
        assert_eq!(of_attempts(&ran.json(), "end"), [end, "completed"], "{death}");

        let late = desk.towline(["answer", &goal, "--question", "1", "red"]);
        assert_eq!(late.code, Some(2), "{death}: {late:?}");
        assert!(late.stderr.contains("has no open question 1"), "{}", late.stderr);
    }
}

/// Asks with a default in its last message; paints the door once it was answered.
fn asks_with_a_default(dir: &Path) -> PathBuf {
    asks_and_dies(
        dir,
        r#"
printf '{"question": "Which colour?", "default": "none"}' > "$TOWLINE_QUESTION_FILE"
init; result false null 'I have asked.'; exit 0"#,
    )
}

#[test]
fn a_question_of_a_cancelled_goal_is_listed_with_its_default_and_its_answer_is_used_on_retry() {
    let desk = Desk::with_script(asks_with_a_default);
    let towline = desk.start(["run", "Paint the door", "--check", "grep -x blue door", "--json"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    assert_eq!(finish(towline).code, Some(130));
    for shown in [desk.towline(["questions"]), desk.towline(["show", &goal])] {
        let (question, default) = ("? Which colour?", "default: none");
        assert!(shown.stdout.contains(question) && shown.stdout.contains(default), "{shown:?}");
    }

    let answered = desk.towline(["answer", &goal, "deep", "blue"]);
    assert!(answered.stdout.contains("towline retry"), "{answered:?}");
    let ran = desk.towline(["retry", &goal, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(of_attempts(&ran.json(), "end"), ["asked", "completed"]);
}

#[test]
fn a_question_is_asked_again_when_a_cancelled_goal_is_retried() {
    let desk = Desk::with_script(asks_with_a_default);
    let towline = desk.start(["run", "Paint the door", "--check", "grep -x blue door", "--json"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    assert_eq!(finish(towline).code, Some(130));

    let retried = desk.start(["retry", &goal]);
    let blocked = desk.wait_for_phase(&goal, "blocked");
    assert_eq!(blocked["question"]["default"], "none", "{blocked}");
    assert_eq!(desk.towline(["answer", &goal, "deep", "blue"]).code, Some(0));
    let ran = finish(retried);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("? Which colour?") && ran.stdout.contains("default: none"), "{ran:?}");
}
