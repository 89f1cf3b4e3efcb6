//! Damaged lines that the tests of all recordings do not cover.

use towline_agent::Action;
use towline_core::{AgentEvent, End};

use super::support::{RECORDED, events, exit, feed, in_turn, settings, written};
use crate::support::assert_not_understood;

#[test]
fn unknown_frames_are_reported_by_name() {
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
    assert_not_understood(RECORDED.in_turn, cases);
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
fn a_carriage_return_is_no_part_of_a_line() {
    assert_eq!(feed(&mut *in_turn(&settings()), "{\"method\":\"skills/changed\"}\r"), []);
}
