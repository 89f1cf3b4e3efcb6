//! What a supervisor costs: little memory whatever flows, and nothing while nothing happens.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{Run, exit_of, output_ending_with, status_number, until, within};
use towline_process::{Stdio, Stream, WindowSize};

const TEN_MEGABYTES_IN_KB: u64 = 10 * 1024;

#[tokio::test]
async fn memory_stays_small_whatever_flows() {
    let run = Run::script("head -c 200000000 /dev/zero; echo done >&2; read line; sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stderr, b"done\n").await;
    // The program reads one line of this and no more.
    within(supervisor.write(b"\n")).await.unwrap();
    within(supervisor.write(&vec![b'x'; 20_000_000])).await.unwrap();
    let peak = status_number(run.supervisor_process().pid, "VmHWM:");
    assert!(peak < TEN_MEGABYTES_IN_KB, "the supervisor's memory peaked at {peak} kB");
    within(supervisor.stop()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.stdout_bytes, 200_000_000);
}

#[tokio::test]
async fn an_idle_supervisor_sleeps_even_with_closed_pipes_and_a_dead_client() {
    assert_sleeps(Run::script(LETS_GO)).await;
}

#[tokio::test]
async fn an_idle_supervisor_sleeps_next_to_a_file() {
    let mut run = Run::script("echo up; exec sleep 300");
    run.launch.stdio = Stdio::OutputFile;
    assert_sleeps(run).await;
}

#[tokio::test]
async fn an_idle_supervisor_sleeps_next_to_a_terminal_that_nobody_reads_or_has() {
    for program in ["echo up; exec sleep 300", LETS_GO] {
        let mut run = Run::script(program);
        run.launch.stdio = Stdio::Terminal(WindowSize { columns: 80, rows: 24 });
        assert_sleeps(run).await;
    }
}

const LETS_GO: &str = "echo up; exec 0<&- 1>&- 2>&-; exec sleep 300";

async fn assert_sleeps(run: Run) {
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    drop(run.reconnect().await);
    let pid = run.supervisor_process().pid;
    let leader = towline_process::descendants(pid).unwrap()[0];
    let name = format!("/proc/{}/comm", leader.pid);
    until("it sleeps", || std::fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")).await;
    // More than any pipe or terminal takes, or refused.
    let _ = within(supervisor.write(&vec![b'x'; 1_000_000])).await;
    let _ = within(supervisor.close_stdin()).await;

    let wakeups =
        || status_number(pid, "voluntary_ctxt_switches:") + status_number(pid, "nonvoluntary_ctxt_switches:");
    // First let it deal with what has just happened; then watch it for a while.
    let mut before = wakeups();
    let mut calm = 0;
    while calm < 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = wakeups();
        calm = if now == before { calm + 1 } else { 0 };
        before = now;
        assert!(now < 5000, "the supervisor does not come to rest");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(wakeups() - before <= 2, "woken {} times in a second with nothing to do", wakeups() - before);
}
