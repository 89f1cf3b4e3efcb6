//! A system clock that is set while a program runs ends nothing.
#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use common::{Run, exit_of, output_ending_with, within};
use towline_process::{OutputTimes, Stream};
use towline_testkit::scratch::SetClock;

const TWO_HOURS: i64 = 7_200;

#[tokio::test]
async fn a_clock_that_is_set_ends_no_run_and_makes_none_last_longer() {
    for seconds in [TWO_HOURS, -TWO_HOURS] {
        let clock = SetClock::new().unwrap();
        let mut run = Run::script("date +%s; echo up; read line; date +%s; read line; echo bye");
        run.env.extend(clock.variables());
        let mut supervisor = run.start().await;
        output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
        clock.set(seconds).unwrap();
        within(supervisor.write(b"go\n")).await.unwrap();
        within(supervisor.extend(Duration::from_secs(2))).await.unwrap();
        within(supervisor.write(b"on\n")).await.unwrap();
        let record = exit_of(&mut supervisor).await;
        assert_eq!((record.code, record.stopped), (Some(0), None), "{seconds} s");

        let out = run.stdout();
        let times: Vec<i64> = out.lines().filter_map(|line| line.parse().ok()).collect();
        assert!((times[1] - times[0] - seconds).abs() < 60, "the clock was set: {out}");
        let last = OutputTimes::new(&run.dir, Stream::Stdout).at(out.len() as u64).unwrap().unwrap();
        for time in [last, record.ended_at_ms] {
            assert!(
                (record.started_at_ms..record.started_at_ms + 60_000).contains(&time),
                "{seconds} s: {record:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_keep_a_run_alive_without_an_engine() {
    let clock = SetClock::new().unwrap();
    let mut run = Run::script("echo up; sleep 300");
    run.env.extend(clock.variables());
    run.launch.lifetime = Duration::from_secs(2);
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    clock.set(-TWO_HOURS).unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!(record.stopped, Some(towline_process::StopCause::Deadline));
}
