//! Nothing that has ended stays behind, and a later process with the same number is not taken for it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Run, exit_of, output_ending_with, until, within};
use rustix::process::{Pid, Signal, kill_process};
use towline_process::{ProcessError, ProcessId, Stream, connect, end_processes};

/// The children of a process, those included that have ended and wait to be reaped.
fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let numbers = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    numbers.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything, come the state and the parent.
    stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn orphans_that_end_are_reaped_while_the_run_goes_on() {
    let run = Run::script(
        "n=0; while [ $n -lt 30 ]; do (setsid sleep 300 &); n=$((n + 1)); done; echo $$; echo up; exec sleep 300",
    );
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let leader: u32 = run.stdout().lines().next().unwrap().parse().unwrap();
    let pid = run.supervisor_process().pid;
    until("the orphans have come to the supervisor", || children(pid).len() == 31).await;
    children(pid).into_iter().filter(|child| *child != leader).for_each(kill);
    until("nothing is left of the orphans", || children(pid) == [leader]).await;
    within(supervisor.stop()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.leftovers_killed, 0);
}

#[tokio::test]
async fn a_supervisor_that_has_ended_is_reaped_by_its_starter() {
    let run = Run::script("read line");
    let mut supervisor = run.start().await;
    let pid = run.supervisor_process().pid;
    assert_eq!(parent_of(pid), Some(std::process::id()));
    within(supervisor.close_stdin()).await.unwrap();
    exit_of(&mut supervisor).await;
    until("nothing is left of the supervisor", || parent_of(pid) != Some(std::process::id())).await;
}

#[tokio::test]
async fn a_run_whose_supervisors_number_belongs_to_another_process_by_now_is_lost() {
    let run = Run::script("exec sleep 300");
    drop(run.start().await);
    kill(run.supervisor_process().pid);
    end_processes(|| Ok(run.processes()), common::PATIENCE).unwrap();

    // This very process lives, and is not the supervisor.
    let me = ProcessId::of(std::process::id()).unwrap();
    let supervisor = ProcessId { start_time: me.start_time - 1, ..me };
    std::fs::write(run.dir.join("shim.pid"), serde_json::to_vec(&supervisor).unwrap()).unwrap();
    let lost = within(connect(&run.dir)).await;
    assert!(matches!(lost, Err(ProcessError::Lost { .. })), "{lost:?}");
}
