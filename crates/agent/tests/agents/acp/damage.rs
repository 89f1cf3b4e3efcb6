//! Damaged lines that the tests of all recordings do not cover.

use serde_json::json;
use towline_agent::Action;
use towline_core::End;

use super::support::{RECORDED, end, feed, in_turn, settings, text_chunk};
use crate::support::assert_not_understood;

#[test]
fn an_answer_of_another_shape_ends_the_turn_and_is_no_success() {
    for result in
        [json!(null), json!({}), json!([1]), json!({"stopReason": 7}), json!({"stopReason": "new_one"})]
    {
        let mut protocol = in_turn(&settings("agent"));
        feed(&mut *protocol, &text_chunk("done").to_string());
        let line = json!({"jsonrpc": "2.0", "id": "prompt", "result": result}).to_string();
        let actions = feed(&mut *protocol, &line);
        assert!(actions.contains(&Action::CloseStdin), "{line}");
        let ended = end(&mut *protocol);
        assert!(matches!(ended, End::Crashed { .. }), "{line}: {ended:?}");
    }
}

#[test]
fn unknown_frames_are_reported_by_name() {
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
    assert_not_understood(RECORDED.in_turn, cases.map(|(line, wanted)| (line.to_owned(), wanted)));
}
