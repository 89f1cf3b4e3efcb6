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
