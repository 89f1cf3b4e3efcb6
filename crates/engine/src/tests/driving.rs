//! A goal from its start to its end.

use towline_core::{Event, Phase};

use super::harness::World;

#[tokio::test(start_paused = true)]
async fn a_goal_whose_checks_fail_gets_another_attempt_and_is_done_when_they_pass() {
    let (world, mut engine, first, handle) = World::at_work().await;
    engine.judge(first, "t0", false).await;
    let second = engine.attempt().await;
    let record = engine.pass(second, handle).await;
    assert_eq!(record.state.phase, Phase::Done);
    assert_eq!(record.state.attempts.len(), 2);
    assert_eq!(record.lease, None);
    let log = world.log(record.goal.id).await;
    assert_eq!(log.iter().filter(|event| matches!(event, Event::AttemptEnded { .. })).count(), 2);
}
