//! Classifies an end: one pure function over all the evidence.
//!
//! Fields decide where there are fields. Messages decide only where the app server sends nothing else, and then by
//! exact phrases from recordings. Anything unknown is a crash, never a success.

use jiff::Timestamp;
use serde_json::Value;
use towline_core::{End, Refusal};

use super::wire::TurnError;
use crate::failures::{self, Rejected, Retries};
use crate::jsonrpc::RpcError;
use crate::protocol::ProcessEnd;
use crate::text;

#[cfg(test)]
mod tests;

/// Why a conversation cannot be resumed: all refusals have the same code.
const NO_ROLLOUT: &str = "no rollout found for thread id";
const NO_SESSION_ID: &str = "invalid session id";
const IN_USE: &str = "already has an active writer";

/// A failed turn without an error name: there is no key for the request.
const NO_KEY: &str = "Missing environment variable: ";
/// A failed turn without an error name: the answer was cut off too often.
const CUT_OFF: &str = "stream disconnected before completion";

/// The provider's error type for a request that it does not accept as it is. The app server then quotes the whole
/// answer.
const INVALID_REQUEST: &str = "invalid_request_error";

/// All evidence of how an attempt ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Evidence {
    /// Whether an earlier conversation was to be resumed.
    pub(super) asked_to_resume: bool,
    /// Whether a conversation was opened.
    pub(super) session_started: bool,
    /// Whether the agent was in the middle of a turn.
    pub(super) in_turn: bool,
    /// A refused request that is required for a turn: what it was, and the message.
    pub(super) refused_request: Option<(&'static str, String)>,
    /// The last end of a turn.
    pub(super) result: Option<TurnResult>,
    /// The quota is used up, according to the provider's last report.
    pub(super) rejected: Option<Rejected>,
    /// Failed requests since the last success.
    pub(super) retries: Retries,
    /// How the process ended.
    pub(super) exit: ProcessEnd,
}

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TurnResult {
    pub(super) status: String,
    pub(super) error: Option<TurnError>,
}

/// The name of an error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ErrorName {
    pub(super) name: String,
    pub(super) status: Option<u16>,
}

impl ErrorName {
    pub(super) fn of(error: &TurnError) -> Self {
        let unnamed = || Self { name: "an error without a name".to_owned(), status: None };
        match &error.codex_error_info {
            Some(Value::String(name)) => Self { name: name.clone(), status: None },
            Some(Value::Object(fields)) => fields.iter().next().map_or_else(unnamed, |(name, more)| {
                let status = more.get("httpStatusCode").and_then(Value::as_u64);
                Self { name: name.clone(), status: status.and_then(|status| u16::try_from(status).ok()) }
            }),
            _ => unnamed(),
        }
    }
}

impl TurnResult {
    /// The agent has nothing more to do, and there is no sign of an error.
    pub(super) fn is_clean(&self) -> bool {
        self.status == "completed" && self.error.is_none()
    }

    /// The turn was ended by an interrupt.
    pub(super) fn is_interrupted(&self) -> bool {
        self.status == "interrupted"
    }

    /// The name of the error.
    pub(super) fn name(&self) -> ErrorName {
        match &self.error {
            Some(error) => ErrorName::of(error),
            None => ErrorName { name: format!("a turn that is {}", self.status), status: None },
        }
    }

    /// The agent's message about it.
    pub(super) fn words(&self) -> String {
        self.error.as_ref().map(|error| error.message.clone()).unwrap_or_default()
    }
}

/// The end that the evidence shows.
pub(super) fn classify(evidence: &Evidence) -> End {
    if let Some((what, words)) = &evidence.refused_request {
        return match refusal(evidence, words) {
            Some(why) => End::ResumeRefused { why },
            None => End::Crashed { message: format!("the agent refused {what}: {words}") },
        };
    }
    match &evidence.result {
        Some(result) if !evidence.in_turn => match result.status.as_str() {
            "completed" if result.is_clean() => End::Completed,
            "interrupted" => End::Crashed { message: "the turn was interrupted".to_owned() },
            _ => failed(evidence, result),
        },
        _ => failures::without_result(&evidence.retries, evidence.rejected.as_ref(), how_it_ended(evidence)),
    }
}

fn refusal(evidence: &Evidence, words: &str) -> Option<Refusal> {
    if !evidence.asked_to_resume || evidence.session_started {
        return None;
    }
    if words.contains(NO_ROLLOUT) || words.contains(NO_SESSION_ID) {
        Some(Refusal::NotFound)
    } else {
        words.contains(IN_USE).then_some(Refusal::InUse)
    }
}

/// Whether another process has the conversation open.
pub(super) fn is_in_use(error: &RpcError) -> bool {
    error.message.contains(IN_USE)
}

/// The end after a failed turn, by the name of its error or else by the status.
pub(super) fn failed(evidence: &Evidence, result: &TurnResult) -> End {
    let message = result.words();
    let until = evidence.rejected.as_ref().and_then(|rejected| rejected.until);
    let ErrorName { name, status } = result.name();
    match (name.as_str(), status) {
        ("contextWindowExceeded", _) | (_, Some(413)) => End::ContextOverflow,
        ("usageLimitExceeded" | "rateLimitExceeded", _) | (_, Some(429)) => End::RateLimited { until },
        ("unauthorized", _) | (_, Some(401..=403)) => End::Auth { message },
        ("sessionBudgetExceeded", _) => End::MaxBudget,
        ("cyberPolicy" | "misalignmentPolicyViolation", _) => End::Declined { message },
        ("serverOverloaded" | "internalServerError" | "flexUnavailable" | "policyCapacityUnavailable", _)
        | (_, Some(408 | 500..=599)) => End::ServerError { status, message },
        (
            "httpConnectionFailed"
            | "responseStreamConnectionFailed"
            | "responseStreamDisconnected"
            | "responseTooManyFailedAttempts",
            None,
        ) => End::ServerError { status, message },
        ("badRequest", _) | (_, Some(400 | 422)) => End::Refused { status, message },
        ("other", None) => by_words(message, until),
        _ => End::Crashed { message: text::named(&name, &message) },
    }
}

/// The end after a failure without a name. The message may be the provider's answer alone.
fn by_words(message: String, until: Option<Timestamp>) -> End {
    let answer: Value = serde_json::from_str(&message).unwrap_or_default();
    match answer.pointer("/error/code").and_then(Value::as_str) {
        Some("context_length_exceeded") => return End::ContextOverflow,
        Some("insufficient_quota" | "rate_limit_exceeded") => return End::RateLimited { until },
        Some("invalid_api_key") => return End::Auth { message },
        _ => {}
    }
    if answer.pointer("/error/type").and_then(Value::as_str) == Some(INVALID_REQUEST) {
        return End::Refused { status: None, message };
    }
    if message.starts_with(NO_KEY) {
        End::Auth { message }
    } else if message.starts_with(CUT_OFF) {
        End::ServerError { status: None, message }
    } else {
        End::Crashed { message: text::named("other", &message) }
    }
}

fn how_it_ended(evidence: &Evidence) -> String {
    let status = evidence.retries.status.map(|status| format!(" with status {status}")).unwrap_or_default();
    let retried = match evidence.retries.count {
        0 => String::new(),
        _ => format!(", while it retried a request that failed{status}"),
    };
    evidence.exit.without(&format!("a result{retried}"))
}
