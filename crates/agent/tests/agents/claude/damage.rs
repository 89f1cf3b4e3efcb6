//! Damaged lines that the tests of all recordings do not cover.

use towline_agent::Frame;
use towline_core::{AgentEvent, End};

use super::support::{RECORDED, events, feed, in_session, play, results, settings};
use crate::support::{assert_not_understood, exited};

#[test]
fn a_recording_cut_in_a_later_turn_is_no_success_although_an_earlier_one_was() {
    for recording in RECORDED.all().iter().filter(|recording| results(recording).len() > 1) {
        let lines = recording.output();
        let last = lines.iter().rposition(|line| line.contains("\"type\":\"result\"")).expect("a result");
        let (_, end) = play(&mut *recording.protocol(), &lines[..last], &exited(0));
        assert!(matches!(end, End::Crashed { .. }), "{}: {end:?}", recording.name);
    }
}

#[test]
fn unknown_frames_are_reported_by_name() {
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
        (r#"{"type":"result","subtype":7}"#, "result"),
        (r#"{"type":"result"}"#, "result"),
        (r#"{"type":"assistant","message":"hello"}"#, "assistant"),
        (r#"{"type":"assistant","message":{"content":[{"type":"hologram"}]}}"#, "assistant/hologram"),
        (r#"{"type":"user","message":{"content":[7]}}"#, "user block"),
        (r#"{"type":"stream_event","event":{"type":"brand_new"}}"#, "stream_event/brand_new"),
        (r#"{"type":"rate_limit_event","rate_limit_info":{"status":"maybe"}}"#, "rate_limit_event/maybe"),
    ];
    assert_not_understood(RECORDED.in_turn, cases.map(|(line, wanted)| (line.to_owned(), wanted)));
}

#[test]
fn a_carriage_return_is_no_part_of_a_line() {
    assert_eq!(feed(&mut *in_session(&settings()), "{\"type\":\"keep_alive\"}\r"), []);
}

#[test]
fn text_that_is_not_utf8_is_read_as_far_as_it_goes() {
    let line =
        b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xFFb\"}]}}";
    let actions = in_session(&settings()).on_frame(Frame::Line(line));
    let wanted = AgentEvent::Message { role: towline_core::Role::Assistant, text: "a\u{FFFD}b".into() };
    assert_eq!(events(&actions), [wanted]);
}
