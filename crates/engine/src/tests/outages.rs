//! A provider that does not answer is waited for, and the wait can be ended.

use std::time::Duration;

use towline_core::{AgentEvent, End, Event, Phase, Tokens, Usage};

use super::harness::{World, attempt_of};
use super::values::{beginning, ended, goal};

fn unreachable() -> Event {
    ended(End::ServerError { status: None, message: "connection refused".into() })
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_two_hours_is_waited_out_and_the_next_try_is_at_most_five_minutes_away() {
    let (world, mut engine, handle) = World::with_goal().await;
    engine.prepare().await;
    let mut longest = Duration::ZERO;
    while world.now() < beginning() + Duration::from_secs(2 * 3_600) {
        engine.attempt().await.finish(unreachable()).await;
        let state = world.record(goal(1).id).await.state;
        assert!(matches!(state.phase, Phase::Sleeping { .. }), "{:?}", state.phase);
        assert_eq!((state.errors_in_row, state.attempts_spent()), (0, 0));
        let next = state.wakes_at(goal(1).id).expect("a next try");
        longest = longest.max(Duration::try_from(next.duration_since(world.now())).expect("later"));
    }
    // Jitter adds up to a tenth.
    assert!((Duration::from_secs(300)..=Duration::from_secs(330)).contains(&longest), "{longest:?}");
    let work = engine.attempt().await;
    let used = Usage { input: Tokens(1), ..Usage::default() };
    work.emit(AgentEvent::Usage { model: None, used, context_used: None, context_size: None }).await;
    let state = engine.pass(work, handle).await.state;
    assert_eq!((state.phase.clone(), state.attempts_spent()), (Phase::Done, 1));
    assert!(state.attempts.len() > 25, "{}", state.attempts.len());
}

#[tokio::test(start_paused = true)]
async fn the_operator_ends_the_wait() {
    let (world, mut engine, handle) = World::with_goal().await;
    engine.prepare().await;
    for _ in 0..10 {
        engine.attempt().await.finish(unreachable()).await;
    }
    let before = world.now();
    handle.steerer().send(Event::ResumeRequested).await.expect("a driver").expect("it waits");
    let work = engine.attempt().await;
    assert!(world.now() < before + Duration::from_secs(1));
    assert_eq!(attempt_of(&work).launch.attempt.get(), 11);
    assert_eq!(engine.pass(work, handle).await.state.phase, Phase::Done);
}
