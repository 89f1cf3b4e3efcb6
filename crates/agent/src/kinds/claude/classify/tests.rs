//! The table of endings.

use jiff::Timestamp;
use towline_core::{End, LaunchProblem, Refusal};

use super::{Evidence, Rejected, Retries, TurnResult, UNANSWERED, classify};
use crate::kinds::ends::{auth, crashed, exited, server};
use crate::protocol::ProcessEnd;

fn clean() -> TurnResult {
    TurnResult {
        subtype: "success".into(),
        is_error: Some(false),
        text: "done".into(),
        stop_reason: Some("end_turn".into()),
        terminal_reason: Some("completed".into()),
        ..TurnResult::default()
    }
}

/// As the CLI reports a failed request: a success by its subtype.
fn failed(status: Option<u16>) -> TurnResult {
    TurnResult { is_error: Some(true), api_error_status: status, text: "words".into(), ..clean() }
}

fn error(subtype: &str) -> TurnResult {
    TurnResult {
        subtype: subtype.into(),
        is_error: Some(true),
        errors: vec!["words".into()],
        ..TurnResult::default()
    }
}

fn with(result: TurnResult) -> Evidence {
    let code = i32::from(result.is_error != Some(false));
    Evidence { session_started: true, result: Some(result), exit: exited(code), ..Evidence::default() }
}

fn named(status: Option<u16>, name: &str) -> Evidence {
    Evidence { assistant_error: Some(name.into()), ..with(failed(status)) }
}

fn reset() -> Timestamp {
    Timestamp::from_second(1_794_711_639).expect("in range")
}

#[test]
fn a_result_is_classified_by_its_fields() {
    let terminal = |reason: &str| TurnResult { terminal_reason: Some(reason.into()), ..failed(Some(400)) };
    let refused = TurnResult { stop_reason: Some("refusal".into()), ..failed(None) };
    let cases = [
        ("clean", with(clean()), End::Completed),
        ("401", with(failed(Some(401))), auth("words")),
        ("403", with(failed(Some(403))), auth("words")),
        ("429", with(failed(Some(429))), End::RateLimited { until: None }),
        ("408", with(failed(Some(408))), server(Some(408), "words")),
        ("500", with(failed(Some(500))), server(Some(500), "words")),
        ("529", with(failed(Some(529))), server(Some(529), "words")),
        ("413", with(failed(Some(413))), End::ContextOverflow),
        ("prompt too long", with(terminal("prompt_too_long")), End::ContextOverflow),
        ("context blocked", with(terminal("blocking_limit")), End::ContextOverflow),
        ("refusal", with(refused), End::Declined { message: "words".into() }),
        ("max turns", with(error("error_max_turns")), End::MaxTurns),
        ("max budget", with(error("error_max_budget_usd")), End::MaxBudget),
        ("not logged in", named(None, "authentication_failed"), auth("words")),
        ("cannot pay", named(Some(400), "billing_error"), auth("words")),
        ("limit without a status", named(None, "rate_limit"), End::RateLimited { until: None }),
        ("no connection", named(None, "server_error"), server(None, "words")),
        ("no such model", named(Some(404), "model_not_found"), crashed("model_not_found: words")),
        ("bad request", with(failed(Some(400))), End::Refused { status: Some(400), message: "words".into() }),
        ("no status, no name", with(failed(None)), crashed("an error without a name: words")),
        ("during execution", with(error("error_during_execution")), crashed("error_during_execution: words")),
        ("unknown subtype", with(error("error_brand_new")), crashed("error_brand_new: words")),
        ("interrupted", with(terminal("aborted_tools")), crashed("the turn was interrupted")),
    ];
    for (name, evidence, wanted) in cases {
        assert_eq!(classify(&evidence), wanted, "{name}");
    }
}

#[test]
fn an_unreachable_provider_is_named_whichever_side_stopped() {
    let provider = Some("http://127.0.0.1:9".to_owned());
    let interrupted = TurnResult { terminal_reason: Some("aborted_streaming".into()), ..failed(None) };
    let by_itself = Evidence { unanswered: 2, ..named(None, "server_error") };
    let by_us = Evidence { unanswered: UNANSWERED, ..with(interrupted.clone()) };
    let killed = Evidence { unanswered: UNANSWERED, in_turn: true, ..Evidence::default() };
    let reached = "the provider at http://127.0.0.1:9 was not reached";
    let given_up = format!("{reached}: {UNANSWERED} requests in a row got no answer");
    let cases = [(by_itself, format!("{reached}: words")), (by_us, given_up.clone()), (killed, given_up)];
    for (evidence, message) in cases {
        let evidence = Evidence { provider: provider.clone(), ..evidence };
        assert_eq!(classify(&evidence), End::ServerError { status: None, message });
    }
    let somewhere = Evidence { unanswered: 1, ..named(None, "server_error") };
    let message = "the provider was not reached: words".to_owned();
    assert_eq!(classify(&somewhere), End::ServerError { status: None, message });
    let early = Evidence { unanswered: UNANSWERED - 1, ..with(interrupted) };
    assert_eq!(classify(&early), crashed("the turn was interrupted"));
}

#[test]
fn a_refusal_of_root_is_a_failed_launch_unless_a_session_started() {
    let stderr_tail = "--dangerously-skip-permissions cannot be used with root/sudo privileges".to_owned();
    let refused = Evidence { exit: ProcessEnd { stderr_tail, ..exited(1) }, ..Evidence::default() };
    let End::SpawnFailed { problem: LaunchProblem::Other { message } } = classify(&refused) else {
        panic!("{:?}", classify(&refused))
    };
    assert!(message.contains("as root: run Towline as another user"), "{message}");
    let later = Evidence { session_started: true, ..refused };
    assert!(matches!(classify(&later), End::Crashed { .. }));
}

#[test]
fn a_contradictory_success_is_none() {
    let cases = [
        TurnResult { is_error: None, ..clean() },
        TurnResult { is_error: Some(true), ..clean() },
        TurnResult { api_error_status: Some(404), ..clean() },
        TurnResult { subtype: "succes".into(), ..clean() },
        TurnResult { subtype: String::new(), ..clean() },
    ];
    for result in cases {
        let end = classify(&with(result.clone()));
        assert!(matches!(end, End::Crashed { .. }), "{result:?} gives {end:?}");
    }
}

#[test]
fn a_rejected_quota_has_its_reset_time() {
    let until = Some(reset());
    let limited = Evidence { rejected: Some(Rejected { until }), ..with(failed(Some(429))) };
    assert_eq!(classify(&limited), End::RateLimited { until });
    let killed = Evidence { result: None, ..limited };
    assert_eq!(classify(&killed), End::RateLimited { until });
}

#[test]
fn a_clean_result_counts_however_the_process_ends() {
    for exit in [
        exited(1),
        exited(143),
        ProcessEnd { signal: Some(15), ..ProcessEnd::default() },
        ProcessEnd::default(),
    ] {
        let evidence = Evidence { exit: exit.clone(), ..with(clean()) };
        assert_eq!(classify(&evidence), End::Completed, "{exit:?}");
    }
}

#[test]
fn an_exit_without_a_result_is_a_crash_with_all_that_is_known() {
    let stderr = ProcessEnd { stderr_tail: "out of memory\n".into(), ..exited(134) };
    let signal = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let overloaded = Retries { status: Some(529), ..Retries::default() };
    let cases = [
        (Evidence { exit: exited(0), ..Evidence::default() }, "exit code 0 without a result"),
        (Evidence { exit: stderr, ..Evidence::default() }, "exit code 134 without a result: out of memory"),
        (Evidence { exit: signal, ..Evidence::default() }, "ended by signal 9 without a result"),
        (Evidence::default(), "ended in an unknown way without a result"),
        (
            Evidence { retries: overloaded, exit: exited(1), ..Evidence::default() },
            "exit code 1 without a result, while it retried a request that failed with status 529",
        ),
        (Evidence { in_turn: true, ..with(clean()) }, "exit code 0 without a result"),
    ];
    for (evidence, wanted) in cases {
        assert_eq!(classify(&evidence), crashed(wanted));
    }
}

#[test]
fn the_end_of_a_long_stderr_is_quoted() {
    let stderr_tail = format!("{}\nthe disk is on fire\n", "a warning ".repeat(1_000));
    let end = classify(&Evidence { exit: ProcessEnd { stderr_tail, ..exited(1) }, ..Evidence::default() });
    let End::Crashed { message } = end else { panic!("{end:?}") };
    assert!(message.ends_with("a warning \nthe disk is on fire"), "{message}");
    assert!(message.len() < 600, "{message}");
}

#[test]
fn refused_credentials_count_from_the_second_in_a_row() {
    let after = |auth| {
        let retries = Retries { status: Some(401), auth, ..Retries::default() };
        classify(&Evidence {
            session_started: true,
            in_turn: true,
            retries,
            exit: exited(1),
            ..Evidence::default()
        })
    };
    assert!(matches!(after(1), End::Crashed { .. }));
    assert!(matches!(after(2), End::Auth { .. }));
}

#[test]
fn a_session_is_refused_only_by_the_clis_own_message_and_before_it_starts() {
    let stderr = |text: &str| ProcessEnd { stderr_tail: text.into(), ..exited(1) };
    let gone = "No conversation found with session ID: 33333333-3333-4333-8333-333333333333\n";
    let taken = "Error: Session ID 22222222-2222-4222-8222-222222222222 is already in use.\n";
    let asked = |text| Evidence { asked_to_resume: true, exit: stderr(text), ..Evidence::default() };
    let fresh = |text| Evidence { asked_to_resume: false, ..asked(text) };
    let in_errors = TurnResult { errors: vec![gone.into()], ..error("error_during_execution") };
    let refused = |why| Some(End::ResumeRefused { why });
    let cases = [
        ("gone", asked(gone), refused(Refusal::NotFound)),
        ("gone, by field", Evidence { result: Some(in_errors), ..asked("") }, refused(Refusal::NotFound)),
        ("taken, fresh", fresh(taken), refused(Refusal::InUse)),
        ("taken, resumed", asked(taken), refused(Refusal::InUse)),
        ("gone, but nobody asked", fresh(gone), None),
        ("gone, but it started", Evidence { session_started: true, ..asked(gone) }, None),
        ("some other words about sessions", asked("the session expired: address already in use"), None),
    ];
    for (name, evidence, wanted) in cases {
        let end = classify(&evidence);
        match wanted {
            Some(wanted) => assert_eq!(end, wanted, "{name}"),
            None => assert!(matches!(end, End::Crashed { .. }), "{name}: {end:?}"),
        }
    }
}
