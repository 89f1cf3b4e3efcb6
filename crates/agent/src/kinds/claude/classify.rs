//! Classifies an end: one pure function over all the evidence.
//!
//! Fields decide where there are fields. Messages decide only where the CLI prints nothing else, and then by exact
//! phrases from recordings. Anything unknown is a crash, never a success.

use towline_core::{End, LaunchProblem, Refusal};

use crate::failures::{self, Rejected, Retries};
use crate::protocol::ProcessEnd;
use crate::text;

#[cfg(test)]
mod tests;

/// On stderr and among a result's errors when `--resume` names a session that this directory does not have.
const NO_CONVERSATION: &str = "No conversation found with session ID";

/// On stderr when `--session-id` names a session that exists: "Error: Session ID … is already in use."
const SESSION_ID: &str = "Session ID ";
const IN_USE: &str = " is already in use";

/// After this many requests in a row without an answer the turn is ended. The CLI itself would retry for minutes.
pub(super) const UNANSWERED: u32 = 5;

/// On stderr when root starts it with every permission.
const NOT_FOR_ROOT: &str = "cannot be used with root/sudo privileges";

/// The fix for root.
pub(super) const ROOT_FIX: &str = "run Towline as another user, set `permission = \"ask\"`, or set IS_SANDBOX=1 if \
                                   this machine is a sandbox";

/// All evidence of how an attempt ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Evidence {
    /// The address of the model's API.
    pub(super) provider: Option<String>,
    /// Whether an earlier session was to be resumed.
    pub(super) asked_to_resume: bool,
    /// Whether a session was opened.
    pub(super) session_started: bool,
    /// Whether the agent was in the middle of a turn.
    pub(super) in_turn: bool,
    /// The last end of a turn.
    pub(super) result: Option<TurnResult>,
    /// The quota is used up, according to the provider's last report.
    pub(super) rejected: Option<Rejected>,
    /// Failed requests since the last success.
    pub(super) retries: Retries,
    /// How many of the last ones had no answer at all.
    pub(super) unanswered: u32,
    /// The CLI's name for the last failed request.
    pub(super) assistant_error: Option<String>,
    /// How the process ended.
    pub(super) exit: ProcessEnd,
}

/// The content of a `result` frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TurnResult {
    pub(super) subtype: String,
    pub(super) is_error: Option<bool>,
    pub(super) api_error_status: Option<u16>,
    pub(super) text: String,
    pub(super) stop_reason: Option<String>,
    pub(super) terminal_reason: Option<String>,
    pub(super) errors: Vec<String>,
}

impl Evidence {
    /// Whether the provider has not answered for so long that the turn is ended.
    pub(super) fn is_cut_off(&self) -> bool {
        self.unanswered >= UNANSWERED
    }

    /// The provider cannot be reached; with the CLI's own message, if there is one.
    fn not_reached(&self, words: &str) -> End {
        let message = match words {
            "" => {
                format!("{}: {} requests in a row got no answer", self.unreached(), self.unanswered)
            }
            words => format!("{}: {words}", self.unreached()),
        };
        End::ServerError { status: None, message }
    }

    /// The provider that cannot be reached.
    pub(super) fn unreached(&self) -> String {
        let at = self.provider.as_ref().map_or_else(String::new, |provider| format!(" at {provider}"));
        format!("the provider{at} was not reached")
    }
}

impl TurnResult {
    /// A final frame without any sign of an error.
    pub(super) fn is_clean(&self) -> bool {
        self.subtype == "success" && self.is_error == Some(false) && self.api_error_status.is_none()
    }

    /// The turn was ended by an interrupt or a signal.
    pub(super) fn is_interrupted(&self) -> bool {
        matches!(self.terminal_reason.as_deref(), Some("aborted_streaming" | "aborted_tools"))
    }

    /// The conversation, or what comes with it, no longer fits the model.
    fn is_overflow(&self) -> bool {
        let full = ["prompt_too_long", "blocking_limit", "rapid_refill_breaker"];
        self.terminal_reason.as_deref().is_some_and(|reason| full.contains(&reason))
    }

    fn is_refusal(&self) -> bool {
        self.stop_reason.as_deref() == Some("refusal")
    }

    /// The best name for the error; `error` is the CLI's name for the last failed request.
    pub(super) fn name<'a>(&'a self, error: Option<&'a str>) -> &'a str {
        if self.is_refusal() {
            "refusal"
        } else if self.is_overflow() {
            self.terminal_reason.as_deref().unwrap_or_default()
        } else if self.subtype == "success" {
            error.unwrap_or("an error without a name")
        } else {
            &self.subtype
        }
    }

    /// The CLI's message about the error.
    pub(super) fn words(&self) -> String {
        // An interrupted turn has nothing but the CLI's diagnostics.
        if self.text.is_empty() && !self.is_interrupted() {
            self.errors.join("; ")
        } else {
            self.text.clone()
        }
    }
}

/// The end that the evidence shows.
pub(super) fn classify(evidence: &Evidence) -> End {
    if !evidence.session_started && evidence.exit.stderr_tail.contains(NOT_FOR_ROOT) {
        let message = format!("Claude Code refuses `permission = \"bypass\"` as root: {ROOT_FIX}");
        return End::SpawnFailed { problem: LaunchProblem::Other { message } };
    }
    if let Some(why) = refusal(evidence) {
        return End::ResumeRefused { why };
    }
    match &evidence.result {
        Some(result) if !evidence.in_turn => with_result(evidence, result),
        _ => without_result(evidence),
    }
}

fn refusal(evidence: &Evidence) -> Option<Refusal> {
    if evidence.session_started {
        return None;
    }
    let stderr = &evidence.exit.stderr_tail;
    let errors = evidence.result.iter().flat_map(|result| &result.errors);
    let not_found = errors.chain([stderr]).any(|words| words.contains(NO_CONVERSATION));
    let in_use = stderr.lines().any(|line| line.contains(SESSION_ID) && line.contains(IN_USE));
    if evidence.asked_to_resume && not_found {
        Some(Refusal::NotFound)
    } else {
        in_use.then_some(Refusal::InUse)
    }
}

fn with_result(evidence: &Evidence, result: &TurnResult) -> End {
    if result.is_refusal() {
        return End::Declined { message: result.words() };
    }
    if result.is_overflow() {
        return End::ContextOverflow;
    }
    if result.is_interrupted() && evidence.is_cut_off() {
        return evidence.not_reached("");
    }
    if result.is_interrupted() {
        return End::Crashed { message: "the turn was interrupted".to_owned() };
    }
    match result.subtype.as_str() {
        "error_max_turns" => End::MaxTurns,
        "error_max_budget_usd" => End::MaxBudget,
        _ if result.is_clean() => End::Completed,
        "success" | "error_during_execution" => failed_request(evidence, result),
        unknown => End::Crashed { message: text::named(unknown, &result.words()) },
    }
}

/// The end after a request to the model that failed for good, by its status or else by the CLI's name for the
/// failure.
fn failed_request(evidence: &Evidence, result: &TurnResult) -> End {
    let message = result.words();
    let status = result.api_error_status;
    let name = evidence.assistant_error.as_deref();
    let until = evidence.rejected.as_ref().and_then(|rejected| rejected.until);
    match (status, name) {
        (Some(401..=403), _) => End::Auth { message },
        (Some(429), _) => End::RateLimited { until },
        (Some(413), _) => End::ContextOverflow,
        (Some(408 | 500..=599), _) => End::ServerError { status, message },
        // An account that cannot pay needs a person, just like an unknown one.
        (_, Some("authentication_failed" | "oauth_org_not_allowed" | "billing_error")) => {
            End::Auth { message }
        }
        (Some(400 | 422), _) => End::Refused { status, message },
        (None, Some("rate_limit")) => End::RateLimited { until },
        (None, Some("server_error")) if evidence.unanswered > 0 => evidence.not_reached(&message),
        (None, Some("server_error" | "overloaded")) => End::ServerError { status, message },
        _ => End::Crashed { message: text::named(result.name(name), &message) },
    }
}

/// The end of an attempt without a completed turn.
fn without_result(evidence: &Evidence) -> End {
    match failures::without_result(&evidence.retries, evidence.rejected.as_ref(), how_it_ended(evidence)) {
        End::Crashed { .. } if evidence.is_cut_off() => evidence.not_reached(""),
        end => end,
    }
}

fn how_it_ended(evidence: &Evidence) -> String {
    let retried = evidence
        .retries
        .status
        .map(|status| format!(", while it retried a request that failed with status {status}"));
    evidence.exit.without(&format!("a result{}", retried.unwrap_or_default()))
}
