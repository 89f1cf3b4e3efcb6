//! What Towline itself found when it ran the checks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Commit;

/// The result of running all checks on one candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The exact commit that was checked.
    pub candidate: Commit,
    /// The agent's own last commit below the candidate, or the base; the candidate itself when all of its work was committed.
    /// Earlier versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Commit>,
    /// The candidate's tree: two candidates with one tree hold the same files.
    pub tree: String,
    /// Protected paths that were put back as in the base.
    pub restored: Vec<String>,
    /// One result per check, in the goal's order.
    pub checks: Vec<CheckResult>,
    /// What a person should know about how it was reached: files that setup changed, attributes without effect, variables
    /// that a failed check did not get.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Verdict {
    /// Whether the goal is met: there is a check, and none failed.
    pub fn met(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.met)
    }

    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.met)
    }

    /// Whether this verdict shows the same files failing the same checks as `other`.
    pub fn same_failure(&self, other: &Self) -> bool {
        self.tree == other.tree
            && self.failed().map(|check| &check.name).eq(other.failed().map(|check| &check.name))
    }
}

/// How one check went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check's name.
    pub name: String,
    /// Whether it holds.
    pub met: bool,
    /// The command's exit code, when it exited.
    pub exit_code: Option<i32>,
    /// Why it does not hold, when the exit code alone does not say: a timeout, a signal, a pattern not found.
    pub problem: Option<String>,
    /// The end of what it printed.
    pub evidence: String,
    /// How long it ran.
    pub took: Duration,
}
