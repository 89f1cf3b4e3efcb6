//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success unless the
//! end of a turn without error is really there.

use towline_core::{AgentEvent, End};

use super::support::{Recording, events, exit, feed, in_turn, settings, written};
use crate::protocol::{Action, Frame};
use crate::testing::{
    assert_cut_is_no_success, assert_order_does_no_harm, assert_random_bytes_are_a_crash,
    assert_scribbles_do_no_harm,
};

#[test]
fn a_recording_cut_anywhere_is_no_success_without_the_end_of_its_turn() {
    assert_cut_is_no_success(&Recording::all(), 397);
}

#[test]
fn lines_in_any_order_never_panic() {
    assert_order_does_no_harm(&Recording::all(), 20);
}

#[test]
fn scribbled_bytes_never_panic() {
    assert_scribbles_do_no_harm(&Recording::all(), 10);
}

#[test]
fn random_bytes_are_no_success() {
    assert_random_bytes_are_a_crash(|| in_turn(&settings()));
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
        let (_, end) = protocol.on_exit(&exit(0));
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
