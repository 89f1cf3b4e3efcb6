//! The pool: what was added, what runs and what waits, accounts, and what was spent.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_core::{Account, AccountStatus, HoldReason};

use crate::UsageReport;

/// `add --json`: one for each goal, each in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddedGoal {
    pub id: String,
    /// The phase that it is in.
    pub phase: String,
    /// False for the file of a goal that had been added before and has not ended: it is not added again.
    pub added: bool,
}

/// Why a goal in the queue does not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HoldReport {
    /// `slot`, `prerequisite`, `account`, `agent`, `budget`, `touches`, `directory`, `retry`, `disk`, `credentials`, `configuration`,
    /// `draining` or `no_server`; the phase of a goal that is not in the queue.
    pub reason: String,
    /// The reason in one sentence.
    pub text: String,
    /// When it ends by itself, if that is known.
    pub until: Option<Timestamp>,
}

impl HoldReport {
    /// The report on a reason; `time` shows a time of the day.
    pub fn of(reason: &HoldReason, time: impl Fn(Timestamp) -> String) -> Self {
        Self { reason: reason.name().to_owned(), text: reason.text(time), until: reason.until() }
    }
}

/// `queue --json`: what runs, and what waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueReport {
    /// The server that starts goals; null if none is running.
    pub server: Option<ServerLine>,
    /// Goals that hold a slot, whichever process runs them.
    pub running: Vec<QueueLine>,
    /// Goals that wait for their start, the first one first.
    pub waiting: Vec<QueueLine>,
    /// Goals that have begun and wait for a quota, a time or a person, the newest first.
    pub idle: Vec<QueueLine>,
    /// Whether more goals wait than are listed.
    pub more: bool,
    /// What is wrong with your own configuration; a running server uses what it read last.
    #[serde(default)]
    pub problem: Option<String>,
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerLine {
    /// The address that it listens on.
    pub address: String,
    pub pid: u32,
    pub started_at: Timestamp,
}

/// A goal that runs or waits for its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueLine {
    pub id: String,
    /// The goal in a few words.
    pub title: String,
    /// The repository or folder that it belongs to.
    pub repository: String,
    /// The phase that it is in.
    pub phase: String,
    /// The agent that makes the present or next attempt.
    pub agent: String,
    /// The account whose quota that uses.
    pub account: String,
    pub labels: Vec<String>,
    /// Hours by which it is earlier in the queue.
    pub priority: i32,
    /// The goals that it waits for.
    pub after: Vec<PrerequisiteLine>,
    /// Why it does not start; null for a goal that runs or is about to start.
    pub hold: Option<HoldReport>,
}

/// A goal that must come to its end first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PrerequisiteLine {
    /// The goal's id.
    pub goal: String,
    /// `done` or `merged`.
    pub need: String,
    /// Whether it has come to that.
    pub met: bool,
}

/// One entry of `accounts --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountLine {
    /// The name of the account; that of its agent where the configuration names none.
    pub name: String,
    /// The agent that used it last.
    pub agent: String,
    /// `open`, `limited`, `closed` (credentials were refused) or `trial` (the next attempt shows whether it can be used).
    pub state: String,
    /// Until when it is limited, if that is known.
    pub until: Option<Timestamp>,
    /// Whether that time is a guess.
    pub guessed: bool,
    /// When its state changed.
    pub updated_at: Timestamp,
}

impl From<&Account> for AccountLine {
    fn from(account: &Account) -> Self {
        let (state, until, guessed) = match account.status {
            AccountStatus::Open => ("open", None, false),
            AccountStatus::Limited { until, guessed } => ("limited", until, guessed),
            AccountStatus::Closed => ("closed", None, false),
            AccountStatus::Trial => ("trial", None, false),
        };
        Self {
            name: account.name.clone(),
            agent: account.agent.to_string(),
            state: state.to_owned(),
            until,
            guessed,
            updated_at: account.updated_at,
        }
    }
}

/// `accounts open --json`: an account that was opened, and the goals that continue with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenedAccount {
    #[serde(flatten)]
    pub account: AccountLine,
    /// Goals that waited for its limit or whose credentials it had refused, and that are queued again.
    pub continued: Vec<String>,
    /// Goals that should continue but cannot, with the reason.
    pub refused: Vec<RefusedGoal>,
}

/// A goal that cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefusedGoal {
    /// The goal's id.
    pub goal: String,
    pub why: String,
}

/// `cost --json`: what was spent, in groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CostReport {
    /// What each line is about: `day`, `project`, `account`, `agent`, `model` or `goal`.
    pub by: String,
    /// The time zone of days, by its name.
    pub time_zone: String,
    /// The first moment that counts.
    pub since: Timestamp,
    pub lines: Vec<CostLine>,
    pub total: UsageReport,
}

/// What was spent on one day, project, account, agent, model or goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CostLine {
    /// The date, path, name or id; empty for a model that the agent did not report.
    pub key: String,
    /// The goal in a few words; null for other lines, and for goals that were removed.
    pub title: Option<String>,
    pub usage: UsageReport,
}
