//! Tests of the recordings of every protocol, unchanged and damaged: cut, shuffled, overwritten. Whatever the bytes
//! are, there is no panic, and no success without a clean end of a turn.

use serde_json::Value;
use towline_agent::{Action, Frame, ProcessEnd};
use towline_core::{AgentEvent, End};

use crate::recording::{Recorded, Recording};
use crate::support::{events, exited, feed, play, readable};

/// The same tests for each protocol, so that they run in parallel.
macro_rules! for_each_protocol {
    ($($protocol:ident)+) => {$(
        mod $protocol {
            use crate::$protocol::RECORDED;
            use crate::recordings::*;

            #[test]
            fn each_recording_reads_as_in_its_snapshot() {
                assert_snapshots(&RECORDED);
            }

            #[test]
            fn no_frame_of_a_recording_is_unrecognised() {
                assert_all_is_recognised(&RECORDED);
            }

            #[test]
            fn the_input_is_closed_at_most_once_and_nothing_is_written_later() {
                assert_input_is_closed_once(&RECORDED);
            }

            #[test]
            fn a_recording_cut_anywhere_is_no_success_without_the_end_of_its_turn() {
                assert_cut_is_no_success(&RECORDED);
            }

            #[test]
            fn lines_in_any_order_never_panic() {
                assert_order_does_no_harm(&RECORDED);
            }

            #[test]
            fn scribbled_bytes_never_panic() {
                assert_scribbles_do_no_harm(&RECORDED);
            }

            #[test]
            fn random_bytes_are_no_success() {
                assert_random_bytes_are_a_crash(&RECORDED);
            }

            #[test]
            fn empty_lines_are_nothing_and_a_line_beyond_the_cap_is_reported_with_its_length() {
                assert_odd_lines(&RECORDED);
            }
        }
    )+};
}

pub(crate) use for_each_protocol;

pub(crate) fn assert_snapshots(recorded: &'static Recorded) {
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    for recording in recorded.all() {
        let (actions, end) = recording.play();
        let text = readable(&actions, &end).replace(&version, "\"version\":\"0\"");
        let path = format!("snapshots/{}", recorded.name);
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => path}, {
            insta::assert_snapshot!(recording.name.clone(), text);
        });
    }
}

pub(crate) fn assert_all_is_recognised(recorded: &'static Recorded) {
    for recording in recorded.all() {
        let mut reported = events(&recording.play().0);
        reported.retain(|event| matches!(event, AgentEvent::Unrecognised { .. }));
        assert_eq!(reported, [], "{}", recording.name);
    }
}

pub(crate) fn assert_input_is_closed_once(recorded: &'static Recorded) {
    let mut closed = 0;
    for recording in recorded.all() {
        let (actions, end) = recording.play();
        let closings: Vec<_> = (0..actions.len()).filter(|at| actions[*at] == Action::CloseStdin).collect();
        assert!(closings.len() <= 1, "{}", recording.name);
        assert!(end != End::Completed || closings.len() == 1, "{}", recording.name);
        if let [closing] = closings[..] {
            closed += 1;
            let after = &actions[closing..];
            assert!(!after.iter().any(|action| matches!(action, Action::Write(_))), "{}", recording.name);
        }
    }
    assert!(closed > recorded.at_least / 2, "only {closed}");
}

pub(crate) fn assert_cut_is_no_success(recorded: &'static Recorded) {
    for recording in recorded.all() {
        let whole = recording.output().join("\n");
        for (case, at) in (0..whole.len()).step_by(recorded.cut_every).enumerate() {
            let lines: Vec<_> = whole[..whole.floor_char_boundary(at)].split('\n').collect();
            assert_no_false_success(recorded, &recording, &lines, case);
        }
    }
}

pub(crate) fn assert_order_does_no_harm(recorded: &'static Recorded) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for recording in recorded.all() {
        let mut lines = recording.output();
        for round in 0..recorded.rounds {
            for at in (1..lines.len()).rev() {
                lines.swap(at, numbers.below(at + 1));
            }
            assert_no_false_success(recorded, &recording, &lines, round);
        }
    }
}

pub(crate) fn assert_scribbles_do_no_harm(recorded: &'static Recorded) {
    let mut numbers = Numbers(42);
    for recording in recorded.all() {
        for _ in 0..recorded.rounds {
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

pub(crate) fn assert_random_bytes_are_a_crash(recorded: &'static Recorded) {
    let mut numbers = Numbers(7);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..numbers.below(300)).map(|_| numbers.next().to_le_bytes()[0]).collect();
        let mut protocol = (recorded.in_turn)();
        protocol.on_frame(Frame::Line(&bytes));
        let (_, end) = protocol.on_exit(&exited(0));
        assert!(matches!(end, End::Crashed { .. }), "{end:?}");
    }
}

pub(crate) fn assert_odd_lines(recorded: &'static Recorded) {
    let mut protocol = (recorded.in_turn)();
    for line in ["", "\r", "  "] {
        assert_eq!(feed(&mut *protocol, line), [], "{line:?}");
    }
    let actions = protocol.on_frame(Frame::TooLong { length: 70_000_000 });
    let raw = "a line of 70000000 bytes".to_owned();
    assert_eq!(events(&actions), [AgentEvent::Unrecognised { what: "too long".into(), raw, count: 1 }]);
}

/// Each case with one of the exits in turn, because all combinations take too long.
fn assert_no_false_success(recorded: &Recorded, recording: &Recording, lines: &[&str], case: usize) {
    let killed = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let exit = &[exited(0), exited(1), killed][case % 3];
    let (_, end) = play(&mut *recording.protocol(), lines, exit);
    if end != End::Completed {
        return;
    }
    let is_clean_end =
        |line: &&&str| serde_json::from_str::<Value>(line).is_ok_and(|f| (recorded.is_clean_end)(&f));
    let ends = lines.iter().filter(is_clean_end).count();
    let wanted = if recorded.summarised.contains(&recording.name.as_str()) { 2 } else { 1 };
    assert!(ends >= wanted, "{}: case {case}", recording.name);
}

/// A small random number generator. Each run is the same, so that a failure can be repeated.
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
