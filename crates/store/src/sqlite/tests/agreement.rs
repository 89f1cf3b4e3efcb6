//! Whatever happens to goals, and whichever of two programs records it: the tables of the pool have what follows from the states, which is
//! what the store in memory computes each time.

use std::collections::BTreeMap;

use towline_core::{
    AgentName, Attempt, AttemptNo, Budget, Commit, Event, Goal, GoalId, GoalState, Merge, MicroUsd, Need,
    Phase, Prerequisite, QuestionNo, Scheduling, Unavailable, Usage,
};

use super::Scratch;
use crate::conformance::samples::{append, at, attempt, goal, goal_id, happened, worker};
use crate::{Append, MemoryStore, Store, StoreError};

const GOALS: u64 = 8;

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[tokio::test]
async fn the_pool_is_what_follows_from_the_states() {
    let scratch = Scratch::new();
    let (one, other, memory) = (scratch.store(), scratch.store(), MemoryStore::new());
    let mut numbers = Numbers(7);
    let mut seen = [0; 3];
    for round in 0..200_i64 {
        let id = goal_id(1 + numbers.below(GOALS));
        let written: &dyn Store = if numbers.below(2) == 0 { &one } else { &other };
        let stores = [written, &memory];
        match memory.load(id).await {
            Err(_) => {
                let goal = some_goal(&mut numbers, id, round);
                for store in stores {
                    let created = happened(Event::Created, round);
                    store.create(&goal, &GoalState::new(&goal), created).await.expect("it is new");
                }
            }
            Ok(_) if numbers.below(12) == 0 => {
                for store in stores {
                    let lease = store.claim(id, &worker("one"), at(0), at(1), None).await.expect("free");
                    store.remove(&lease).await.expect("it is ours");
                }
            }
            Ok(record) => {
                let state = some_state(&mut numbers, &record.goal, record.state, round);
                for store in stores {
                    record_state(store, &record.goal, &state, round).await;
                }
            }
        }
        let expected = picture(&memory).await;
        for store in [&one, &other] {
            assert_eq!(picture(store).await, expected, "round {round}");
        }
        let view = memory.pool(1).await.expect("a pool");
        let waiting = memory.queue(None, 99).await.expect("a queue").len() - view.queued.len();
        for (seen, found) in seen.iter_mut().zip([view.queued.len(), view.working.len(), waiting]) {
            *seen += found;
        }
    }
    assert!(seen.iter().all(|seen| *seen > 100), "{seen:?}");
}

/// Everything that a pool can ask.
async fn picture(store: &dyn Store) -> Vec<String> {
    let mut picture = Vec::new();
    for most in [1, 2, 99] {
        picture.push(format!("{:?}", store.pool(most).await.expect("a pool")));
    }
    picture.push(format!("{:?}", store.queue(None, 99).await.expect("a queue")));
    picture.push(format!("{:?}", store.next_wake().await.expect("an answer")));
    picture.push(format!("{:?}", store.usual_costs().await.expect("costs")));
    picture.push(format!("{:?}", store.notices(at(1_000), 9_999).await.expect("notices")));
    for number in 1..=GOALS {
        match store.unmet(goal_id(number)).await {
            Ok(unmet) => picture.push(format!("{unmet:?}")),
            Err(error) => assert!(matches!(error, StoreError::NotFound(_)), "{error}"),
        }
    }
    picture
}

fn some_goal(numbers: &mut Numbers, id: GoalId, round: i64) -> Goal {
    let need = |numbers: &mut Numbers| Prerequisite {
        goal: goal_id(1 + numbers.below(GOALS)),
        need: if numbers.below(3) == 0 { Need::Merged } else { Need::Done },
    };
    let after = (0..numbers.below(3)).map(|_| need(numbers)).filter(|need| need.goal != id).collect();
    let priority = i32::try_from(numbers.below(3)).expect("small");
    let usd = (numbers.below(2) == 0).then_some(MicroUsd(500));
    let mut goal = Goal {
        id,
        created_at: at(round),
        scheduling: Scheduling { after, priority, ..Scheduling::default() },
        agents: ["scripted", "other"].map(AgentName::new).to_vec(),
        budget: Budget { usd, ..Budget::default() },
        ..goal(1)
    };
    goal.workspace.repository = format!("project {}", numbers.below(2));
    goal
}

/// The state after the next thing that happens to the goal.
fn some_state(numbers: &mut Numbers, goal: &Goal, mut state: GoalState, round: i64) -> GoalState {
    if let Some(last) = state.attempts.last_mut() {
        if numbers.below(3) == 0 && last.ended_at.is_none() {
            // It runs on.
            last.usage.cost = MicroUsd(last.usage.cost.0 + numbers.below(100));
            return state;
        }
        last.ended_at = last.ended_at.or(Some(at(round)));
    }
    (state.merged, state.dispatched_agent) = (None, None);
    state.phase = match numbers.below(8) {
        0 | 1 => {
            state.queued_at = Some(at(round));
            Phase::Queued
        }
        2 => {
            let agent = if numbers.below(2) == 0 { "scripted" } else { "other" };
            state.dispatched_agent = Some(AgentName::new(agent));
            Phase::Preparing
        }
        3 => {
            let n = AttemptNo::new(u32::try_from(state.attempts.len()).expect("few") + 1).expect("not 0");
            let agent = state.next_agent(goal, at(round)).cloned().unwrap_or_else(|| AgentName::new("other"));
            let usage = Usage { cost: MicroUsd(1), ..Usage::default() };
            state.attempts.push(Attempt { agent, usage, ..attempt(goal.id, n.get(), round, None) });
            Phase::Running { attempt: n }
        }
        4 => {
            let unavailable = Unavailable { end: "auth".to_owned(), until: None, guessed: false };
            state.unavailable = BTreeMap::from([(AgentName::new("scripted"), unavailable)]);
            let until = at(round + i64::try_from(numbers.below(100_000)).expect("small"));
            Phase::Limited { until, guessed: true }
        }
        5 => {
            state.unavailable.clear();
            Phase::Blocked { question: QuestionNo(1), attempt: None, until: Some(at(round + 9)) }
        }
        done => {
            let commit = || Commit::new("c");
            let merge = Merge { into: "main".into(), commit: commit(), candidate: commit(), at: at(round) };
            state.merged = (done == 7).then_some(merge);
            Phase::Done
        }
    };
    state
}

async fn record_state(store: &dyn Store, goal: &Goal, state: &GoalState, round: i64) {
    let last = store.load(goal.id).await.expect("it is there").last_seq;
    let lease = store.claim(goal.id, &worker("one"), at(0), at(1), None).await.expect("free");
    let changed = happened(Event::PhaseChanged { phase: state.phase.clone() }, round);
    let step = append(goal, lease.generation, last, vec![changed]);
    let step = Append { state: state.clone(), at: at(round), notifies: round % 2 == 0, ..step };
    store.append(step).await.expect("it fits");
    // Some are held for longer.
    if round % 5 != 0 {
        store.release(&lease).await.expect("ours");
    }
}
