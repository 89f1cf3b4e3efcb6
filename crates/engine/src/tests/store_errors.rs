//! A running agent when the store fails.

use std::time::Duration;

use jiff::ToSpan;
use towline_core::{AgentEvent, End, Event, Phase};
use towline_store::{Store, StoreError, WorkerName};

use super::faulty_store::Call;
use super::harness::{World, attempt_of};
use super::values::{ended, goal, notice, verdict};
use crate::error::EngineError;
use crate::news::StopLevel;

fn full() -> StoreError {
    StoreError::NoSpace { path: "towline.db".into() }
}

fn locked() -> StoreError {
    StoreError::Unavailable { path: "towline.db".into(), message: "it is locked".into() }
}

fn damaged() -> StoreError {
    StoreError::Database { path: "towline.db".into(), message: "it is damaged".into() }
}

/// The agent's notices, in order.
fn agent_notices(log: &[Event]) -> Vec<&str> {
    let notices = log.iter().filter_map(|event| match event {
        Event::Agent { event: AgentEvent::Notice { text } } => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

/// What Towline has reported.
fn notices(log: &[Event]) -> Vec<&str> {
    let notices = log.iter().filter_map(|event| match event {
        Event::Notice { text } => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

#[tokio::test(start_paused = true)]
async fn an_agent_outlives_a_store_that_fails_for_a_while() {
    for (error, seconds) in [(full as fn() -> StoreError, 2), (locked, 12), (full, 35)] {
        let world = World::new();
        let mut engine = world.engine();
        let mut trouble = engine.engine.store_trouble();
        let handle = engine.start(goal(1)).await;
        let work = engine.first_attempt().await;
        world.store.fail(move |call| matches!(call, Call::Append | Call::Renew).then(error));
        work.send(notice("one")).await;
        trouble.changed().await.expect("an engine");
        let shown = trouble.borrow_and_update().clone().expect("trouble");
        assert_eq!(shown.error, error().to_string());
        assert!(shown.until > world.now());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run);

        world.store.heal();
        work.emit(notice("two")).await;
        assert_eq!(*trouble.borrow(), None);
        let log = world.log(goal(1).id).await;
        assert_eq!(agent_notices(&log), ["one", "two"]);
        let [report] = notices(&log)[..] else { panic!("{log:?}") };
        assert!(report.starts_with("nothing could be stored for ") && report.ends_with(&error().to_string()));
        work.finish(ended(End::Completed)).await;
        engine.checks().await.finish(verdict("t1", true)).await;
        engine.publish().await;
        assert_eq!(handle.result().await.expect("a result").state.phase, Phase::Done);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_agent_outlives_thirty_seconds_without_renewals() {
    let world = World::new();
    let mut engine = world.engine();
    let _handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    world.store.fail(|call| (call == Call::Renew).then(locked));
    tokio::time::sleep(Duration::from_secs(50)).await;
    world.store.heal();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
    work.emit(notice("still here")).await;
    let lease = world.record(goal(1).id).await.lease.expect("a lease");
    assert!(lease.until > world.now());
}

#[tokio::test(start_paused = true)]
async fn nothing_more_is_taken_in_while_the_store_fails() {
    let world = World::new();
    let mut engine = world.engine();
    let _handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    world.store.fail(|call| (call == Call::Append).then(full));
    let flood = async {
        for _ in 0..32 {
            work.send(notice("more")).await;
        }
    };
    tokio::pin!(flood);
    tokio::time::timeout(Duration::from_secs(30), &mut flood).await.expect_err("it has to wait");
    world.store.heal();
    flood.await;
    work.emit(notice("last")).await;
    assert_eq!(agent_notices(&world.log(goal(1).id).await).len(), 33);
}

#[tokio::test(start_paused = true)]
async fn when_the_lease_has_expired_the_agent_is_left_to_the_next_engine() {
    for silent in [false, true] {
        let world = World::new();
        let mut engine = world.engine();
        let handle = engine.start(goal(1)).await;
        let work = engine.first_attempt().await;
        let began = world.now();
        world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(full));
        if !silent {
            work.send(notice("unheard")).await;
        }
        let result = handle.result().await;
        assert!(matches!(result, Err(EngineError::LeaseExpired { .. })), "{result:?}");
        let waited = world.now().duration_since(began).as_secs();
        assert!((55..=65).contains(&waited), "{waited} s");
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run, "its agent is not stopped");

        world.store.heal();
        let mut next = world.engine();
        let _handle = next.resume(goal(1).id).await;
        assert_eq!(attempt_of(&next.next().await).launch, attempt_of(&work).launch);
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_was_fenced_while_the_store_failed_records_nothing() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    let holder = world.record(goal(1).id).await.lease.expect("a lease").worker;
    world.store.fail(|call| (call == Call::Append).then(full));
    work.send(notice("too late")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (other, now) = (WorkerName("other".into()), world.now());
    let until = now.checked_add(1.minute()).expect("in range");
    world.store.claim(goal(1).id, &other, now, until, Some(&holder)).await.expect("claimed");
    world.store.heal();
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Fenced { .. }))), "{result:?}");
    assert_eq!(agent_notices(&world.log(goal(1).id).await), [""; 0]);
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
}

#[tokio::test(start_paused = true)]
async fn an_append_that_took_effect_and_reported_an_error_is_not_repeated() {
    let world = World::new();
    let mut engine = world.engine();
    let _handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    let mut is_first = true;
    world.store.fail_after(move |call| {
        (call == Call::Append && std::mem::replace(&mut is_first, false)).then(locked)
    });
    work.emit(notice("one")).await;
    work.emit(notice("two")).await;
    assert_eq!(agent_notices(&world.log(goal(1).id).await), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_store_and_whoever_insists_does_not() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let mut work = engine.first_attempt().await;
    world.store.fail(|call| (call == Call::Append).then(full));
    work.send(notice("more")).await;
    handle.cancel().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
    handle.kill().await;
    assert_eq!(work.stopped().await, StopLevel::Kill);
    drop(work);
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::NoSpace { .. }))), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_came_while_the_store_failed_is_carried_out() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let mut work = engine.first_attempt().await;
    world.store.fail(|call| (call == Call::Append).then(full));
    work.send(notice("more")).await;
    handle.cancel().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.store.heal();
    work.stopped().await;
    work.finish(ended(End::Lost)).await;
    engine.publish().await;
    assert_eq!(handle.result().await.expect("a result").state.phase, Phase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_good_ends_the_agent() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let mut work = engine.first_attempt().await;
    world.store.fail(|call| (call == Call::Append).then(damaged));
    work.send(notice("more")).await;
    assert_eq!(work.stopped().await, StopLevel::Kill);
    work.finish(ended(End::Lost)).await;
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Database { .. }))), "{result:?}");
    world.store.heal();
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Running { .. }));
}
