//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success
//! unless a clean result is really there.

use towline_core::{AgentEvent, End};

use super::support::{Recording, events, exited, feed, in_turn, play};
use crate::protocol::Frame;
use crate::testing::{
    Damageable, assert_cut_is_no_success, assert_order_does_no_harm, assert_random_bytes_are_a_crash,
    assert_scribbles_do_no_harm,
};

#[test]
fn a_recording_cut_anywhere_is_no_success_without_its_result() {
    assert_cut_is_no_success(&Recording::all(), 7);
}

#[test]
fn lines_in_any_order_never_panic() {
    assert_order_does_no_harm(&Recording::all(), 50);
}

#[test]
fn scribbled_bytes_never_panic() {
    assert_scribbles_do_no_harm(&Recording::all(), 50);
}

#[test]
fn random_bytes_are_no_success() {
    assert_random_bytes_are_a_crash(in_turn);
}

#[test]
fn an_exit_with_0_that_lost_the_result_is_a_crash() {
    let mut cut = 0;
    for recording in Recording::all().iter().filter(|recording| !recording.results().is_empty()) {
        let lines = recording.written_lines();
        let (_, end) = play(&mut *recording.new_protocol(), &lines[..lines.len() - 1], &exited(0));
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
fn what_is_not_understood_is_kept_and_named() {
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
    for (line, wanted) in cases {
        let actions = feed(&mut *in_turn(), line);
        let [AgentEvent::Unrecognised { what, raw, count: 1 }] = &events(&actions)[..] else {
            panic!("{line}: {actions:?}")
        };
        assert_eq!((what.as_str(), raw.as_str()), (wanted, line));
    }
    let actions = in_turn().on_frame(Frame::TooLong { length: 9 });
    let raw = "a line of 9 bytes".into();
    assert_eq!(events(&actions), [AgentEvent::Unrecognised { what: "too long".into(), raw, count: 1 }]);
}
