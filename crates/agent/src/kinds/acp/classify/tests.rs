//! The table of endings.

use serde_json::{Value, json};
use towline_core::{End, Refusal};

use super::{Evidence, Failed, Outcome, classify};
use crate::jsonrpc::RpcError;
use crate::kinds::acp::opening::Way;
use crate::kinds::ends::{auth, crashed, exited, server};
use crate::protocol::ProcessEnd;

fn stopped(reason: &str) -> Outcome {
    Outcome::Stopped { reason: reason.into(), text: "words".into() }
}

fn error(code: i64, message: &str, data: Value) -> RpcError {
    RpcError { code, message: message.into(), data }
}

fn prompt(code: i64, message: &str) -> Outcome {
    Outcome::Failed(Failed::Prompt { error: error(code, message, Value::Null), text: String::new() })
}

fn session(way: Way, code: i64) -> Outcome {
    Outcome::Failed(Failed::Session { way, error: error(code, "words", Value::Null) })
}

fn ended(outcome: Outcome) -> End {
    classify(&Evidence { outcome: Some(outcome), ..Evidence::default() })
}

#[test]
fn stop_reasons_have_their_ends_and_only_one_of_them_is_a_success() {
    let cases = [
        ("end_turn", End::Completed),
        ("max_turn_requests", End::MaxTurns),
        ("refusal", End::Declined { message: "words".into() }),
        ("cancelled", crashed("the turn was interrupted")),
        ("max_tokens", crashed("the model's answer reached its limit of tokens")),
        ("END_TURN", crashed("the turn stopped for an unknown reason: END_TURN")),
        ("", crashed("the turn stopped for an unknown reason: ")),
    ];
    for (reason, wanted) in cases {
        assert_eq!(ended(stopped(reason)), wanted, "{reason}");
    }
    assert!(matches!(ended(Outcome::Nameless { text: "done".into() }), End::Crashed { .. }));
    assert!(matches!(ended(Outcome::Empty { text: "done".into() }), End::Crashed { .. }));
}

#[test]
fn refused_prompts_are_classified_by_code_and_then_by_phrases_of_recordings() {
    let quoted = r#"{"error":{"code":401,"message":"API key not valid.","status":"UNAUTHENTICATED"}}"#;
    let cases = [
        (prompt(401, quoted), auth("API key not valid.")),
        (prompt(403, "no"), auth("no")),
        (prompt(-32_000, "Authentication required"), auth("Authentication required")),
        (prompt(429, "You exceeded your current quota"), End::RateLimited { until: None }),
        (prompt(500, "fetch failed"), server(Some(500), "fetch failed")),
        (prompt(503, ""), server(Some(503), "error 503")),
        (prompt(413, "x"), End::ContextOverflow),
        (
            prompt(400, "The input token count exceeds the maximum number of tokens allowed"),
            End::ContextOverflow,
        ),
        (prompt(400, "x"), End::Refused { status: Some(400), message: "x".into() }),
        (prompt(404, "x"), crashed("the prompt failed: x")),
        (
            prompt(-32_603, "Internal error: Incorrect API key provided: dummy."),
            auth("Incorrect API key provided: dummy."),
        ),
        (
            prompt(-32_603, "Internal error: You exceeded your current quota, please check your plan."),
            auth("You exceeded your current quota, please check your plan."),
        ),
        (prompt(-32_603, "Internal error: Rate limit reached."), End::RateLimited { until: None }),
        (
            prompt(-32_603, "Internal error: Cannot connect to API: Unable to connect."),
            server(None, "Cannot connect to API: Unable to connect."),
        ),
        (
            prompt(-32_603, "Internal error: The server had an error while processing your request."),
            server(None, "The server had an error while processing your request."),
        ),
        (prompt(-32_603, "Internal error"), crashed("the prompt failed: error -32603")),
        (prompt(0, ""), crashed("the prompt failed: error 0")),
    ];
    for (outcome, wanted) in cases {
        assert_eq!(ended(outcome.clone()), wanted, "{outcome:?}");
    }
}

#[test]
fn named_errors_go_before_phrases() {
    for (name, wanted) in [
        ("ProviderAuthError", auth("x")),
        ("ContextOverflowError", End::ContextOverflow),
        ("APIError", End::Refused { status: None, message: "x".into() }),
    ] {
        let error = error(-32_603, "x", json!({"errorName": name}));
        assert_eq!(ended(Outcome::Failed(Failed::Prompt { error, text: String::new() })), wanted);
    }
}

#[test]
fn a_session_that_is_not_resumed_is_a_refused_resume_unless_the_agent_is_not_signed_in() {
    let not_found = End::ResumeRefused { why: Refusal::NotFound };
    assert_eq!(ended(session(Way::Load, -32_603)), not_found);
    assert_eq!(ended(session(Way::Resume, -32_002)), not_found);
    assert_eq!(ended(session(Way::Load, -32_000)), auth("words"));
    assert_eq!(ended(session(Way::New, -32_000)), auth("words"));
    assert_eq!(ended(session(Way::New, -32_603)), crashed("the session could not be opened: words"));
    assert!(matches!(ended(Outcome::Failed(Failed::NoModel)), End::Auth { .. }));
}

#[test]
fn an_end_in_the_middle_of_a_turn_is_a_crash_whatever_came_before() {
    let exit = ProcessEnd { signal: Some(9), stderr_tail: " boom ".into(), ..ProcessEnd::default() };
    for outcome in [None, Some(stopped("end_turn"))] {
        let evidence = Evidence { in_turn: true, outcome, exit: exit.clone() };
        assert_eq!(classify(&evidence), crashed("ended by signal 9 without an answer to the prompt: boom"));
    }
    assert_eq!(
        classify(&Evidence { exit: exited(0), ..Evidence::default() }),
        crashed("exit code 0 without an answer to the prompt")
    );
}
