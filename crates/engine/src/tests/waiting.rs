//! A goal that waits has no task, and nobody renews its lease.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::runtime::Handle;
use towline_core::{AgentEvent, Ask, End, Event, Phase, QuestionNo, Seq};

use super::harness::World;
use super::values::{answered, crashed, ended, goal, question};
use crate::engine::RESTING;
use crate::error::EngineError;
use crate::executors::Job;

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[tokio::test(start_paused = true)]
async fn an_idle_engine_with_a_thousand_waiting_goals_does_nothing_at_all() {
    const LIMITED: u32 = 20;
    let world = World::new();
    let mut engine = world.engine_with_slots(1);
    let until = world.now() + 2 * DAY;
    let mut handles = Vec::new();
    for number in 1..=LIMITED {
        handles.push(engine.start(goal(number)).await);
        engine.first_attempt().await.finish(ended(End::RateLimited { until: Some(until) })).await;
    }
    // Somebody must have the slot that the others wait for; without a driver it renews nothing.
    let _slot = engine.engine.shared().slots.take();
    for number in LIMITED + 1..=1_000 {
        handles.push(engine.start(goal(number)).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for number in [1, 1_000] {
        assert_eq!(world.record(goal(number).id).await.lease.expect("the engine's").until, RESTING);
    }
    let tasks = Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 10, "{tasks} tasks");

    let before = world.store.calls();
    tokio::time::sleep(DAY).await;
    assert_eq!(world.store.calls(), before);
    assert!(engine.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_waits_is_reached_by_requests_and_its_handle_shows_what_follows() {
    let (world, mut engine, handle) = World::with_goal().await;
    let mut events = handle.events(Seq(0));
    engine.first_attempt().await.finish(crashed()).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.record(goal(1).id).await.lease.expect("the engine's").until, RESTING);

    let steerer = handle.steerer();
    assert!(steerer.send(Event::MessageSent { text: "use tabs".into() }).await.expect("an engine").is_ok());
    let attempt = engine.attempt().await;
    let record = engine.pass(attempt, handle).await;
    let mut last = None;
    while let Some(envelope) = events.next().await.expect("the log") {
        last = Some(envelope.seq);
    }
    assert_eq!((record.state.phase, record.lease), (Phase::Done, None));
    assert_eq!(last, Some(record.last_seq));
    assert_eq!(steerer.send(Event::CancelRequested).await, None, "nobody looks after it any more");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_makes_no_sense_is_refused_and_the_goal_waits_on() {
    let (_world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(crashed()).await;
    assert!(handle.steerer().send(answered(QuestionNo(7))).await.expect("an engine").is_err());
    let attempt = engine.attempt().await;
    assert!(matches!(attempt.job, Job::Attempt(_)));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_wakes_what_is_due() {
    let (world, mut engine, _handle) = World::with_goal().await;
    let until = world.now() + DAY;
    engine.first_attempt().await.finish(ended(End::RateLimited { until: Some(until) })).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.set_clock(SignedDuration::from_hours(25));
    let before = tokio::time::Instant::now();
    engine.attempt().await;
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    let moved =
        world.log(goal(1).id).await.into_iter().filter(|event| matches!(event, Event::ClockMoved { .. }));
    assert_eq!(moved.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_waits_belongs_to_its_engine_as_long_as_that_lives() {
    let (world, engine, work, _handle) = World::at_work().await;
    work.emit(AgentEvent::Asked(Ask { request: None, ..question() })).await;
    work.finish(ended(End::Completed)).await;
    tokio::time::sleep(DAY).await;
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Blocked { .. }));
    let mut other = world.engine();
    let refused = other.engine.resume(goal(1).id, None).await.err();
    assert!(matches!(refused, Some(EngineError::Busy { .. })), "{refused:?}");

    drop(engine);
    let handle = other.resume(goal(1).id).await;
    handle.steerer().send(answered(QuestionNo(1))).await.expect("an engine").expect("it is asked");
    other.attempt().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_goal_ends_when_the_state_directory_is_removed() {
    let (world, mut engine, handle) = World::with_goal().await;
    let until = world.now() + DAY;
    engine.first_attempt().await.finish(ended(End::RateLimited { until: Some(until) })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    std::fs::remove_dir_all(world.home.root()).expect("removed");
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::StateGone { .. })), "{result:?}");
}
