//! Code under test that turns against the supervisor that watches it cannot decide the verdict.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Bench, check, file_is_there, result};
use sha2::{Digest, Sha256};
use towline_check::CheckError;
use towline_core::{Check, CheckKind, CheckResult, OutputHashes};
use towline_process::ProcessId;

const KILLED: &str = "its supervisor was killed or stopped from outside, 3 times";
const ALTERED: &str = "its output was changed on disk before it could be read";

const GOOD_END: &str = r#"{"code":0,"signal":null,"spawn_error":null,"started_at_ms":1,"ended_at_ms":2,"stopped":null,
    "leftovers_killed":0,"stdout_bytes":0,"stderr_bytes":0}"#;

/// Writes the record of a good end wherever its own run may be, leaves a process that nobody can find by its session or its
/// environment, and kills its supervisor.
fn forges(bench: &Bench) -> String {
    let (logs, left, runs) = (bench.log_dir(), bench.flag("left"), bench.flag("runs"));
    let (logs, left, runs) = (logs.display(), left.display(), runs.display());
    format!(
        "echo run >> {runs}
         env -i setsid sh -c 'echo $$ >> {left}.new; mv {left}.new {left}; exec sleep 300' &
         while [ ! -e {left} ]; do sleep 0.02; done
         for run in {logs}/*/; do echo '{GOOD_END}' > $run/exit.json; done
         kill -9 $PPID; sleep 300"
    )
}

fn not_met(name: &str, problem: &str) -> CheckResult {
    CheckResult { met: false, exit_code: None, problem: Some(problem.into()), ..result(name, 0, "") }
}

fn left_process(bench: &Bench) -> Option<ProcessId> {
    let pids = fs::read_to_string(bench.flag("left")).unwrap();
    pids.lines().find_map(|pid| ProcessId::of(pid.parse().unwrap()).filter(|process| process.is_running()))
}

#[tokio::test]
async fn a_forged_record_and_a_killed_supervisor_are_no_result() {
    let bench = Bench::new(&[]);
    let forges = forges(&bench);
    let bench = bench.with_checks(&[&forges, "true"]);
    assert_eq!(bench.results().await, [not_met("1", KILLED), result("2", 0, "")]);
    assert_eq!(fs::read_to_string(bench.flag("runs")).unwrap(), "run\nrun\nrun\n");
    assert_eq!(left_process(&bench), None);
}

#[tokio::test]
async fn code_under_test_that_blinds_its_supervisor_is_ended_at_its_timeout() {
    let bench = Bench::new(&[]);
    let left = bench.flag("left");
    let left = left.display();
    let blinds = format!(
        "python3 -c 'import resource, sys; resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (7, 7))' $PPID
         env -i setsid sh -c 'echo $$ > {left}.new; mv {left}.new {left}; exec sleep 300' &
         trap '' INT TERM; while :; do sleep 1; done"
    );
    let mut bench = bench.with_checks(&[&blinds, "true"]);
    bench.goal.checks[0].timeout = Duration::from_secs(2);
    let began = Instant::now();
    let mut results = bench.results().await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    results[0].evidence.clear();
    assert_eq!(results, [not_met("1", "timed out after 2s"), result("2", 0, "")]);
    assert_eq!(left_process(&bench), None);
}

#[tokio::test]
async fn a_check_whose_supervisor_was_killed_runs_again() {
    let bench = Bench::new(&[]);
    let again = format!("[ -e {} ] && exit 3; {}", bench.flag("runs").display(), forges(&bench));
    let bench = bench.with_checks(&[&again]);
    assert_eq!(bench.results().await, [result("1", 3, "")]);
    assert_eq!(left_process(&bench), None);
    assert_eq!(bench.run_dirs("1-1").len(), 2);
}

#[tokio::test]
async fn a_check_that_stops_its_supervisor_runs_again_and_then_fails() {
    let bench = Bench::new(&[]);
    let runs = bench.flag("runs");
    let stops = format!("echo run >> {}; kill -TERM $PPID; sleep 300", runs.display());
    let bench = bench.with_checks(&[&stops, "true"]);
    assert_eq!(bench.results().await, [not_met("1", KILLED), result("2", 0, "")]);
    assert_eq!(fs::read_to_string(runs).unwrap(), "run\nrun\nrun\n");
}

#[tokio::test]
async fn a_setup_command_counts_only_if_its_supervisor_reported_it() {
    let bench = Bench::new(&[]);
    let forges = forges(&bench);
    let mut bench = bench.with_checks(&["true"]);
    bench.goal.workspace.setup = vec![forges];
    let results = bench.results().await;
    assert_eq!((results.len(), results[0].name.as_str(), results[0].met), (1, "setup", false));
    assert!(results[0].problem.as_ref().unwrap().contains(KILLED), "{results:?}");
    assert_eq!(left_process(&bench), None);
}

/// Prints something, waits until it is in the log, and writes something else of the same length over it.
fn alters(bench: &Bench, printed: &str, written: &str) -> String {
    let logs = bench.log_dir();
    let logs = logs.display();
    format!(
        "echo '{printed}'; while ! grep -q . {logs}/1-1-*/stdout.log; do sleep 0.02; done
         for log in {logs}/1-1-*/stdout.log; do echo '{written}' > $log; done"
    )
}

#[tokio::test]
async fn an_output_that_was_changed_on_disk_decides_nothing() {
    let bench = Bench::new(&[]);
    let text = alters(&bench, "2 failed", "2 passed");
    let json = alters(&bench, r#"{"met": false}"#, r#"{"met": true }"#);
    let mut bench = bench.with_checks(&[&text]);
    bench.goal.checks[0].kind = CheckKind::Command { run: text, stdout: Some("passed".into()) };
    let altered = CheckResult { exit_code: Some(0), ..not_met("1", ALTERED) };
    assert_eq!(bench.results().await, [CheckResult { evidence: "2 passed\n".into(), ..altered.clone() }]);

    let argv = ["sh", "-c", &json].map(str::to_owned).to_vec();
    bench.goal.checks = vec![Check { kind: CheckKind::Program { argv }, ..check("1", "") }];
    assert_eq!(bench.results().await, [CheckResult { evidence: "{\"met\": true }\n".into(), ..altered }]);
}

#[tokio::test]
async fn the_hashes_of_an_output_are_those_of_what_was_printed_whatever_the_log_holds_now() {
    let bench = Bench::new(&[]);
    let alters = alters(&bench, "2 failed", "2 passed");
    let mut bench = bench.with_checks(&[&format!("{alters}; echo no >&2"), ""]);
    bench.goal.checks[1].kind = CheckKind::File { path: "README.md".into(), matches: None };
    let outputs: Vec<_> = bench.verdict().await.checks.into_iter().map(|check| check.output).collect();
    let hash = |text: &str| towline_core::hexadecimal(&Sha256::digest(text));
    let printed = OutputHashes { stdout: hash("2 failed\n"), stderr: hash("no\n") };
    assert_eq!(outputs, [Some(printed), None], "a look at a file prints nothing");
}

#[tokio::test]
async fn logs_that_cannot_be_read_do_not_keep_a_check_from_failing() {
    let bench = Bench::new(&[]);
    let run = format!(
        "cd {}/1-1-*; rm stdout.log stderr.log index; mkfifo stdout.log; exit 1",
        bench.log_dir().display()
    );
    let bench = bench.with_checks(&[&run]);
    let results = bench.results().await;
    assert_eq!((results[0].met, results[0].exit_code), (false, Some(1)));
    assert!(results[0].evidence.contains("not a regular file"), "{results:?}");
}

#[tokio::test]
async fn a_suspended_supervisor_holds_up_neither_a_check_nor_its_stop() {
    let bench = Bench::new(&[]).with_checks(&["kill -STOP $PPID; exit 4"]);
    assert_eq!(bench.results().await, [result("1", 4, "")]);

    let bench = Bench::new(&[]);
    let up = bench.flag("up");
    let hangs = format!("kill -STOP $PPID; touch {}; sleep 300", up.display());
    let bench = bench.with_checks(&[&hangs]);
    let began = Instant::now();
    let stopped = bench.run(file_is_there(up), |_| ()).await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_check_gets_the_shell_of_the_system_whatever_is_in_its_path() {
    let mut bench = Bench::new(&[("bin/sh", "#!/bin/sh\nexit 0\n")]).with_checks(&["exit 5"]);
    let bin = bench.project.path().join("bin");
    fs::set_permissions(bin.join("sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), bench.environment["PATH"]);
    bench.environment.insert("PATH".into(), path);
    assert_eq!(bench.results().await, [result("1", 5, "")]);
}

#[tokio::test]
async fn nothing_that_a_check_sees_of_its_supervisor_leads_to_its_run_directory() {
    let shows = "tr '\\0' '\\n' < /proc/$PPID/cmdline; readlink /proc/$PPID/cwd || echo /; pwd; env";
    let bench = Bench::new(&[]).with_checks(&[shows]);
    let results = bench.results().await;
    assert!(results[0].met && results[0].evidence.contains("\n.\n/\n"), "{results:?}");
    assert!(!results[0].evidence.contains("attempts"), "{results:?}");
}
