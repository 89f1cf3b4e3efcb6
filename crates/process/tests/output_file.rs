//! A program whose standard output is the log itself.
#![cfg(target_os = "linux")]

mod common;

use std::time::{Duration, Instant};

use common::{Run, exit_of, now_ms, output_ending_with, until, within};
use towline_process::{Notice, OutputTimes, Stdio, StopCause, Stream, merged_tail};

fn script(script: &str) -> Run {
    let mut run = Run::script(script);
    run.launch.stdio = Stdio::OutputFile;
    run
}

#[tokio::test]
async fn what_is_printed_just_before_the_exit_is_whole_and_reported_before_the_record() {
    // Without waiting for anybody to take it, as a program that cannot block does.
    let run = script(
        "exec python3 -c 'import os; os.set_blocking(1, False)\n\
         os.write(1, b\"a line of output\\n\" * 300000); os._exit(3)'",
    );
    let mut supervisor = run.start().await;
    let mut reported = None;
    let record = within(async {
        loop {
            match supervisor.next().await.unwrap() {
                Notice::Grown { stdout, stderr } => reported = Some((stdout, stderr)),
                Notice::Exited(record) => return record,
            }
        }
    })
    .await;
    assert_eq!((record.code, record.stdout_bytes, reported), (Some(3), 5_100_000, Some((5_100_000, 0))));
    assert!(run.read("stdout.log") == b"a line of output\n".repeat(300_000), "other bytes");
    let mut times = OutputTimes::new(&run.dir, Stream::Stdout);
    assert!(times.at(5_100_000).unwrap().is_some_and(|at| record.started_at_ms <= at));
    assert_eq!(times.at(5_100_001).unwrap(), None);
    assert_eq!(run.read("shim.log"), b"", "the supervisor had something to complain about");
}

#[tokio::test]
async fn growth_is_reported_while_it_runs_and_has_its_times() {
    let run = script(
        "echo one; read x; echo two >&2; read x; printf three; read x; test -t 1 || test -f /dev/fd/1",
    );
    let mut times = OutputTimes::new(&run.dir, Stream::Stdout);
    let before = now_ms();
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"one\n").await;
    until("the first line has a time", || times.at(4).unwrap().is_some()).await;
    let first = times.at(4).unwrap().unwrap();
    assert!(before <= first && first <= now_ms(), "{before} {first}");
    within(supervisor.write(b"\n")).await.unwrap();
    output_ending_with(&mut supervisor, Stream::Stderr, b"two\n").await;
    let between = now_ms();
    within(supervisor.write(b"\n")).await.unwrap();
    output_ending_with(&mut supervisor, Stream::Stdout, b"three").await;
    until("the second has one, too", || times.at(9).unwrap().is_some()).await;
    assert!(between <= times.at(9).unwrap().unwrap());
    assert_eq!(merged_tail(&run.dir, 100).unwrap(), b"one\ntwo\nthree");
    within(supervisor.write(b"\n")).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
}

#[tokio::test]
async fn several_writers_append_and_nobody_overwrites() {
    let run = script("for n in 1 2 3 4; do (for m in $(seq 50); do echo 0123456789; done) & done; wait");
    assert_eq!(exit_of(&mut run.start().await).await.stdout_bytes, 4 * 50 * 11);
    assert_eq!(run.stdout(), "0123456789\n".repeat(200));
}

#[tokio::test]
async fn what_holds_the_file_after_the_exit_is_heard_for_a_time_and_then_ended() {
    let mut run = script("(sleep 0.3; echo late) & echo early");
    run.launch.drain = Duration::from_secs(600);
    let record = exit_of(&mut run.start().await).await;
    assert_eq!((record.code, record.leftovers_killed), (Some(0), 0));
    assert_eq!(run.stdout(), "early\nlate\n");

    let run = script("setsid sh -c 'trap \"\" TERM HUP; echo up; sleep 300; sleep 300' & read line; exit 5");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let left = Instant::now();
    within(supervisor.write(b"go\n")).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert!(left.elapsed() < Duration::from_secs(20), "{:?}", left.elapsed());
    assert_eq!((record.code, record.stopped), (Some(5), None));
    assert!(record.leftovers_killed >= 1);
    until("the supervisor is gone", || run.processes().is_empty()).await;
}

#[tokio::test]
async fn a_stop_ends_it_and_a_closed_output_cannot_be_seen() {
    let mut run = script("exec >&-; echo mute >&2; exec sleep 300");
    run.launch.closed_output_grace = Some(Duration::from_millis(1));
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stderr, b"mute\n").await;
    within(supervisor.stop()).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.signal, record.stopped), (Some(2), Some(StopCause::Requested)));
}

#[tokio::test]
async fn somebody_else_can_continue_it() {
    let run = script("echo up; read line; echo \"got $line\"");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    drop(supervisor);
    let mut supervisor = run.reconnect().await;
    within(supervisor.write(b"word\n")).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(run.stdout(), "up\ngot word\n");
}
