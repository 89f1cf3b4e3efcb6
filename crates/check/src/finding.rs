//! What was found about one check, apart from how long it took.

use std::time::Duration;

use towline_core::CheckResult;

/// Whether a check holds, and why not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    met: bool,
    exit_code: Option<i32>,
    problem: Option<String>,
    evidence: String,
}

impl Finding {
    pub(crate) fn met() -> Self {
        Self { met: true, exit_code: None, problem: None, evidence: String::new() }
    }

    /// It does not, and this is why.
    pub(crate) fn not_met(problem: impl Into<String>) -> Self {
        Self { met: false, problem: Some(problem.into()), ..Self::met() }
    }

    /// It does not, and the exit code shows why.
    pub(crate) fn not_met_by_exit_code() -> Self {
        Self { met: false, ..Self::met() }
    }

    /// With what shows it.
    pub(crate) fn with_evidence(self, evidence: String) -> Self {
        Self { evidence, ..self }
    }

    /// With the exit code of the program that was run for it.
    pub(crate) fn with_exit_code(self, exit_code: Option<i32>) -> Self {
        Self { exit_code, ..self }
    }

    /// As the result of the check with this name.
    pub(crate) fn into_result(self, name: &str, took: Duration) -> CheckResult {
        let Self { met, exit_code, problem, evidence } = self;
        let name = name.to_owned();
        CheckResult { name, met, exit_code, problem, evidence, took, output: None, tests: None }
    }
}
