//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success
//! unless a clean result is really there.

use towline_core::{AgentEvent, End};

use super::support::{Recording, events, feed, in_session, play, settings};
use crate::protocol::Frame;
use crate::testing::{
    assert_cut_is_no_success, assert_order_does_no_harm, assert_random_bytes_are_a_crash,
    assert_scribbles_do_no_harm, exited,
};

#[test]
fn a_recording_cut_anywhere_is_no_success_without_its_result() {
    assert_cut_is_no_success(&Recording::all(), 97);
}

#[test]
fn a_recording_cut_in_a_later_turn_is_no_success_although_an_earlier_one_was() {
    for recording in Recording::all().iter().filter(|recording| recording.results().len() > 1) {
        let lines = recording.output();
        let last = lines.iter().rposition(|line| line.contains("\"type\":\"result\"")).expect("a result");
        let (_, end) = play(&mut *recording.protocol(), &lines[..last], &exited(0));
        assert!(matches!(end, End::Crashed { .. }), "{}: {end:?}", recording.name);
    }
}

#[test]
fn lines_in_any_order_never_panic() {
    assert_order_does_no_harm(&Recording::all(), 20);
}

#[test]
fn scribbled_bytes_never_panic() {
    assert_scribbles_do_no_harm(&Recording::all(), 20);
}

#[test]
fn random_bytes_are_no_success() {
    assert_random_bytes_are_a_crash(|| in_session(&settings()));
}

#[test]
fn what_is_not_understood_is_kept_and_named() {
    let long = format!(r#"{{"type":"brand_new","text":"{}"}}"#, "ä".repeat(1_000));
    let cases = [
        ("Segmentation fault", "not JSON"),
        ("{\"type\":\"assistant\",\"message\":{", "not JSON"),
        ("[1, 2]", "JSON of another shape"),
        (r#"{"kind":"x"}"#, "JSON of another shape"),
        (r#"{"type":"brand_new"}"#, "brand_new"),
        (long.as_str(), "brand_new"),
        (r#"{"type":"system","subtype":"brand_new"}"#, "system/brand_new"),
        (r#"{"type":"system"}"#, "system/"),
        (r#"{"type":"result","subtype":7}"#, "JSON of another shape"),
        (r#"{"type":"result"}"#, "result"),
        (r#"{"type":"assistant","message":"hello"}"#, "assistant"),
        (r#"{"type":"assistant","message":{"content":[{"type":"hologram"}]}}"#, "assistant/hologram"),
        (r#"{"type":"user","message":{"content":[7]}}"#, "user block"),
        (r#"{"type":"stream_event","event":{"type":"brand_new"}}"#, "stream_event/brand_new"),
        (r#"{"type":"rate_limit_event","rate_limit_info":{"status":"maybe"}}"#, "rate_limit_event/maybe"),
    ];
    for (line, wanted) in cases {
        let actions = feed(&mut *in_session(&settings()), line);
        let [AgentEvent::Unrecognised { what, raw, count: 1 }] = &events(&actions)[..] else {
            panic!("{line}: {actions:?}")
        };
        assert_eq!(what, wanted, "{line}");
        assert!(raw.chars().count() <= 500 && !raw.is_empty(), "{line}");
    }
}

#[test]
fn a_line_beyond_the_cap_is_told_with_its_length() {
    let actions = in_session(&settings()).on_frame(Frame::TooLong { length: 70_000_000 });
    let wanted = AgentEvent::Unrecognised {
        what: "too long".into(),
        raw: "a line of 70000000 bytes".into(),
        count: 1,
    };
    assert_eq!(events(&actions), [wanted]);
}

#[test]
fn empty_lines_and_carriage_returns_are_nothing() {
    let mut protocol = in_session(&settings());
    for line in ["", "\r", "  ", "{\"type\":\"keep_alive\"}\r"] {
        assert_eq!(feed(&mut *protocol, line), [], "{line:?}");
    }
}

#[test]
fn text_that_is_not_utf8_is_read_as_far_as_it_goes() {
    let line =
        b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xFFb\"}]}}";
    let actions = in_session(&settings()).on_frame(Frame::Line(line));
    let wanted = AgentEvent::Message { role: towline_core::Role::Assistant, text: "a\u{FFFD}b".into() };
    assert_eq!(events(&actions), [wanted]);
}
