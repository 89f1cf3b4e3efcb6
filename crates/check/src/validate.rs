//! Whether a check can be run at all: found out when a goal is made, and again before anything runs.

use std::path::{Component, Path};

use regex::bytes::{Regex, RegexBuilder};
use towline_core::{Check, CheckKind};
use towline_workspace::Protect;

use crate::CheckError;

/// The longest rubric: it is a part of prompts.
const LONGEST_RUBRIC: usize = 16 * 1024;

/// Refuses checks that could prove nothing together, and each that could prove nothing by itself.
pub fn validate_all(checks: &[Check]) -> Result<(), CheckError> {
    checks.iter().try_for_each(validate)?;
    match checks.first() {
        Some(first) if checks.iter().all(|check| check.kind.is_judge()) => Err(CheckError::BadCheck {
            check: first.name.clone(),
            problem: "is a judge, which can only reject; add a check that shows that the work is done, such as `run = \"…\"`",
        }),
        _ => Ok(()),
    }
}

/// Refuses a check without a name or time to run, one that could prove nothing, and one whose pattern or path cannot
/// be used.
pub fn validate(check: &Check) -> Result<(), CheckError> {
    let bad = |problem| Err(CheckError::BadCheck { check: check.name.clone(), problem });
    if check.name.trim().is_empty() {
        return bad("has no name; give it one, since results are reported under it");
    }
    if check.timeout.is_zero() {
        return bad("has no time to run; give it a timeout above zero");
    }
    match &check.kind {
        CheckKind::Command { run, .. } if run.contains('\0') => {
            bad("has a NUL byte in its command; remove it")
        }
        CheckKind::Program { argv } if argv.iter().any(|word| word.contains('\0')) => {
            bad("has a NUL byte in its command; remove it")
        }
        CheckKind::Command { run, .. } if run.trim().is_empty() => {
            bad("has no command, so it could never fail; add what to run")
        }
        CheckKind::Command { stdout: Some(pattern), .. } => stdout_pattern(check, pattern).map(|_| ()),
        CheckKind::File { path, .. } if !is_inside(path) => bad(
            "wants a file outside the repository; name it relative to the repository's root, without `..`",
        ),
        CheckKind::File { matches: Some(pattern), .. } => file_pattern(check, pattern).map(|_| ()),
        CheckKind::Untouched { paths } if paths.is_empty() => {
            bad("names no paths that are to stay untouched, so it could never fail; name some")
        }
        CheckKind::Untouched { paths } => match Protect::new(paths) {
            Ok(_) => Ok(()),
            Err(error) => Err(CheckError::BadPaths { check: check.name.clone(), source: error }),
        },
        CheckKind::Program { argv } if argv.first().is_none_or(|program| program.trim().is_empty()) => {
            bad("names no program; add the one that judges")
        }
        CheckKind::Judge { rubric, .. } if rubric.trim().is_empty() => {
            bad("has no rubric; write what the judge is to look for")
        }
        CheckKind::Judge { rubric, .. } if rubric.contains('\0') => {
            bad("has a NUL byte in its rubric; remove it")
        }
        CheckKind::Judge { rubric, .. } if rubric.len() > LONGEST_RUBRIC => {
            bad("has a rubric of more than 16 KiB; shorten it, or name a file of the repository")
        }
        CheckKind::Command { stdout: None, .. }
        | CheckKind::Judge { .. }
        | CheckKind::File { matches: None, .. }
        | CheckKind::Committed
        | CheckKind::Program { .. } => Ok(()),
    }
}

/// Whether a path names something below the directory it is relative to.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components().filter(|part| *part != Component::CurDir).peekable();
    !path.trim().is_empty()
        && parts.peek().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The pattern that a line of a command's output must match.
pub(crate) fn stdout_pattern(check: &Check, pattern: &str) -> Result<Regex, CheckError> {
    Regex::new(pattern).map_err(|error| bad_pattern(check, pattern, &error))
}

/// The pattern that a file's text must match.
pub(crate) fn file_pattern(check: &Check, pattern: &str) -> Result<Regex, CheckError> {
    text_pattern(pattern).map_err(|error| bad_pattern(check, pattern, &error))
}

/// A pattern for a text of many lines: `^` and `$` are a line's ends, and a match may span lines.
pub(crate) fn text_pattern(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).multi_line(true).crlf(true).build()
}

fn bad_pattern(check: &Check, pattern: &str, error: &regex::Error) -> CheckError {
    CheckError::BadPattern {
        check: check.name.clone(),
        pattern: pattern.to_owned(),
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn check(name: &str, run: &str, stdout: Option<&str>, seconds: u64) -> Check {
        let kind = CheckKind::Command { run: run.into(), stdout: stdout.map(str::to_owned) };
        Check::new(name, kind, Duration::from_secs(seconds))
    }

    fn of_kind(kind: CheckKind) -> Check {
        Check { kind, ..check("a", "true", None, 1) }
    }

    fn file(path: &str, matches: Option<&str>) -> Check {
        of_kind(CheckKind::File { path: path.into(), matches: matches.map(str::to_owned) })
    }

    fn untouched(paths: &[&str]) -> Check {
        of_kind(CheckKind::Untouched { paths: paths.iter().map(|path| (*path).to_owned()).collect() })
    }

    fn program(argv: &[&str]) -> Check {
        of_kind(CheckKind::Program { argv: argv.iter().map(|word| (*word).to_owned()).collect() })
    }

    fn judge(rubric: &str) -> Check {
        of_kind(CheckKind::Judge { rubric: rubric.to_owned(), agent: None })
    }

    #[test]
    fn judges_alone_prove_nothing() {
        let of_judges = validate_all(&[judge("It is good."), judge("It is very good.")]).unwrap_err();
        assert!(of_judges.to_string().contains("can only reject"), "{of_judges}");
        validate_all(&[judge("It is good."), check("tests", "make test", None, 1)]).unwrap();
        validate_all(&[]).unwrap();
    }

    #[test]
    fn every_kind_that_can_be_judged_is_taken() {
        for check in [
            check("tests", "make test", None, 1),
            check("tests", "make test", Some("^[0-9]+ passed"), 1),
            file("a", None),
            file("./docs/a.md", Some("^## ")),
            untouched(&["tests/**", "docs"]),
            of_kind(CheckKind::Committed),
            program(&["judge", ""]),
            judge("It fixes the cause."),
        ] {
            validate(&check).unwrap_or_else(|error| panic!("{check:?}: {error}"));
        }
    }

    #[test]
    fn every_kind_that_proves_nothing_or_leads_out_is_refused() {
        for check in [
            check(" ", "true", None, 1),
            check("a", " \n", None, 1),
            check("a", "true", None, 0),
            check("a", "true\0", None, 1),
            program(&["true", "\0"]),
            file("", None),
            file(".", None),
            file("/etc/passwd", None),
            file("../a", None),
            file("a/../../b", None),
            untouched(&[]),
            program(&[]),
            program(&[" ", "x"]),
            judge(" \n"),
            judge("a\0"),
            judge(&"x".repeat(LONGEST_RUBRIC + 1)),
        ] {
            let refused = validate(&check);
            assert!(matches!(refused, Err(CheckError::BadCheck { .. })), "{check:?}: {refused:?}");
        }
        let refused = validate(&untouched(&["src", "../a"])).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the check `a` cannot be used: `../a` is not a usable pattern of paths: it leads out of the \
             repository with `..`; write it relative to the repository's root, like `tests/**`"
        );
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_named_with_its_check() {
        for refused in [check("a", "true", Some("(passed"), 1), file("a", Some("(passed"))] {
            let refused = validate(&refused).unwrap_err();
            let CheckError::BadPattern { check, pattern, message } = &refused else { panic!("{refused:?}") };
            assert_eq!((check.as_str(), pattern.as_str()), ("a", "(passed"));
            assert!(message.contains("unclosed group"), "{message}");
        }
    }
}
