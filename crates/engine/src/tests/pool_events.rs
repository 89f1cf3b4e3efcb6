//! The events of all goals reach everybody who listens, each once and in order.

use std::sync::Arc;
use std::time::Duration;

use towline_core::{End, PoolSeq, Seq};
use towline_store::{Store, StoreError};

use super::harness::World;
use super::rules::TestRules;
use super::values::{answered, ended, goal, notice, question};
use crate::following::follow;
use crate::tail::PoolEvents;

const EVENTS: usize = 10_000;

/// Listens until the last event.
async fn listen(mut events: PoolEvents, pause: Duration, last: &'static str) -> Vec<PoolSeq> {
    let mut places = Vec::new();
    loop {
        let (place, envelope) = match events.next().await {
            Ok(placed) => placed.expect("the engine lives"),
            Err(error) if error.is_passing() => continue,
            Err(error) => panic!("{error}"),
        };
        places.push(place);
        if !pause.is_zero() && place.0 % 10 == 0 {
            tokio::time::sleep(pause).await;
        }
        let text = serde_json::to_string(&envelope.event).expect("JSON");
        if text.contains(last) {
            return places;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_listener_gets_each_event_once_however_late_or_slow_it_is() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let slow = listen(server.engine.pool_events(PoolSeq(0)), Duration::from_secs(1), "the last one");
    let quick = listen(server.engine.pool_events(PoolSeq(0)), Duration::ZERO, "the last one");
    let late = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        listen(server.engine.pool_events(PoolSeq(0)), Duration::ZERO, "the last one").await
    };
    let write = async {
        for number in 0..EVENTS {
            work.emit(notice(&number.to_string())).await;
            if number < EVENTS / 5 {
                // Slow enough for a batch of its own, so that the slow listener misses batches.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            if number % 1_000 == 0 {
                // A moment in which the store fails.
                world.store.fail(|call| {
                    let error = StoreError::Unavailable { path: "db".into(), message: "locked".into() };
                    (call == super::faulty_store::Call::Other).then_some(error)
                });
                tokio::time::sleep(Duration::from_millis(300)).await;
                world.store.heal();
            }
        }
        work.emit(notice("the last one")).await;
    };
    let (slow, quick, late, ()) = tokio::join!(slow, quick, late, write);
    let all = world.store.events_since(PoolSeq(0), usize::MAX >> 1).await.expect("all events");
    let all: Vec<PoolSeq> = all.into_iter().map(|(place, _)| place).collect();
    let last = quick.last().copied();
    let all: Vec<PoolSeq> = all.into_iter().filter(|place| Some(*place) <= last).collect();
    assert!(all.len() > EVENTS);
    assert_eq!(quick, all);
    assert_eq!(slow, all);
    assert_eq!(late, all);
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_is_removed_leaves_a_gap_that_stops_nobody() {
    let world = World::new();
    let server = world.pool(&TestRules::capped(0));
    let mut events = server.engine.pool_events(PoolSeq(0));
    world.add(goal(1)).await;
    world.add(goal(2)).await;
    let now = world.now();
    let lease = world.store.claim(goal(1).id, server.engine.worker(), now, now, None).await.expect("claimed");
    world.store.remove(&lease).await.expect("removed");
    world.add(goal(3)).await;
    for number in [2, 3] {
        let (_, envelope) = events.next().await.expect("an event").expect("the engine lives");
        assert_eq!(envelope.goal, goal(number).id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_a_waiting_goal_is_served_until_the_goal_is_settled() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let asked = towline_core::Ask { request: None, ..question() };
    work.emit(towline_core::AgentEvent::Asked(asked)).await;
    work.finish(ended(End::Completed)).await;
    world.phase(1, "blocked").await;
    world.settle().await;
    let record = world.record(goal(1).id).await;
    assert_eq!(record.lease, None);
    let store = Arc::clone(&world.store) as Arc<dyn Store>;
    let mut following = follow(&world.home, store, &record, Seq(0)).await.expect("a follower");
    let answer = async {
        world.settle().await;
        server
            .engine
            .record_request(goal(1).id, answered(towline_core::QuestionNo(1)))
            .await
            .expect("recorded");
        let work = server.attempt_of(1).await;
        server.complete(work).await;
        server.publish().await;
    };
    let followed = async {
        let mut seqs = Vec::new();
        while let Some(envelope) = following.next().await.expect("the log") {
            seqs.push(envelope.seq);
        }
        seqs
    };
    let (seqs, ()) = tokio::join!(followed, answer);
    let log: Vec<Seq> = world.envelopes(goal(1).id).await.into_iter().map(|envelope| envelope.seq).collect();
    assert_eq!(seqs, log);
}
