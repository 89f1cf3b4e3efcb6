//! The phases of a goal, and the reasons for each.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::{name_of, names};
use crate::{AttemptNo, Axis, EndKind, MissingProgram, Policy, QuestionNo, Timeout};

/// The phase of a goal. A cache of its log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// Waits for a slot.
    #[default]
    Queued,
    /// Its workspace is being made.
    Preparing,
    /// An attempt is alive.
    Running { attempt: AttemptNo },
    /// Something is being ended; nothing else may start.
    Stopping(Stopping),
    /// Towline runs the checks.
    Checking {
        /// The attempt whose work is checked.
        attempt: AttemptNo,
    },
    /// Waits by itself before it goes on.
    Sleeping { until: Timestamp, reason: String },
    /// The provider's quota is used up.
    Limited {
        until: Timestamp,
        /// Whether the time is a guess of ours instead of the provider's word.
        guessed: bool,
    },
    /// A person must answer.
    Blocked {
        /// The first question that is open.
        question: QuestionNo,
        /// The attempt that waits for the answer, as long as it is alive.
        attempt: Option<AttemptNo>,
        /// When the default is taken, or the goal is escalated.
        until: Option<Timestamp>,
    },
    /// Interrupted until somebody resumes it.
    Paused {
        /// Who asked for it.
        reason: PauseReason,
    },
    /// Towline will not go on alone.
    Escalated {
        /// Why, and what to do.
        reason: EscalationReason,
    },
    /// The checks passed on the candidate.
    Done,
    /// The agent reports that it is done, and the goal has no checks.
    Unproven,
    /// It ended without success.
    Failed { reason: FailureReason },
    /// The operator ended it.
    Cancelled,
}

/// What is being ended, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// The attempt whose agent or checks are being ended; none while the workspace is being made.
    pub attempt: Option<AttemptNo>,
    pub why: StopWhy,
}

/// Who asked for a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    Operator,
    /// A signal that ends processes, such as at the shutdown of the machine.
    Shutdown,
}

impl PauseReason {
    /// Who asked for it, for people.
    pub const fn by(self) -> &'static str {
        match self {
            Self::Operator => "by you",
            Self::Shutdown => "by a shutdown signal",
        }
    }
}

/// Why a tree is being ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum StopWhy {
    /// The operator cancelled the goal.
    Cancel,
    /// The goal is paused.
    Pause {
        /// Who asked for it.
        reason: PauseReason,
    },
    /// The goal was resumed before its pause had begun.
    Resume,
    /// The credentials were refused again and again.
    Auth {
        /// The agent's own message.
        message: String,
    },
    /// A budget is spent.
    Budget { axis: Axis },
    /// A budget that goals share is spent.
    SharedBudget,
    /// It waits for an answer that may take long: the session goes on when there is one.
    Asked,
    /// A timeout was reached.
    #[serde(rename = "clock")]
    Timeout {
        #[serde(rename = "clock")]
        timeout: Timeout,
    },
}

/// Why a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum EscalationReason {
    /// The agent's credentials are refused.
    Auth {
        agent: String,
        /// The agent's own message.
        message: String,
    },
    /// No agent that the goal names can go on.
    NoAgent,
    /// The agent cannot be started.
    SpawnFailed {
        /// What was in the way, with the fix.
        problem: String,
    },
    /// The agent printed more than a file may hold.
    OutputLimit,
    /// The agent died several times before it had a session.
    NeverStarted {
        /// What it printed.
        message: String,
    },
    /// The same files fail the same checks again and again.
    NoProgress {
        /// How often in a row.
        times: u32,
    },
    /// The model refuses to do the work.
    Declined { message: String },
    /// The checks cannot be run.
    ChecksFailed {
        /// What went wrong and what to do.
        error: String,
    },
    /// The user's repository was moved or deleted.
    RepositoryGone {
        /// Where it was.
        path: String,
    },
    /// The configuration of the goal's project cannot be used.
    Configuration {
        /// What is wrong with it, and where.
        error: String,
    },
    /// The agent needs a tool that it may not use.
    PermissionDenied {
        tool: String,
        /// The rule that denied it, or that would allow it.
        rule: String,
    },
    /// The provider did not answer for hours.
    Unreachable {
        /// What the last attempt reported.
        message: String,
    },
    /// Nobody answered in time, and the question has no default.
    Unanswered { question: String },
    /// A judge cannot give a verdict on the work.
    JudgeUnavailable {
        check: String,
        agent: String,
        /// What was in the way, with the fix.
        problem: String,
    },
}

impl EscalationReason {
    /// The class of end that led to it, where it was one.
    pub const fn end(&self) -> Option<EndKind> {
        match self {
            Self::Auth { .. } => Some(EndKind::Auth),
            Self::SpawnFailed { .. } => Some(EndKind::SpawnFailed),
            Self::OutputLimit => Some(EndKind::OutputLimit),
            Self::NeverStarted { .. } => Some(EndKind::Crashed),
            Self::Declined { .. } => Some(EndKind::Declined),
            Self::PermissionDenied { .. } => Some(EndKind::PermissionDenied),
            Self::Unreachable { .. } => Some(EndKind::ServerError),
            Self::NoAgent
            | Self::NoProgress { .. }
            | Self::ChecksFailed { .. }
            | Self::RepositoryGone { .. }
            | Self::Configuration { .. }
            | Self::Unanswered { .. }
            | Self::JudgeUnavailable { .. } => None,
        }
    }
}

impl fmt::Display for EscalationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auth { agent, message } => write!(f, "{}: agent `{agent}`: {message}", EndKind::Auth),
            Self::NoAgent => f.write_str("no agent that the goal names can go on"),
            Self::SpawnFailed { problem } => write!(f, "the agent {}: {problem}", EndKind::SpawnFailed),
            Self::OutputLimit => {
                let title = EndKind::OutputLimit;
                write!(f, "the agent {title}; raise the limit with `ulimit -f unlimited` and retry")
            }
            Self::NeverStarted { message } => {
                write!(f, "the agent ended several times before it began to work: {message}")
            }
            Self::NoProgress { times } => {
                write!(f, "no progress: the same files failed the same checks {times} times in a row")
            }
            Self::Declined { message } => write!(f, "{}: {message}", EndKind::Declined),
            Self::ChecksFailed { error } => write!(f, "the checks could not be run: {error}"),
            Self::RepositoryGone { path } => f.write_str(&repository_gone(path)),
            Self::Configuration { error } => write!(f, "the configuration cannot be used: {error}"),
            Self::PermissionDenied { tool, rule } => {
                let title = EndKind::PermissionDenied;
                write!(f, "{title}: {tool}, and the agent did nothing without it (rule: {rule})")
            }
            Self::Unreachable { message } => {
                let hours = Policy::LONGEST_OUTAGE.as_secs() / 3_600;
                write!(f, "the provider did not answer for {hours} hours: {message}")
            }
            Self::Unanswered { question } => write!(f, "nobody answered in time: {question}"),
            Self::JudgeUnavailable { check, agent, problem } => {
                write!(f, "the judge `{agent}` gave no verdict for the check `{check}`: {problem}")
            }
        }
    }
}

pub(crate) fn repository_gone(path: &str) -> String {
    format!("the repository {path} was moved or deleted; put it back at that path")
}

/// Why a goal failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum FailureReason {
    /// A budget is spent.
    Budget { axis: Axis },
    /// The workspace could not be made.
    Setup {
        /// What went wrong and what to do.
        error: String,
    },
    /// The checks pass before any work was done, so they prove nothing.
    GreenBefore,
    /// A check cannot pass, whatever the agent does.
    MissingProgram(MissingProgram),
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { axis } => write!(f, "budget: {axis}"),
            Self::Setup { error } => write!(f, "setup: {error}"),
            Self::GreenBefore => f.write_str("the checks pass before any work, so they prove nothing"),
            Self::MissingProgram(missing) => missing.fmt(f),
        }
    }
}

impl Phase {
    /// The name in JSON, in the store, on screens and in filters.
    pub fn name(&self) -> &'static str {
        name_of(self)
    }

    /// The name of every phase.
    pub fn names() -> &'static [&'static str] {
        names::<Self>(Some("phase"))
    }

    /// The reason, where the name is not enough.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Sleeping { reason, .. } => Some(reason.clone()),
            Self::Limited { guessed: true, .. } => Some("the reset time is a guess".to_owned()),
            Self::Paused { reason } => Some(name_of(reason).to_owned()),
            Self::Escalated { reason } => Some(reason.to_string()),
            Self::Failed { reason } => Some(reason.to_string()),
            _ => None,
        }
    }

    /// What follows the name on screens: the reason in words. `spent` gives the budget of an axis with what was used of it.
    /// Programs read [`Self::reason`].
    pub fn why(&self, spent: impl FnOnce(Axis) -> Option<String>) -> String {
        let words = match self {
            Self::Paused { reason } => return format!(" {}", reason.by()),
            Self::Failed { reason: FailureReason::Budget { axis } } => spent(*axis).or_else(|| self.reason()),
            phase => phase.reason(),
        };
        words.map(|words| format!(": {words}")).unwrap_or_default()
    }

    /// When it goes on by itself.
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Sleeping { until, .. } | Self::Limited { until, .. } => Some(*until),
            Self::Blocked { until, .. } => *until,
            _ => None,
        }
    }

    /// Whether the goal works, so that it takes room from others.
    pub const fn holds_slot(&self) -> bool {
        matches!(self, Self::Preparing | Self::Running { .. } | Self::Stopping(_) | Self::Checking { .. })
    }

    /// Whether nothing happens any more unless the operator asks for it.
    pub const fn is_settled(&self) -> bool {
        matches!(
            self,
            Self::Paused { .. }
                | Self::Escalated { .. }
                | Self::Done
                | Self::Unproven
                | Self::Failed { .. }
                | Self::Cancelled
        )
    }

    /// Whether the goal came to an end, with or without success; one that is paused has not.
    pub const fn has_ended(&self) -> bool {
        self.is_settled() && !matches!(self, Self::Paused { .. })
    }

    /// Whether a person can open the agent's own session: nothing runs, and the goal can be continued afterwards.
    pub const fn can_be_entered(&self) -> bool {
        self.is_settled() && !matches!(self, Self::Done)
    }

    /// Whether the time that goes by is the operator's, not the goal's.
    pub const fn waits_for_operator(&self) -> bool {
        self.is_settled() || matches!(self, Self::Blocked { .. })
    }

    /// Whether everything is being ended for a pause.
    pub const fn is_pausing(&self) -> bool {
        matches!(self, Self::Stopping(Stopping { why: StopWhy::Pause { .. }, .. }))
    }

    /// Whether an open question can be answered here.
    pub const fn takes_answers(&self) -> bool {
        !matches!(self, Self::Done | Self::Unproven)
    }

    /// Whether the checks may go on running on the base: a verdict that is due comes first, and nothing runs for a goal that is
    /// settled or about to be.
    pub const fn allows_baseline(&self) -> bool {
        match self {
            Self::Checking { .. } => false,
            Self::Stopping(stopping) => matches!(
                stopping.why,
                StopWhy::Auth { .. }
                    | StopWhy::Asked
                    | StopWhy::Timeout { .. }
                    | StopWhy::Resume
                    | StopWhy::SharedBudget
            ),
            phase => !phase.is_settled(),
        }
    }

    /// The attempt whose agent is alive and not being ended.
    pub const fn living_attempt(&self) -> Option<AttemptNo> {
        match self {
            Self::Running { attempt } | Self::Blocked { attempt: Some(attempt), .. } => Some(*attempt),
            _ => None,
        }
    }
}
