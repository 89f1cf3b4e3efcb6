//! However much a check prints, memory stays small. Alone in its file: it looks at the whole process.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Bench, check, result};
use towline_check::EVIDENCE_BYTES;
use towline_core::{Check, CheckKind};

/// The most memory this process ever had, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn fifty_megabytes_of_output_do_not_end_up_in_memory() {
    const LINE: &str = "123456789 123456789 123456789 123456789 123456789";
    let mut bench = Bench::new(&[]);
    let run = format!("yes '{LINE}' | head -c 50000000; echo the end");
    let kind = CheckKind::Command { run: run.clone(), stdout: Some("^the end$".into()) };
    bench.goal.checks = vec![Check { kind, ..check("1", &run) }];

    let before = peak_memory();
    let results = bench.results().await;
    let grown = peak_memory() - before;

    let (line, end) = (format!("{LINE}\n"), "the end\n");
    let evidence = line.repeat((EVIDENCE_BYTES - end.len()) / line.len()) + end;
    assert_eq!(results, [result("1", 0, &evidence)]);
    assert!(grown < 20_000, "grown by {grown} KiB");
}
