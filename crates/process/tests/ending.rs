//! The end of a run: graceful where it can be, and complete always.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::{Duration, Instant};

use common::{Run, exit_of, output_ending_with, until, within};
use towline_process::{ExitRecord, ProcessError, StopCause, Stream};

/// Far more than any test waits for: a grace of this length must have been cut short.
const FOR_EVER: Duration = Duration::from_secs(600);

/// Ignores what it can, starts sessions of its own, double-forks, and keeps forking when it is asked to end.
const HOSTILE: &str = r#"
trap '' INT HUP
trap 'setsid sh -c "trap \"\" TERM; sleep 300 & sleep 300" & setsid sleep 300 &' TERM
setsid sh -c '
    trap "" TERM INT HUP
    (setsid sleep 300 &)
    (while :; do setsid sh -c "trap \"\" TERM; sleep 300; sleep 300" & sleep 0.01; done) &
    echo ready
    while :; do sleep 300; done' &
while :; do sleep 300; done
"#;

#[tokio::test]
async fn a_hostile_tree_is_gone_after_a_stop_every_time() {
    for _ in 0..20 {
        let mut run = Run::script(HOSTILE);
        run.launch.interrupt_grace = Duration::from_millis(20);
        run.launch.term_grace = Duration::from_millis(50);
        let mut supervisor = run.start().await;
        output_ending_with(&mut supervisor, Stream::Stdout, b"ready\n").await;
        within(supervisor.stop()).await.unwrap();
        let record = exit_of(&mut supervisor).await;
        assert_eq!((record.code, record.signal, record.stopped), (None, Some(9), Some(StopCause::Requested)));
        assert!(record.leftovers_killed >= 3, "{record:?}");
        // The supervisor itself may take a moment after its last word; nothing else may be there even now.
        let supervisor_process = run.supervisor_process();
        let left: Vec<_> =
            run.processes().into_iter().filter(|process| *process != supervisor_process).collect();
        assert_eq!(left, []);
        until("the supervisor is gone", || !supervisor_process.is_running()).await;
    }
}

#[tokio::test]
async fn a_program_that_heeds_the_interrupt_ends_the_stop_early() {
    let mut run = Run::script("trap 'echo bye; exit 3' INT; echo up; while :; do sleep 0.05; done");
    run.launch.interrupt_grace = FOR_EVER;
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.stop()).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.stopped), (Some(3), Some(StopCause::Requested)));
    assert_eq!(run.stdout(), "up\nbye\n");
}

#[tokio::test]
async fn the_interrupt_reaches_the_program_above_or_in_place_of_which_its_sandbox_is() {
    // The program has a child and a grandchild of its own, which do not heed it.
    let program = "sh -c 'trap \"\" INT; sh -c \"while :; do sleep 0.05; done\" & wait' &
                   trap 'echo bye; exit 3' INT; echo up; while :; do sleep 0.05; done";
    let becomes_it = ["sh", "-c", "exec \"$@\"", "sh"];
    let stays = [
        "sh",
        "-c",
        "trap '' INT; sh -c '\"$@\"; exit $?' sh env --default-signal=INT \"$@\"; exit $?",
        "sh",
    ];
    for (sandbox, sandbox_stays) in [(&becomes_it, false), (&stays, true)] {
        let mut run = Run::script(program);
        run.launch.sandbox = sandbox.iter().map(ToString::to_string).collect();
        (run.launch.sandbox_stays, run.launch.interrupt_grace) = (sandbox_stays, FOR_EVER);
        let mut supervisor = run.start().await;
        output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
        within(supervisor.stop()).await.unwrap();
        assert_eq!(exit_of(&mut supervisor).await.code, Some(3), "stays: {sandbox_stays}");
        assert_eq!(run.stdout(), "up\nbye\n");
    }
}

#[tokio::test]
async fn a_tree_that_heeds_term_is_not_killed() {
    let mut run = Run::script(
        "trap '' INT; trap 'echo ended by term; exit 4' TERM
         setsid sh -c 'trap \"echo child too; exit\" TERM; echo up; while :; do sleep 0.05; done' &
         while :; do sleep 0.05; done",
    );
    run.launch.term_grace = FOR_EVER;
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.stop()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(4));
    let printed = run.stdout();
    assert!(printed.contains("ended by term\n") && printed.contains("child too\n"), "{printed}");
}

#[tokio::test]
async fn a_kill_cuts_a_stop_short() {
    let mut run = Run::script("trap '' INT TERM; echo up; while :; do sleep 300; done");
    run.launch.interrupt_grace = FOR_EVER;
    run.launch.term_grace = FOR_EVER;
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.stop()).await.unwrap();
    assert!(matches!(within(supervisor.extend(FOR_EVER)).await, Err(ProcessError::Stopping { .. })));
    within(supervisor.kill()).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.signal, record.stopped), (Some(9), Some(StopCause::Requested)));
}

#[tokio::test]
async fn what_keeps_the_output_open_after_the_exit_is_ended_within_the_drain() {
    let run =
        Run::script("setsid sh -c 'trap \"\" TERM HUP; echo up; sleep 300; sleep 300' & read line; exit 5");
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
async fn what_writes_on_after_the_exit_is_heard_until_it_closes() {
    let mut run = Run::script("(sleep 0.3; echo late) & echo early");
    run.launch.drain = FOR_EVER;
    let mut supervisor = run.start().await;
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.leftovers_killed), (Some(0), 0));
    assert_eq!(run.stdout(), "early\nlate\n");
}

#[tokio::test]
async fn a_daemon_that_writes_nothing_is_not_waited_for() {
    let mut run = Run::script("setsid sleep 300 </dev/null >/dev/null 2>&1 & exit 0");
    run.launch.drain = FOR_EVER;
    let mut supervisor = run.start().await;
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.leftovers_killed), (Some(0), 1));
    until("the supervisor is gone", || run.processes().is_empty()).await;
}

/// Reports on its standard error that it has closed its standard output, and keeps running.
const MUTE: &str = "exec >&-; echo mute >&2; read line; exit 4";

#[tokio::test]
async fn a_program_that_closed_its_output_and_stays_is_ended_without_any_client() {
    let mut run = Run::script(MUTE);
    run.launch.closed_output_grace = Some(Duration::from_millis(300));
    drop(run.start().await);
    let record = record_on_disk(&run).await;
    assert_eq!((record.code, record.signal), (None, Some(2)));
    assert_eq!(record.stopped, Some(StopCause::OutputClosed));
    assert!(record.ended_at_ms >= record.started_at_ms + 300, "{record:?}");
    until("the supervisor is gone", || run.processes().is_empty()).await;
}

#[tokio::test]
async fn a_program_that_ends_soon_after_it_closed_its_output_is_not_disturbed() {
    let mut run = Run::script(MUTE);
    run.launch.closed_output_grace = Some(FOR_EVER);
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stderr, b"mute\n").await;
    within(supervisor.write(b"go\n")).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.stopped, record.leftovers_killed), (Some(4), None, 0));
}

#[tokio::test]
async fn without_that_grace_or_while_a_child_holds_the_output_open_nothing_is_ended() {
    let without_grace = Run::script(MUTE);
    let mut held_open = Run::script("sleep 300 & exec >&-; echo mute >&2; read line; exit 4");
    held_open.launch.closed_output_grace = Some(Duration::from_millis(50));
    let mut undisturbed = [without_grace.start().await, held_open.start().await];
    for supervisor in &mut undisturbed {
        output_ending_with(supervisor, Stream::Stderr, b"mute\n").await;
    }
    // One that is ended shows that the others would have been by now.
    let mut ended = Run::script(MUTE);
    ended.launch.closed_output_grace = Some(Duration::from_millis(500));
    assert_eq!(exit_of(&mut ended.start().await).await.stopped, Some(StopCause::OutputClosed));
    for supervisor in &mut undisturbed {
        within(supervisor.write(b"go\n")).await.unwrap();
        let record = exit_of(supervisor).await;
        assert_eq!((record.code, record.stopped), (Some(4), None));
    }
}

/// Waits for the record on disk alone, without any connection.
async fn record_on_disk(run: &Run) -> ExitRecord {
    until("the record is written", || ExitRecord::read(&run.dir).unwrap().is_some()).await;
    ExitRecord::read(&run.dir).unwrap().unwrap()
}

#[tokio::test]
async fn the_deadline_holds_without_any_client() {
    let mut run = Run::script("trap '' INT TERM; while :; do sleep 300; done");
    run.launch.lifetime = Duration::from_millis(700);
    drop(run.start().await);
    let record = record_on_disk(&run).await;
    assert_eq!((record.signal, record.stopped), (Some(9), Some(StopCause::Deadline)));
    assert!(record.ended_at_ms >= record.started_at_ms + 700);
}

#[tokio::test]
async fn an_extended_deadline_is_the_one_that_counts() {
    let mut run = Run::script("read line; sleep 1.5; echo still here");
    run.launch.lifetime = Duration::from_secs(4);
    let began = std::time::Instant::now();
    let mut supervisor = run.start().await;
    within(supervisor.extend(FOR_EVER)).await.unwrap();
    // An earlier one changes nothing.
    within(supervisor.extend(Duration::from_millis(100))).await.unwrap();
    until("the first deadline has passed", || began.elapsed() > Duration::from_secs(5)).await;
    within(supervisor.write(b"go\n")).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.stopped), (Some(0), None));
    assert_eq!(run.stdout(), "still here\n");
}

#[tokio::test]
async fn a_sigterm_to_the_supervisor_is_a_stop_and_a_sighup_is_nothing() {
    let run = Run::script("trap 'echo bye; exit 0' INT; echo up; while :; do sleep 0.02; done");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let pid = rustix::process::Pid::from_raw(i32::try_from(run.supervisor_process().pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    // Once this is answered, the SIGHUP has been handled.
    within(supervisor.extend(FOR_EVER)).await.unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.stopped), (Some(0), Some(StopCause::Requested)));
}
