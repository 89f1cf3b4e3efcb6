//! Whoever follows a goal: events from the append, and the message that is being written.

use std::sync::Arc;

use towline_core::{AgentEvent, Envelope, Event, Role, Seq};
use towline_store::{Store, StoreError};

use super::faulty_store::Call;
use super::harness::{Work, World};
use super::values::notice;
use crate::feed::Events;
use crate::following::follow;
use crate::live::LiveMessage;

/// Reads events until the notice with this text.
async fn read_to(events: &mut Events, text: &str) -> Vec<Envelope> {
    let mut read = Vec::new();
    loop {
        read.push(events.next().await.expect("no error").expect("the goal goes on"));
        if is_notice(&read[read.len() - 1], text) {
            return read;
        }
    }
}

fn is_notice(envelope: &Envelope, text: &str) -> bool {
    envelope.event == Event::Agent { event: notice(text) }
}

async fn write(work: &Work, text: &str) {
    work.emit(AgentEvent::MessageDelta { text: text.to_owned() }).await;
}

fn message(number: u64, text: &str) -> LiveMessage {
    LiveMessage { number, attempt: Some(towline_core::AttemptNo::FIRST), text: text.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn events_come_from_the_append_without_reading_the_store() {
    let (world, _engine, work, handle) = World::at_work().await;
    let mut events = handle.events(Seq(0));
    work.emit(notice("before")).await;
    let mut read = read_to(&mut events, "before").await;
    // This follower has caught up once it waits.
    work.send(notice("between")).await;
    read.extend(read_to(&mut events, "between").await);
    let unread = || StoreError::Database { path: "the store".into(), message: "was read".into() };
    world.store.fail(move |call| (call == Call::Other).then(unread));
    for text in ["one", "two", "three"] {
        work.emit(notice(text)).await;
        read.extend(read_to(&mut events, text).await);
    }
    world.store.heal();
    assert_eq!(read, world.envelopes(handle.id).await);
}

#[tokio::test(start_paused = true)]
async fn a_slow_follower_misses_nothing_and_gets_nothing_twice() {
    let (world, _engine, work, handle) = World::at_work().await;
    let mut events = handle.events(Seq(0));
    work.emit(notice("first")).await;
    let mut read = read_to(&mut events, "first").await;
    for number in 0..100 {
        work.emit(notice(&format!("{number}"))).await;
        // It falls behind, catches up, and falls behind again.
        if number == 40 {
            read.extend(read_to(&mut events, "40").await);
        }
    }
    read.extend(read_to(&mut events, "99").await);
    assert_eq!(read, world.envelopes(handle.id).await);
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_writes_is_seen_before_it_is_stored_and_never_stored_in_pieces() {
    let (world, _engine, work, handle) = World::at_work().await;
    let mut live = handle.live();
    write(&work, "Let me ").await;
    assert_eq!(live.next().await, Some(message(1, "Let me")));
    write(&work, "look at").await;
    write(&work, " the tests.\n").await;
    assert_eq!(live.next().await, Some(message(1, "Let me look at the tests.")));
    work.emit(AgentEvent::Message { role: Role::Assistant, text: "Let me look at the tests.\n".into() })
        .await;
    assert_eq!(live.next().await, Some(message(1, "")));
    write(&work, "Done now.\n").await;
    assert_eq!(live.next().await, Some(message(2, "Done now.")));
    let is_piece = |event: &Event| matches!(event, Event::Agent { event: AgentEvent::MessageDelta { .. } });
    assert!(!world.log(handle.id).await.iter().any(is_piece));
    let mut late = handle.live();
    assert_eq!(late.next().await, Some(message(2, "Done now.")), "one who comes later sees it, too");
    handle.crash().await;
    assert_eq!(late.next().await, None);
}

#[tokio::test]
async fn a_follower_at_the_socket_gets_events_and_the_message_that_is_being_written() {
    let (world, _engine, work, handle) = World::at_work().await;
    let record = world.record(handle.id).await;
    let store = Arc::clone(&world.store) as Arc<dyn Store>;
    let mut following = follow(&world.home, store, &record, Seq(0)).await.expect("an engine");
    let mut live = following.live();
    write(&work, "Let me look.\n").await;
    assert_eq!(live.next().await, Some(message(1, "Let me look.")));
    for number in 0..100 {
        work.emit(notice(&format!("{number}"))).await;
    }
    let mut read = Vec::new();
    while !read.last().is_some_and(|envelope| is_notice(envelope, "99")) {
        read.push(following.next().await.expect("no error").expect("the goal goes on"));
    }
    assert_eq!(read, world.envelopes(handle.id).await);
    handle.crash().await;
    assert_eq!(following.next().await.expect("no error"), None, "no engine runs it any more");
}
