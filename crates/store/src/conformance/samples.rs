//! Goals, states and events to write, and short ways to do so.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use towline_core::{
    AgentName, Ask, Attempt, AttemptId, AttemptNo, Budget, Check, CheckKind, Effect, Envelope, Event,
    Generation, Goal, GoalId, GoalState, Launch, ModelChoice, Question, QuestionNo, Seq, SessionBinding,
    SessionId, SessionPlan, Source,
};

use crate::{Append, GoalRecord, Lease, PendingEffect, Store, WorkerName};

/// A moment, some nanoseconds past a whole second.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + second, 123_456_789).expect("in range")
}

pub(crate) fn goal_id(number: u64) -> GoalId {
    format!("01932f6e-7c00-7abc-8def-{number:012x}").parse().expect("a goal's id")
}

/// A plain goal, created at second `number`.
pub(crate) fn goal(number: u64) -> Goal {
    let kind = CheckKind::Command { run: "true".to_owned(), stdout: None };
    let check = Check::new("tests", kind, Duration::from_secs(60));
    let created_at = at(i64::try_from(number).expect("a small number"));
    let stored = json!({
        "id": goal_id(number), "title": format!("goal {number}"), "prompt": "make it so", "checks": [check],
        "budget": Budget::default(), "agents": ["scripted"], "model": null, "protect": [],
        "workspace": {"repository": "repository", "base": "0".repeat(40), "setup": [], "copy": []},
        "briefing": true, "baseline": "auto", "labels": [], "metadata": {},
        "origin": {"channel": "cli", "thread": null, "by": null}, "created_at": created_at,
    });
    serde_json::from_value(stored).expect("a goal")
}

pub(crate) fn happened(event: Event, second: i64) -> Envelope {
    Envelope::new(goal_id(0), at(second), Source::Towline, event)
}

/// An event that is recognised by its text.
pub(crate) fn notice(text: impl Into<String>, second: i64) -> Envelope {
    happened(Event::Notice { text: text.into() }, second)
}

pub(crate) fn worker(name: &str) -> WorkerName {
    WorkerName(name.to_owned())
}

/// An attempt of the goal, running since second `started`, ended at second `ended`.
pub(crate) fn attempt(goal: GoalId, number: u32, started: i64, ended: Option<i64>) -> Attempt {
    let n = AttemptNo::new(number).expect("no attempt 0");
    let ended_at = ended.map(at);
    Attempt { ended_at, ..Attempt::begun(goal, n, AgentName::new("scripted"), None, at(started)) }
}

/// An open question.
pub(crate) fn question() -> Question {
    Question {
        n: QuestionNo(1),
        attempt: AttemptNo::FIRST,
        ask: Ask::choice("Which?".to_owned(), vec!["a".to_owned()]),
        asked_at: at(1),
        deadline: Some(at(2)),
        closed: None,
    }
}

/// A conversation by this id.
pub(crate) fn session(id: &str) -> SessionBinding {
    SessionBinding {
        agent: AgentName::new("scripted"),
        native_id: SessionId::new(id),
        model: Some("a-model".to_owned()),
        directory: "/somewhere".to_owned(),
        since: at(3),
        asked_model: ModelChoice::Named("a-model".to_owned()),
        origin: None,
    }
}

/// An effect with a key of its own.
pub(crate) fn launch(goal: GoalId, number: u32, prompt: &str) -> Effect {
    let attempt = AttemptNo::new(number).expect("no attempt 0");
    let id = AttemptId::of(goal, attempt);
    Effect::Launch(Launch {
        attempt,
        id,
        agent: AgentName::new("scripted"),
        model: None,
        session: SessionPlan::Fresh(id.fresh_session()),
        compact: None,
        prompt: prompt.to_owned(),
        permitted: Vec::new(),
    })
}

/// Another one, by another key.
pub(crate) fn checks(number: u32) -> Effect {
    Effect::RunChecks { attempt: AttemptNo::new(number).expect("no attempt 0"), round: 1 }
}

pub(crate) fn pending(effect: Effect) -> PendingEffect {
    PendingEffect { key: effect.key(), effect }
}

/// A goal that was created, and the lease that worker `one` has on it until second 60.
pub(crate) async fn claimed(store: &dyn Store, number: u64) -> (Goal, Lease) {
    let goal = created(store, number).await;
    let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("nobody holds it");
    (goal, lease)
}

pub(crate) async fn created(store: &dyn Store, number: u64) -> Goal {
    let goal = goal(number);
    store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
    goal
}

/// An append of these events that leaves the state of a new goal as it is.
pub(crate) fn append(goal: &Goal, generation: Generation, expected: Seq, events: Vec<Envelope>) -> Append {
    Append {
        notifies: false,
        goal: goal.id,
        generation,
        expected,
        events,
        state: marked(goal, 0),
        effects: Vec::new(),
        settled: Vec::new(),
        at: at(1),
    }
}

/// A state that is recognised by its mark.
pub(crate) fn marked(goal: &Goal, mark: u32) -> GoalState {
    GoalState { errors_in_row: mark, ..GoalState::new(goal) }
}

/// Everything that is stored about a goal.
#[derive(Debug, PartialEq)]
pub(crate) struct Everything {
    pub(crate) record: GoalRecord,
    pub(crate) events: Vec<Envelope>,
    pub(crate) pending: Vec<PendingEffect>,
}

pub(crate) async fn everything(store: &dyn Store, goal: GoalId) -> Everything {
    Everything {
        record: store.load(goal).await.expect("the goal is there"),
        events: store.events(goal, Seq(0), usize::MAX).await.expect("its log is there"),
        pending: store.pending(goal).await.expect("its outbox is there"),
    }
}

/// The places in a log.
pub(crate) fn places(events: &[Envelope]) -> Vec<u64> {
    events.iter().map(|event| event.seq.0).collect()
}
