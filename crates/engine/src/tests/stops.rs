//! A stop may come at the moment in which what it stops has ended.

use towline_core::{End, Event, FailureReason, Phase};

use super::harness::{World, cancel};
use super::values::{ended, verdict};
use crate::news::StopLevel;

#[tokio::test(start_paused = true)]
async fn an_attempt_that_completes_while_it_is_stopped_is_cancelled_and_not_checked() {
    let (_world, mut engine, handle) = World::with_goal().await;
    let mut work = engine.first_attempt().await;
    cancel(&handle).await;
    assert_eq!(work.stopped().await, StopLevel::Stop);
    work.finish(ended(End::Completed)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!(state.phase, Phase::Cancelled);
    assert_eq!(state.attempts[0].end, Some(End::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_an_attempt_has_ended_stops_its_checks() {
    let (_world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    cancel(&handle).await;
    let mut checks = engine.checks().await;
    assert_eq!(checks.stopped().await, StopLevel::Stop);
    checks.finish(Event::Stopped).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!(state.phase, Phase::Cancelled);
    assert_eq!(state.attempts[0].end, Some(End::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_verdict_on_stopped_checks_does_not_end_the_goal_as_done() {
    let (_world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    let checks = engine.checks().await;
    cancel(&handle).await;
    checks.finish(verdict("t1", true)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!(state.phase, Phase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_a_verdict_is_refused() {
    let (_world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    engine.checks().await.finish(verdict("t1", true)).await;
    let refused = handle.steerer().send(Event::CancelRequested).await;
    assert!(matches!(refused, Some(Err(_)) | None), "{refused:?}");
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Done);
}

#[tokio::test(start_paused = true)]
async fn whoever_insists_has_the_attempt_ended_at_once() {
    let (_world, mut engine, handle) = World::with_goal().await;
    let mut work = engine.first_attempt().await;
    cancel(&handle).await;
    handle.kill().await;
    work.control.stop.wait_for(|level| *level == StopLevel::Kill).await.expect("a driver");
    work.finish(ended(End::Lost)).await;
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_fails_while_it_is_stopped_is_cancelled() {
    let (_world, mut engine, handle) = World::with_goal().await;
    let mut work = engine.next().await;
    cancel(&handle).await;
    work.stopped().await;
    work.finish(Event::PrepareFailed { error: "no space".into() }).await;
    engine.publish().await;
    let phase = handle.result().await.expect("a result").state.phase;
    assert_ne!(phase, Phase::Failed { reason: FailureReason::Setup { error: "no space".into() } });
    assert_eq!(phase, Phase::Cancelled);
}
