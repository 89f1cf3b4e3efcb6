//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success
//! unless a clean result is really there.

use serde_json::Value;
use towline_core::{AgentEvent, End};

use super::support::{Recording, events, feed, in_session, play, settings};
use crate::protocol::{Frame, ProcessEnd};

/// A small generator of numbers, the same in each run so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("small")
    }
}

fn is_clean_result(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|frame| {
        frame["type"] == "result" && frame["subtype"] == "success" && frame["is_error"] == false
    })
}

fn exits() -> [ProcessEnd; 3] {
    let code = |code| ProcessEnd { code: Some(code), ..ProcessEnd::default() };
    [code(0), code(1), ProcessEnd { signal: Some(9), ..ProcessEnd::default() }]
}

/// Each case with one of the exits in turn: all of them with all exits take too long.
fn assert_no_false_success(recording: &Recording, lines: &[&str], case: usize) {
    let exit = &exits()[case % 3];
    let (_, end) = play(&mut *recording.protocol(), lines, exit);
    if end == End::Completed {
        // A summary ends with a result, too, but answers no prompt.
        let wanted = if recording.compacts() { 2 } else { 1 };
        let results = lines.iter().filter(|line| is_clean_result(line)).count();
        assert!(results >= wanted, "{}: case {case}", recording.name);
    }
}

#[test]
fn a_recording_cut_anywhere_is_no_success_without_its_result() {
    for recording in Recording::all() {
        let whole = recording.output().join("\n");
        for (case, at) in (0..whole.len()).step_by(97).enumerate() {
            let lines: Vec<_> = whole[..whole.floor_char_boundary(at)].split('\n').collect();
            assert_no_false_success(&recording, &lines, case);
        }
    }
}

#[test]
fn a_recording_cut_in_a_later_turn_is_no_success_although_an_earlier_one_was() {
    for recording in Recording::all().iter().filter(|recording| recording.results().len() > 1) {
        let lines = recording.output();
        let last = lines.iter().rposition(|line| line.contains("\"type\":\"result\"")).expect("a result");
        let (_, end) = play(&mut *recording.protocol(), &lines[..last], &exits()[0]);
        assert!(matches!(end, End::Crashed { .. }), "{}: {end:?}", recording.name);
    }
}

#[test]
fn lines_in_any_order_never_panic() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for recording in Recording::all() {
        let mut lines = recording.output();
        for round in 0..20 {
            for at in (1..lines.len()).rev() {
                lines.swap(at, numbers.below(at + 1));
            }
            assert_no_false_success(&recording, &lines, round);
        }
    }
}

#[test]
fn scribbled_bytes_never_panic() {
    let mut numbers = Numbers(42);
    for recording in Recording::all() {
        for _ in 0..20 {
            let mut protocol = recording.protocol();
            protocol.start();
            for line in recording.output() {
                let mut bytes = line.as_bytes().to_vec();
                for _ in 0..=numbers.below(4) {
                    let at = numbers.below(bytes.len());
                    bytes[at] = numbers.next().to_le_bytes()[0];
                }
                protocol.on_frame(Frame::Line(&bytes));
            }
            protocol.on_exit(&recording.exit);
        }
    }
}

#[test]
fn random_bytes_are_no_success() {
    let mut numbers = Numbers(7);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..numbers.below(300)).map(|_| numbers.next().to_le_bytes()[0]).collect();
        let mut protocol = in_session(&settings());
        protocol.on_frame(Frame::Line(&bytes));
        let (_, end) = protocol.on_exit(&exits()[0]);
        assert!(matches!(end, End::Crashed { .. }), "{end:?}");
    }
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
