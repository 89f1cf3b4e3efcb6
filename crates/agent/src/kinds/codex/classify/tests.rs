//! What an end means, as a table.

use jiff::Timestamp;
use serde_json::{Value, json};
use towline_core::{End, Refusal};

use super::{Evidence, Rejected, Retries, TurnResult, classify};
use crate::kinds::codex::wire::TurnError;
use crate::kinds::ends::{auth, crashed, exited, server};
use crate::protocol::ProcessEnd;

fn done() -> TurnResult {
    TurnResult { status: "completed".into(), error: None }
}

fn failed(info: Value, message: &str) -> Evidence {
    let error = TurnError { message: message.into(), codex_error_info: Some(info), additional_details: None };
    with(TurnResult { status: "failed".into(), error: Some(error) })
}

fn named(name: &str) -> Evidence {
    failed(name.into(), "words")
}

fn status(name: &str, status: Option<u16>) -> Evidence {
    failed(json!({ name: {"httpStatusCode": status} }), "words")
}

fn with(result: TurnResult) -> Evidence {
    Evidence { session_started: true, result: Some(result), exit: exited(0), ..Evidence::default() }
}

#[test]
fn a_failed_turn_is_classified_by_its_fields() {
    let limited = || End::RateLimited { until: None };
    let body = |code: &str| json!({"error": {"code": code, "message": "x"}}).to_string();
    let invalid = json!({"error": {"type": "invalid_request_error", "message": "x"}}).to_string();
    let other = |message: &str| failed("other".into(), message);
    let cut = "stream disconnected before completion: stream closed before response.completed";
    let no_key = "Missing environment variable: `OPENAI_API_KEY`.";
    let cases = [
        (with(done()), End::Completed),
        (named("contextWindowExceeded"), End::ContextOverflow),
        (named("usageLimitExceeded"), limited()),
        (named("rateLimitExceeded"), limited()),
        (named("sessionBudgetExceeded"), End::MaxBudget),
        (named("unauthorized"), auth("words")),
        (named("cyberPolicy"), End::Declined { message: "words".into() }),
        (named("misalignmentPolicyViolation"), End::Declined { message: "words".into() }),
        (named("serverOverloaded"), server(None, "words")),
        (named("internalServerError"), server(None, "words")),
        (named("modelNotFound"), crashed("modelNotFound: words")),
        (named("badRequest"), End::Refused { status: None, message: "words".into() }),
        (named("brandNew"), crashed("brandNew: words")),
        (status("httpConnectionFailed", Some(401)), auth("words")),
        (status("httpConnectionFailed", Some(403)), auth("words")),
        (status("responseTooManyFailedAttempts", Some(429)), limited()),
        (status("httpConnectionFailed", Some(413)), End::ContextOverflow),
        (status("responseStreamConnectionFailed", Some(502)), server(Some(502), "words")),
        (status("responseStreamDisconnected", None), server(None, "words")),
        (status("httpConnectionFailed", Some(418)), crashed("httpConnectionFailed: words")),
        (status("brandNew", None), crashed("brandNew: words")),
        (failed(json!(7), "words"), crashed("an error without a name: words")),
        (other(no_key), auth(no_key)),
        (other(cut), server(None, cut)),
        (other(&body("context_length_exceeded")), End::ContextOverflow),
        (other(&body("insufficient_quota")), limited()),
        (other(&invalid), End::Refused { status: None, message: invalid.clone() }),
        (
            status("httpConnectionFailed", Some(400)),
            End::Refused { status: Some(400), message: "words".into() },
        ),
        (other("words"), crashed("other: words")),
        (with(TurnResult { status: "interrupted".into(), error: None }), crashed("the turn was interrupted")),
        (with(TurnResult { status: "failed".into(), error: None }), crashed("a turn that is failed")),
        (with(TurnResult { status: "brandNew".into(), error: None }), crashed("a turn that is brandNew")),
    ];
    for (evidence, wanted) in cases {
        assert_eq!(classify(&evidence), wanted, "{:?}", evidence.result);
    }
}

#[test]
fn a_contradictory_success_is_none() {
    let mut result = done();
    result.error = Some(TurnError::default());
    let cases = [
        with(result),
        with(TurnResult { status: "inProgress".into(), error: None }),
        Evidence { in_turn: true, ..with(done()) },
    ];
    for evidence in cases {
        let end = classify(&evidence);
        assert!(matches!(end, End::Crashed { .. }), "{evidence:?} gives {end:?}");
    }
}

#[test]
fn a_used_up_quota_has_its_reset_time() {
    let until = Timestamp::from_second(1_794_740_000).ok();
    let limited = Evidence { rejected: Some(Rejected { until }), ..named("usageLimitExceeded") };
    assert_eq!(classify(&limited), End::RateLimited { until });
    let killed = Evidence { result: None, ..limited.clone() };
    assert_eq!(classify(&killed), End::RateLimited { until });
    assert_eq!(classify(&Evidence { result: Some(done()), ..limited }), End::Completed);
}

#[test]
fn a_clean_end_counts_however_the_process_ends() {
    for exit in [exited(1), ProcessEnd { signal: Some(15), ..ProcessEnd::default() }, ProcessEnd::default()] {
        assert_eq!(classify(&Evidence { exit: exit.clone(), ..with(done()) }), End::Completed, "{exit:?}");
    }
}

#[test]
fn an_exit_without_a_result_is_a_crash_with_all_that_is_known() {
    let stderr = ProcessEnd { stderr_tail: "out of memory\n".into(), ..exited(134) };
    let signal = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let retries = |status| Retries { status, auth: 0, count: 3 };
    let none = Evidence::default;
    let cases = [
        (Evidence { exit: exited(0), ..none() }, "exit code 0 without a result"),
        (Evidence { exit: stderr, ..none() }, "exit code 134 without a result: out of memory"),
        (Evidence { exit: signal, ..none() }, "ended by signal 9 without a result"),
        (none(), "ended in an unknown way without a result"),
        (
            Evidence { retries: retries(Some(529)), exit: exited(1), ..none() },
            "exit code 1 without a result, while it retried a request that failed with status 529",
        ),
        (
            Evidence { retries: retries(None), exit: exited(1), ..none() },
            "exit code 1 without a result, while it retried a request that failed",
        ),
    ];
    for (evidence, wanted) in cases {
        assert_eq!(classify(&evidence), crashed(wanted));
    }
}

#[test]
fn refused_credentials_count_from_the_second_in_a_row() {
    let after = |auth| {
        let retries = Retries { status: Some(401), auth, count: auth };
        classify(&Evidence { session_started: true, retries, exit: exited(1), ..Evidence::default() })
    };
    assert!(matches!(after(1), End::Crashed { .. }));
    assert!(matches!(after(2), End::Auth { .. }));
}

#[test]
fn a_resume_is_refused_only_by_the_agents_own_message() {
    let gone = "no rollout found for thread id 33333333-3333-7333-8333-333333333333";
    let no_id = "invalid session id: invalid character: expected an optional prefix";
    let taken = "thread 33333333-3333-7333-8333-333333333333 already has an active writer";
    let refused = |words: &str| Evidence {
        asked_to_resume: true,
        refused_request: Some(("the conversation", words.into())),
        exit: exited(0),
        ..Evidence::default()
    };
    let is = |why| End::ResumeRefused { why };
    let crash = |words: &str| crashed(&format!("the agent refused the conversation: {words}"));
    let cases = [
        (refused(gone), is(Refusal::NotFound)),
        (refused(no_id), is(Refusal::NotFound)),
        (refused(taken), is(Refusal::InUse)),
        (Evidence { asked_to_resume: false, ..refused(gone) }, crash(gone)),
        (Evidence { session_started: true, ..refused(gone) }, crash(gone)),
        (refused("the session expired"), crash("the session expired")),
    ];
    for (evidence, wanted) in cases {
        assert_eq!(classify(&evidence), wanted);
    }
}
