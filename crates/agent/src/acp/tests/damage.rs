//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success unless the
//! end of a turn is really there.

use serde_json::{Value, json};
use towline_core::{AgentEvent, End};

use super::support::{Recording, events, exited, feed, in_turn, settings};
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

fn is_end_of_turn(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|frame| frame["result"]["stopReason"] == "end_turn")
}

fn exits() -> [ProcessEnd; 3] {
    [exited(0), exited(1), ProcessEnd { signal: Some(9), ..ProcessEnd::default() }]
}

fn assert_no_false_success(recording: &Recording, lines: &[&str], case: usize) {
    let mut protocol = recording.protocol();
    protocol.start();
    for line in lines {
        feed(&mut *protocol, line);
    }
    let (_, end) = protocol.on_exit(&exits()[case % 3]);
    if end == End::Completed {
        let wanted = if recording.name == "compact" { 2 } else { 1 };
        let ends = lines.iter().filter(|line| is_end_of_turn(line)).count();
        assert!(ends >= wanted, "{}: case {case}", recording.full_name());
    }
}

#[test]
fn a_recording_cut_anywhere_is_no_success_without_the_end_of_its_turn() {
    for recording in Recording::all() {
        let whole = recording.output().join("\n");
        for (case, at) in (0..whole.len()).step_by(397).enumerate() {
            let lines: Vec<_> = whole[..whole.floor_char_boundary(at)].split('\n').collect();
            assert_no_false_success(&recording, &lines, case);
        }
    }
}

#[test]
fn lines_in_any_order_never_panic() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for recording in Recording::all() {
        let mut lines = recording.output();
        for round in 0..10 {
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
        for _ in 0..10 {
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
        let mut protocol = in_turn(&settings("agent"));
        protocol.on_frame(Frame::Line(&bytes));
        let (_, end) = protocol.on_exit(&exits()[0]);
        assert!(matches!(end, End::Crashed { .. }), "{end:?}");
    }
}

#[test]
fn an_answer_of_another_shape_ends_the_turn_and_is_no_success() {
    for result in
        [json!(null), json!({}), json!([1]), json!({"stopReason": 7}), json!({"stopReason": "new_one"})]
    {
        let mut protocol = in_turn(&settings("agent"));
        feed(&mut *protocol, &super::support::says("done").to_string());
        let line = json!({"jsonrpc": "2.0", "id": "prompt", "result": result}).to_string();
        let actions = feed(&mut *protocol, &line);
        assert!(actions.contains(&crate::protocol::Action::CloseStdin), "{line}");
        let end = super::support::end(&mut *protocol);
        assert!(matches!(end, End::Crashed { .. }), "{line}: {end:?}");
    }
}

#[test]
fn what_is_not_understood_is_kept_and_named() {
    let cases = [
        ("Segmentation fault", "not JSON"),
        (r#"{"jsonrpc":"2.0","method":"session/up"#, "not JSON"),
        ("[1, 2]", "JSON of another shape"),
        (r#"{"kind":"x"}"#, "JSON of another shape"),
        (r#"{"id":"never asked","result":{}}"#, "an answer to nothing"),
        (r#"{"method":"brand/new","params":{}}"#, "brand/new"),
        (r#"{"method":"session/update","params":{}}"#, "session/update"),
        (
            r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"hologram"}}}"#,
            "session/update/hologram",
        ),
        (
            r#"{"method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"plan"}}}"#,
            "session/update of another session",
        ),
        (
            r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image"}}}}"#,
            "session/update/agent_message_chunk/image",
        ),
        (r#"{"id":1,"method":"brand/new","params":{}}"#, "request brand/new"),
        (
            r#"{"id":1,"method":"session/request_permission","params":{}}"#,
            "request session/request_permission",
        ),
    ];
    for (line, wanted) in cases {
        let actions = feed(&mut *in_turn(&settings("agent")), line);
        let [AgentEvent::Unrecognised { what, raw, count: 1 }] = &events(&actions)[..] else {
            panic!("{line}: {actions:?}")
        };
        assert_eq!(what, wanted, "{line}");
        assert!(!raw.is_empty(), "{line}");
    }
    let long = in_turn(&settings("agent")).on_frame(Frame::TooLong { length: 7 });
    assert!(matches!(&events(&long)[..], [AgentEvent::Unrecognised { what, .. }] if what == "too long"));
}
