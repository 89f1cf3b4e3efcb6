//! The test-count floor: a check may not run fewer tests on the work than on the base.

use towline_core::{BaselineCheck, Check, CheckKind, CheckResult, Goal};

/// What the commands of test runners contain.
const RUNNERS: [&str; 7] = ["cargo test", "cargo t ", "cargo nextest", "pytest", "jest", "vitest", "go test"];

/// Whether the tests of a check are counted.
pub(crate) fn holds_for(check: &Check) -> bool {
    check.floor && matches!(check.kind, CheckKind::Command { .. })
}

/// The result, failed if fewer tests ran than on the base. A runner that printed no count although it did on the base was
/// ended early, or never ran.
pub(crate) fn hold(result: CheckResult, base: &[BaselineCheck]) -> CheckResult {
    let Some(floor) = on_base(base, &result.name).filter(|_| result.met) else { return result };
    let problem = match result.tests {
        Some(ran) if ran < floor => format!("{}, {floor} on the base", tests_ran(ran)),
        None if floor > 0 => {
            format!("no test runner reported what it ran, but {} on the base", tests_ran(floor))
        }
        _ => return result,
    };
    CheckResult { met: false, problem: Some(problem), ..result }
}

/// Why the tests of a check that passed could not be compared, for checks that run tests.
pub(crate) fn notes(goal: &Goal, results: &[CheckResult], base: &[BaselineCheck]) -> Vec<String> {
    let note = |check: &Check| {
        let result = results.iter().find(|result| result.name == check.name)?;
        let why = match (result.tests, on_base(base, &check.name)) {
            (Some(_), None) if base.is_empty() => "the checks did not run on the base",
            (Some(_), None) => "its output on the base has none",
            (None, None) if names_runner(check) => "its output has none",
            _ => return None,
        };
        Some(format!("no test count to compare for `{}`: {why}", check.name))
    };
    goal.checks.iter().filter(|check| holds_for(check)).filter_map(note).collect()
}

fn on_base(base: &[BaselineCheck], name: &str) -> Option<u64> {
    base.iter().find(|check| check.name == name)?.tests
}

fn names_runner(check: &Check) -> bool {
    matches!(&check.kind, CheckKind::Command { run, .. } if RUNNERS.iter().any(|runner| run.contains(runner)))
}

fn tests_ran(count: u64) -> String {
    format!("{count} test{} ran", if count == 1 { "" } else { "s" })
}
