//! Who drives a goal holds its lease.

use std::time::Duration;

use jiff::ToSpan;
use towline_core::{End, Phase};
use towline_store::{Store, StoreError, WorkerName};

use super::harness::World;
use super::values::{ended, goal, verdict};
use crate::error::EngineError;
use crate::news::StopLevel;

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_as_long_as_the_goal_is_driven() {
    let world = World::new();
    let mut engine = world.engine();
    let _handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let lease = world.record(goal(1).id).await.lease.expect("a lease");
    assert!(lease.until > world.now());
    assert!(*work.control.lease_until.borrow() > world.now(), "the agent's supervisor learns of it");

    let other = world.engine();
    let refused = other.engine.take_up(goal(1).id, None).await.err();
    assert!(matches!(refused, Some(EngineError::Busy { .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fenced_driver_changes_nothing_and_stops_nothing() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    let holder = world.record(goal(1).id).await.lease.expect("a lease").worker;
    let (other, now) = (WorkerName("other".into()), world.now());
    let until = now.checked_add(1.minute()).expect("in range");
    world.store.claim(goal(1).id, &other, now, until, Some(&holder)).await.expect("claimed");
    let before = world.log(goal(1).id).await;

    assert!(work.try_to_report(ended(End::Completed)).await.is_err(), "the driver is gone");
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Fenced { .. }))), "{result:?}");
    let record = world.record(goal(1).id).await;
    assert_eq!(world.log(goal(1).id).await, before);
    assert!(matches!(record.state.phase, Phase::Running { .. }));
    assert_eq!(record.lease.map(|lease| lease.worker), Some(other));
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_lost_its_lease_notices_at_the_next_renewal() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    let holder = world.record(goal(1).id).await.lease.expect("a lease").worker;
    let (other, now) = (WorkerName("other".into()), world.now());
    let until = now.checked_add(1.minute()).expect("in range");
    world.store.claim(goal(1).id, &other, now, until, Some(&holder)).await.expect("claimed");
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Fenced { .. }))), "{result:?}");
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_ended_after_it_was_looked_up_is_not_driven_again() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    engine.first_attempt().await.finish(ended(End::Completed)).await;
    let before = world.record(goal(1).id).await;
    engine.checks().await.finish(verdict("t1", true)).await;
    engine.publish().await;
    handle.result().await.expect("a result");
    let log = world.log(goal(1).id).await;

    let other = world.engine();
    let refused = other.engine.drive(before, None, None).await.err();
    assert!(matches!(refused, Some(EngineError::Illegal { .. })), "{refused:?}");
    assert_eq!(world.record(goal(1).id).await.lease, None);
    assert_eq!(world.log(goal(1).id).await, log);
}
