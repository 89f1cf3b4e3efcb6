//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success unless the
//! end of a turn without error is really there.

use serde_json::Value;
use towline_core::{AgentEvent, End};

use super::support::{Recording, events, exit, feed, in_turn, play, settings, written};
use crate::protocol::{Action, Frame, ProcessEnd};

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

fn is_clean_end(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|frame| {
        let turn = &frame["params"]["turn"];
        frame["method"] == "turn/completed" && turn["status"] == "completed" && turn["error"].is_null()
    })
}

fn exits() -> [ProcessEnd; 3] {
    [exit(0), exit(1), ProcessEnd { signal: Some(9), ..ProcessEnd::default() }]
}

/// Each case with one of the exits in turn: all of them with all exits take too long.
fn assert_no_false_success(recording: &Recording, lines: &[&str], case: usize) {
    let (_, end) = play(&mut *recording.protocol(), lines, &exits()[case % 3]);
    if end == End::Completed {
        // A summary is a turn, too, but answers no prompt.
        let wanted = if recording.name == "compact" { 2 } else { 1 };
        let ends = lines.iter().filter(|line| is_clean_end(line)).count();
        assert!(ends >= wanted, "{}: case {case}", recording.name);
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
        let mut protocol = in_turn(&settings());
        protocol.on_frame(Frame::Line(&bytes));
        let (_, end) = protocol.on_exit(&exits()[0]);
        assert!(matches!(end, End::Crashed { .. }), "{end:?}");
    }
}

#[test]
fn what_is_not_understood_is_kept_and_named() {
    let long = format!(r#"{{"method":"brand/new","params":{{"text":"{}"}}}}"#, "ä".repeat(1_000));
    let item = |item: &str| {
        format!(r#"{{"method":"item/started","params":{{"threadId":"t","turnId":"u","item":{item}}}}}"#)
    };
    let cases = [
        ("Segmentation fault".to_owned(), "not JSON"),
        (r#"{"method":"turn/completed","params":{"#.to_owned(), "not JSON"),
        ("[1, 2]".to_owned(), "JSON of another shape"),
        (r#"{"kind":"x"}"#.to_owned(), "JSON of another shape"),
        (r#"{"method":"brand/new"}"#.to_owned(), "brand/new"),
        (long, "brand/new"),
        (r#"{"method":"turn/started","params":{"threadId":"t"}}"#.to_owned(), "turn/started"),
        (r#"{"method":"error"}"#.to_owned(), "error"),
        (item(r#"{"type":"hologram","id":"x"}"#), "item/hologram"),
        (item(r#"{"type":"commandExecution","id":"x"}"#), "item/commandExecution"),
        (item("7"), "item"),
    ];
    for (line, wanted) in cases {
        let actions = feed(&mut *in_turn(&settings()), &line);
        let [AgentEvent::Unrecognised { what, raw, count: 1 }] = &events(&actions)[..] else {
            panic!("{line}: {actions:?}")
        };
        assert_eq!(what, wanted, "{line}");
        assert!(raw.chars().count() <= 500 && !raw.is_empty(), "{line}");
    }
}

#[test]
fn an_end_that_cannot_be_read_closes_the_input_and_is_no_success() {
    for turn in ["7", r#"{"id":"u"}"#, r#"{"id":"u","status":7}"#] {
        let line = format!(r#"{{"method":"turn/completed","params":{{"threadId":"t","turn":{turn}}}}}"#);
        let mut protocol = in_turn(&settings());
        let actions = feed(&mut *protocol, &line);
        assert_eq!(actions.last(), Some(&Action::CloseStdin), "{turn}");
        let (_, end) = protocol.on_exit(&exits()[0]);
        assert!(matches!(end, End::Crashed { .. }), "{turn}: {end:?}");
    }
}

#[test]
fn requests_that_are_not_known_or_cannot_be_read_are_refused() {
    for method in ["brand/new", "item/commandExecution/requestApproval", "item/tool/requestUserInput"] {
        let line = format!(r#"{{"id":7,"method":"{method}","params":{{"threadId":"t","questions":[]}}}}"#);
        let line = line.replace(
            r#""threadId":"t","#,
            if method.contains("command") { "" } else { r#""threadId":"t","# },
        );
        let actions = feed(&mut *in_turn(&settings()), &line);
        let [answer] = &written(&actions)[..] else { panic!("{actions:?}") };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&7.into(), &(-32_601).into()));
        assert!(matches!(&events(&actions)[..], [AgentEvent::Unrecognised { what, .. }] if what == method));
    }
}

#[test]
fn a_line_beyond_the_cap_is_told_with_its_length() {
    let actions = in_turn(&settings()).on_frame(Frame::TooLong { length: 70_000_000 });
    let raw = "a line of 70000000 bytes".to_owned();
    assert_eq!(events(&actions), [AgentEvent::Unrecognised { what: "too long".into(), raw, count: 1 }]);
}

#[test]
fn empty_lines_and_carriage_returns_are_nothing() {
    let mut protocol = in_turn(&settings());
    for line in ["", "\r", "  ", "{\"method\":\"skills/changed\"}\r"] {
        assert_eq!(feed(&mut *protocol, line), [], "{line:?}");
    }
}
