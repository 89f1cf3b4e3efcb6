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
