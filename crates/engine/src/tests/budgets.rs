//! A goal ends when its budget is spent.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;
use towline_core::{AgentEvent, Axis, Budget, End, Event, FailureReason, MicroUsd, Phase, Tokens, Usage};

use super::harness::World;
use super::values::{beginning, crashed, ended, goal, goal_with};
use crate::news::StopLevel;

const WALL: Duration = Duration::from_secs(600);

fn hasty() -> Budget {
    Budget { wall: Some(WALL), ..Budget::default() }
}

fn spent(axis: Axis) -> Phase {
    Phase::Failed { reason: FailureReason::Budget { axis } }
}

#[tokio::test(start_paused = true)]
async fn no_attempt_starts_beyond_the_budget_of_attempts() {
    let budget = Budget { attempts: Some(2), ..Budget::default() };
    let (_world, mut engine, handle) = World::with(goal_with(budget)).await;
    engine.prepare().await;
    for tree in ["t1", "t2"] {
        let attempt = engine.attempt().await;
        engine.judge(attempt, tree, false).await;
    }
    assert_eq!(engine.end_of(handle).await.state.phase, spent(Axis::Attempts));
}

#[tokio::test(start_paused = true)]
async fn bad_ends_in_a_row_spend_errors_with_growing_pauses() {
    let budget = Budget { errors: Some(3), ..Budget::default() };
    let (world, mut engine, handle) = World::with(goal_with(budget)).await;
    engine.prepare().await;
    let mut ends = vec![beginning()];
    for _ in 0..3 {
        engine.attempt().await.finish(crashed()).await;
        ends.push(world.now());
    }
    assert_eq!(engine.end_of(handle).await.state.phase, spent(Axis::Errors));
    let pauses: Vec<_> = ends.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    assert!(pauses.is_sorted() && pauses[1] > pauses[0], "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_stopped_when_the_wall_time_is_over() {
    let (world, mut engine, handle) = World::with(goal_with(hasty())).await;
    let mut work = engine.first_attempt().await;
    work.stopped().await;
    let passed = Duration::try_from(world.now().duration_since(beginning())).expect("after the beginning");
    assert!(passed >= WALL && passed < WALL + Duration::from_secs(1), "{passed:?}");
    work.finish(ended(End::Lost)).await;
    assert_eq!(engine.end_of(handle).await.state.phase, spent(Axis::Wall));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_spends_no_wall_time_and_gives_none() {
    for hours in [2, -2] {
        let began = Instant::now();
        let (world, mut engine, handle) = World::with(goal_with(hasty())).await;
        let mut work = engine.first_attempt().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.set_clock(SignedDuration::from_hours(hours));
        tokio::time::sleep(Duration::from_secs(500)).await;
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run, "{hours} h");
        work.stopped().await;
        let passed = began.elapsed();
        assert!(passed >= WALL && passed < WALL + Duration::from_secs(30), "{hours} h: {passed:?}");
        work.finish(ended(End::Lost)).await;
        assert_eq!(engine.end_of(handle).await.state.phase, spent(Axis::Wall));
        let by_ms = hours * 3_600_000;
        assert!(world.log(goal(1).id).await.contains(&Event::ClockMoved { by_ms }));
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_spent_its_money_or_its_tokens_is_stopped_more_urgently_than_others() {
    let budget = Budget { usd: Some(MicroUsd(1)), tokens: Some(Tokens(1)), ..Budget::default() };
    for used in
        [Usage { cost: MicroUsd(2), ..Usage::default() }, Usage { output: Tokens(2), ..Usage::default() }]
    {
        let (_world, mut engine, _handle) = World::with(goal_with(budget.clone())).await;
        let work = engine.first_attempt().await;
        work.send(AgentEvent::Usage { model: None, used, context_used: None, context_size: None }).await;
        // An answer to the agent waits for this, though it has nothing to record itself.
        work.recorded().await;
        assert_eq!(*work.control.stop.borrow(), StopLevel::StopSpending);
    }
}
