//! A check with a revert probe passes only if it fails without the change.

mod common;

use std::fs;

use common::{Bench, check, timeless};
use towline_check::Progress;
use towline_core::{CheckKind, Probe, Verdict};

const BROKEN: &str = "echo 3\n";
const REPAIRED: &str = "echo 4\n";
const TEST: &str = "test \"$(sh add.sh)\" = 4\n";

/// A goal whose check runs the test, with a probe.
fn bench(files: &[(&str, &str)], run: &str) -> Bench {
    let mut bench = Bench::new(files);
    bench.goal.checks = vec![check("tests", run), check("other", "true")];
    bench.goal.checks[0].probe = Some(Probe::Revert);
    bench
}

fn problem(verdict: &Verdict) -> Option<&str> {
    verdict.checks[0].problem.as_deref()
}

#[tokio::test]
async fn a_check_that_fails_without_the_change_passes() {
    let bench = bench(&[("add.sh", BROKEN), ("later.sh", "")], "sh tests/add.sh");
    fs::create_dir(bench.workspace().join("tests")).expect("a folder");
    // The test is new, and stays when the change is taken back.
    bench.work("tests/add.sh", TEST);
    bench.work("add.sh", REPAIRED);
    fs::remove_file(bench.workspace().join("later.sh")).expect("removed");
    let mut finished = Vec::new();
    let verdict = bench.run(std::future::pending(), |progress| match progress {
        Progress::Finished { result } => finished.push((result.name, result.met)),
        Progress::Started { .. } | Progress::Adopted { .. } | Progress::Confirming => {}
    });
    let verdict = verdict.await.expect("a verdict");
    assert!(verdict.met(), "{verdict:?}");
    let expected = ["tests", "other", "revert probe of tests"].map(|name| (name.to_owned(), true));
    assert_eq!(finished, expected);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_check_that_passes_without_the_change_fails() {
    let bench = bench(&[("add.sh", BROKEN)], "grep -q echo add.sh");
    bench.work("add.sh", REPAIRED);
    let verdict = bench.verdict().await;
    assert_eq!(problem(&verdict), Some("it passes without the change: revert probe"));
    assert_eq!(
        (verdict.checks[0].exit_code, verdict.checks.len(), verdict.checks[1].met),
        (Some(0), 2, true)
    );
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_change_of_tests_alone_shows_nothing() {
    let bench = bench(&[("add.sh", REPAIRED), ("tests/add.sh", "false\n")], "sh tests/add.sh");
    bench.work("tests/add.sh", TEST);
    let nothing = "there is no change but to tests, so nothing could be taken back: revert probe";
    assert_eq!(problem(&bench.verdict().await), Some(nothing));
}

#[tokio::test]
async fn a_failure_without_the_change_that_is_not_the_checks_own_shows_nothing() {
    // A setup that fails without the change, an unknown program, one that may not be executed, a signal, a timeout, an inner signal, and a
    // changed protected file: none of them is the check's own word.
    let with_work = |otherwise: &str| format!("if grep -q 4 add.sh; then exit 0; fi; {otherwise}");
    let cases = [
        ("nowhere-to-be-found", "the check could not run or was killed (exit code 127)"),
        ("./add.sh", "the check could not run or was killed (exit code 126)"),
        ("sh -c 'kill -9 $$'", "the check could not run or was killed (exit code 137)"),
        ("kill -9 $$", "the check did not end by itself ("),
        ("sleep 600", "the check did not end by itself (timed out after 2s)"),
    ];
    for (otherwise, expected) in cases {
        let mut bench = bench(&[("add.sh", BROKEN)], &with_work(&format!("{otherwise}; exit $?")));
        bench.goal.checks[0].timeout =
            std::time::Duration::from_secs(if otherwise == "sleep 600" { 2 } else { 60 });
        bench.work("add.sh", REPAIRED);
        assert_shows_nothing(&bench.verdict().await, expected);
        bench.assert_no_checkout();
    }
    let mut bench = bench(&[("add.sh", BROKEN)], "sh -c 'exit 0'");
    bench.goal.workspace.setup = vec!["grep -q 4 add.sh".to_owned()];
    bench.work("add.sh", REPAIRED);
    let expected = "the setup command `grep -q 4 add.sh` failed (exit code 1), so no check was run";
    assert_shows_nothing(&bench.verdict().await, expected);
}

#[tokio::test]
async fn a_check_that_changes_what_is_protected_without_the_change_shows_nothing() {
    let run = "grep -q 4 add.sh || { echo more >> tests/add.sh; exit 1; }";
    let mut bench = bench(&[("add.sh", BROKEN), ("tests/add.sh", TEST)], run);
    bench.goal.protect = vec!["tests/**".to_owned()];
    bench.protect.clone_from(&bench.goal.protect);
    bench.work("add.sh", REPAIRED);
    assert_shows_nothing(&bench.verdict().await, "files that are judged were changed by the check `tests`");
}

#[tokio::test]
async fn a_pattern_that_is_missing_without_the_change_is_the_checks_own_failure() {
    let mut bench = bench(&[("add.sh", BROKEN)], "sh add.sh");
    let CheckKind::Command { stdout, .. } = &mut bench.goal.checks[0].kind else { panic!("a command") };
    *stdout = Some("^4$".to_owned());
    bench.work("add.sh", REPAIRED);
    assert!(bench.verdict().await.met());
}

fn assert_shows_nothing(verdict: &Verdict, expected: &str) {
    let found = problem(verdict).unwrap_or_default();
    assert!(!verdict.checks[0].met, "{verdict:?}");
    assert!(found.starts_with("the revert probe showed nothing: without the change, "), "{found}");
    assert!(found.contains(expected), "{found}");
    assert!(
        found.ends_with("setup and the check must run without it, and the check must fail by itself"),
        "{found}"
    );
}

#[tokio::test]
async fn a_probe_runs_only_when_all_checks_have_passed() {
    let mut bench = bench(&[("add.sh", BROKEN)], "echo >> \"$RUNS\"");
    bench.work("add.sh", REPAIRED);
    let runs = bench.flag("runs");
    bench.environment.insert("RUNS".into(), runs.display().to_string());
    bench.goal.checks[1] = check("other", "false");
    let red = bench.verdict().await;
    assert_eq!((red.met(), problem(&red), red.checks[0].met), (false, None, true));
    assert_eq!(fs::read_to_string(&runs).expect("it ran"), "\n");
    bench.goal.checks.truncate(1);
    bench.goal.checks[0].floor = false;
    assert_eq!(timeless(bench.verdict().await.checks.remove(0)).exit_code, Some(0));
    assert_eq!(fs::read_to_string(&runs).expect("it ran").len(), 3);
}
