//! A check with a revert probe passes only if it fails without the change.

mod common;

use std::fs;

use common::{Bench, check, timeless};
use towline_check::Progress;
use towline_core::{Probe, Verdict};

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
