//! A server shares its state directory with other engines.

use std::time::Duration;

use towline_core::{End, Event, Goal, Need, PauseReason, Phase, Prerequisite, Scheduling};

use super::harness::{World, attempt_of, goal_of};
use super::rules::TestRules;
use super::values::{ended, goal};
use crate::engine::RESTING;
use crate::error::EngineError;
use crate::executors::Job;
use crate::news::StopLevel;
use crate::presence::fence_off;

#[tokio::test(start_paused = true)]
async fn caps_count_goals_of_other_engines() {
    let world = World::new();
    let mut other = world.engine();
    let _handle = other.start(goal(1)).await;
    let work = other.first_attempt().await;
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(2)).await;
    world.settle().await;
    assert!(server.is_idle());
    other.complete(work).await;
    world.write();
    server.attempt_of(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_goal_of_a_living_engine_is_left_alone_and_adopted_when_that_engine_dies() {
    let world = World::new();
    let mut other = world.engine();
    let handle = other.start(goal(1)).await;
    let _work = other.first_attempt().await;
    let mut server = world.pool(&TestRules::capped(4));
    // Longer than any lease.
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(server.is_idle());
    handle.crash().await;
    drop(other);
    let adopted = server.next().await;
    assert_eq!(goal_of(&adopted), goal(1).id);
    assert!(attempt_of(&adopted).started);
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_another_engine_is_left_to_it_and_woken_here_when_it_dies() {
    let world = World::new();
    let mut other = world.engine();
    let _handle = other.start(goal(1)).await;
    let until = world.now() + Duration::from_secs(1_800);
    other.first_attempt().await.finish(ended(End::RateLimited { until: Some(until) })).await;
    world.settle().await;
    assert_eq!(world.record(goal(1).id).await.lease.expect("the engine's").until, RESTING);
    let mut server = world.pool(&TestRules::capped(4));
    world.settle().await;
    drop(other);
    world.settle().await;
    let record = world.record(goal(1).id).await;
    assert!(matches!(record.state.phase, Phase::Limited { .. }), "{record:?}");
    assert_eq!(record.lease, None, "it is released");
    server.attempt_of(1).await;
    assert!(world.now() >= until);
}

#[tokio::test(start_paused = true)]
async fn a_running_server_resumes_what_the_shutdown_of_another_engine_paused_and_not_what_a_person_paused() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    for (number, reasons) in [
        (1, &[PauseReason::Operator][..]),
        // The person's pause is being carried out when the signal comes.
        (2, &[PauseReason::Operator, PauseReason::Shutdown]),
        (3, &[PauseReason::Shutdown]),
    ] {
        let mut other = world.engine();
        let handle = other.start(goal(number)).await;
        let work = other.first_attempt().await;
        for reason in reasons {
            handle.pause(*reason).await;
            world.settle().await;
        }
        assert!(server.is_idle(), "it is the other engine's");
        work.finish(ended(End::Interrupted)).await;
        handle.result().await.expect("a result");
        drop(other);
        world.settle().await;
    }
    let _work = server.attempt().await;
    world.settle().await;
    assert!(server.is_idle());
    let mut phases = Vec::new();
    for number in 1..=3 {
        phases.push(world.record(goal(number).id).await.state.phase.name());
    }
    assert_eq!(phases, ["paused", "paused", "running"]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_another_engine_does_not_keep_the_server_busy() {
    let world = World::new();
    let other = world.engine_with_slots(0);
    let mut handles = Vec::new();
    for number in 1..=50 {
        handles.push(other.start(goal(number)).await);
    }
    let mut server = world.pool(&TestRules::capped(2));
    world.add(goal(51)).await;
    let _work = server.attempt_of(51).await;
    world.settle().await;
    let before = world.store.calls();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    // The lease of the goal that runs is renewed each 20 seconds.
    assert!(world.store.calls() - before < 400, "{}", world.store.calls() - before);
    drop(other);
    let next = server.next().await;
    assert!(matches!(next.job, Job::Prepare(_)), "they are the server's now");
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_place_was_taken_claims_nothing_writes_nothing_and_leaves_its_agents_to_the_other() {
    let world = World::new();
    let mut first = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    let work = first.attempt_of(1).await;
    fence_off(&world.home.engines(), first.engine.worker()).expect("fenced off");
    let mut second = world.pool(&TestRules::capped(4));
    let adopted = second.next().await;
    assert_eq!(goal_of(&adopted), goal(1).id);
    assert!(attempt_of(&adopted).started, "it is adopted");
    assert!(matches!(first.engine.place_lost().await, EngineError::TakenOver));
    let before = world.envelopes(goal(1).id).await.len();

    // What its agent reports is not recorded by it, and the agent is not ended.
    let _ = work.try_to_report(ended(End::Completed)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
    let after = world.envelopes(goal(1).id).await;
    assert!(
        after[before..].iter().all(|event| !matches!(event.event, Event::AttemptEnded { .. })),
        "{after:?}"
    );
    let refused = first.engine.resume(goal(1).id, []).await.err();
    assert!(matches!(refused, Some(EngineError::TakenOver | EngineError::Busy { .. })), "{refused:?}");

    // A goal that nobody has is claimed by the other alone.
    world.add(goal(2)).await;
    let _work = second.attempt_of(2).await;
    assert!(first.is_idle());
    world.add(Goal { scheduling: waits_for_ever(), ..goal(3) }).await;
    let refused = first.engine.resume(goal(3).id, []).await.err();
    assert!(matches!(refused, Some(EngineError::TakenOver)), "{refused:?}");
    assert_eq!(world.record(goal(3).id).await.lease, None, "it is given back");
}

/// Waits for a goal that is not done in the test.
fn waits_for_ever() -> Scheduling {
    Scheduling { after: vec![Prerequisite { goal: goal(1).id, need: Need::Done }], ..Scheduling::default() }
}
