//! Damaged lines that the tests of all recordings do not cover.

use towline_core::End;

use super::support::{RECORDED, exited, play, results};
use crate::support::assert_not_understood;

#[test]
fn an_exit_with_0_that_lost_the_result_is_a_crash() {
    let mut cut = 0;
    for recording in RECORDED.all().iter().filter(|recording| !results(recording).is_empty()) {
        let lines = recording.output();
        let (_, end) = play(&mut *recording.protocol(), &lines[..lines.len() - 1], &exited(0));
        assert_eq!(
            end,
            End::Crashed { message: "exit code 0 without a result".into() },
            "{}",
            recording.name
        );
        cut += 1;
    }
    assert!(cut > 10, "{cut}");
}

#[test]
fn unknown_frames_are_reported_by_name() {
    let cases = [
        ("Segmentation fault", "not JSON"),
        (r#"{"type":"result","status":"#, "not JSON"),
        ("[1, 2]", "JSON of another shape"),
        (r#"{"type":7}"#, "JSON of another shape"),
        (r#"{"type":"brand_new"}"#, "brand_new"),
        (r#"{"type":"result"}"#, "result"),
        (r#"{"type":"message","role":"assistant"}"#, "message"),
        (r#"{"type":"tool_use","tool_id":"x"}"#, "tool_use"),
    ];
    assert_not_understood(RECORDED.in_turn, cases.map(|(line, wanted)| (line.to_owned(), wanted)));
}
