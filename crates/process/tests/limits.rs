//! How a run ends when its supervisor reaches a limit.
#![cfg(target_os = "linux")]

mod common;

use std::time::{Duration, Instant};

use common::{Run, exit_of, output_ending_with, until, within};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use towline_process::{StopCause, Stream};

#[tokio::test]
async fn a_log_that_may_not_grow_ends_the_run_with_the_reason_and_keeps_what_is_stored() {
    const MOST: u64 = 64 * 1024;
    for stream in ["1", "2"] {
        let run = Run::script(&format!("echo up; read line; yes >&{stream}; sleep 300"));
        let mut supervisor = run.start().await;
        output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
        let pid = Pid::from_raw(i32::try_from(run.supervisor_process().pid).unwrap()).unwrap();
        let limit = Rlimit { current: Some(MOST), ..getrlimit(Resource::Fsize) };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
        let began = Instant::now();
        within(supervisor.write(b"go\n")).await.unwrap();
        let record = exit_of(&mut supervisor).await;
        assert_eq!(record.stopped, Some(StopCause::FileLimit));
        assert_eq!(record.stdout_bytes.max(record.stderr_bytes), MOST);
        let log = run.read(if stream == "1" { "stdout.log" } else { "stderr.log" });
        assert_eq!(log.len() as u64, MOST);
        until("nothing is left", || run.processes().is_empty()).await;
        assert!(began.elapsed() < Duration::from_secs(20), "no wait for room that never comes");
    }
}
