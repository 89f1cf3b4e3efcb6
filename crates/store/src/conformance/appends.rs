//! Appending: places without gaps, all or nothing, one writer at a time.

use std::sync::Arc;

use tokio::task::JoinSet;
use towline_core::{Envelope, Event, Generation, Goal, GoalState, Seq};

use super::Place;
use super::samples::{
    Everything, append, at, checks, claimed, created, everything, goal, goal_id, happened, launch, marked,
    notice, pending, places, worker,
};
use crate::{Append, Appended, GoalRecord, Lease, Listing, Store, StoreError};

/// Creating stores the goal, its state and its first event together.
pub async fn a_created_goal_is_there_with_its_first_event(place: &dyn Place) {
    let store = place.open().await;
    let goal = goal(1);
    let state = GoalState::new(&goal);
    let returned = store.create(&goal, &state, happened(Event::Created, 5)).await.expect("it is new");
    let record = GoalRecord { goal: goal.clone(), state, last_seq: Seq(1), lease: None, updated_at: at(5) };
    assert_eq!(returned, record);
    let first = envelope(&goal, 1, happened(Event::Created, 5));
    let stored = Everything { record, events: vec![first], pending: vec![] };
    assert_eq!(everything(&*store, goal.id).await, stored);
}

/// A second goal by the same id is refused and leaves the first as it was.
pub async fn a_goal_is_created_once(place: &dyn Place) {
    let store = place.open().await;
    let first = created(&*store, 1).await;
    let before = everything(&*store, first.id).await;
    let mut second = first.clone();
    second.title = "another".to_owned();
    let refused = store.create(&second, &marked(&second, 1), happened(Event::Created, 9)).await;
    assert!(matches!(refused, Err(StoreError::Exists(id)) if id == first.id), "{refused:?}");
    assert_eq!(everything(&*store, first.id).await, before);
}

/// Several goals are created together, or none of them is.
pub async fn goals_are_created_together_or_not_at_all(place: &dyn Place) {
    let store = place.open().await;
    let third = created(&*store, 3).await;
    let new = |goal: &Goal| (goal.clone(), GoalState::new(goal), happened(Event::Created, 5));
    let (first, second) = (goal(1), goal(2));
    for refused in [&[&first, &second, &third][..], &[&third, &first], &[&first, &second, &first]] {
        let refused: Vec<_> = refused.iter().map(|goal| new(goal)).collect();
        let refused = store.create_all(&refused).await;
        assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
        assert_eq!(store.list(&Listing::first(9)).await.expect("a list").len(), 1);
    }
    let both = store.create_all(&[new(&first), new(&second)]).await.expect("they are new");
    for (record, goal) in both.into_iter().zip([&first, &second]) {
        let events = vec![envelope(goal, 1, happened(Event::Created, 5))];
        assert_eq!(everything(&*store, goal.id).await, Everything { record, events, pending: vec![] });
    }
}

/// Places are given in order, and what is returned is what is stored.
pub async fn appended_events_get_places_without_gaps(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let mut expected = vec![envelope(&goal, 1, happened(Event::Created, 0))];
    for batch in 0..3_u64 {
        let last = Seq(expected.len() as u64);
        let events = vec![notice(format!("{batch} first"), 10), notice(format!("{batch} second"), 11)];
        let placed: Vec<Envelope> =
            (last.0 + 1..).zip(&events).map(|(seq, event)| envelope(&goal, seq, event.clone())).collect();
        let appended =
            store.append(append(&goal, lease.generation, last, events)).await.expect("nobody else writes");
        assert_eq!(appended, Appended { events: placed.clone(), last_seq: Seq(last.0 + 2) });
        expected.extend(placed);
    }
    let stored = everything(&*store, goal.id).await;
    assert_eq!(stored.events, expected);
    assert_eq!(stored.record.last_seq, Seq(7));
}

/// State, outbox and time can move although nothing is added to the log.
pub async fn an_append_without_events_still_moves_state_and_outbox(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let before = everything(&*store, goal.id).await;
    let effect = launch(goal.id, 1, "go");
    let moved = Append {
        state: marked(&goal, 3),
        effects: vec![effect.clone()],
        at: at(30),
        ..append(&goal, lease.generation, Seq(1), vec![])
    };
    let appended = store.append(moved).await.expect("nobody else writes");
    assert_eq!(appended, Appended { events: vec![], last_seq: Seq(1) });
    let record = GoalRecord { state: marked(&goal, 3), updated_at: at(30), ..before.record };
    let stored = Everything { record, events: before.events, pending: vec![pending(effect)] };
    assert_eq!(everything(&*store, goal.id).await, stored);
}

/// Of several appends that know the same end of the log, one is written whole and nothing of the others is.
pub async fn of_appenders_that_expect_the_same_place_one_wins_and_the_others_change_nothing(
    place: &dyn Place,
) {
    let stores = [place.open().await, place.open().await];
    let (goal, lease) = claimed(&*stores[0], 1).await;
    for round in 0..10_u64 {
        let last = Seq(1 + round * 2);
        let before = everything(&*stores[0], goal.id).await;
        let mut racers = JoinSet::new();
        for racer in 0..8_u32 {
            let store = Arc::clone(&stores[racer as usize % 2]);
            let number = u32::try_from(round).expect("small") * 8 + racer + 1;
            let append = Append {
                state: marked(&goal, number),
                effects: vec![launch(goal.id, number, "go")],
                ..append(
                    &goal,
                    lease.generation,
                    last,
                    vec![notice(format!("{number} a"), 1), notice("b", 2)],
                )
            };
            racers.spawn(async move { (number, store.append(append).await) });
        }
        let (mut winners, mut refused) = (Vec::new(), 0);
        while let Some(raced) = racers.join_next().await {
            match raced.expect("no racer panics") {
                (number, Ok(appended)) => winners.push((number, appended)),
                (_, Err(StoreError::Conflict { goal: of, expected, found })) => {
                    assert_eq!((of, expected, found), (goal.id, last, Seq(last.0 + 2)));
                    refused += 1;
                }
                (number, Err(error)) => panic!("racer {number} got {error}"),
            }
        }
        let [(winner, appended)] = winners.as_slice() else { panic!("one wins, not {}", winners.len()) };
        assert_eq!(refused, 7);
        let stored = Everything {
            record: GoalRecord {
                state: marked(&goal, *winner),
                last_seq: appended.last_seq,
                updated_at: at(1),
                ..before.record
            },
            events: [before.events, appended.events.clone()].concat(),
            pending: [before.pending, vec![pending(launch(goal.id, *winner, "go"))]].concat(),
        };
        assert_eq!(everything(&*stores[1], goal.id).await, stored);
    }
}

/// Appenders that look again after a conflict get everything in, once each.
pub async fn appenders_that_try_again_leave_a_log_without_gaps(place: &dyn Place) {
    const EACH: u32 = 12;
    let stores = [place.open().await, place.open().await];
    let (goal, lease) = claimed(&*stores[0], 1).await;
    let mut appenders = JoinSet::new();
    for appender in 0..4_u32 {
        let (store, goal, lease) = (Arc::clone(&stores[appender as usize % 2]), goal.clone(), lease.clone());
        appenders.spawn(async move {
            for number in 0..EACH {
                append_patiently(&*store, &goal, &lease, notice(format!("{appender}/{number}"), 1)).await;
            }
        });
    }
    while let Some(joined) = appenders.join_next().await {
        joined.expect("no appender panics");
    }
    let stored = everything(&*stores[0], goal.id).await;
    let last = u64::from(EACH) * 4 + 1;
    assert_eq!(places(&stored.events), (1..=last).collect::<Vec<_>>());
    let mut texts: Vec<_> = stored.events.iter().map(|event| event.event.clone()).collect();
    texts.dedup();
    assert_eq!(texts.len() as u64, last);
    assert_eq!(stored.record.state, marked(&goal, u32::try_from(last).expect("small")));
}

async fn append_patiently(store: &dyn Store, goal: &Goal, lease: &Lease, event: Envelope) {
    loop {
        let last = store.load(goal.id).await.expect("the goal is there").last_seq;
        let state = marked(goal, u32::try_from(last.0 + 1).expect("small"));
        let append = Append { state, ..append(goal, lease.generation, last, vec![event.clone()]) };
        match store.append(append).await {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Neither an older nor a newer place than the log's end is good enough.
pub async fn an_append_that_expects_another_place_changes_nothing(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    store.append(append(&goal, lease.generation, Seq(1), vec![notice("two", 1)])).await.expect("it fits");
    let before = everything(&*store, goal.id).await;
    for expected in [Seq(0), Seq(1), Seq(3)] {
        let refused = store.append(intrusion(&goal, lease.generation, expected)).await;
        let Err(StoreError::Conflict { goal: of, expected: knew, found }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((of, knew, found), (goal.id, expected, Seq(2)));
    }
    assert_eq!(everything(&*store, goal.id).await, before);
}

/// Only the newest lease counts: what was written under another one, older or invented, is refused whole.
pub async fn an_append_of_another_generation_changes_nothing(place: &dyn Place) {
    let store = place.open().await;
    let (goal, old) = claimed(&*store, 1).await;
    let new = store.claim(goal.id, &worker("two"), at(61), at(120), None).await.expect("the old one ran out");
    let before = everything(&*store, goal.id).await;
    for generation in [Generation(0), old.generation, Generation(new.generation.0 + 1)] {
        let refused = store.append(intrusion(&goal, generation, Seq(1))).await;
        let Err(StoreError::Fenced { goal: of, ours, held }) = refused else { panic!("{refused:?}") };
        assert_eq!((of, ours, held), (goal.id, generation, new.generation));
    }
    assert_eq!(everything(&*store, goal.id).await, before);
    store.append(intrusion(&goal, new.generation, Seq(1))).await.expect("the newest lease may");
}

/// An append that would change everything there is.
fn intrusion(goal: &Goal, generation: Generation, expected: Seq) -> Append {
    Append {
        state: marked(goal, 99),
        effects: vec![checks(1)],
        at: at(99),
        ..append(goal, generation, expected, vec![notice("intruder", 99)])
    }
}

/// Every method on a goal fails when there is none; giving back a lease of one is no error.
pub async fn what_does_not_exist_is_not_found(place: &dyn Place) {
    let store = place.open().await;
    let nobody = goal(7);
    let lease = Lease { goal: nobody.id, worker: worker("one"), generation: Generation(1), until: at(9) };
    let errors = [
        store.load(nobody.id).await.map(drop),
        store.append(append(&nobody, Generation(0), Seq(0), vec![notice("lost", 1)])).await.map(drop),
        store.events(nobody.id, Seq(0), 10).await.map(drop),
        store.pending(nobody.id).await.map(drop),
        store.claim(nobody.id, &worker("one"), at(0), at(9), None).await.map(drop),
        store.renew(&lease, at(10)).await.map(drop),
    ];
    for (number, error) in errors.into_iter().enumerate() {
        assert!(
            matches!(error, Err(StoreError::NotFound(id)) if id == goal_id(7)),
            "call {number}: {error:?}"
        );
    }
    store.release(&lease).await.expect("nothing to give back");
    assert_eq!(store.list(&Listing::first(9)).await.expect("an empty list"), vec![]);
}

fn envelope(goal: &Goal, seq: u64, new: Envelope) -> Envelope {
    new.placed(goal.id, Seq(seq))
}
