//! Files that are judged stay as they are, whatever setup and checks do to them.

mod common;

use common::{Bench, result};
use towline_core::CheckResult;
use towline_testkit::scratch::become_ordinary_user;

/// The failed check, with what it names.
fn integrity(step: &str, evidence: &str) -> CheckResult {
    CheckResult {
        met: false,
        exit_code: None,
        problem: Some(format!("files that are judged were changed {step}")),
        ..result("integrity", 0, evidence)
    }
}

#[tokio::test]
async fn an_added_file_that_cannot_be_removed_fails_the_verdict() {
    become_ordinary_user();
    let mut bench = Bench::new(&[("tests/a.sh", "exit 1\n")])
        .with_checks(&["echo exit 0 > tests/b.sh && chmod 555 tests", "sh tests/a.sh"]);
    bench.goal.protect = vec!["tests/**".into()];
    let expected =
        [result("1", 0, ""), result("2", 1, ""), integrity("by the check `1`", "added: tests/b.sh\n")];
    assert_eq!(bench.results().await, expected);
    bench.assert_no_checkout();
}

/// A goal that protects a file which git ignores and which is copied from the user's checkout.
fn with_copy(checks: &[&str]) -> Bench {
    let mut bench = Bench::new(&[(".gitignore", ".npmrc\n")]).with_checks(checks);
    bench.project.write(".npmrc", "theirs\n");
    bench.goal.workspace.copy = vec![".npmrc".into()];
    bench.goal.protect = vec!["**/.npmrc".into()];
    bench
}

#[tokio::test]
async fn a_copied_file_in_a_protected_place_is_there_for_every_check() {
    let mut bench = with_copy(&["cat .npmrc", "cat .npmrc"]);
    let expected = [result("1", 0, "theirs\n"), result("2", 0, "theirs\n")];
    assert_eq!(bench.results().await, expected);
    bench.goal.workspace.setup = vec!["true".into()];
    assert_eq!(bench.results().await, expected);
}

#[tokio::test]
async fn a_copied_file_in_a_protected_place_stays_as_it_was_copied() {
    let changes = [("echo weaker > .npmrc", "changed: .npmrc\n"), ("rm .npmrc", "deleted: .npmrc\n")];
    for (change, evidence) in changes {
        let bench = with_copy(&[change]);
        let expected = [result("1", 0, ""), integrity("by the check `1`", evidence)];
        assert_eq!(bench.results().await, expected, "{change}");
        let mut bench = with_copy(&["true"]);
        bench.goal.workspace.setup = vec![change.into()];
        // Of the base it was copied, too.
        bench.setup_changes = [(".npmrc".to_owned(), Some("what it held".to_owned()))].into();
        let expected = [result("1", 0, ""), integrity("by setup", evidence)];
        assert_eq!(bench.results().await, expected, "{change} by setup");
    }
}

#[tokio::test]
async fn what_setup_adds_in_a_protected_place_is_what_it_adds_there_before_any_work() {
    let mut bench = Bench::new(&[("tests/a.sh", "true\n")]).with_checks(&["cat tests/made.txt"]);
    bench.goal.protect = vec!["tests/**".into()];
    bench.goal.workspace.setup = vec!["echo theirs > tests/made.txt".into()];
    bench.setup_changes = [("tests/made.txt".to_owned(), Some("another id".to_owned()))].into();
    let expected = [result("1", 0, "theirs\n"), integrity("by setup", "added: tests/made.txt\n")];
    assert_eq!(bench.results().await, expected);
}

#[tokio::test]
async fn a_file_of_almost_nothing_but_holes_is_not_read() {
    let mut bench =
        Bench::new(&[("tests/judge.sh", "exit 1\n")]).with_checks(&["truncate -s 1T tests/judge.sh"]);
    bench.goal.protect = vec!["tests/**".into()];
    bench.protect = bench.goal.protect.clone();
    let verdict = bench.verdict().await;
    let failed: Vec<&str> =
        verdict.checks.iter().filter(|check| !check.met).map(|check| check.name.as_str()).collect();
    assert_eq!(failed, ["integrity"], "{verdict:?}");
}
