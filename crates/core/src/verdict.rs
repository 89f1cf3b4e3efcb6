//! What Towline itself found when it ran the checks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Commit, Sandbox};

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
    /// Where the checks ran.
    #[serde(default)]
    pub checkout: Checkout,
    /// What confined setup and checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
}

/// The checkout that the checks of a verdict ran in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkout {
    /// A clean one.
    #[default]
    Clean,
    /// One with the warm directories of an earlier verdict.
    Warm,
    /// They passed in a warm one, and ran again in a clean one: the results are those of the second run.
    WarmThenClean,
}

/// A check that runs, as a later engine finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckProcess {
    /// The name of its directory.
    pub directory: String,
    /// The process number of its supervisor.
    pub pid: u32,
    /// When the supervisor was started, in the system's own ticks. With this number, it cannot be mistaken for another process.
    pub start_time: u64,
    /// The candidate that it runs on.
    pub commit: Commit,
    /// The checkout that it runs in.
    pub checkout: Checkout,
    /// A digest of the files that were copied into it.
    #[serde(default)]
    pub copies: String,
}

/// What a verdict may use of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Nothing, and nothing is left for a later one.
    Never,
    /// Nothing, and its own warm directories are left for the next one.
    Fresh,
    /// The warm directories, if there are any.
    Warm,
}

impl Reuse {
    /// What the next verdict may use, by the verdicts so far with the newest first. When two verdicts in a row failed the same
    /// checks, and the second used warm directories, these may be the cause.
    pub fn after<'a>(newest_first: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut verdicts = newest_first.into_iter();
        match (verdicts.next(), verdicts.next()) {
            (Some(last), Some(before))
                if last.checkout != Checkout::Clean && !last.met() && last.fails_like(before) =>
            {
                Self::Fresh
            }
            _ => Self::Warm,
        }
    }
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
        self.tree == other.tree && self.fails_like(other)
    }

    /// Whether the same checks failed as in `other`.
    fn fails_like(&self, other: &Self) -> bool {
        self.failed().map(|check| &check.name).eq(other.failed().map(|check| &check.name))
    }

    /// Whether the checks passed in a warm checkout and failed in a clean one.
    pub fn passed_only_warm(&self) -> bool {
        self.checkout == Checkout::WarmThenClean && !self.met()
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
    /// Why it does not hold, when the exit code alone does not show it: a timeout, a signal, a pattern not found.
    pub problem: Option<String>,
    /// The end of what it printed.
    pub evidence: String,
    /// How long it ran.
    pub took: Duration,
    /// The hashes of what it printed, as its supervisor reported them. None of a check that runs no program; earlier versions did
    /// not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputHashes>,
    /// How many tests ran, where a test runner reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
}

/// The SHA-256 of each stream of a program, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputHashes {
    pub stdout: String,
    pub stderr: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{green, red, verdict};

    fn of(checks: Vec<CheckResult>, checkout: Checkout) -> Verdict {
        Verdict { checkout, ..verdict("t", checks) }
    }

    #[test]
    fn the_second_failure_of_the_same_checks_in_a_row_drops_the_warm_directories() {
        use Checkout::{Clean, Warm, WarmThenClean};
        let a = |checkout| of(vec![red("a", "1"), green("b")], checkout);
        let b = |checkout| of(vec![green("a"), red("b", "1")], checkout);
        let both = |checkout| of(vec![red("a", "1"), red("b", "1")], checkout);
        // The newest verdict is the last of a row.
        let table = [
            (vec![], Reuse::Warm),
            (vec![a(Clean)], Reuse::Warm),
            (vec![a(Warm)], Reuse::Warm),
            (vec![a(Clean), a(Warm)], Reuse::Fresh),
            (vec![a(Warm), a(Warm)], Reuse::Fresh),
            (vec![a(Clean), b(Warm)], Reuse::Warm),
            (vec![a(Clean), both(Warm)], Reuse::Warm),
            (vec![a(Clean), a(Warm), a(Clean)], Reuse::Warm),
            (vec![a(Clean), a(Warm), a(Clean), a(Warm)], Reuse::Fresh),
            (vec![a(Clean), b(WarmThenClean)], Reuse::Warm),
            (vec![a(Clean), a(WarmThenClean)], Reuse::Fresh),
            (vec![a(WarmThenClean), a(Warm)], Reuse::Fresh),
        ];
        for (verdicts, expected) in table {
            assert_eq!(Reuse::after(verdicts.iter().rev()), expected, "{verdicts:?}");
        }
    }

    #[test]
    fn a_verdict_stored_before_there_were_warm_checkouts_was_clean() {
        let verdict = of(vec![green("a")], Checkout::Clean);
        let mut stored = serde_json::to_value(&verdict).unwrap();
        assert_eq!(stored.as_object_mut().unwrap().remove("checkout").unwrap(), "clean");
        assert_eq!(serde_json::from_value::<Verdict>(stored).unwrap(), verdict);
        let stored = [Checkout::Warm, Checkout::WarmThenClean].map(|of| serde_json::to_value(of).unwrap());
        assert_eq!(stored, ["warm", "warm_then_clean"]);
    }

    #[test]
    fn a_result_without_hashes_of_its_output_is_stored_as_by_earlier_versions() {
        let result = green("a");
        let stored = serde_json::to_value(&result).unwrap();
        assert_eq!(stored.get("output"), None);
        assert_eq!(serde_json::from_value::<CheckResult>(stored).unwrap(), result);
    }
}
