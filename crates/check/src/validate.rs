//! Whether a check can be run at all: found out when a goal is made, and again before anything runs.

use regex::bytes::Regex;
use towline_core::{Check, CheckKind};

use crate::CheckError;

/// Refuses a check without a name, a command or time to run, and one whose pattern is not a regular expression.
pub fn validate(check: &Check) -> Result<(), CheckError> {
    let bad = |problem| Err(CheckError::BadCheck { check: check.name.clone(), problem });
    if check.name.trim().is_empty() {
        return bad("has no name; give it one, since results are told by it");
    }
    let CheckKind::Command { run, .. } = &check.kind;
    if run.trim().is_empty() {
        return bad("has no command, so it could never fail; say what to run");
    }
    if check.timeout.is_zero() {
        return bad("has no time to run; give it a timeout above zero");
    }
    pattern(check).map(|_| ())
}

/// The pattern that the check's output must match, if it has one.
pub(crate) fn pattern(check: &Check) -> Result<Option<Regex>, CheckError> {
    let CheckKind::Command { stdout, .. } = &check.kind;
    let Some(pattern) = stdout else { return Ok(None) };
    Regex::new(pattern).map(Some).map_err(|error| CheckError::BadPattern {
        check: check.name.clone(),
        pattern: pattern.clone(),
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn check(name: &str, run: &str, stdout: Option<&str>, seconds: u64) -> Check {
        Check {
            name: name.into(),
            kind: CheckKind::Command { run: run.into(), stdout: stdout.map(str::to_owned) },
            timeout: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_check_that_can_be_run_is_taken() {
        validate(&check("tests", "make test", None, 1)).unwrap();
        validate(&check("tests", "make test", Some("^[0-9]+ passed"), 1)).unwrap();
    }

    #[test]
    fn a_check_that_proves_nothing_is_refused() {
        for check in [check(" ", "true", None, 1), check("a", " \n", None, 1), check("a", "true", None, 0)] {
            let refused = validate(&check);
            assert!(matches!(refused, Err(CheckError::BadCheck { .. })), "{check:?}: {refused:?}");
        }
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_named_with_its_check() {
        let refused = validate(&check("tests", "true", Some("(passed"), 1)).unwrap_err();
        let CheckError::BadPattern { check, pattern, message } = &refused else { panic!("{refused:?}") };
        assert_eq!((check.as_str(), pattern.as_str()), ("tests", "(passed"));
        assert!(message.contains("unclosed group"), "{message}");
    }
}
