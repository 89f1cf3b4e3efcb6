//! The table of endings.

use towline_core::{End, Refusal};

use super::{Evidence, Outcome, classify};
use crate::kinds::ends::{auth, crashed, exited, server};
use crate::kinds::gemini::wire::Failure;
use crate::protocol::ProcessEnd;

const LIMITED: End = End::RateLimited { until: None };

/// A turn that ended with an error.
fn failed(kind: &str, message: &str, code: i32) -> End {
    let error = Some(Failure { kind: kind.into(), message: message.into() });
    let outcome = Some(Outcome { status: "error".into(), error });
    classify(&Evidence { session_started: true, outcome, exit: exited(code), ..Evidence::default() })
}

fn unfinished(exit: ProcessEnd, asked_to_resume: bool) -> End {
    classify(&Evidence { asked_to_resume, exit, ..Evidence::default() })
}

fn stderr(code: i32, words: &str) -> ProcessEnd {
    ProcessEnd { stderr_tail: words.into(), ..exited(code) }
}

#[test]
fn only_a_result_without_error_is_a_success() {
    let clean = Outcome { status: "success".into(), error: None };
    let end = |outcome: Outcome, hit_turn_limit| {
        let exit = exited(0);
        classify(&Evidence { hit_turn_limit, outcome: Some(outcome), exit, ..Evidence::default() })
    };
    assert_eq!(end(clean.clone(), false), End::Completed);
    assert_eq!(end(clean.clone(), true), End::MaxTurns);
    let with_error = Outcome { error: Some(Failure::default()), ..clean.clone() };
    assert_eq!(end(with_error, false), crashed("an error without words"));
    let unknown = Outcome { status: "partial".into(), error: None };
    assert_eq!(end(unknown, false), crashed("an error without words"));
    // It may be ended once its turn is over.
    let exit = ProcessEnd { signal: Some(15), ..ProcessEnd::default() };
    assert_eq!(classify(&Evidence { outcome: Some(clean), exit, ..Evidence::default() }), End::Completed);
}

#[test]
fn a_failed_request_is_classified_by_status_then_exit_code_then_message() {
    let api_error = |code: u16| format!(r#"[API Error: {{"error":{{"code":{code},"message":"words"}}}}]"#);
    let cases = [
        (api_error(401), 145, auth("words")),
        (api_error(403), 147, auth("words")),
        (api_error(429), 173, LIMITED),
        (api_error(500), 244, server(Some(500), "words")),
        (api_error(503), 247, server(Some(503), "words")),
        (api_error(400), 144, End::Refused { status: Some(400), message: "words".into() }),
        (api_error(404), 148, crashed("words")),
        // The message counts more than the exit code.
        (api_error(500), 145, server(Some(500), "words")),
        // Messages without a status.
        ("[API Error: quota of today]\nwait".into(), 173, LIMITED),
        ("[API Error: boom]".into(), 244, server(Some(500), "boom")),
        ("boom".into(), 145, auth("boom")),
        (
            "[API Error: API key not valid. Pass another.]".into(),
            144,
            auth("API key not valid. Pass another."),
        ),
        ("input exceeds the maximum number of tokens".into(), 144, End::ContextOverflow),
        ("fetch failed".into(), 1, server(None, "fetch failed")),
        ("boom".into(), 1, crashed("boom")),
        ("boom".into(), 0, crashed("boom")),
        // The shell's exit code for a signal, not a status.
        ("boom".into(), 143, crashed("boom")),
    ];
    for (message, code, wanted) in cases {
        assert_eq!(failed("unknown", &message, code), wanted, "{message} {code}");
    }
}

#[test]
fn the_clis_own_errors_have_their_ends() {
    assert_eq!(failed("FatalTurnLimitedError", "words", 53), End::MaxTurns);
    assert_eq!(failed("unknown", "words", 53), End::MaxTurns);
    assert_eq!(failed("FatalAuthenticationError", "words", 41), auth("words"));
    assert_eq!(failed("FatalCancellationError", "words", 130), crashed("the turn was interrupted"));
    assert_eq!(failed("FatalInputError", "words", 42), crashed("words"));
    assert_eq!(failed("FatalToolExecutionError", "words", 54), crashed("words"));
}

#[test]
fn an_answer_that_broke_off_or_was_blocked_is_no_success_although_it_exits_with_0() {
    let end = |words: &str| {
        let outcome = Some(Outcome { status: "error".into(), error: None });
        let last_error = Some(words.to_owned());
        classify(&Evidence { last_error, outcome, exit: exited(0), ..Evidence::default() })
    };
    let broke_off = "Model stream ended without a finish reason.";
    assert_eq!(end(broke_off), server(None, broke_off));
    let blocked = "The model response was blocked due to safety settings.";
    assert_eq!(end(blocked), End::Declined { message: blocked.into() });
    assert_eq!(end("The model returned nothing."), crashed("The model returned nothing."));
}

#[test]
fn without_a_result_no_exit_is_a_success() {
    let resuming = "Error resuming session: Invalid session identifier \"x\".";
    let starting = "Error starting session: Session ID \"x\" already exists. Use --resume to resume it.";
    let colours =
        "YOLO mode is enabled. All tool calls will be automatically approved.\n\u{1b}[31mno trust\u{1b}[0m\n";
    let signal = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let not_found = End::ResumeRefused { why: Refusal::NotFound };
    let cases = [
        (exited(0), false, crashed("exit code 0 without a result")),
        (exited(1), false, crashed("exit code 1 without a result")),
        (signal, false, crashed("ended by signal 9 without a result")),
        (ProcessEnd::default(), false, crashed("ended in an unknown way without a result")),
        (stderr(41, "no method"), false, auth("no method")),
        (stderr(42, resuming), true, not_found),
        (stderr(42, resuming), false, crashed(&format!("exit code 42 without a result: {resuming}"))),
        (stderr(42, starting), false, End::ResumeRefused { why: Refusal::InUse }),
        (stderr(42, "No input"), true, crashed("exit code 42 without a result: No input")),
        (exited(53), false, End::MaxTurns),
        (stderr(55, colours), false, crashed("exit code 55 without a result: no trust")),
        (exited(145), false, auth("exit code 145 without a result")),
        (exited(173), false, LIMITED),
        (exited(244), false, server(Some(500), "exit code 244 without a result")),
        (
            exited(144),
            false,
            End::Refused { status: Some(400), message: "exit code 144 without a result".into() },
        ),
        (exited(148), false, crashed("exit code 148 without a result")),
    ];
    for (exit, resume, wanted) in cases {
        assert_eq!(unfinished(exit.clone(), resume), wanted, "{exit:?}");
    }
}
