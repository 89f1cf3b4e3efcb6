//! What checks found: of a goal's base, of its work, and of its work once more.

use serde::{Deserialize, Serialize};
use towline_core::{Baseline, BaselineCheck, Checkout, Verdict};

use crate::BaselineReport;

/// What all checks found on one commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerdictReport {
    /// Whether all checks passed.
    pub met: bool,
    /// The commit that was checked.
    pub candidate: String,
    /// Protected paths that were put back as in the base.
    pub restored: Vec<String>,
    /// Remarks about how the verdict was reached, such as files that `setup` changed.
    pub notes: Vec<String>,
    /// The checkout that the checks ran in: `clean`, `warm` or `warm_then_clean`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub checkout: Checkout,
    /// What confined its setup and checks: `bubblewrap` or `landlock`; null without a sandbox.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// One result for each check, in the goal's order.
    pub checks: Vec<CheckReport>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckReport {
    /// The check's name.
    pub name: String,
    /// Whether it passed.
    pub met: bool,
    /// The exit code of its command; null if it has none, or was ended by a signal.
    pub exit_code: Option<i32>,
    /// Why it failed, where the exit code does not show it.
    pub problem: Option<String>,
    /// The end of its output.
    pub evidence: String,
    /// How long it ran.
    pub seconds: f64,
    /// How many tests ran; null where no test runner reported it.
    #[serde(default)]
    pub tests: Option<u64>,
}

/// The result of one check before any work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineCheckReport {
    /// The check's name.
    pub name: String,
    /// Whether it passed.
    pub met: bool,
    /// The exit code of its command.
    pub exit_code: Option<i32>,
}

impl From<&Verdict> for VerdictReport {
    fn from(verdict: &Verdict) -> Self {
        let checks = verdict.checks.iter().map(|check| CheckReport {
            name: check.name.clone(),
            met: check.met,
            exit_code: check.exit_code,
            problem: check.problem.clone(),
            evidence: check.evidence.clone(),
            seconds: check.took.as_secs_f64(),
            tests: check.tests,
        });
        Self {
            met: verdict.met(),
            candidate: verdict.candidate.to_string(),
            restored: verdict.restored.clone(),
            notes: verdict.notes.clone(),
            checkout: verdict.checkout,
            sandbox: verdict.sandbox.map(|sandbox| sandbox.name().to_owned()),
            checks: checks.collect(),
        }
    }
}

impl BaselineReport {
    /// The report on a baseline; none if it is unknown.
    pub fn of(baseline: &Baseline) -> Option<Self> {
        let Baseline::Known { checks } = baseline else { return None };
        let reports = checks.iter().map(|check| BaselineCheckReport {
            name: check.name.clone(),
            met: check.met,
            exit_code: check.exit_code,
        });
        Some(Self { met: BaselineCheck::all_met(checks), checks: reports.collect() })
    }
}
