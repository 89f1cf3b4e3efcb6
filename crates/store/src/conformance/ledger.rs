//! Over all goals: one order of events, what was spent, and the state of accounts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use towline_core::{
    Account, AccountStatus, AgentEvent, AgentName, Attempt, AttemptNo, End, Envelope, Event, Exit, Goal,
    GoalState, Limit, LimitStatus, MicroUsd, PoolSeq, Seq, Tokens, Usage, Work,
};

use super::Place;
use super::samples::{append, at, attempt, claimed, goal, happened, notice, worker};
use crate::{Amounts, Append, Lease, SpendBy, SpendQuery, Spending, Store};

/// Events of all goals are read in the order in which they were recorded, page by page, whoever recorded them.
pub async fn events_of_all_goals_have_one_order(place: &dyn Place) {
    let stores = [place.open().await, place.open().await];
    let (one, one_lease) = claimed(&*stores[0], 1).await;
    let (two, two_lease) = claimed(&*stores[1], 2).await;
    let mut expected = vec![(one.id, Seq(1)), (two.id, Seq(1))];
    for round in 0..3 {
        for (number, (goal, lease)) in [(&one, &one_lease), (&two, &two_lease)].into_iter().enumerate() {
            let last = Seq(1 + round * 2);
            let events = vec![notice("a", 1), notice("b", 2)];
            stores[number].append(append(goal, lease.generation, last, events)).await.expect("it fits");
            expected.extend([(goal.id, Seq(last.0 + 1)), (goal.id, Seq(last.0 + 2))]);
        }
    }
    let store = place.open().await;
    let (mut read, mut after) = (Vec::new(), PoolSeq(0));
    loop {
        let page = store.events_since(after, 5).await.expect("events");
        let Some((last, _)) = page.last() else { break };
        assert!(page.len() <= 5 && page.iter().all(|(place, _)| *place > after));
        assert!(page.is_sorted_by(|a, b| a.0 < b.0));
        after = *last;
        read.extend(page.into_iter().map(|(_, event)| (event.goal, event.seq)));
    }
    assert_eq!(read, expected);
}

/// Whoever has read up to a place misses nothing, also when the newest goal was removed since.
pub async fn a_place_among_all_events_is_never_used_twice(place: &dyn Place) {
    let store = place.open().await;
    let (_, lease) = claimed(&*store, 1).await;
    let read_to = store.events_since(PoolSeq(0), 9).await.expect("events")[0].0;
    store.remove(&lease).await.expect("it is ours");
    let (next, _) = claimed(&*place.open().await, 2).await;
    let later = store.events_since(read_to, 9).await.expect("events");
    assert_eq!(later.iter().map(|(_, event)| event.goal).collect::<Vec<_>>(), [next.id]);
}

/// What an attempt has used so far, and when that is recorded, in seconds.
struct Used {
    attempts: Vec<(u32, Usage)>,
    at: i64,
}

/// A goal whose attempts use something, step by step.
async fn spend(store: &dyn Store, goal: &Goal, lease: &Lease, from: Seq, steps: Vec<Used>) {
    for (step, Used { attempts, at: second }) in (0..).zip(steps) {
        let attempts: Vec<Attempt> = attempts
            .into_iter()
            .map(|(n, usage)| Attempt { usage, ..attempt(goal.id, n, 1, Some(2)) })
            .collect();
        let state = GoalState { attempts, ..GoalState::new(goal) };
        let event = Envelope { at: at(second), ..notice("used", 1) };
        let step = Append {
            state,
            at: at(second),
            ..append(goal, lease.generation, Seq(from.0 + step), vec![event])
        };
        store.append(step).await.expect("it fits");
    }
}

fn estimate(tokens: u64, micro: u64) -> Usage {
    Usage { input: Tokens(tokens), estimate: MicroUsd(micro), ..Usage::default() }
}

fn all(by: SpendBy) -> SpendQuery {
    SpendQuery { from: at(-100_000), until: at(100_000), project: None, account: None, by }
}

/// Input, cost and estimate.
type Sums = BTreeMap<String, (Option<i64>, Option<i64>, i64)>;

async fn sums(store: &dyn Store, query: &SpendQuery) -> Sums {
    let spending = store.spending(query).await.expect("sums").into_iter();
    spending.map(|Spending { key, amounts }| (key, (amounts.input, amounts.cost, amounts.estimate))).collect()
}

/// However often it is reported, and also when the agent's own figure replaces an estimate or an attempt is killed.
pub async fn what_an_attempt_used_is_counted_once(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let reported = Usage { cost: MicroUsd(90), ..estimate(30, 0) };
    let killed = estimate(7, 5);
    let steps = vec![
        Used { attempts: vec![(1, estimate(10, 40))], at: 1 },
        Used { attempts: vec![(1, estimate(20, 100))], at: 2 },
        Used { attempts: vec![(1, reported)], at: 3 },
        Used { attempts: vec![(1, reported)], at: 4 },
        Used { attempts: vec![(1, reported), (2, killed)], at: 5 },
    ];
    spend(&*store, &goal, &lease, Seq(1), steps).await;
    // Another program that does not know what was written before.
    let store = place.open().await;
    let same = vec![Used { attempts: vec![(1, reported), (2, killed)], at: 6 }];
    spend(&*store, &goal, &lease, Seq(6), same).await;
    let expected = BTreeMap::from([("scripted".to_owned(), (Some(37), Some(90), 5))]);
    assert_eq!(sums(&*store, &all(SpendBy::Account)).await, expected);
}

/// A correction counts when it is made, and the sum is right whichever way the clock goes.
pub async fn what_was_spent_counts_when_it_was_reported(place: &dyn Place) {
    const HOUR: i64 = 3_600;
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let reported = Usage { cost: MicroUsd(70), ..estimate(20, 0) };
    let steps = vec![
        Used { attempts: vec![(1, estimate(10, 100))], at: 0 },
        Used { attempts: vec![(1, reported)], at: HOUR },
        Used { attempts: vec![(1, Usage { input: Tokens(25), ..reported })], at: 0 },
    ];
    spend(&*store, &goal, &lease, Seq(1), steps).await;
    let by_time = sums(&*store, &all(SpendBy::Time)).await;
    assert_eq!(
        by_time.values().copied().collect::<Vec<_>>(),
        [(Some(15), Some(0), 100), (Some(10), Some(70), -100)]
    );
    let times: Vec<Timestamp> = by_time.keys().map(|key| key.parse().expect("a time")).collect();
    assert!(times.iter().all(|time| time.as_second() % 900 == 0), "{times:?}");
    let first_hour = SpendQuery { from: at(0), until: at(HOUR - 900), ..all(SpendBy::Project) };
    assert_eq!(
        sums(&*store, &first_hour).await,
        Sums::from([("repository".into(), (Some(15), Some(0), 100))])
    );
}

/// By project and by account, of which several agents may share one; also of goals that are gone.
pub async fn what_was_spent_is_summed_up_over_all_goals(place: &dyn Place) {
    let store = place.open().await;
    for (number, project, account) in
        [(1, "one", Some("shared")), (2, "two", Some("shared")), (3, "two", None)]
    {
        let mut goal = goal(number);
        goal.workspace.repository = project.to_owned();
        goal.accounts =
            account.map(|account| (AgentName::new("scripted"), account.to_owned())).into_iter().collect();
        store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
        let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("nobody holds it");
        let micro = 10_u64.pow(u32::try_from(number).expect("small"));
        let used = vec![Used { attempts: vec![(1, estimate(1, micro))], at: 1 }];
        spend(&*store, &goal, &lease, Seq(1), used).await;
        if number == 2 {
            store.remove(&lease).await.expect("it is ours");
        }
    }
    let named = |sums: &[(&str, i64, i64)]| -> Sums {
        sums.iter()
            .map(|(key, input, estimate)| ((*key).to_owned(), (Some(*input), None, *estimate)))
            .collect()
    };
    let by_project = all(SpendBy::Project);
    assert_eq!(sums(&*store, &by_project).await, named(&[("one", 1, 10), ("two", 2, 1_100)]));
    let by_account = all(SpendBy::Account);
    assert_eq!(sums(&*store, &by_account).await, named(&[("scripted", 1, 1_000), ("shared", 2, 110)]));
    let shared = SpendQuery { account: Some("shared".into()), ..by_project.clone() };
    assert_eq!(sums(&*store, &shared).await, named(&[("one", 1, 10), ("two", 1, 100)]));
    let two = SpendQuery { project: Some("two".into()), ..by_account };
    assert_eq!(sums(&*store, &two).await, named(&[("scripted", 1, 1_000), ("shared", 1, 100)]));
    let before = SpendQuery { until: at(-1_000), ..by_project };
    assert_eq!(sums(&*store, &before).await, BTreeMap::new());
}

/// It is neither 0 in the row of its attempt, nor in a sum of which nothing is known.
pub async fn what_no_agent_reported_is_unknown(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let silent = Usage { output: Tokens(3), ..Usage::default() };
    let free = Usage { output: Tokens(4), ..Usage::nothing() };
    let tokens = |output| Amounts { input: Some(0), output: Some(output), ..Amounts::default() };
    let known = Amounts { cache_read: Some(0), cache_write: Some(0), cost: Some(0), ..tokens(7) };
    for (last, attempts, expected) in
        [(1, vec![(1, silent)], tokens(3)), (2, vec![(1, silent), (2, free)], known)]
    {
        spend(&*store, &goal, &lease, Seq(last), vec![Used { attempts, at: 1 }]).await;
        let spending = place.open().await.spending(&all(SpendBy::Account)).await.expect("sums");
        assert_eq!(spending, [Spending { key: "scripted".to_owned(), amounts: expected }]);
    }
}

/// Written with the events that report it; an account that is seen again as it was keeps its time.
pub async fn accounts_are_as_attempts_last_saw_them(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let quota = |status, resets_at| {
        let limit = Limit { scope: None, status, utilization: None, resets_at };
        Event::Agent { event: AgentEvent::RateLimit(limit) }
    };
    let ended =
        |end| Event::AttemptEnded { end, exit: Exit::default(), work: Work::Nothing, changes: String::new() };
    let limited = |until| AccountStatus::Limited { until, guessed: false };
    let steps = [
        (quota(LimitStatus::Allowed, None), AccountStatus::Open, 10),
        (quota(LimitStatus::Warning, None), AccountStatus::Open, 10),
        (quota(LimitStatus::Rejected, Some(at(500))), limited(Some(at(500))), 12),
        (ended(End::RateLimited { until: Some(at(500)) }), limited(Some(at(500))), 12),
        (ended(End::Lost), limited(Some(at(500))), 12),
        (ended(End::Completed), AccountStatus::Open, 15),
        (ended(End::Auth { message: "no".into() }), AccountStatus::Closed, 16),
        (ended(End::RateLimited { until: None }), AccountStatus::Limited { until: None, guessed: true }, 17),
    ];
    assert_eq!(store.accounts().await.expect("accounts"), vec![]);
    for (step, (event, status, since)) in (0..).zip(steps) {
        let event = Envelope { attempt: Some(AttemptNo::FIRST), ..happened(event, 10 + step) };
        let attempts = vec![attempt(goal.id, 1, 1, Some(2))];
        let state = GoalState { attempts, ..GoalState::new(&goal) };
        let last = Seq(1 + u64::try_from(step).expect("small"));
        let step = Append { state, ..append(&goal, lease.generation, last, vec![event.clone()]) };
        store.append(step).await.expect("it fits");
        let agent = AgentName::new("scripted");
        let expected = Account { name: "scripted".into(), agent, status, updated_at: at(since) };
        assert_eq!(store.accounts().await.expect("accounts"), [expected], "after {event:?}");
    }
}
