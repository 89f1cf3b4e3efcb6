//! Why a queued goal waits.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Lane, Need};
use crate::names::name_of;
use crate::{AgentName, GoalId, MicroUsd};

/// Why a queued goal does not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum HoldReason {
    /// As many goals run as may run at once.
    Slot { cap: Cap },
    /// A goal that must come to its end first has not.
    Prerequisite {
        goal: GoalId,
        need: Need,
        /// The phase that it is in; none if it was removed.
        phase: Option<String>,
    },
    /// The quota is used up, or the credentials are refused.
    Account {
        name: String,
        /// Until when; none for credentials.
        until: Option<Timestamp>,
    },
    /// The agent failed in this goal, or ran into a limit there.
    Agent {
        agent: AgentName,
        /// Until when it is left alone; none if a person has to do something about it.
        until: Option<Timestamp>,
    },
    /// A budget of the pool is spent or reserved.
    Budget {
        purse: Purse,
        /// What goals that run may still spend of it.
        reserved: MicroUsd,
    },
    /// This goal changes the same files.
    Touches { goal: GoalId },
    /// This goal works in the same directory and is not finished there.
    Directory { goal: GoalId, folder: String },
    /// It could not be started, or its driver failed, and it is tried again.
    Retry { error: String, until: Timestamp },
    /// Too little disk space is free.
    Disk {
        /// In bytes, like what is needed.
        free: u64,
        needed: u64,
    },
    /// The agent lacks its credentials.
    Credentials {
        agent: AgentName,
        /// The variable that is not set, or what else is missing.
        missing: String,
    },
    /// The configuration of its project cannot be read.
    Configuration { error: String },
    /// The server is about to end.
    Draining,
    /// No server is running.
    NoServer,
}

impl HoldReason {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        name_of(self)
    }

    /// Whether it holds every goal of the pool.
    pub const fn holds_all(&self) -> bool {
        match self {
            Self::Slot { cap } => matches!(cap, Cap::Pool { .. }),
            Self::Budget { purse, .. } => matches!(purse.scope, PurseScope::Day | PurseScope::Pool),
            Self::Disk { .. } | Self::Draining | Self::NoServer => true,
            _ => false,
        }
    }

    /// When it ends by itself.
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Account { until, .. } | Self::Agent { until, .. } => *until,
            Self::Budget { purse, .. } => purse.renews_at,
            Self::Retry { until, .. } => Some(*until),
            _ => None,
        }
    }

    /// One sentence for people; `time` shows a time of the day.
    pub fn text(&self, time: impl Fn(Timestamp) -> String) -> String {
        match self {
            Self::Slot { cap } => format!("waits for a slot ({cap})"),
            Self::Prerequisite { goal, need, phase: Some(phase) } => {
                let to = if *need == Need::Merged { " to be merged" } else { "" };
                let has_ended = matches!(phase.as_str(), "failed" | "cancelled" | "unproven");
                let advice = if has_ended { "; retry it, or cancel this goal" } else { "" };
                format!("waits for {}{to} ({phase}){advice}", goal.short())
            }
            Self::Prerequisite { goal, phase: None, .. } => {
                format!("waits for {}, which was removed", goal.short())
            }
            Self::Account { name, until: Some(until) } => format!("{name} is limited until {}", time(*until)),
            Self::Account { name, until: None } => format!("{name} is closed: its credentials were refused"),
            Self::Agent { agent, until: Some(until) } => {
                format!("{agent} failed or was limited; this goal can use it again at {}", time(*until))
            }
            Self::Agent { agent, until: None } => format!("{agent} failed, and this goal cannot use it"),
            Self::Budget { purse, reserved } => purse.text(*reserved, time),
            Self::Touches { goal } => format!("waits for {}, which changes the same files", goal.short()),
            Self::Directory { goal, folder } => {
                format!("waits for {}, which works in {folder}", goal.short())
            }
            Self::Retry { error, until } => {
                format!("could not start; next try at {}: {}", time(*until), one_line(error))
            }
            Self::Disk { free, needed } => {
                format!(
                    "waits for disk space ({} MB free, {} MB needed)",
                    free / 1_000_000,
                    needed / 1_000_000
                )
            }
            Self::Credentials { agent, missing } => format!("{agent} needs {missing}, which is not set"),
            Self::Configuration { error } => {
                format!("the configuration of its project cannot be used: {}", one_line(error))
            }
            Self::Draining => "the server is shutting down".to_owned(),
            Self::NoServer => "no server is running".to_owned(),
        }
    }
}

/// An error as a part of a sentence.
fn one_line(error: &str) -> String {
    error.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// How many goals of a kind may run at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cap", rename_all = "snake_case")]
pub enum Cap {
    Pool { most: usize },
    Project { most: usize },
    Agent { name: AgentName, most: usize },
    Account { name: String, most: usize },
    Label { name: String, most: usize },
}

impl Cap {
    pub(super) const fn most(&self) -> usize {
        match self {
            Self::Pool { most }
            | Self::Project { most }
            | Self::Agent { most, .. }
            | Self::Account { most, .. }
            | Self::Label { most, .. } => *most,
        }
    }

    /// Whether a goal in this lane takes room from one in the lane `ours`.
    pub(super) fn counts(&self, lane: &Lane, ours: &Lane) -> bool {
        match self {
            Self::Pool { .. } => true,
            Self::Project { .. } => lane.project == ours.project,
            Self::Agent { name, .. } => lane.agent == *name,
            Self::Account { name, .. } => lane.account == *name,
            Self::Label { name, .. } => lane.labels.contains(name),
        }
    }
}

impl std::fmt::Display for Cap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pool { most } => write!(f, "pool cap {most}"),
            Self::Project { most } => write!(f, "project cap {most}"),
            Self::Agent { name, most } => write!(f, "cap {most} of agent {name}"),
            Self::Account { name, most } => write!(f, "cap {most} of account {name}"),
            Self::Label { name, most } => write!(f, "cap {most} of label {name}"),
        }
    }
}

/// Money that goals share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purse {
    pub scope: PurseScope,
    pub limit: MicroUsd,
    pub spent: MicroUsd,
    /// When nothing of it is spent again.
    pub renews_at: Option<Timestamp>,
}

impl Purse {
    fn text(&self, reserved: MicroUsd, time: impl Fn(Timestamp) -> String) -> String {
        let of = match &self.scope {
            PurseScope::Day => "today's budget",
            PurseScope::Project { .. } => "today's budget of this project",
            PurseScope::Pool => "the budget of the pool",
        };
        let (spent, limit) = (self.spent.dollars(), self.limit.dollars());
        if self.spent < self.limit {
            let reserved = reserved.dollars();
            return format!(
                "the rest of {of} is reserved by running goals ({spent:.2} spent and {reserved:.2} reserved of {limit:.2} USD)"
            );
        }
        let until = self.renews_at.map(|at| format!(", until {}", time(at))).unwrap_or_default();
        format!("{of} is spent ({spent:.2} of {limit:.2} USD){until}")
    }
}

/// Who shares a purse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum PurseScope {
    /// All goals, for a day.
    Day,
    /// The goals of a project, for a day.
    Project { project: String },
    /// All goals, however long they take.
    Pool,
}

impl PurseScope {
    /// Whether goals of this lane share it.
    pub fn covers(&self, lane: &Lane) -> bool {
        match self {
            Self::Day | Self::Pool => true,
            Self::Project { project } => *project == lane.project,
        }
    }
}
