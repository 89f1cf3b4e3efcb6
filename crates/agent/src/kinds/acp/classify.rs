//! Classifies an end: one pure function over all the evidence.
//!
//! Codes decide where there are codes. Messages decide only where the agent sends nothing else, and then by phrases
//! from recordings. Anything unknown is a crash, never a success.

use jiff::Timestamp;
use towline_core::{End, Refusal, TurnStop};

use super::builtin;
use super::opening::Way;
use crate::json::{Text, lenient_objects};
use crate::jsonrpc::RpcError;
use crate::protocol::ProcessEnd;

#[cfg(test)]
mod tests;

/// The protocol's code for an agent that is not signed in.
const AUTH_REQUIRED: i64 = -32_000;

/// Providers' phrases about credentials and accounts that only a person can fix.
const AUTH_WORDS: [&str; 8] = [
    "incorrect api key",
    "invalid api key",
    "api key not valid",
    "invalid x-api-key",
    "invalid authentication",
    "unauthorized",
    "exceeded your current quota",
    "credit balance is too low",
];

const LIMIT_WORDS: [&str; 3] = ["rate limit", "too many requests", "rate_limit"];

const OVERFLOW_WORDS: [&str; 4] = [
    "maximum context length",
    "exceeds the maximum number of tokens",
    "prompt is too long",
    "context_length_exceeded",
];

const SERVER_WORDS: [&str; 9] = [
    "the server had an error",
    "internal server error",
    "overloaded",
    "service unavailable",
    "bad gateway",
    "gateway timeout",
    "unable to connect",
    "cannot connect",
    "fetch failed",
];

/// All evidence of how an attempt ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Evidence {
    /// Whether the agent was in the middle of a turn.
    pub(super) in_turn: bool,
    /// The last end of a turn, or the reason why there was none.
    pub(super) outcome: Option<Outcome>,
    /// How the process ended.
    pub(super) exit: ProcessEnd,
}

/// The result of a prompt, or of the steps before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// The agent stopped and gave a reason.
    Stopped {
        /// The protocol's name for it.
        reason: String,
        text: String,
    },
    /// The agent stopped without a reason.
    Nameless { text: String },
    /// The agent reports success but did nothing.
    Empty { text: String },
    /// One of our requests was refused.
    Failed(Failed),
}

/// A refused request of ours.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failed {
    /// Before the session, or between the session and the prompt.
    Opening { what: &'static str, error: RpcError },
    /// The session itself.
    Session {
        /// How it was to be opened.
        way: Way,
        error: RpcError,
    },
    /// The agent has no model at all.
    NoModel,
    Prompt {
        error: RpcError,
        /// The last message before the refusal.
        text: String,
    },
}

impl Outcome {
    /// Why the turn stopped.
    pub(super) fn stop(&self) -> TurnStop {
        let failed = |status, reason: &str| TurnStop::Failed { status, reason: reason.to_owned() };
        match self {
            Self::Stopped { reason, .. } if reason == "end_turn" => TurnStop::Done,
            Self::Stopped { reason, .. } if reason == "cancelled" => TurnStop::Interrupted,
            Self::Stopped { reason, .. } => failed(None, reason),
            Self::Nameless { .. } => failed(None, "no stop reason"),
            Self::Empty { .. } => failed(None, "an empty turn"),
            Self::Failed(Failed::NoModel) => failed(None, "no model"),
            Self::Failed(
                Failed::Prompt { error, .. } | Failed::Session { error, .. } | Failed::Opening { error, .. },
            ) => {
                let by_words = || matches!(meaning(error, &words(error)), Meaning::Auth).then_some(401);
                let status = status(error).or_else(by_words);
                failed(status, &format!("error {}", error.code))
            }
        }
    }

    /// The last message or the error.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Stopped { text, .. } | Self::Nameless { text } | Self::Empty { text } => text.clone(),
            Self::Failed(Failed::Prompt { error, text }) if text.is_empty() => words(error),
            Self::Failed(Failed::Prompt { text, .. }) => text.clone(),
            Self::Failed(Failed::Session { error, .. } | Failed::Opening { error, .. }) => words(error),
            Self::Failed(Failed::NoModel) => String::new(),
        }
    }
}

/// The end that the evidence shows.
pub(super) fn classify(evidence: &Evidence) -> End {
    match &evidence.outcome {
        Some(outcome) if !evidence.in_turn => with_outcome(outcome),
        _ => End::Crashed { message: evidence.exit.without("an answer to the prompt") },
    }
}

fn with_outcome(outcome: &Outcome) -> End {
    match outcome {
        Outcome::Stopped { reason, text } => match reason.as_str() {
            "end_turn" => End::Completed,
            "max_turn_requests" => End::MaxTurns,
            "refusal" => End::Declined { message: text.clone() },
            "cancelled" => End::Crashed { message: "the turn was interrupted".to_owned() },
            "max_tokens" => {
                End::Crashed { message: "the model's answer reached its limit of tokens".to_owned() }
            }
            unknown => End::Crashed { message: format!("the turn stopped for an unknown reason: {unknown}") },
        },
        Outcome::Nameless { .. } => End::Crashed { message: "the turn stopped without a reason".to_owned() },
        Outcome::Empty { .. } => End::Crashed {
            message:
                "the turn ended without a whole answer: the model's answer was empty, blocked or cut off"
                    .to_owned(),
        },
        Outcome::Failed(Failed::NoModel) => {
            End::Auth { message: "the agent has no model: no provider is signed in to".to_owned() }
        }
        Outcome::Failed(Failed::Session { way: Way::Load | Way::Resume, error })
            if meaning(error, &words(error)) != Meaning::Auth =>
        {
            End::ResumeRefused { why: Refusal::NotFound }
        }
        Outcome::Failed(Failed::Session { error, .. }) => failed("the session could not be opened", error),
        Outcome::Failed(Failed::Opening { what, error }) => failed(&format!("{what} failed"), error),
        Outcome::Failed(Failed::Prompt { error, .. }) => failed("the prompt failed", error),
    }
}

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Credentials or the account: only a person can fix that.
    Auth,
    /// A used-up quota.
    Limit,
    /// A conversation that no longer fits the model.
    Overflow,
    /// An error of the provider, or no connection to it.
    Server,
    /// A request that the provider does not accept as it is.
    Refused,
    Unknown,
}

impl Meaning {
    /// The end after a request that failed for good.
    pub(crate) fn end(self, status: Option<u16>, until: Option<Timestamp>, message: String) -> End {
        match self {
            Self::Auth => End::Auth { message },
            Self::Limit => End::RateLimited { until },
            Self::Overflow => End::ContextOverflow,
            Self::Server => End::ServerError { status, message },
            Self::Refused => End::Refused { status, message },
            Self::Unknown => End::Crashed { message },
        }
    }
}

fn failed(what: &str, error: &RpcError) -> End {
    let message = words(error);
    match meaning(error, &message) {
        Meaning::Unknown => End::Crashed { message: format!("{what}: {message}") },
        meaning => meaning.end(status(error), builtin::until(error), message),
    }
}

/// Agents that pass on the provider's status use it as the code.
fn status(error: &RpcError) -> Option<u16> {
    // Without a complete answer, the code is not the provider's.
    let has_answered = !matches!(builtin::class(error), Some("network" | "cut_off"));
    u16::try_from(error.code).ok().filter(|code| (400..600).contains(code) && has_answered)
}

fn meaning(error: &RpcError, words: &str) -> Meaning {
    if let Some(meaning) = builtin::class(error).and_then(builtin::meaning) {
        return meaning;
    }
    let status = status(error);
    let name = error.data.get("errorName").and_then(serde_json::Value::as_str);
    match (status, name) {
        _ if error.code == AUTH_REQUIRED => Meaning::Auth,
        (_, Some("ProviderAuthError")) => Meaning::Auth,
        (Some(401..=403 | 429), _) => meaning_of(status, ""),
        (_, Some("ContextOverflowError")) => Meaning::Overflow,
        // The provider answered with a permanent error. The status is not reported.
        (None, Some("APIError")) => match meaning_of(None, words) {
            Meaning::Unknown => Meaning::Refused,
            meaning => meaning,
        },
        _ => meaning_of(status, words),
    }
}

/// The cause of a failed request to a provider: by its status, or else by the message.
pub(crate) fn meaning_of(status: Option<u16>, words: &str) -> Meaning {
    match status {
        Some(401..=403) => Meaning::Auth,
        Some(429) => Meaning::Limit,
        Some(413) => Meaning::Overflow,
        Some(408 | 500..=599) => Meaning::Server,
        Some(400 | 422) => match meaning_of_words(words) {
            Meaning::Unknown => Meaning::Refused,
            meaning => meaning,
        },
        _ => meaning_of_words(words),
    }
}

fn meaning_of_words(words: &str) -> Meaning {
    let spoken = words.to_lowercase();
    let contains = |all: &[&str]| all.iter().any(|words| spoken.contains(words));
    if contains(&OVERFLOW_WORDS) {
        Meaning::Overflow
    } else if contains(&LIMIT_WORDS) {
        Meaning::Limit
    } else if contains(&AUTH_WORDS) {
        Meaning::Auth
    } else if contains(&SERVER_WORDS) {
        Meaning::Server
    } else {
        Meaning::Unknown
    }
}

lenient_objects! {
    /// A provider's answer, if the message of a refusal is that answer verbatim.
    Quoted<'a> {
        "error" => error: QuotedError<'a>,
    }

    QuotedError<'a> {
        "message" => message: Option<Text<'a>>,
    }
}

/// The text of a refusal, without generic phrases.
fn words(error: &RpcError) -> String {
    let quoted: Option<Quoted<'_>> = serde_json::from_str(&error.message).ok();
    let quoted = quoted.as_ref().and_then(|quoted| quoted.error.message.as_deref());
    let details = ["/details", "/message"].iter().find_map(|field| error.data.pointer(field)?.as_str());
    let message = quoted.unwrap_or_else(|| {
        let bare = error.message.strip_prefix("Internal error").unwrap_or(&error.message);
        bare.trim_start_matches(':').trim()
    });
    let parts: Vec<_> =
        [message, details.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { format!("error {}", error.code) } else { parts.join(": ") }
}
