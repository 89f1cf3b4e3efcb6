//! Classifies an end: one pure function over all the evidence.
//!
//! The last frame of the stream decides, then the exit code, which is the status of the failed request modulo 256
//! unless it is one of the CLI's own. Exit code 0 means nothing: the CLI also exits with it when a signal ended it
//! and when the model's answer broke off. Anything unknown is a crash, never a success.

use towline_core::{End, Refusal, TurnStop, plain_line};

use super::wire::Failure;
use crate::json::{Text, lenient_objects};
use crate::kinds::acp::{Meaning, meaning_of};
use crate::protocol::ProcessEnd;
use crate::text;

#[cfg(test)]
mod tests;

/// Exit codes of the CLI's own.
mod exit {
    pub(super) const AUTH: i32 = 41;
    pub(super) const INPUT: i32 = 42;
    pub(super) const TURN_LIMIT: i32 = 53;
}

/// The first exit code that is the status of a request: 400 modulo 256.
const FIRST_STATUS: i32 = 400 - 256;

/// Comes before the provider's message.
const API_ERROR: &str = "[API Error: ";

/// On stderr when `--resume` names a session that this directory does not have.
const NOT_RESUMED: &str = "Error resuming session";

/// On stderr when `--session-id` names a session that exists: "Error starting session: Session ID … already exists."
const NOT_STARTED: &str = "Error starting session";
const IN_USE: &str = "already exists";

/// The provider's answer was incomplete.
const BROKE_OFF: &str = "Model stream ended";

/// The provider blocked the model's answer, for the reason that follows.
const BLOCKED: &str = "The model response was blocked";

/// All evidence of how an attempt ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Evidence {
    /// Whether an earlier session was to be resumed.
    pub(super) asked_to_resume: bool,
    /// Whether a session was opened.
    pub(super) session_started: bool,
    /// Whether the CLI reported that its own limit of turns was reached.
    pub(super) hit_turn_limit: bool,
    /// The last `error` that was no warning.
    pub(super) last_error: Option<String>,
    /// The end of the turn.
    pub(super) outcome: Option<Outcome>,
    /// How the process ended.
    pub(super) exit: ProcessEnd,
}

/// The content of a `result` frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) status: String,
    pub(super) error: Option<Failure>,
}

impl Outcome {
    fn is_clean(&self) -> bool {
        self.status == "success" && self.error.is_none()
    }
}

impl Evidence {
    /// How the turn ended, and the CLI's error message, which is empty without an error.
    pub(super) fn stop(&self, outcome: &Outcome) -> (TurnStop, String) {
        if outcome.is_clean() {
            let stop = if self.hit_turn_limit {
                TurnStop::Failed { status: None, reason: "turn limit".to_owned() }
            } else {
                TurnStop::Done
            };
            return (stop, String::new());
        }
        let kind = outcome.error.as_ref().map(|error| error.kind.clone());
        let reason = kind.filter(|kind| !kind.is_empty()).unwrap_or_else(|| outcome.status.clone());
        let (status, words) = self.api_error(outcome);
        (TurnStop::Failed { status, reason }, words)
    }

    /// The status and the message of the failure.
    fn api_error(&self, outcome: &Outcome) -> (Option<u16>, String) {
        let message = outcome.error.as_ref().map(|error| error.message.as_str());
        let message = message.filter(|message| !message.is_empty()).or(self.last_error.as_deref());
        message.map_or_else(|| (None, "an error without words".to_owned()), api_error)
    }
}

/// The end that the evidence shows.
pub(super) fn classify(evidence: &Evidence) -> End {
    match &evidence.outcome {
        Some(outcome) if !outcome.is_clean() => failed(evidence, outcome),
        Some(_) if evidence.hit_turn_limit => End::MaxTurns,
        Some(_) => End::Completed,
        None => without_result(evidence),
    }
}

/// The CLI's message when it did not resume the conversation.
pub(super) fn refused_words(end: &End, exit: &ProcessEnd) -> Option<String> {
    matches!(end, End::ResumeRefused { .. }).then(|| words_on_stderr(exit))
}

fn failed(evidence: &Evidence, outcome: &Outcome) -> End {
    let (status, message) = evidence.api_error(outcome);
    let kind = outcome.error.as_ref().map_or("", |error| error.kind.as_str());
    match (kind, evidence.exit.code) {
        ("FatalTurnLimitedError", _) | (_, Some(exit::TURN_LIMIT)) => return End::MaxTurns,
        ("FatalAuthenticationError", _) | (_, Some(exit::AUTH)) => return End::Auth { message },
        ("FatalCancellationError", _) => {
            return End::Crashed { message: "the turn was interrupted".to_owned() };
        }
        _ => {}
    }
    let status = status.or_else(|| http_status(&evidence.exit));
    if status.is_none() && message.starts_with(BROKE_OFF) {
        return End::ServerError { status, message };
    }
    if status.is_none() && message.starts_with(BLOCKED) {
        return End::Declined { message };
    }
    meaning_of(status, &message).end(status, None, message)
}

/// The end of an attempt without a completed turn.
fn without_result(evidence: &Evidence) -> End {
    let exit = &evidence.exit;
    let message = how_it_ended(exit);
    match exit.code {
        Some(exit::INPUT) if !evidence.session_started => {
            let contains = |words| exit.stderr_tail.contains(words);
            if evidence.asked_to_resume && contains(NOT_RESUMED) {
                return End::ResumeRefused { why: Refusal::NotFound };
            }
            if contains(NOT_STARTED) && contains(IN_USE) {
                return End::ResumeRefused { why: Refusal::InUse };
            }
            End::Crashed { message }
        }
        Some(exit::AUTH) => End::Auth { message: words_on_stderr(exit) },
        Some(exit::TURN_LIMIT) => End::MaxTurns,
        _ => match http_status(exit).map(|status| (status, meaning_of(Some(status), ""))) {
            // Without a message nothing shows that the conversation was too long.
            Some((_, Meaning::Overflow)) | None => End::Crashed { message },
            Some((status, meaning)) => meaning.end(Some(status), None, message),
        },
    }
}

/// The status that the exit code encodes.
fn http_status(exit: &ProcessEnd) -> Option<u16> {
    let code = exit.code.filter(|code| (FIRST_STATUS..256).contains(code))?;
    u16::try_from(code + 256).ok()
}

lenient_objects! {
    /// A provider's error answer.
    ApiError<'a> {
        "error" => error: ApiProblem<'a>,
    }

    ApiProblem<'a> {
        "code" => code: Option<u16>,
        "message" => message: Option<Text<'a>>,
    }
}

/// The provider's message without the CLI's text around it, and the status if there is one.
fn api_error(message: &str) -> (Option<u16>, String) {
    let Some((inner, _)) = message.strip_prefix(API_ERROR).and_then(|rest| rest.rsplit_once(']')) else {
        return (None, message.trim().to_owned());
    };
    match serde_json::from_str(inner) {
        Ok(ApiError { error }) => (error.code, error.message.as_deref().unwrap_or(inner).to_owned()),
        Err(_) => (None, inner.trim().to_owned()),
    }
}

fn how_it_ended(exit: &ProcessEnd) -> String {
    let message = format!("{} without a result", exit.how());
    let stderr = words_on_stderr(exit);
    if stderr.is_empty() { message } else { format!("{message}: {stderr}") }
}

/// The end of stderr, without colours and without the lines that are always there.
fn words_on_stderr(exit: &ProcessEnd) -> String {
    let is_chatter = |line: &String| {
        let chatter = ["YOLO mode is enabled", "Warning: 256-color", "Ripgrep is not available", "[STARTUP]"];
        chatter.iter().any(|words| line.starts_with(words))
    };
    let lines = exit.stderr_tail.lines().map(plain_line).filter(|line| !is_chatter(line));
    let lines: Vec<_> = lines.collect();
    text::tail(lines.join("\n").trim(), text::STDERR_QUOTE).to_owned()
}
