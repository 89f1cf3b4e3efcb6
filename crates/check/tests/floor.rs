//! A check may not run fewer tests than on the base.

mod common;

use common::{Bench, result};
use towline_core::{BaselineCheck, CheckResult};

const THREE: &str = "echo '=== 1 failed, 2 passed, 1 skipped in 0.12s ==='";

fn on_base(tests: Option<u64>) -> Vec<BaselineCheck> {
    vec![BaselineCheck { name: "1".into(), met: false, exit_code: Some(1), tests }]
}

async fn judged(command: &str, base: Vec<BaselineCheck>) -> (CheckResult, Vec<String>) {
    let mut bench = Bench::new(&[]).with_checks(&[command]);
    bench.base = base;
    let mut verdict = bench.verdict().await;
    (common::timeless(verdict.checks.remove(0)), verdict.notes)
}

async fn problem(command: &str, base: Option<u64>) -> Option<String> {
    judged(command, on_base(base)).await.0.problem
}

#[tokio::test]
async fn a_check_that_runs_fewer_tests_than_on_the_base_fails() {
    assert_eq!(problem(THREE, Some(3)).await, None);
    assert_eq!(problem(THREE, Some(4)).await.unwrap(), "3 tests ran, 4 on the base");
    let quiet = "no test runner reported what it ran, but 3 tests ran on the base";
    assert_eq!(problem("true", Some(3)).await.unwrap(), quiet);
    assert_eq!(problem("true", Some(0)).await, None);
    assert_eq!(problem("true", None).await, None);
    let one = "echo 'Tests:       1 passed, 1 total' >&2";
    assert_eq!(problem(one, Some(2)).await.unwrap(), "1 test ran, 2 on the base");
}

#[tokio::test]
async fn a_failure_of_its_own_is_reported_as_it_is() {
    let (red, _) = judged(&format!("{THREE}; exit 1"), on_base(Some(9))).await;
    let evidence = "=== 1 failed, 2 passed, 1 skipped in 0.12s ===\n";
    assert_eq!(red, CheckResult { tests: Some(3), ..result("1", 1, evidence) });
}

#[tokio::test]
async fn a_count_without_one_to_compare_is_noted_for_test_runners_alone() {
    let note = |why: &str| vec![format!("no test count to compare for `1`: {why}")];
    for (command, base, expected) in [
        (THREE, on_base(Some(3)), Vec::new()),
        (THREE, on_base(None), note("its output on the base has none")),
        (THREE, Vec::new(), note("the checks did not run on the base")),
        ("true # cargo test --quiet", Vec::new(), note("its output has none")),
        ("true", Vec::new(), Vec::new()),
    ] {
        assert_eq!(judged(command, base).await.1, expected, "{command}");
    }
}

#[tokio::test]
async fn a_check_without_a_floor_counts_nothing() {
    let mut bench = Bench::new(&[]).with_checks(&[THREE]);
    bench.goal.checks[0].floor = false;
    bench.base = on_base(Some(9));
    let verdict = bench.verdict().await;
    assert_eq!((verdict.met(), verdict.checks[0].tests, verdict.notes), (true, None, Vec::new()));
}
