//! Limits that a supervised program sets for the processes above it: whoever cannot look reports that, and never that nobody is
//! left.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::{Duration, Instant};

use common::again::{role, start_again};
use common::{Run, end_of, exit_of, output_ending_with, within};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit, setrlimit};
use towline_process::{
    ProcessError, ProcessId, Stream, SupervisorHandle, ancestors, descendants, end_processes,
    is_below_supervisor, processes_with_env,
};

/// The program, a process in a session of its own without environment, and one that ignores polite signals.
const TREE: &str = "(setsid env -i sleep 300 &); trap '' TERM INT; echo up; while :; do sleep 1; done";

fn raw(process: ProcessId) -> Pid {
    Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap()
}

async fn start(run: &Run) -> (SupervisorHandle, Vec<ProcessId>) {
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let tree = descendants(run.supervisor_process().pid).unwrap();
    assert!(tree.len() >= 2, "{tree:?}");
    (supervisor, tree)
}

fn lower(limit: Rlimit, current: u64) -> Rlimit {
    Rlimit { current: Some(current), ..limit }
}

#[tokio::test]
async fn a_starter_with_too_few_descriptors_still_ends_the_tree_of_a_killed_supervisor() {
    let run = Run::script(TREE);
    let (mut supervisor, tree) = start(&run).await;
    let (pid, limit) = (raw(run.supervisor_process()), getrlimit(Resource::Nofile));
    setrlimit(Resource::Nofile, lower(limit, 3)).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let ended = end_of(&mut supervisor).await;
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(matches!(ended, Err(ProcessError::Lost { .. })), "{ended:?}");
    assert!(!tree.into_iter().any(ProcessId::is_running));
}

#[tokio::test]
async fn a_starter_that_cannot_look_does_not_report_that_the_tree_is_gone() {
    let test = "a_starter_that_cannot_look_does_not_report_that_the_tree_is_gone";
    if role().is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let mut child = start_again(test, "blind", scratch.path());
        assert!(child.wait().unwrap().success());
        let left = || processes_with_env("TOWLINE_TEST_BLIND", scratch.path().to_str().unwrap());
        assert_ne!(left().unwrap(), [], "what could not be seen was ended");
        return end_processes(left, common::PATIENCE).unwrap();
    }
    let (_, directory) = role().unwrap();
    let mut run = Run::script("setsid sleep 300 & echo up; exec sleep 300");
    run.env.insert("TOWLINE_TEST_BLIND".to_owned(), directory.to_str().unwrap().to_owned());
    let (mut supervisor, _) = start(&run).await;
    let pid = raw(run.supervisor_process());
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), maximum: Some(3) }).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let ended = end_of(&mut supervisor).await;
    assert!(matches!(ended, Err(ProcessError::NotEnded { .. })), "{ended:?}");
    let me = std::process::id();
    ancestors(me).unwrap_err();
    is_below_supervisor(me, &["shim".to_owned()]).unwrap_err();
    // Nothing can be cleaned up from here.
    std::process::exit(0);
}

#[tokio::test]
async fn a_supervisor_that_cannot_look_ends_in_time_and_its_tree_with_it() {
    let run = Run::script(TREE);
    let (mut supervisor, tree) = start(&run).await;
    let few = Rlimit { current: Some(7), maximum: Some(7) };
    prlimit(Some(raw(run.supervisor_process())), Resource::Nofile, few).unwrap();
    let began = Instant::now();
    within(supervisor.stop()).await.unwrap();
    let ended = end_of(&mut supervisor).await;
    assert!(matches!(ended, Err(ProcessError::Lost { .. })), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!tree.into_iter().any(ProcessId::is_running));
}

#[tokio::test]
async fn a_supervisor_whose_limit_can_be_raised_again_ends_its_tree_and_reports_it() {
    let run = Run::script(TREE);
    let (mut supervisor, tree) = start(&run).await;
    let pid = raw(run.supervisor_process());
    let limit = getrlimit(Resource::Nofile);
    prlimit(Some(pid), Resource::Nofile, lower(limit, 7)).unwrap();
    within(supervisor.stop()).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!(record.signal, Some(9), "{record:?}");
    assert!(!tree.into_iter().any(ProcessId::is_running));
}

#[tokio::test]
async fn a_supervisor_can_be_ended_from_outside_with_its_tree() {
    let mut run = Run::script(TREE);
    run.launch.interrupt_grace = common::PATIENCE;
    let (mut supervisor, tree) = start(&run).await;
    within(supervisor.stop()).await.unwrap();
    within(supervisor.end()).await.unwrap();
    let ended = end_of(&mut supervisor).await;
    assert!(matches!(ended, Err(ProcessError::Lost { .. })), "{ended:?}");
    assert!(!tree.into_iter().any(ProcessId::is_running));
}
