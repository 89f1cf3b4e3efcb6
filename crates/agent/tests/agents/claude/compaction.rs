//! A conversation that begins with a summary.

use serde_json::{Value, json};
use towline_agent::{Action, ProcessEnd, Protocol, Steer};
use towline_core::{AgentEvent, End, MessageNo, Refusal, SessionId, SessionStarted, Tokens, TurnStop};

use super::support::{PROMPT, compacting, events, feed, message, resume, written};

const COMPACTING: &str = r#"{"type":"system","subtype":"status","status":"compacting","session_id":"s"}"#;
const WORKED: &str =
    r#"{"type":"system","subtype":"status","status":null,"compact_result":"success","session_id":"s"}"#;
const FAILED: &str = r#"{"type":"system","subtype":"status","status":null,"compact_result":"failed","compact_error":"Not enough messages to compact.","session_id":"s"}"#;
const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"s","model":"m","claude_code_version":"2"}"#;
const BOUNDARY: &str = r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"pre_tokens":900,"post_tokens":70}}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"","total_cost_usd":0.5,
    "modelUsage":{"m":{"inputTokens":900,"outputTokens":20,"contextWindow":200000}}}"#;
const MADE_UP: &str = r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"Not enough."}]}}"#;
const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;

fn begun() -> Box<dyn Protocol> {
    let mut protocol = compacting(&resume("s"), "keep the goal");
    let first = written(&protocol.start());
    assert_eq!(first[1..], [message("compact", "/compact keep the goal")]);
    protocol
}

fn fed(protocol: &mut dyn Protocol, lines: &[&str]) -> Vec<Action> {
    lines.iter().flat_map(|line| feed(protocol, &line.replace('\n', ""))).collect()
}

fn session(model: Option<&str>, agent_version: Option<&str>) -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: SessionId::new("s"),
        resumed: true,
        model: model.map(str::to_owned),
        agent_version: agent_version.map(str::to_owned),
    })
}

fn end(protocol: &mut dyn Protocol) -> End {
    protocol.on_exit(&ProcessEnd { code: Some(0), ..ProcessEnd::default() }).1
}

fn no_writes() -> [Value; 0] {
    []
}

#[test]
fn the_prompt_follows_the_summary_and_only_its_turn_counts() {
    let mut protocol = begun();
    // The session is known before the summary, which may take longer than a session may take to start.
    assert_eq!(events(&fed(&mut *protocol, &[COMPACTING])), [session(None, None)]);
    let actions = fed(&mut *protocol, &[WORKED, INIT, BOUNDARY]);
    let compacted = AgentEvent::Compacted { before: Some(Tokens(900)), after: Some(Tokens(70)) };
    assert_eq!(events(&actions), [session(Some("m"), Some("2")), compacted]);
    assert_eq!(written(&actions), no_writes());

    let actions = fed(&mut *protocol, &[RESULT]);
    assert_eq!(written(&actions), [message("prompt", PROMPT)]);
    assert!(!actions.contains(&Action::CloseStdin));
    let reported = events(&actions);
    let [AgentEvent::Usage { used, context_used, context_size, .. }] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert_eq!((used.input.0, used.output.0, used.cost.0), (900, 20, 500_000));
    assert_eq!((*context_used, *context_size), (Some(Tokens(70)), Some(Tokens(200_000))));

    assert_eq!(events(&fed(&mut *protocol, &[INIT])), [AgentEvent::TurnStarted]);
    let actions = fed(&mut *protocol, &[DONE]);
    let reported = events(&actions);
    assert!(
        matches!(&reported[..], [AgentEvent::TurnEnded(end)] if end.stop == TurnStop::Done),
        "{reported:?}"
    );
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    assert_eq!(end(&mut *protocol), End::Completed);
}

#[test]
fn without_a_summary_the_reason_is_reported_once_and_the_prompt_follows() {
    let not_compacted = |reason: &str| AgentEvent::NotCompacted { reason: reason.into() };
    let odd = r#"{"type":"result","subtype":"success","is_error":"no"}"#;
    let words = r#"{"type":"result","subtype":"success","is_error":false,"result":"No."}"#;
    let cases: [(&[&str], &str, &str); 3] = [
        (&[COMPACTING, FAILED, INIT, MADE_UP], DONE, "Not enough messages to compact."),
        (&[INIT], words, "No."),
        (&[INIT], odd, "its end was not understood"),
    ];
    for (before, result, reason) in cases {
        let mut protocol = begun();
        let reported = events(&fed(&mut *protocol, before));
        assert!(reported.iter().all(|event| matches!(event, AgentEvent::SessionStarted(_))), "{reported:?}");
        let actions = fed(&mut *protocol, &[result]);
        assert_eq!(events(&actions).last(), Some(&not_compacted(reason)));
        assert_eq!(written(&actions), [message("prompt", PROMPT)]);
        assert_eq!(events(&fed(&mut *protocol, &[INIT])), [AgentEvent::TurnStarted]);
        fed(&mut *protocol, &[DONE]);
        assert_eq!(end(&mut *protocol), End::Completed);
    }
}

#[test]
fn an_exit_before_the_prompt_is_answered_is_no_success() {
    let whole = [COMPACTING, WORKED, INIT, BOUNDARY, RESULT, INIT];
    for length in 0..=whole.len() {
        let mut protocol = begun();
        fed(&mut *protocol, &whole[..length]);
        let end = end(&mut *protocol);
        assert!(matches!(end, End::Crashed { .. }), "after {length} lines: {end:?}");
    }
}

#[test]
fn a_missing_session_is_not_a_failed_summary() {
    let mut protocol = begun();
    let refused = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
        "errors": ["No conversation found with session ID: s"]});
    let actions = fed(&mut *protocol, &[&refused.to_string()]);
    let reported = events(&actions);
    assert!(matches!(&reported[..], [AgentEvent::TurnEnded(_)]), "{reported:?}");
    assert_eq!((written(&actions), actions.last()), (vec![], Some(&Action::CloseStdin)));
    assert_eq!(end(&mut *protocol), End::ResumeRefused { why: Refusal::NotFound });
}

#[test]
fn an_interrupted_summary_is_an_interrupted_turn_and_no_prompt_follows() {
    let mut protocol = begun();
    fed(&mut *protocol, &[COMPACTING]);
    let aborted = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}"#;
    let actions = fed(&mut *protocol, &[aborted]);
    assert_eq!((written(&actions), actions.last()), (vec![], Some(&Action::CloseStdin)));
    assert_eq!(end(&mut *protocol), End::Crashed { message: "the turn was interrupted".into() });
}

#[test]
fn messages_wait_until_the_prompt_was_sent() {
    let mut protocol = begun();
    let steer = Steer::Tell { message: MessageNo(1), text: "mind the docs".into() };
    assert_eq!(protocol.on_steer(steer), []);
    let actions = fed(&mut *protocol, &[COMPACTING, WORKED, INIT, BOUNDARY, RESULT]);
    assert_eq!(written(&actions), [message("prompt", PROMPT), message("tell 1", "mind the docs")]);
}

#[test]
fn a_summary_that_the_agent_makes_by_itself_is_part_of_its_turn() {
    let mut protocol = begun();
    fed(&mut *protocol, &[COMPACTING, WORKED, INIT, BOUNDARY, RESULT, INIT]);
    let reported = events(&fed(&mut *protocol, &[COMPACTING, FAILED, BOUNDARY]));
    let notice = AgentEvent::Notice { text: "compaction failed: Not enough messages to compact.".into() };
    let compacted = AgentEvent::Compacted { before: Some(Tokens(900)), after: Some(Tokens(70)) };
    assert_eq!(reported, [notice, compacted]);
}
