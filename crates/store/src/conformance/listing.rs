//! Finding and listing: in order, page by page, by filter, by what a person types.

use jiff::Timestamp;
use towline_core::{
    Commit, EscalationReason, Event, Goal, GoalId, GoalState, Merge, MicroUsd, Phase, QuestionNo, Seq,
    Tokens, Usage, WorkspaceMode,
};

use super::Place;
use super::samples::{append, at, attempt, goal, goal_id, happened, notice, question, worker};
use crate::{Append, Cursor, GoalSummary, Listed, Listing, Order, Store, list_all};

/// The order is by creation, and by id among goals of the same moment; moving a goal does not move it in the list.
pub async fn goals_are_listed_in_the_order_of_their_creation(place: &dyn Place) {
    let store = place.open().await;
    for (number, second) in [(3, 10), (1, 10), (9, 5), (2, 20)] {
        create(&*store, Goal { created_at: at(second), ..goal(number) }).await;
    }
    move_to(&*store, &goal(9), Phase::Preparing).await;
    assert_eq!(ids(&*store, &Listing::first(10)).await, [2, 3, 1, 9].map(goal_id));
    let oldest = Listing { order: Order::OldestFirst, ..Listing::first(10) };
    assert_eq!(ids(&*store, &oldest).await, [9, 1, 3, 2].map(goal_id));
}

/// Pages joined are the list, whatever is created meanwhile; past its end there is nothing.
pub async fn a_list_is_read_page_by_page(place: &dyn Place) {
    let store = place.open().await;
    for number in 1..=9 {
        // Three goals share a moment each, so that pages end inside of one.
        create(&*store, Goal { created_at: at(i64::try_from(number / 3).expect("small")), ..goal(number) })
            .await;
    }
    let newest_first: Vec<GoalId> = (1..=9).rev().map(goal_id).collect();
    for limit in 1..=10 {
        let paged = list_all(&*store, Listing::first(limit)).await.expect("a list");
        assert_eq!(paged.iter().map(Listed::id).collect::<Vec<_>>(), newest_first, "{limit} a page");
        let oldest = Listing { order: Order::OldestFirst, ..Listing::first(limit) };
        let paged = list_all(&*store, oldest).await.expect("a list");
        assert!(paged.iter().map(Listed::id).eq(newest_first.iter().rev().copied()), "{limit} a page");
    }
    let page = store.list(&Listing::first(4)).await.expect("a list");
    create(&*store, Goal { created_at: at(100), ..goal(10) }).await;
    let after = page.last().map(Listed::cursor);
    assert_eq!(ids(&*store, &Listing { after, ..Listing::first(3) }).await, [5, 4, 3].map(goal_id));
    let end = Cursor { created_at: Timestamp::MIN, id: goal_id(0) };
    assert_eq!(ids(&*store, &Listing { after: Some(end), ..Listing::first(9) }).await, []);
    assert_eq!(ids(&*store, &Listing::first(0)).await, []);
    assert_eq!(ids(&*store, &Listing::first(usize::MAX)).await.len(), 10);
}

/// Each filter alone, and several together.
pub async fn a_list_has_what_its_filters_name(place: &dyn Place) {
    let store = place.open().await;
    let phases = [
        Phase::Queued,
        Phase::Done,
        Phase::Sleeping { until: at(50), reason: "it asked to".to_owned() },
        Phase::Limited { until: at(60), guessed: false },
        Phase::Blocked { question: QuestionNo(1), attempt: None, until: None },
        Phase::Escalated { reason: EscalationReason::NoAgent },
    ];
    for (number, phase) in (1..).zip(phases) {
        let mut goal = goal(number);
        goal.workspace.repository = format!("repository {}", number % 2);
        create(&*store, goal.clone()).await;
        move_to(&*store, &goal, phase).await;
    }
    store.claim(goal_id(2), &worker("two"), at(0), at(60), None).await.expect("free");
    store.claim(goal_id(5), &worker("two"), at(0), at(60), None).await.expect("free");
    let all = || Listing::first(10);
    let even = || Some("repository 0".to_owned());
    let cases: [(Listing, &[u64]); 15] = [
        (all(), &[6, 5, 4, 3, 2, 1]),
        (Listing { repository: even(), ..all() }, &[6, 4, 2]),
        (Listing { repository: Some("repository".to_owned()), ..all() }, &[]),
        (Listing { phases: vec!["done"], ..all() }, &[2]),
        (Listing { phases: vec!["queued", "blocked", "limited"], ..all() }, &[5, 4, 1]),
        (Listing { settled: Some(true), ..all() }, &[6, 2]),
        (Listing { settled: Some(false), ..all() }, &[5, 4, 3, 1]),
        (Listing { settled: Some(false), repository: even(), ..all() }, &[4]),
        (Listing { due: Some(at(49)), ..all() }, &[]),
        (Listing { due: Some(at(50)), ..all() }, &[3]),
        (Listing { due: Some(at(100)), ..all() }, &[4, 3]),
        (Listing { held: true, ..all() }, &[5, 2]),
        (Listing { held: true, settled: Some(true), ..all() }, &[2]),
        (Listing { asks: true, ..all() }, &[6, 5]),
        (Listing { phases: vec!["sleeping", "limited"], due: Some(at(50)), ..all() }, &[3]),
    ];
    for (listing, expected) in cases {
        let expected: Vec<GoalId> = expected.iter().map(|number| goal_id(*number)).collect();
        assert_eq!(ids(&*store, &listing).await, expected, "{listing:?}");
        let one_by_one = list_all(&*store, Listing { limit: 1, ..listing.clone() }).await.expect("a list");
        assert!(one_by_one.iter().map(Listed::id).eq(expected), "{listing:?}");
    }
}

/// What a list shows is what loading the goal gives, after its creation and after each transition.
pub async fn a_summary_is_that_of_the_stored_goal(place: &dyn Place) {
    let store = place.open().await;
    let mut goal = goal(1);
    goal.workspace.mode = WorkspaceMode::InPlace;
    create(&*store, goal.clone()).await;
    assert_summary(&*store, goal.id).await;
    let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("free");
    assert_summary(&*store, goal.id).await;
    let used = |n: u64| Usage { input: Tokens(n), output: Tokens(n), cost: MicroUsd(n), ..Usage::default() };
    let mut first = attempt(goal.id, 1, 1, Some(2));
    first.usage = used(7);
    let mut second = attempt(goal.id, 2, 3, None);
    second.usage = used(10);
    second.agent = towline_core::AgentName::new("another");
    let merged = Merge {
        into: "main".to_owned(),
        commit: Commit::new("1111"),
        candidate: Commit::new("2222"),
        at: at(9),
    };
    let running = GoalState {
        phase: Phase::Limited { until: at(99), guessed: true },
        attempts: vec![first, second],
        merged: Some(merged),
        ..GoalState::new(&goal)
    };
    for (last, state) in (1..).zip([running, GoalState::new(&goal)]) {
        let moved = Append {
            state,
            at: at(40),
            ..append(&goal, lease.generation, Seq(last), vec![notice("moved", 1)])
        };
        store.append(moved).await.expect("it fits");
        assert_summary(&*store, goal.id).await;
    }
    assert_summary(&*place.open().await, goal.id).await;
}

/// A queue serves whoever waits longest first.
pub async fn queued_goals_and_goals_whose_wait_is_over_are_found_oldest_first(place: &dyn Place) {
    let store = place.open().await;
    for number in 1..=6 {
        create(&*store, goal(number)).await;
    }
    for number in [2, 4] {
        let until = at(10 * i64::try_from(number).expect("small"));
        move_to(&*store, &goal(number), Phase::Limited { until, guessed: false }).await;
    }
    move_to(&*store, &goal(5), Phase::Preparing).await;
    assert_eq!(ids(&*store, &Listing::runnable(10)).await, [1, 3, 6].map(goal_id));
    assert_eq!(ids(&*store, &Listing::runnable(2)).await, [1, 3].map(goal_id));
    assert_eq!(ids(&*store, &Listing::due(at(20), 10)).await, [2].map(goal_id));
    assert_eq!(ids(&*store, &Listing::due(at(40), 10)).await, [2, 4].map(goal_id));
    move_to(&*store, &goal(2), Phase::Queued).await;
    assert_eq!(ids(&*store, &Listing::due(at(40), 10)).await, [4].map(goal_id));
    assert_eq!(ids(&*store, &Listing::runnable(10)).await, [1, 2, 3, 6].map(goal_id));
}

/// The goals that [`GoalId::matches`] accepts, and no others.
pub async fn a_goal_is_found_by_what_a_person_types(place: &dyn Place) {
    let store = place.open().await;
    let texts = [
        "01932f6e-7c00-7abc-8def-0123456789ab",
        "01932f6e-7c00-7abc-8def-0123456789ac",
        "01932f6f-7c00-7abc-8def-01230193aaaa",
        "02932f6e-7c00-7abc-8def-012345670000",
    ];
    let known = texts.map(|text| text.parse::<GoalId>().expect("an id"));
    for id in known {
        create(&*store, Goal { id, ..goal(1) }).await;
    }
    let typed = [
        "",
        "0",
        "0193",
        "01932f6e",
        "01932F6E",
        "01932f6e-",
        "01932f6e7",
        "01932f6e-7c00-7abc-8def-0123456789ab",
        "01932f6e7c007abc8def0123456789ab",
        "01932f6e-7c00-7abc-8def-0123456789ab0",
        "01932f6e7c00-7abc",
        "-",
        "456789ab",
        "456789",
        "4567",
        "4567-",
        "45670000",
        "ffff",
        "%",
        "~",
        "é",
        "*",
    ];
    for given in typed {
        let expected: Vec<GoalId> = known.into_iter().filter(|id| id.matches(given)).collect();
        let found = store.find(given, 10).await.expect("an answer");
        assert_eq!(found.iter().map(Listed::id).collect::<Vec<_>>(), expected, "`{given}`");
    }
    let [found] = &*store.find("456789ab", 10).await.expect("an answer") else { panic!("one is meant") };
    assert_eq!(*found, stored_summary(&*store, known[0]).await);
}

/// However many goals are meant, no more than asked for are read.
pub async fn finding_is_bounded(place: &dyn Place) {
    let store = place.open().await;
    for number in 1..=20 {
        create(&*store, goal(number)).await;
    }
    for given in ["0", "01932f6e", "0000"] {
        assert_eq!(store.find(given, 3).await.expect("an answer").len(), 3, "`{given}`");
        assert_eq!(store.find(given, 0).await.expect("an answer"), [], "`{given}`");
    }
}

async fn create(store: &dyn Store, goal: Goal) {
    store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
}

/// Moves a goal to a phase; nobody holds it before or after.
async fn move_to(store: &dyn Store, goal: &Goal, phase: Phase) {
    let last = store.load(goal.id).await.expect("it is there").last_seq;
    let lease = store.claim(goal.id, &worker("mover"), at(0), at(1), None).await.expect("free");
    // What is done needs no answers any more.
    let questions = match phase {
        Phase::Done | Phase::Blocked { .. } | Phase::Escalated { .. } => vec![question()],
        _ => Vec::new(),
    };
    let state = GoalState { phase, questions, ..GoalState::new(goal) };
    let moved =
        Append { state, at: at(1_000), ..append(goal, lease.generation, last, vec![notice("moved", 1)]) };
    store.append(moved).await.expect("it fits");
    store.release(&lease).await.expect("its own");
}

async fn ids(store: &dyn Store, listing: &Listing) -> Vec<GoalId> {
    store.list(listing).await.expect("a list").iter().map(Listed::id).collect()
}

async fn stored_summary(store: &dyn Store, goal: GoalId) -> Listed {
    let record = store.load(goal).await.expect("it is there");
    Listed::Goal(Box::new(GoalSummary::of(&record)))
}

async fn assert_summary(store: &dyn Store, goal: GoalId) {
    let listed = store.list(&Listing::first(1)).await.expect("a list");
    assert_eq!(listed, [stored_summary(store, goal).await]);
}
