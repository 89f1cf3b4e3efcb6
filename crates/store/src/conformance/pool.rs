//! The pool: who runs, who is next, who waits for whom and until when.

use std::collections::BTreeMap;

use jiff::Timestamp;
use towline_core::{
    AgentName, Attempt, AttemptNo, Baseline, Budget, Commit, Event, FailureReason, Goal, GoalId, GoalState,
    Merge, MicroUsd, Need, Phase, PoolGoal, Prerequisite, QuestionNo, Scheduling, StopWhy, Stopping,
    Unavailable, Usage,
};

use super::Place;
use super::samples::{append, at, attempt, created, goal, goal_id, happened, notice, worker};
use crate::{Append, Listed, Listing, PoolView, QueuedGoal, Store, StoreError, Unmet};

/// An hour of waiting, which is what a step of the priority counts.
const HOUR: i64 = 3_600;

/// Earlier ones first, whatever they compete for; a step of the priority counts an hour. Pages joined are the queue.
pub async fn the_queue_is_in_the_order_of_ranks(place: &dyn Place) {
    let store = place.open().await;
    for (number, queued_at, priority, project) in [
        (1, 10, 0, "a"),
        (2, HOUR, 1, "b"),
        (3, 10, 0, "b"),
        (4, 20, -2, "a"),
        (5, 5, 0, "c"),
        (6, 30, i32::MIN, "a"),
    ] {
        let scheduling = Scheduling { priority, ..Scheduling::default() };
        let mut goal = Goal { scheduling, created_at: at(queued_at), ..goal(number) };
        goal.workspace.repository = project.to_owned();
        create(&*store, &goal).await;
    }
    let order = [2, 5, 1, 3, 6, 4].map(goal_id);
    let store = place.open().await;
    let queue = store.queue(None, 9).await.expect("a queue");
    assert_eq!(queue.iter().map(|queued| queued.goal.goal).collect::<Vec<_>>(), order);
    assert_eq!(queue[0].goal.rank, at(0));
    for limit in 1..=7 {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = store.queue(after, limit).await.expect("a page");
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some((last.goal.rank, last.goal.goal));
            pages.extend(page);
        }
        assert_eq!(pages, queue, "{limit} a page");
    }
    assert_eq!(store.queue(None, 0).await.expect("a page"), []);
    assert_eq!(store.queue(None, usize::MAX).await.expect("a page"), queue);
    let view = store.pool(9).await.expect("a pool");
    assert_eq!(view.queued, queue.into_iter().map(|queued| queued.goal).collect::<Vec<_>>());
}

/// Pages joined are the queue without the goals that wait for others.
pub async fn goals_that_could_start_are_read_in_pages(place: &dyn Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for number in 1..=6 {
        let goal = Goal { created_at: at(20 - i64::try_from(number / 2).expect("small")), ..goal(number) };
        expected.push(create(&*store, &goal).await);
    }
    create_after(&*store, 7, &[(goal_id(1), Need::Done)]).await;
    expected.sort_by_key(|goal| (goal.rank, goal.goal));
    for limit in 1..=7 {
        let (mut pages, mut after) = (Vec::new(), Some((Timestamp::MIN, goal_id(1))));
        while let Some(place) = after {
            let page = store.ready(place, limit).await.expect("a page");
            assert!(page.len() <= limit);
            after = page.last().map(|last| (last.rank, last.goal));
            pages.extend(page);
        }
        assert_eq!(pages, expected, "{limit} a page");
    }
    assert_eq!(store.ready((Timestamp::MIN, goal_id(1)), 0).await.expect("a page"), []);
    assert_eq!(store.pool(9).await.expect("a pool").rest, None, "every lane is there");
}

/// As many as asked for, in the order of their ranks. Whatever differs about what goals compete for makes another lane.
pub async fn a_pool_has_the_first_goals_of_each_lane(place: &dyn Place) {
    let store = place.open().await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let agents = |agents: &[&str]| agents.iter().map(|name| AgentName::new(*name)).collect::<Vec<_>>();
    let scripted = || AgentName::new("scripted");
    let mut kinds: Vec<Goal> = (1..=6).map(goal).collect();
    kinds[1].workspace.repository = "another".to_owned();
    kinds[2].agents = agents(&["other", "scripted"]);
    kinds[3].accounts = BTreeMap::from([(scripted(), "shared".to_owned())]);
    kinds[4].labels = names(&["x", "a"]);
    kinds[5].scheduling.touches = names(&["src/**"]);
    let mut expected = Vec::new();
    for round in 0..3 {
        for kind in &kinds {
            let number = 100 + u64::try_from(expected.len()).expect("few");
            let goal = Goal { id: goal_id(number), created_at: at(100 - round), ..kind.clone() };
            expected.push(create(&*store, &goal).await);
        }
    }
    // Those that were queued last go first here.
    expected.sort_by_key(|goal| (goal.rank, goal.goal));
    for most in 0..=4 {
        let view = store.pool(most).await.expect("a pool");
        let first = expected[..expected.len().min(most * kinds.len())].to_vec();
        assert_eq!(view, PoolView { queued: first, ..PoolView::default() }, "{most} of each lane");
    }
    // Labels are a set.
    let mut same = Goal { id: goal_id(200), created_at: at(0), ..kinds[4].clone() };
    same.labels = names(&["a", "x", "a"]);
    create(&*store, &same).await;
    assert_eq!(store.pool(1).await.expect("a pool").queued.len(), kinds.len());
}

/// Whichever engine runs it, from its dispatch until it waits again. Its lane is that of the agent at work, and what is left of its money
/// is as its last attempt reported it.
pub async fn a_pool_has_the_goals_that_hold_a_slot(place: &dyn Place) {
    let store = place.open().await;
    let n = AttemptNo::FIRST;
    let budget = Budget { usd: Some(MicroUsd(1_000)), ..Budget::default() };
    let agents = ["scripted", "other"].map(AgentName::new).to_vec();
    let goal = Goal { agents, budget, ..goal(1) };
    create(&*store, &goal).await;
    let queued = GoalState::new(&goal);
    let working = |phase, micro| {
        let usage = Usage { cost: MicroUsd(micro), ..Usage::default() };
        let attempts = vec![Attempt { usage, ..attempt(goal.id, 1, 1, None) }];
        GoalState { phase, attempts, ..queued.clone() }
    };
    let stopping = Stopping { attempt: Some(n), why: StopWhy::SharedBudget };
    let mut limited = working(Phase::Checking { attempt: n }, 600);
    limited.attempts[0].ended_at = Some(at(5));
    let unavailable = Unavailable { end: "rate_limited".to_owned(), until: Some(at(9_000)), guessed: false };
    limited.unavailable = BTreeMap::from([(AgentName::new("scripted"), unavailable)]);
    let again = GoalState { phase: Phase::Queued, queued_at: Some(at(700)), ..limited.clone() };
    let steps = [
        GoalState { phase: Phase::Preparing, ..queued.clone() },
        given_slot(queued.clone(), "other"),
        working(Phase::Running { attempt: n }, 0),
        working(Phase::Running { attempt: n }, 400),
        working(Phase::Stopping(stopping), 500),
        working(Phase::Checking { attempt: n }, 500),
        limited.clone(),
        again,
        GoalState {
            phase: Phase::Sleeping { until: at(900), reason: "it asked to".into() },
            ..limited.clone()
        },
        GoalState { phase: Phase::Preparing, ..limited.clone() },
        GoalState {
            phase: Phase::Blocked { question: QuestionNo(1), attempt: None, until: None },
            ..limited.clone()
        },
        GoalState { phase: Phase::Queued, ..limited.clone() },
        GoalState { phase: Phase::Done, ..limited },
    ];
    for (second, state) in (10..).zip(steps) {
        write(&*store, &goal, state.clone(), second).await;
        let expected = vec![PoolGoal::of(&goal, &state)];
        let view = match state.phase {
            Phase::Queued => PoolView { queued: expected, ..PoolView::default() },
            Phase::Sleeping { .. } | Phase::Blocked { .. } | Phase::Done => PoolView::default(),
            _ => PoolView { working: expected, ..PoolView::default() },
        };
        // Another program knows the same.
        let other = place.open().await;
        for store in [&store, &other] {
            assert_eq!(store.pool(4).await.expect("a pool"), view, "{}", state.phase.name());
        }
        let queue = store.queue(None, 9).await.expect("a queue");
        assert_eq!(queue.into_iter().map(|queued| queued.goal).collect::<Vec<_>>(), view.queued);
    }
    let lease = store.claim(goal.id, &worker("mover"), at(0), at(1), None).await.expect("free");
    create(&*store, &super::samples::goal(2)).await;
    store.remove(&lease).await.expect("it is ours");
    assert_eq!(ids(&store.pool(4).await.expect("a pool").queued), [goal_id(2)]);
}

/// A goal is not among those that could start until all of its prerequisites are met, and no longer when one is opened again or
/// removed.
pub async fn a_goal_waits_for_its_prerequisites(place: &dyn Place) {
    let store = place.open().await;
    let [one, two] = [created(&*store, 1).await, created(&*store, 2).await];
    let needs = [(one.id, Need::Done), (two.id, Need::Merged), (one.id, Need::Merged)];
    let waits = create_after(&*store, 3, &needs).await;
    let unmet = |phases: &[(usize, &str)]| -> Vec<Unmet> {
        let unmet = |(place, phase): &(usize, &str)| {
            let (goal, need) = needs[*place];
            let phase = Some((*phase).to_owned()).filter(|phase| !phase.is_empty());
            Unmet { prerequisite: Prerequisite { goal, need }, phase }
        };
        phases.iter().map(unmet).collect()
    };
    let failed = || Phase::Failed { reason: FailureReason::Budget { axis: towline_core::Axis::Usd } };
    assert_waits(&*store, &waits, &unmet(&[(0, "queued"), (1, "queued"), (2, "queued")])).await;
    write(&*store, &one, GoalState { phase: Phase::Preparing, ..GoalState::new(&one) }, 1).await;
    assert_waits(&*store, &waits, &unmet(&[(0, "preparing"), (1, "queued"), (2, "preparing")])).await;
    write(&*store, &one, GoalState { phase: failed(), ..GoalState::new(&one) }, 2).await;
    assert_waits(&*store, &waits, &unmet(&[(0, "failed"), (1, "queued"), (2, "failed")])).await;
    write(&*store, &one, done(&one, false), 3).await;
    assert_waits(&*store, &waits, &unmet(&[(1, "queued"), (2, "done")])).await;
    write(&*store, &one, done(&one, true), 4).await;
    assert_waits(&*store, &waits, &unmet(&[(1, "queued")])).await;
    write(&*store, &two, done(&two, true), 5).await;
    assert_waits(&*store, &waits, &[]).await;
    // Opened again, by a program that has not seen the goal before.
    write(&*place.open().await, &one, GoalState::new(&one), 6).await;
    assert_waits(&*store, &waits, &unmet(&[(0, "queued"), (2, "queued")])).await;
    write(&*store, &one, done(&one, true), 7).await;
    assert_waits(&*store, &waits, &[]).await;
    let lease = store.claim(two.id, &worker("mover"), at(0), at(1), None).await.expect("free");
    store.remove(&lease).await.expect("it is ours");
    assert_waits(&*place.open().await, &waits, &unmet(&[(1, "")])).await;
    // What is met when a goal is added is met from the beginning, and what is not there is not.
    let free = create_after(&*store, 4, &[(one.id, Need::Done), (one.id, Need::Merged)]).await;
    assert_waits(&*store, &free, &[]).await;
    create_after(&*store, 5, &[(goal_id(99), Need::Done)]).await;
    let missing = Prerequisite { goal: goal_id(99), need: Need::Done };
    assert_eq!(
        store.unmet(goal_id(5)).await.expect("it is there"),
        [Unmet { prerequisite: missing, phase: None }]
    );
    let lease = store.claim(goal_id(5), &worker("mover"), at(0), at(1), None).await.expect("free");
    store.remove(&lease).await.expect("it is ours");
    let gone = store.unmet(goal_id(5)).await;
    assert!(matches!(gone, Err(StoreError::NotFound(id)) if id == goal_id(5)), "{gone:?}");
}

/// A goal that left the queue while it waited finds its prerequisites as they are when it comes back.
pub async fn prerequisites_count_whenever_a_goal_is_queued(place: &dyn Place) {
    let store = place.open().await;
    let needed = created(&*store, 1).await;
    create_after(&*store, 2, &[(needed.id, Need::Done)]).await;
    let goal = store.load(goal_id(2)).await.expect("it is there").goal;
    let cancelled = GoalState { phase: Phase::Cancelled, ..GoalState::new(&goal) };
    write(&*store, &goal, cancelled.clone(), 1).await;
    write(&*store, &needed, done(&needed, false), 2).await;
    assert_eq!(store.queue(None, 9).await.expect("a queue"), []);
    write(&*store, &goal, GoalState::new(&goal), 3).await;
    assert_eq!(ids(&store.pool(1).await.expect("a pool").queued), [goal.id]);
    write(&*store, &goal, cancelled, 4).await;
    write(&*store, &needed, GoalState::new(&needed), 5).await;
    write(&*store, &goal, GoalState::new(&goal), 6).await;
    assert_eq!(ids(&store.pool(9).await.expect("a pool").queued), [needed.id]);
    assert_eq!(store.unmet(goal.id).await.expect("it is there").len(), 1);
}

/// The time at which a goal is listed as due is the one at which it goes on, which is a little after the one that is shown.
pub async fn the_next_wake_is_that_of_the_first_goal_that_nobody_holds(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.next_wake().await.expect("an answer"), None);
    let goals = [created(&*store, 1).await, created(&*store, 2).await, created(&*store, 3).await];
    assert_eq!(store.next_wake().await.expect("an answer"), None);
    let limited = |goal: &Goal, second| GoalState {
        phase: Phase::Limited { until: at(second), guessed: false },
        attempts: vec![attempt(goal.id, 1, 1, Some(2))],
        ..GoalState::new(goal)
    };
    for (goal, second) in goals.iter().zip([30 * HOUR, 20 * HOUR, 40 * HOUR]) {
        write(&*store, goal, limited(goal, second), 3).await;
    }
    let wakes_at = |goal: &Goal, second| limited(goal, second).wakes_at(goal.id).expect("a time");
    let [first, second] = [wakes_at(&goals[1], 20 * HOUR), wakes_at(&goals[0], 30 * HOUR)];
    assert!(first > at(20 * HOUR), "a goal comes back a little later than the quota");
    assert_eq!(place.open().await.next_wake().await.expect("an answer"), Some(first));
    let before = Timestamp::from_nanosecond(first.as_nanosecond() - 1).expect("a time");
    assert_eq!(listed(&*store, before).await, []);
    assert_eq!(listed(&*store, first).await, [goals[1].id]);
    let lease = store.claim(goals[1].id, &worker("one"), at(0), at(60), None).await.expect("free");
    assert_eq!(store.next_wake().await.expect("an answer"), Some(second));
    store.release(&lease).await.expect("ours");
    assert_eq!(store.next_wake().await.expect("an answer"), Some(first));
    write(&*store, &goals[1], GoalState::new(&goals[1]), 4).await;
    assert_eq!(store.next_wake().await.expect("an answer"), Some(second));
    // The first attempt of a goal starts beside the checks on the base after a while; its phase stays.
    let preparing = |until| GoalState {
        phase: Phase::Preparing,
        baseline: Baseline::Running { round: 1, since: at(1), until },
        ..GoalState::new(&goals[1])
    };
    for until in [None, Some(at(70)), Some(at(80)), None] {
        write(&*store, &goals[1], preparing(until), 5).await;
        assert_eq!(store.next_wake().await.expect("an answer"), until.or(Some(second)));
    }
}

fn given_slot(state: GoalState, agent: &str) -> GoalState {
    GoalState { phase: Phase::Preparing, dispatched_agent: Some(AgentName::new(agent)), ..state }
}

fn done(goal: &Goal, is_merged: bool) -> GoalState {
    let commit = || Commit::new("c");
    let merge = Merge { into: "main".to_owned(), commit: commit(), candidate: commit(), at: at(1) };
    GoalState { phase: Phase::Done, merged: is_merged.then_some(merge), ..GoalState::new(goal) }
}

async fn create(store: &dyn Store, goal: &Goal) -> PoolGoal {
    let state = GoalState::new(goal);
    store.create(goal, &state, happened(Event::Created, 0)).await.expect("it is new");
    PoolGoal::of(goal, &state)
}

async fn create_after(store: &dyn Store, number: u64, needs: &[(GoalId, Need)]) -> PoolGoal {
    let after = needs.iter().map(|(goal, need)| Prerequisite { goal: *goal, need: *need }).collect();
    create(store, &Goal { scheduling: Scheduling { after, ..Scheduling::default() }, ..goal(number) }).await
}

/// Records a state of a goal that nobody holds before or after.
async fn write(store: &dyn Store, goal: &Goal, state: GoalState, second: i64) {
    let last = store.load(goal.id).await.expect("it is there").last_seq;
    let lease = store.claim(goal.id, &worker("mover"), at(0), at(1), None).await.expect("free");
    let moved = Append {
        state,
        at: at(second),
        ..append(goal, lease.generation, last, vec![notice("moved", second)])
    };
    store.append(moved).await.expect("it fits");
    store.release(&lease).await.expect("ours");
}

/// The goal is in the queue with these prerequisites, and could start only if there are none.
async fn assert_waits(store: &dyn Store, waits: &PoolGoal, unmet: &[Unmet]) {
    assert_eq!(store.unmet(waits.goal).await.expect("it is there"), unmet);
    let queue = store.queue(None, 9).await.expect("a queue");
    let queued = queue.into_iter().find(|queued| queued.goal.goal == waits.goal);
    assert_eq!(queued, Some(QueuedGoal { goal: waits.clone(), unmet: unmet.to_vec() }));
    let view = store.pool(9).await.expect("a pool");
    assert_eq!(view.queued.contains(waits), unmet.is_empty(), "{unmet:?}");
}

async fn listed(store: &dyn Store, due: Timestamp) -> Vec<GoalId> {
    store.list(&Listing::due(due, 9)).await.expect("a list").iter().map(Listed::id).collect()
}

fn ids(goals: &[PoolGoal]) -> Vec<GoalId> {
    goals.iter().map(|goal| goal.goal).collect()
}
