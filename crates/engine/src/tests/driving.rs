//! A goal from its start to its end.

use towline_core::{End, Event, Phase};

use super::harness::World;
use super::values::{ended, verdict};

#[tokio::test(start_paused = true)]
async fn a_goal_whose_checks_fail_gets_another_attempt_and_is_done_when_they_pass() {
    let (world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    engine.checks().await.finish(verdict("t1", false)).await;
    engine.attempt().await.finish(ended(End::Completed)).await;
    engine.checks().await.finish(verdict("t2", true)).await;
    let record = engine.end_of(handle).await;
    assert_eq!(record.state.phase, Phase::Done);
    assert_eq!(record.state.attempts.len(), 2);
    assert_eq!(record.lease, None);
    let log = world.log(record.goal.id).await;
    assert_eq!(log.iter().filter(|event| matches!(event, Event::AttemptEnded { .. })).count(), 2);
}
