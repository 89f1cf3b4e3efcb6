//! What a pool needs to know beyond the store: its limits, and what belongs to the projects of its goals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;
use towline_core::{AgentName, Caps, Goal, Inherited, MicroUsd};
use towline_store::GoalRecord;

use crate::reads::Reads;

/// The rules of a pool. They are read again for each decision, so that a changed configuration counts from the next one.
pub trait PoolRules: Send + Sync {
    /// The limits in force at this time.
    fn limits(&self, now: Timestamp) -> Limits;

    /// What holds for the goals of a project that may use these agents. Reads files of the project, so it may block.
    fn project(&self, project: &str, agents: &BTreeSet<AgentName>) -> ProjectRules;

    /// What the goals of a project may spend in a day, as far as is known without reading its configuration.
    fn last_budget(&self, project: &str) -> Option<MicroUsd>;

    /// The files that the rules of a project are read from, or without a project those that all share, also those that do not exist. A
    /// change to one of them makes the pool look again.
    fn files(&self, project: Option<&str>) -> BTreeSet<PathBuf>;

    /// The reads of projects' directories. All rules of a process have the same.
    fn reads(&self) -> &Reads;

    /// What is wrong with the files that all projects share, so that what was read last counts.
    fn problem(&self) -> Option<String>;

    /// What these prerequisites leave to the goal, or why that cannot be worked out.
    fn inherited(&self, goal: &Goal, prerequisites: &[GoalRecord]) -> Result<Inherited, String>;
}

/// The rules of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectRules {
    /// Why its configuration cannot be used: its goals wait until it can.
    pub problem: Option<String>,
    /// What its goals may spend in a day.
    pub budget: Option<MicroUsd>,
    /// Agents that would start without their credentials, with what is missing.
    pub without_credentials: BTreeMap<AgentName, String>,
}

/// The limits of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub caps: Caps,
    /// What all goals may spend in a day.
    pub day: Option<MicroUsd>,
    /// What all goals may spend in all.
    pub pool: Option<MicroUsd>,
    /// When the present day began, in the time zone of the server, and when the next one begins.
    pub today: (Timestamp, Timestamp),
    /// How many bytes of disk space must be free for new work.
    pub free_space: u64,
}
