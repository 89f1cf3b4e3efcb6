//! Over all goals: one order of events, what was spent, and the state of accounts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use towline_core::{
    Account, AccountStatus, AgentEvent, AgentName, Attempt, AttemptNo, End, Envelope, Event, Exit, Goal,
    GoalState, Judging, Limit, LimitStatus, MicroUsd, NoOpinion, Phase, PoolSeq, Seq, Tokens, Usage, Work,
};

use super::Place;
use super::samples::{append, at, attempt, claimed, goal, happened, notice, worker};
use crate::{Amounts, Append, Lease, SpendBy, Spending, Store};

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
    let last = store.last_place().await.expect("a place");
    store.remove(&lease).await.expect("it is ours");
    assert_eq!(store.last_place().await.expect("a place"), last);
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

/// Input, cost and estimate.
type Sums = BTreeMap<String, (Option<i64>, Option<i64>, i64)>;

async fn sums(store: &dyn Store, since: i64, by: SpendBy) -> Sums {
    let spending = store.spending(at(since), by).await.expect("sums").into_iter();
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
        Used { attempts: vec![(1, reported), (2, estimate(6, 4))], at: 5 },
        // One append ends an attempt and begins the next.
        Used { attempts: vec![(1, reported), (2, killed), (3, estimate(1, 1))], at: 5 },
    ];
    spend(&*store, &goal, &lease, Seq(1), steps).await;
    // Another program that does not know what was written before.
    let store = place.open().await;
    let same = vec![Used { attempts: vec![(1, reported), (2, killed), (3, estimate(1, 1))], at: 6 }];
    spend(&*store, &goal, &lease, Seq(7), same).await;
    let expected = BTreeMap::from([("scripted".to_owned(), (Some(38), Some(90), 6))]);
    assert_eq!(sums(&*store, 0, SpendBy::Account).await, expected);
}

/// Beside the attempts of the same goal, and by the judge's own agent, account and model.
pub async fn what_a_judge_used_is_counted_once(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let judge = |usage, end| Judging {
        n: 1,
        attempt: AttemptNo::FIRST,
        check: "review".into(),
        agent: AgentName::new("critic"),
        account: "other".into(),
        model: Some("large".into()),
        directory: "2-review".into(),
        started_at: at(1),
        ended_at: None,
        end,
        usage,
        tree: String::new(),
        accepted: None,
    };
    let worked = Attempt { usage: estimate(10, 40), ..attempt(goal.id, 1, 1, Some(2)) };
    let steps = [
        (judge(estimate(3, 7), None), 1),
        (judge(estimate(5, 9), None), 2),
        (judge(estimate(5, 9), Some(End::Completed)), 3_600),
        (judge(Usage { cost: MicroUsd(8), ..estimate(6, 0) }, Some(End::Completed)), 3_601),
    ];
    for (step, (judge, second)) in (1..).zip(steps) {
        let judges = vec![judge];
        let state = GoalState { attempts: vec![worked.clone()], judges, ..GoalState::new(&goal) };
        let events = vec![Envelope { at: at(second), ..notice("used", 1) }];
        let step = Append { state, at: at(second), ..append(&goal, lease.generation, Seq(step), events) };
        store.append(step).await.expect("it fits");
    }
    let store = place.open().await;
    let (worked, judged) = ((Some(10), None, 40), (Some(6), Some(8), 0));
    for (by, judge) in [(SpendBy::Agent, "critic"), (SpendBy::Account, "other")] {
        let expected = Sums::from([("scripted".to_owned(), worked), (judge.to_owned(), judged)]);
        assert_eq!(sums(&*store, 0, by).await, expected);
    }
    let spent = store.spent(None).await.expect("sums");
    assert_eq!(spent.of(&goal.workspace.repository), MicroUsd(48));
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
    let by_time = sums(&*store, 0, SpendBy::Time).await;
    assert_eq!(
        by_time.values().copied().collect::<Vec<_>>(),
        [(Some(15), Some(0), 100), (Some(10), Some(70), -100)]
    );
    let times: Vec<Timestamp> = by_time.keys().map(|key| key.parse().expect("a time")).collect();
    assert!(times.iter().all(|time| time.as_second() % 900 == 0), "{times:?}");
    let correction = Sums::from([("repository".into(), (Some(10), Some(70), -100))]);
    assert_eq!(sums(&*store, HOUR, SpendBy::Project).await, correction);
}

/// By quarters of an hour, which no day of any time zone divides; corrections count when they are made, and none makes a sum negative.
pub async fn what_was_spent_in_a_time_is_what_was_reported_in_its_quarters(place: &dyn Place) {
    const QUARTER: i64 = 900;
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let begins = at(0).as_second() - at(0).as_second().rem_euclid(QUARTER);
    let quarter = |number: i64| Timestamp::from_second(begins + number * QUARTER).expect("a time");
    let reported = Usage { cost: MicroUsd(70), ..estimate(20, 0) };
    let late = Usage { cost: MicroUsd(75), ..reported };
    let silent = Usage { input: Tokens(5), ..Usage::default() };
    let steps = vec![
        Used { attempts: vec![(1, estimate(10, 60))], at: 0 },
        Used { attempts: vec![(1, estimate(20, 100))], at: QUARTER },
        Used { attempts: vec![(1, estimate(20, 100)), (2, silent)], at: QUARTER },
        Used { attempts: vec![(1, reported), (2, silent)], at: 2 * QUARTER },
        Used { attempts: vec![(1, late), (2, silent)], at: 3 * QUARTER },
    ];
    spend(&*store, &goal, &lease, Seq(1), steps).await;
    // Another program that reads what this one wrote.
    let store = place.open().await;
    for (quarters, expected) in
        [(0..1, 60), (1..2, 40), (0..2, 100), (2..3, 0), (1..3, 10), (3..9, 5), (0..9, 75)]
    {
        let spent = store.spent(Some((quarter(quarters.start), quarter(quarters.end)))).await.expect("sums");
        assert_eq!((spent.of("repository"), spent.in_all()), (MicroUsd(expected), MicroUsd(expected)));
    }
    // A moment in a quarter means the whole one.
    let spent =
        store.spent(Some((quarter(1) + SignedDuration::from_secs(5), quarter(9)))).await.expect("sums");
    assert_eq!(spent.in_all(), MicroUsd(15));
    assert_eq!(store.spent(None).await.expect("sums").in_all(), MicroUsd(75));
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
    assert_eq!(sums(&*store, 0, SpendBy::Project).await, named(&[("one", 1, 10), ("two", 2, 1_100)]));
    let by_account = named(&[("scripted", 1, 1_000), ("shared", 2, 110)]);
    assert_eq!(sums(&*store, 0, SpendBy::Account).await, by_account);
    assert_eq!(sums(&*store, 10_000, SpendBy::Project).await, BTreeMap::new());
    let spent = store.spent(None).await.expect("sums");
    let projects = ["one", "two", "three"].map(|project| spent.of(project));
    assert_eq!((projects, spent.in_all()), ([10, 1_100, 0].map(MicroUsd), MicroUsd(1_110)));
}

/// It is neither 0 in the row of its attempt, nor in a sum of which nothing is known.
pub async fn what_no_agent_reported_is_unknown(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let silent = Usage { output: Tokens(3), ..Usage::default() };
    let free = Usage { output: Tokens(4), ..Usage::nothing() };
    let tokens = |output| Amounts { input: Some(0), output: Some(output), ..Amounts::default() };
    let tokens = |output| Amounts { lacks_cost: true, ..tokens(output) };
    let known = Amounts { cache_read: Some(0), cache_write: Some(0), cost: Some(0), ..tokens(7) };
    for (last, attempts, expected) in
        [(1, vec![(1, silent)], tokens(3)), (2, vec![(1, silent), (2, free)], known)]
    {
        spend(&*store, &goal, &lease, Seq(last), vec![Used { attempts, at: 1 }]).await;
        let spending = place.open().await.spending(at(0), SpendBy::Account).await.expect("sums");
        assert_eq!(spending, [Spending { key: "scripted".to_owned(), amounts: expected }]);
    }
}

/// An attempt that ended without a word about what it used is in the sums, which are partial then; one that took no prompt used nothing.
pub async fn an_attempt_that_reported_nothing_is_counted_as_unknown(place: &dyn Place) {
    const HOUR: i64 = 3_600;
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let at_end = |turns, ended| Attempt { turns, ..attempt(goal.id, 1, 1, ended) };
    let known = Usage { cost: MicroUsd(5), ..Usage { input: Tokens(2), ..Usage::default() } };
    let unknown = Amounts { lacks_tokens: true, lacks_cost: true, ..Amounts::default() };
    let reported = Amounts { input: Some(2), output: Some(0), cost: Some(5), ..Amounts::default() };
    let steps: [(Attempt, i64, Option<Amounts>); 4] = [
        (at_end(0, None), 1, None),
        (at_end(1, None), 2, None),
        (at_end(1, Some(3)), 3, Some(unknown)),
        // It was reported after all, an hour later.
        (Attempt { usage: known, ..at_end(1, Some(3)) }, HOUR, Some(reported)),
    ];
    for (last, (attempt, second, expected)) in (1..).zip(steps) {
        let state = GoalState { attempts: vec![attempt], ..GoalState::new(&goal) };
        let event = Envelope { at: at(second), ..notice("used", 1) };
        let step = append(&goal, lease.generation, Seq(last), vec![event]);
        store.append(Append { state, at: at(second), ..step }).await.expect("it fits");
        let spending = store.spending(at(0), SpendBy::Goal).await.expect("sums");
        let sums: Vec<Amounts> = spending.into_iter().map(|sum| sum.amounts).collect();
        assert_eq!(sums, expected.into_iter().collect::<Vec<_>>(), "after {last}");
    }
}

/// What an attempt lacks at each step: tokens, cost. An estimate is known whether the agent runs, is killed or ends hours later, and an attempt
/// that never reached the model used nothing.
pub async fn what_is_lacking_is_what_no_agent_reported(place: &dyn Place) {
    const HOUR: i64 = 3_600;
    let begun = |ended| Attempt { turns: 1, ..attempt(goal(1).id, 1, 1, ended) };
    let with = |usage, ended| Attempt { usage, answered: true, ..begun(ended) };
    let (unpriced, dollars) =
        (Usage { input: Tokens(5), ..Usage::default() }, Usage { cost: MicroUsd(5), ..Usage::default() });
    let unreached = |end, ended| Attempt { counts: false, end: Some(end), ..begun(ended) };
    let interrupted = |usage| Attempt { counts: false, end: Some(End::Interrupted), ..with(usage, Some(9)) };
    let cases = [
        ("runs, silent", vec![(begun(None), 1)], None),
        ("runs, estimated", vec![(with(estimate(5, 7), None), 1)], Some((false, false))),
        ("runs, without a price", vec![(with(unpriced, None), 1)], Some((false, true))),
        (
            "killed hours after its last word",
            vec![(with(estimate(5, 7), None), 1), (with(estimate(5, 7), Some(9)), 3 * HOUR)],
            Some((false, false)),
        ),
        ("interrupted, estimated", vec![(interrupted(estimate(5, 7)), 1)], Some((false, false))),
        ("interrupted, silent", vec![(interrupted(Usage::default()), 1)], Some((true, true))),
        ("dollars alone", vec![(with(dollars, Some(9)), 1)], Some((true, false))),
        ("unreached", vec![(unreached(End::RateLimited { until: None }, Some(9)), 1)], Some((false, false))),
        (
            "unreached, which was known later",
            vec![(begun(Some(9)), 1), (unreached(End::RateLimited { until: None }, Some(9)), HOUR)],
            Some((false, false)),
        ),
    ];
    let store = place.open().await;
    for (number, (case, steps, expected)) in (1..).zip(cases) {
        let (goal, lease) = claimed(&*store, number).await;
        for (last, (used, second)) in (1..).zip(steps) {
            let state = GoalState {
                attempts: vec![Attempt { id: attempt(goal.id, 1, 1, None).id, ..used }],
                ..GoalState::new(&goal)
            };
            let event = Envelope { at: at(second), ..notice("used", 1) };
            let step = append(&goal, lease.generation, Seq(last), vec![event]);
            store.append(Append { state, at: at(second), ..step }).await.expect("it fits");
        }
        let spending = store.spending(at(0), SpendBy::Goal).await.expect("sums").into_iter();
        let of_goal = spending.filter(|sum| sum.key == goal.id.to_string()).map(|sum| sum.amounts);
        let lacking: Vec<_> = of_goal.map(|amounts| (amounts.lacks_tokens, amounts.lacks_cost)).collect();
        assert_eq!(lacking, Vec::from_iter(expected), "{case}");
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
    // The attempts begin in the seconds 1, 16 and 18.
    let steps = [
        (1, quota(LimitStatus::Allowed, None), AccountStatus::Open, 10),
        (1, quota(LimitStatus::Warning, None), AccountStatus::Open, 10),
        (1, quota(LimitStatus::Rejected, Some(at(500))), limited(Some(at(500))), 12),
        // Another quota of the same account, and what began before the limit was known.
        (1, quota(LimitStatus::Allowed, None), limited(Some(at(500))), 12),
        (1, ended(End::RateLimited { until: Some(at(500)) }), limited(Some(at(500))), 12),
        (1, ended(End::Completed), limited(Some(at(500))), 12),
        (2, ended(End::Lost), limited(Some(at(500))), 12),
        (2, ended(End::Completed), AccountStatus::Open, 17),
        (3, ended(End::Auth { message: "no".into() }), AccountStatus::Closed, 18),
        (2, ended(End::Completed), AccountStatus::Closed, 18),
        (
            3,
            ended(End::RateLimited { until: None }),
            AccountStatus::Limited { until: None, guessed: true },
            20,
        ),
    ];
    assert_eq!(store.accounts().await.expect("accounts"), vec![]);
    for (step, (number, event, status, since)) in (0..).zip(steps) {
        let of = AttemptNo::new(number).expect("no attempt 0");
        let event = Envelope { attempt: Some(of), ..happened(event, 10 + step) };
        let begun = [(1, 1), (2, 16), (3, 18)].into_iter().take_while(|(n, _)| *n == 1 || step >= 6);
        let attempts = begun.map(|(n, second)| attempt(goal.id, n, second, Some(second + 1))).collect();
        let state = GoalState { attempts, ..GoalState::new(&goal) };
        let last = Seq(1 + u64::try_from(step).expect("small"));
        let step = Append { state, ..append(&goal, lease.generation, last, vec![event.clone()]) };
        store.append(step).await.expect("it fits");
        let agent = AgentName::new("scripted");
        let expected = Account { name: "scripted".into(), agent, status, updated_at: at(since) };
        assert_eq!(store.accounts().await.expect("accounts"), [expected], "after {event:?}");
    }
}

/// A judge has an account of its own, which the goal need not name.
pub async fn accounts_are_as_judges_last_saw_them(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let judge = |n| Judging {
        n,
        attempt: AttemptNo::FIRST,
        check: "review".into(),
        agent: AgentName::new("critic"),
        account: "work".into(),
        model: None,
        directory: format!("1-review-{n}"),
        started_at: at(2),
        ended_at: None,
        end: None,
        usage: Usage::nothing(),
        tree: String::new(),
        accepted: None,
    };
    let ended = |end| Event::JudgeEnded { n: 1, end };
    let unavailable = |until| Event::JudgeUnavailable {
        check: "review".into(),
        agent: AgentName::new("critic"),
        account: "work".into(),
        reason: NoOpinion::Limited { until, guessed: false },
    };
    let limited = |until, guessed| AccountStatus::Limited { until, guessed };
    let steps = [
        (ended(End::Completed), AccountStatus::Open, 10),
        (ended(End::Crashed { message: "no".into() }), AccountStatus::Open, 10),
        (ended(End::RateLimited { until: None }), limited(None, true), 12),
        // The goal has guessed.
        (unavailable(None), limited(Some(at(500)), true), 13),
        (unavailable(Some(at(700))), limited(Some(at(500)), true), 13),
        (ended(End::Completed), limited(Some(at(500)), true), 13),
        (ended(End::RateLimited { until: Some(at(600)) }), limited(Some(at(600)), false), 16),
        (ended(End::Auth { message: "no".into() }), AccountStatus::Closed, 17),
    ];
    for (step, (event, status, since)) in (0..).zip(steps) {
        let event = Envelope { attempt: Some(AttemptNo::FIRST), ..happened(event, 10 + step) };
        let attempts = vec![attempt(goal.id, 1, 1, Some(2))];
        let phase = Phase::Limited { until: at(500), guessed: true };
        let state = GoalState { phase, attempts, judges: vec![judge(1)], ..GoalState::new(&goal) };
        let last = Seq(1 + u64::try_from(step).expect("small"));
        let step = Append { state, ..append(&goal, lease.generation, last, vec![event.clone()]) };
        store.append(step).await.expect("it fits");
        let (name, agent) = ("work".to_owned(), AgentName::new("critic"));
        let expected = Account { name, agent, status, updated_at: at(since) };
        assert_eq!(store.accounts().await.expect("accounts"), [expected], "after {event:?}");
    }
}

/// By the operator, whatever attempts saw before, and until one sees something else.
pub async fn an_account_is_as_it_was_set(place: &dyn Place) {
    let store = place.open().await;
    let account = |name: &str, status, second| Account {
        name: name.to_owned(),
        agent: AgentName::new("scripted"),
        status,
        updated_at: at(second),
    };
    let closed = account("scripted", AccountStatus::Closed, 1);
    let limited = account("other", AccountStatus::Limited { until: Some(at(9)), guessed: true }, 2);
    for set in [&closed, &limited] {
        store.set_account(set).await.expect("it is stored");
    }
    assert_eq!(place.open().await.accounts().await.expect("accounts"), [limited.clone(), closed]);
    let trial = account("scripted", AccountStatus::Trial, 3);
    store.set_account(&trial).await.expect("it is stored");
    assert_eq!(store.accounts().await.expect("accounts"), [limited.clone(), trial]);
    let (goal, lease) = claimed(&*store, 1).await;
    let ended = Event::AttemptEnded {
        end: End::Completed,
        exit: Exit::default(),
        work: Work::Nothing,
        changes: String::new(),
    };
    let ended = Envelope { attempt: Some(AttemptNo::FIRST), ..happened(ended, 5) };
    let state = GoalState { attempts: vec![attempt(goal.id, 1, 3, Some(4))], ..GoalState::new(&goal) };
    let step = Append { state, ..append(&goal, lease.generation, Seq(1), vec![ended]) };
    store.append(step).await.expect("it fits");
    let open = account("scripted", AccountStatus::Open, 5);
    assert_eq!(store.accounts().await.expect("accounts"), [limited, open]);
}

/// A model that no agent named is the empty one; goals are by their ids.
pub async fn what_was_spent_is_summed_up_by_agent_model_and_goal(place: &dyn Place) {
    let store = place.open().await;
    for (number, agent, model) in [(1, "a", Some("large")), (2, "b", Some("large")), (3, "b", None)] {
        let goal = Goal { agents: vec![AgentName::new(agent)], ..goal(number) };
        store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
        let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("nobody holds it");
        let attempt = Attempt {
            agent: AgentName::new(agent),
            model: model.map(str::to_owned),
            usage: estimate(number, 10 * number),
            ..attempt(goal.id, 1, 1, None)
        };
        let state = GoalState { attempts: vec![attempt], ..GoalState::new(&goal) };
        let step = Append { state, ..append(&goal, lease.generation, Seq(1), vec![notice("used", 1)]) };
        store.append(step).await.expect("it fits");
    }
    let named = |sums: &[(&str, i64)]| -> Sums {
        sums.iter().map(|(key, n)| ((*key).to_owned(), (Some(*n), None, 10 * n))).collect()
    };
    assert_eq!(sums(&*store, 0, SpendBy::Agent).await, named(&[("a", 1), ("b", 5)]));
    assert_eq!(sums(&*store, 0, SpendBy::Model).await, named(&[("", 3), ("large", 3)]));
    let ids = [1, 2, 3].map(|number| goal(number).id.to_string());
    let by_goal = named(&[(&ids[0], 1), (&ids[1], 2), (&ids[2], 3)]);
    assert_eq!(sums(&*store, 0, SpendBy::Goal).await, by_goal);
}

/// Of the last 20 that ended and cost something, over all goals; one that runs does not count, nor those of an outage.
pub async fn the_usual_cost_of_an_agent_is_the_median_of_its_last_attempts(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.usual_costs().await.expect("costs"), BTreeMap::new());
    let usual = |costs: &[(&str, u64)]| -> BTreeMap<AgentName, MicroUsd> {
        costs.iter().map(|(agent, micro)| (AgentName::new(*agent), MicroUsd(*micro))).collect()
    };
    // What one attempt costs, by the second at which it ended: far more in the beginning.
    let cost = |second: u32| if second <= 30 { 1_000_000 } else { u64::from(second) };
    let cost = |second: u32| if (51..=100).contains(&second) { 0 } else { cost(second) };
    for (number, agent, ends) in [(1, "a", 1..=40), (2, "a", 41..=100), (3, "b", 1..=3), (4, "free", 51..=53)]
    {
        let goal = Goal { agents: vec![AgentName::new(agent)], ..goal(number) };
        store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
        let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("nobody holds it");
        let mut attempts = Vec::new();
        for (last, (n, second)) in (1..).zip((1..).zip(ends)) {
            // Half of it was reported, and half of it is an estimate.
            let half = MicroUsd(cost(second) / 2);
            let usage = Usage {
                cost: MicroUsd(cost(second)).saturating_sub(half),
                estimate: half,
                ..Usage::default()
            };
            let agent = AgentName::new(agent);
            attempts.push(Attempt { agent, usage, ..attempt(goal.id, n, 1, Some(second.into())) });
            let state = GoalState { attempts: attempts.clone(), ..GoalState::new(&goal) };
            let step =
                Append { state, ..append(&goal, lease.generation, Seq(last), vec![notice("used", 1)]) };
            store.append(step).await.expect("it fits");
        }
        let n = u32::try_from(attempts.len()).expect("few") + 1;
        let last = Seq(u64::from(n));
        let agent = AgentName::new(agent);
        attempts.push(Attempt { agent, usage: estimate(1, 77), ..attempt(goal.id, n, 1, None) });
        let state = GoalState { attempts, ..GoalState::new(&goal) };
        let step = Append { state, ..append(&goal, lease.generation, last, vec![notice("used", 1)]) };
        store.append(step).await.expect("it fits");
    }
    let expected = usual(&[("a", 41), ("b", 1_000_000), ("free", 0)]);
    assert_eq!(place.open().await.usual_costs().await.expect("costs"), expected);
}
