//! A stop may come at the moment in which what it stops has ended.

use towline_core::{End, Event, Phase};

use super::harness::{World, cancel};
use super::values::{ended, verdict};
use crate::news::StopLevel;

#[tokio::test(start_paused = true)]
async fn whatever_is_reported_by_a_job_that_is_stopped_its_goal_is_cancelled() {
    let completed = || ended(End::Completed);
    for (job, reported, end) in [
        ("setup", Event::PrepareFailed { error: "no space".into() }, None),
        ("attempt", completed(), Some(End::Cancelled)),
        ("checks", Event::Stopped, Some(End::Completed)),
        ("checks", verdict("t1", true), Some(End::Completed)),
    ] {
        let (_world, mut engine, handle) = World::with_goal().await;
        let mut work = match job {
            "setup" => engine.next().await,
            "attempt" => engine.first_attempt().await,
            _ => {
                engine.first_attempt().await.finish(completed()).await;
                engine.checks().await
            }
        };
        cancel(&handle).await;
        assert_eq!(work.stopped().await, StopLevel::Stop);
        work.finish(reported.clone()).await;
        let state = engine.end_of(handle).await.state;
        let attempt = state.last_attempt().and_then(|attempt| attempt.end.clone());
        assert_eq!((state.phase, attempt), (Phase::Cancelled, end), "{job}: {reported:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn checks_that_are_due_when_their_goal_is_cancelled_are_stopped() {
    let (_world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    cancel(&handle).await;
    let mut work = engine.checks().await;
    assert_eq!(work.stopped().await, StopLevel::Stop);
    work.finish(Event::Stopped).await;
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_a_verdict_is_refused() {
    let (_world, mut engine, work, handle) = World::at_work().await;
    engine.judge(work, "t1", true).await;
    let refused = handle.steerer().send(Event::CancelRequested).await;
    assert!(matches!(refused, Some(Err(_)) | None), "{refused:?}");
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Done);
}

#[tokio::test(start_paused = true)]
async fn whoever_insists_has_the_attempt_ended_at_once() {
    let (_world, mut engine, mut work, handle) = World::at_work().await;
    cancel(&handle).await;
    handle.kill().await;
    work.control.stop.wait_for(|level| *level == StopLevel::Kill).await.expect("a driver");
    work.finish(ended(End::Lost)).await;
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Cancelled);
}
