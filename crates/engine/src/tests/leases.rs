//! Who drives a goal holds its lease.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;
use towline_core::{AgentName, End, Event, Phase, SessionId};
use towline_store::StoreError;

use super::faulty_store::Call;
use super::harness::{PlayedEngine, World, attempt_of};
use super::values::{ended, goal, notice, retry, verdict};
use crate::error::EngineError;
use crate::news::StopLevel;

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_as_long_as_the_goal_is_driven() {
    let (world, _engine, work, _handle) = World::at_work().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let lease = world.record(goal(1).id).await.lease.expect("a lease");
    assert!(lease.until > world.now());
    assert!(*work.control.lease_ends.borrow() > Instant::now(), "the agent's supervisor learns of it");

    let other = world.engine();
    let refused = other.engine.resume(goal(1).id, None).await.err();
    assert!(matches!(refused, Some(EngineError::Busy { .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_lost_its_lease_notices_at_the_next_report_or_renewal_and_changes_and_stops_nothing() {
    for is_reported in [true, false] {
        let (world, _engine, work, handle) = World::at_work().await;
        let other = world.take_lease().await;
        let before = world.log(goal(1).id).await;
        if is_reported {
            assert!(work.try_to_report(ended(End::Completed)).await.is_err(), "the driver is gone");
        }
        let result = handle.result().await;
        assert!(matches!(result, Err(EngineError::Store(StoreError::Fenced { .. }))), "{result:?}");
        let record = world.record(goal(1).id).await;
        assert_eq!(world.log(goal(1).id).await, before);
        assert!(matches!(record.state.phase, Phase::Running { .. }));
        assert_eq!(record.lease.map(|lease| lease.worker), Some(other));
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
    }
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_ended_after_it_was_looked_up_is_not_driven_again() {
    let (world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    let before = world.record(goal(1).id).await;
    engine.checks().await.finish(verdict("t1", true)).await;
    engine.end_of(handle).await;
    let log = world.log(goal(1).id).await;

    let other = world.engine();
    let refused = other.engine.shared().drive(before, Vec::new(), None, None).await.err();
    assert!(matches!(refused, Some(EngineError::Illegal { .. })), "{refused:?}");
    assert_eq!(world.record(goal(1).id).await.lease, None);
    assert_eq!(world.log(goal(1).id).await, log);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_takes_no_goal_from_a_living_engine() {
    for hours in [2, -2] {
        let (world, _engine, work, _handle) = World::at_work().await;
        world.set_clock(SignedDuration::from_hours(hours));
        let other = world.engine();
        let refused = other.engine.resume(goal(1).id, None).await.err();
        assert!(matches!(refused, Some(EngineError::Busy { .. })), "{hours} h: {refused:?}");
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
        work.finish(ended(End::Completed)).await;
        assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Checking { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dead_engine_does_not_outlive_it_when_the_clock_was_set_back() {
    let (world, engine, _work, handle) = World::at_work().await;
    engine.crash(handle).await;
    world.set_clock(SignedDuration::from_hours(-2));
    let began = Instant::now();
    let (mut other, _handle) = world.resumed().await;
    other.next().await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_lives_and_renews_nothing_loses_its_lease() {
    let (world, _engine, _work, handle) = World::at_work().await;
    handle.crash().await;
    tokio::time::sleep(Duration::from_secs(70)).await;
    let (mut other, _handle) = world.resumed().await;
    other.next().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_does_not_shorten_the_wait_for_the_store() {
    let (world, _engine, work, _handle) = World::at_work().await;
    world
        .store
        .fail(|call| (call == Call::Append).then(|| StoreError::NoSpace { path: "towline.db".into() }));
    work.send(notice("one")).await;
    world.set_clock(SignedDuration::from_hours(2));
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.store.heal();
    work.emit(notice("two")).await;
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
}

/// A person holds a goal that no agent can work on.
async fn held_by_a_person() -> (World, PlayedEngine, crate::LeaseGuard) {
    let (world, mut engine, handle) = World::with_goal().await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    engine.checks().await.finish(Event::ChecksFailed { error: "no space".into() }).await;
    engine.end_of(handle).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut held = engine.engine.hold_place(goal(1).id).await.expect("held");
    held.hold_unrenewed().await.expect("a lease");
    let (agent, session) = (AgentName::new("agent"), SessionId::new("session"));
    held.note(Event::Entered { agent, session }).await.expect("recorded");
    (world, engine, held)
}

#[tokio::test(start_paused = true)]
async fn nobody_resumes_a_goal_that_a_person_has_entered_until_they_leave() {
    let (world, _engine, mut held) = held_by_a_person().await;
    // Longer than any lease: the process of the person may be suspended meanwhile.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let mut other = world.engine();
    let asked = tokio::time::Instant::now();
    let text = "use blue".to_owned();
    let refusals = [
        other.engine.resume(goal(1).id, [retry()]).await.err(),
        other.engine.record_request(goal(1).id, Event::CompactRequested { focus: Some(text) }).await.err(),
        other.engine.hold(goal(1).id).await.err(),
    ];
    for refused in refusals {
        assert!(matches!(refused, Some(EngineError::Entered { .. })), "{refused:?}");
    }
    assert_eq!(asked.elapsed(), Duration::ZERO, "a visit may last: nobody waits for its end");
    held.note(Event::Left { code: Some(0) }).await.expect("recorded");
    held.give_back().await;
    let _handle = other.engine.resume(goal(1).id, [retry()]).await.expect("it continues");
    let work = other.attempt().await;
    assert!(attempt_of(&work).launch.prompt.contains("# A person worked here"));
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_is_cut_off_leaves_a_goal_that_can_be_resumed() {
    let (world, engine, held) = held_by_a_person().await;
    drop((engine, held));
    let mut other = world.engine();
    let _handle = other.engine.resume(goal(1).id, [retry()]).await.expect("it continues");
    other.next().await;
}
