//! A goal whose engine died goes on in the next one.

use std::collections::BTreeMap;

use towline_core::{AttemptNo, End, Event, Phase, RawRef, Seq};

use super::harness::{World, attempt_of, cancel};
use super::values::{ended, goal, notice, verdict};
use crate::executors::Job;

#[tokio::test(start_paused = true)]
async fn a_running_attempt_is_adopted_where_its_output_was_recorded_to() {
    let (world, engine, work, handle) = World::at_work().await;
    work.emit_at(notice("one"), RawRef { offset: 0, length: 10 }).await;
    engine.crash(handle).await;

    let (mut engine, handle) = world.resumed().await;
    let adopted = engine.next().await;
    let job = attempt_of(&adopted);
    assert_eq!(Some(job.launch.attempt), AttemptNo::new(1));
    assert_eq!((job.read_to, job.started), (10, true));
    let state = engine.pass(adopted, handle).await.state;
    assert_eq!((state.phase, state.attempts.len()), (Phase::Done, 1));
    assert!(
        work.try_to_report(ended(End::Completed)).await.is_err(),
        "nobody listens to the first engine's work"
    );
}

#[tokio::test(start_paused = true)]
async fn a_preparation_and_checks_without_an_outcome_are_repeated() {
    let (world, mut engine, handle) = World::with_goal().await;
    assert!(matches!(engine.next().await.job, Job::Prepare(_)));
    engine.crash(handle).await;

    let (mut engine, handle) = world.resumed().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    let checks = engine.checks().await;
    checks.report(Event::CheckStarted { name: "tests".into(), process: None }).await;
    engine.crash(handle).await;

    let (mut engine, handle) = world.resumed().await;
    engine.checks().await.finish(verdict("t1", true)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!((state.phase, state.preparations), (Phase::Done, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_recorded_reaches_the_adopted_attempt() {
    let (world, engine, _work, handle) = World::at_work().await;
    cancel(&handle).await;
    engine.crash(handle).await;

    let (mut engine, handle) = world.resumed().await;
    let mut adopted = engine.next().await;
    adopted.stopped().await;
    adopted.finish(ended(End::Completed)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!(state.phase, Phase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_directory_is_gone_is_lost_and_not_started_again() {
    let (world, engine, work, handle) = World::at_work().await;
    let dir = world.home.attempt(goal(1).id, attempt_of(&work).launch.attempt);
    engine.crash(handle).await;
    std::fs::remove_dir_all(dir).expect("removed");

    let engine = world.engine_that_reads(BTreeMap::new());
    let mut log = engine.resume(goal(1).id).await.events(Seq(0));
    let end = loop {
        let envelope = log.next().await.expect("the log").expect("the goal goes on");
        if let Event::AttemptEnded { end, .. } = envelope.event {
            break end;
        }
    };
    assert_eq!(end, End::Lost);
}
