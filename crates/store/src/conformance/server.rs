//! What a server records: notifications that are to be delivered, and replies that were given.

use std::sync::Arc;

use tokio::task::JoinSet;
use towline_core::{EscalationReason, Event, Phase, QuestionNo, Seq};

use super::Place;
use super::samples::{append, at, claimed, happened, notice};
use crate::{Append, NoticeOutcome, PendingNotice, Store, StoredReply};

/// Only phases that are worth it, only where the append asks for it, and until it is settled.
pub async fn notifications_wait_until_they_are_settled(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let (other, other_lease) = claimed(&*store, 2).await;
    let entered = |phase: &Phase| happened(Event::PhaseChanged { phase: phase.clone() }, 1);
    let blocked = Phase::Blocked { question: QuestionNo(1), attempt: None, until: None };
    let escalated = Phase::Escalated { reason: EscalationReason::NoAgent };
    let events = [notice("beside", 1), entered(&blocked), entered(&Phase::Queued), entered(&Phase::Done)];
    let step = |last, second| Append {
        at: at(second),
        ..append(&goal, lease.generation, Seq(last), events.to_vec())
    };
    store.append(step(1, 1)).await.expect("it fits");
    assert_eq!(store.notices(at(100), 9).await.expect("notices"), [], "nobody asked for them");
    store.append(Append { notifies: true, ..step(5, 10) }).await.expect("it fits");
    let of_other = append(&other, other_lease.generation, Seq(1), vec![entered(&escalated)]);
    store.append(Append { notifies: true, at: at(20), ..of_other }).await.expect("it fits");
    let store = place.open().await;
    let found = store.notices(at(100), 9).await.expect("notices");
    let expected = [
        (goal.id, Seq(7), blocked, 10),
        (goal.id, Seq(9), Phase::Done, 10),
        (other.id, Seq(2), escalated, 20),
    ];
    let expected: Vec<PendingNotice> = expected
        .into_iter()
        .zip(&found)
        .map(|((goal, seq, phase, second), found)| PendingNotice {
            id: found.id,
            goal,
            seq,
            phase,
            at: at(second),
            tries: 0,
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 3);
    assert_eq!(store.notices(at(100), 2).await.expect("notices"), expected[..2]);
    assert_eq!(store.notices(at(9), 9).await.expect("notices"), [], "none is due yet");
    store.settle_notice(found[1].id, NoticeOutcome::Settled).await.expect("it is there");
    store.settle_notice(found[1].id, NoticeOutcome::Settled).await.expect("whoever delivered it may be late");
    store.settle_notice(found[1].id, NoticeOutcome::Again(at(1))).await.expect("the same");
    for (tries, due) in [(1, 50), (2, 60)] {
        store.settle_notice(found[0].id, NoticeOutcome::Again(at(due))).await.expect("it is there");
        let late = PendingNotice { tries, ..expected[0].clone() };
        assert_eq!(store.notices(at(due - 1), 9).await.expect("notices"), expected[2..]);
        assert_eq!(store.notices(at(due), 9).await.expect("notices"), [expected[2].clone(), late]);
    }
    store.remove(&lease).await.expect("it is ours");
    assert_eq!(store.notices(at(100), 9).await.expect("notices"), expected[2..]);
    store.remove(&other_lease).await.expect("it is ours");
    let (next, lease) = claimed(&*store, 3).await;
    let done = append(&next, lease.generation, Seq(1), vec![entered(&Phase::Done)]);
    store.append(Append { notifies: true, ..done }).await.expect("it fits");
    let notices = place.open().await.notices(at(100), 9).await.expect("notices");
    assert!(notices[0].id > expected[2].id, "a number is never used twice");
}

fn reply(request: &str, status: Option<u16>, second: i64) -> StoredReply {
    StoredReply {
        request: request.to_owned(),
        status,
        body: format!("{{\"{request}\":\"é\"}}"),
        at: at(second),
    }
}

/// The first one holds until it is too old, replaced or removed.
pub async fn the_first_reply_to_a_request_holds(place: &dyn Place) {
    let store = place.open().await;
    let (begun, other) = (reply("one", None, 10), reply("two", None, 11));
    let begin = |store: Arc<dyn Store>, key: &'static str, reply: StoredReply, since| async move {
        store.begin_reply(key, &reply, at(since)).await.expect("an answer")
    };
    assert_eq!(begin(store.clone(), "key", begun.clone(), 0).await, None);
    assert_eq!(begin(place.open().await, "key", other.clone(), 0).await, Some(begun.clone()));
    assert_eq!(begin(store.clone(), "other", other.clone(), 0).await, None);
    let finished = reply("one", Some(201), 12);
    store.finish_reply("key", Some(&finished)).await.expect("stored");
    assert_eq!(begin(place.open().await, "key", other.clone(), 12).await, Some(finished));
    // The other key's is too old by now.
    let later = reply("two", Some(u16::MAX), 13);
    assert_eq!(begin(store.clone(), "other", later.clone(), 12).await, None);
    assert_eq!(begin(store.clone(), "other", other.clone(), 12).await, Some(later));
    store.finish_reply("other", None).await.expect("removed");
    store.finish_reply("other", None).await.expect("it is gone already");
    assert_eq!(begin(store.clone(), "other", begun.clone(), 0).await, None);
    assert_eq!(begin(store, "other", other, 0).await, Some(begun));
}

/// However many ask at once with the same key, one is to carry the request out.
pub async fn of_requests_with_the_same_key_one_is_first(place: &dyn Place) {
    let stores = [place.open().await, place.open().await];
    let mut asking = JoinSet::new();
    for number in 0..20 {
        let store = Arc::clone(&stores[number % 2]);
        asking.spawn(async move {
            let reply = reply(&number.to_string(), None, 1);
            store.begin_reply("key", &reply, at(0)).await.expect("an answer").is_none()
        });
    }
    let first = asking.join_all().await.into_iter().filter(|is_first| *is_first).count();
    assert_eq!(first, 1);
}
