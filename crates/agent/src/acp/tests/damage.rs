//! Damaged conversations: cut, shuffled, scribbled over. They never panic, and are never taken for a success unless the
//! end of a turn is really there.

use serde_json::json;
use towline_core::{AgentEvent, End};

use super::support::{Recording, events, feed, in_turn, settings};
use crate::protocol::Frame;
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
    assert_order_does_no_harm(&Recording::all(), 10);
}

#[test]
fn scribbled_bytes_never_panic() {
    assert_scribbles_do_no_harm(&Recording::all(), 10);
}

#[test]
fn random_bytes_are_no_success() {
    assert_random_bytes_are_a_crash(|| in_turn(&settings("agent")));
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
