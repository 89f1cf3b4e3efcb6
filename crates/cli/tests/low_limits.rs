//! Limits of the system that are too low: named before anything is paid for, with what to do. None of them ends towline without a
//! word.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::json;
use support::{Desk, Ran, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{clean_command, towline_program, wait_until_process_tree_gone};

/// The command with other limits.
fn limited(limits: &[&str], command: &Command) -> Command {
    let mut limited = clean_command("prlimit");
    limited.args(limits).arg(command.get_program()).args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    limited
}

fn run(limits: &[&str], desk: &Desk, args: &[&str]) -> Ran {
    finish(limited(limits, &desk.command(args)).spawn().expect("towline starts"))
}

fn assert_names(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn too_few_open_files_and_too_small_files_are_named_before_anything_begins() {
    let mut desk = Desk::with_script(hostile::well_behaved);
    desk.leaves_nothing_to_replay("nothing begins");
    let goal = ["run", "do it", "--check", "true"];
    assert_names(&run(&["--nofile=32:32"], &desk, &goal), &["32 files", "ulimit -n 1024"]);
    assert_names(&run(&["--fsize=65536:65536"], &desk, &goal), &["65536 bytes", "ulimit -f unlimited"]);
    assert_eq!(desk.state(), [""; 0], "nothing was made");
}

#[test]
fn too_few_processes_are_named_before_anything_begins() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let program = scratch.path().join("towline");
    fs::copy(towline_program(), &program).expect("copied");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).expect("open to all");
    // The limit does not hold for root. A user of its own has no other processes.
    let mut command = clean_command("prlimit");
    command.arg("--nproc=12:12");
    if rustix::process::geteuid().is_root() {
        let user = (200_000 + std::process::id()).to_string();
        command.args(["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]);
    }
    command.arg(&program).arg("ls").env("HOME", scratch.path()).current_dir(scratch.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_names(&finish(command.spawn().expect("prlimit starts")), &["12 processes", "ulimit -u 4096"]);
}

#[test]
fn programs_get_the_limit_for_open_files_that_the_user_set() {
    let body = "\nawait_prompt\ninit\nulimit -n > limit.txt\nassistant Done.\nresult false null Done.\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "limited", body));
    let check = "test $(cat limit.txt) = 100 && test $(ulimit -n) = 100";
    let ran = run(&["--nofile=100:4096"], &desk, &["run", "write the limit", "--check", check, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn an_agent_that_prints_more_than_a_file_may_hold_is_ended_with_the_reason_and_not_started_again() {
    let body =
        "\nawait_prompt\ninit\nassistant Working.\nyes $(head -c 9000 /dev/zero | tr \"\\\\0\" x)\nlinger\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "endless", body));
    let limits = ["--fsize=9000000:9000000"];
    let ran = run(&limits, &desk, &["run", "never stop", "--check", "false", "--json"]);
    let report = ran.json();
    assert_eq!(
        (&report["phase"], of_attempts(&report, "end")),
        (&json!("escalated"), vec![json!("output_limit")])
    );
    let reason = report["reason"].as_str().expect("a reason");
    assert!(reason.contains("ulimit -f unlimited"), "{reason}");
    wait_until_process_tree_gone(&desk.home.marker(), std::time::Duration::from_secs(1));
}
