//! What is stored comes back equal, to the last nanosecond.

use std::time::Duration;

use serde_json::json;
use towline_core::{
    AgentEvent, AttemptNo, Axis, Baseline, CheckResult, Commit, Decision, End, Envelope, EscalationReason,
    Event, Exit, FailureReason, Generation, Goal, GoalState, Limit, LimitStatus, MicroUsd, Outcome,
    OutputHashes, Phase, QuestionNo, RawRef, Seq, SessionId, SessionStarted, Source, Tokens, ToolKind,
    ToolStatus, ToolUse, Usage, Verdict, Work, WorkspaceBinding,
};

use super::Place;
use super::samples::{
    append, at, attempt, claimed, everything, goal, happened, launch, pending, question, session, worker,
};
use crate::{Append, StoreError};

/// A goal with something in every field comes back equal from a store that was opened again.
pub async fn every_value_survives_reopening(place: &dyn Place) {
    let store = place.open().await;
    let goal = rich_goal();
    let start = rich_state(&goal);
    store.create(&goal, &start, happened(Event::Created, 0)).await.expect("it is new");
    let lease = store
        .claim(goal.id, &worker("wörker \u{1f6a2}"), at(0), jiff::Timestamp::MAX, None)
        .await
        .expect("free");
    let mut appended = Vec::new();
    for (last, phase) in (1..).zip(rich_phases()) {
        let append = Append {
            state: GoalState { phase, generation: lease.generation, ..start.clone() },
            effects: vec![launch(goal.id, last, "a\0b \"quoted\" ünïcode\n")],
            settled: vec![format!("launch/{}", last / 2)],
            at: at(last.into()),
            ..append(&goal, lease.generation, Seq((u64::from(last) - 1) * 8 + 1), rich_events(last))
        };
        let returned = store.append(append).await.expect("it fits");
        appended.extend(returned.events);
    }
    let before = everything(&*store, goal.id).await;
    assert_eq!(before.events[1..], appended);
    assert_eq!(before.record.goal, goal);
    assert_eq!(before.record.state.attempts, start.attempts);
    assert_eq!(before.record.lease, Some(lease));
    drop(store);
    assert_eq!(everything(&*place.open().await, goal.id).await, before);
}

/// A kill right after the append that carried the binding does not lose the conversation.
pub async fn the_session_is_stored_with_the_first_state_that_has_it(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let state = GoalState { session: Some(session("first")), ..GoalState::new(&goal) };
    let bound = Append { state, ..append(&goal, lease.generation, Seq(1), vec![session_event("first")]) };
    store.append(bound).await.expect("it fits");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.load(goal.id).await.expect("it is there").state.session, Some(session("first")));
    // Forgotten, bound to another, and bound to the first again: always as in the newest state.
    for (last, session) in (2..).zip([None, Some(session("second")), Some(session("first"))]) {
        let state = GoalState { session: session.clone(), ..GoalState::new(&goal) };
        let moved =
            Append { state, ..append(&goal, lease.generation, Seq(last), vec![session_event("next")]) };
        store.append(moved).await.expect("it fits");
        assert_eq!(place.open().await.load(goal.id).await.expect("it is there").state.session, session);
    }
}

/// A state in which two attempts run is refused whole; one may begin when the one before it has ended.
pub async fn at_most_one_attempt_of_a_goal_runs(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let (other, other_lease) = claimed(&*store, 2).await;
    let with = |goal: &Goal, attempts| GoalState { attempts, ..GoalState::new(goal) };
    let step = |goal: &Goal, generation: Generation, expected, state| Append {
        state,
        effects: vec![launch(goal.id, u32::try_from(expected).expect("small"), "go")],
        ..append(goal, generation, Seq(expected), vec![happened(Event::AttemptStarted { sandbox: None }, 1)])
    };
    let running = |n| attempt(goal.id, n, 1, None);
    let ended = |n| attempt(goal.id, n, 1, Some(2));

    let two_at_once = with(&goal, vec![running(1), running(2)]);
    let refused = store.append(step(&goal, lease.generation, 1, two_at_once)).await;
    assert!(matches!(refused, Err(StoreError::Database { .. })), "{refused:?}");
    store.append(step(&goal, lease.generation, 1, with(&goal, vec![running(1)]))).await.expect("the first");
    let elsewhere = with(&other, vec![attempt(other.id, 1, 1, None)]);
    store.append(step(&other, other_lease.generation, 1, elsewhere)).await.expect("another goal's");

    let before = everything(&*store, goal.id).await;
    let second_too_soon = with(&goal, vec![running(1), running(2)]);
    let refused = store.append(step(&goal, lease.generation, 2, second_too_soon)).await;
    assert!(matches!(refused, Err(StoreError::Database { .. })), "{refused:?}");
    assert_eq!(everything(&*store, goal.id).await, before);

    let next = with(&goal, vec![ended(1), running(2)]);
    store.append(step(&goal, lease.generation, 2, next.clone())).await.expect("the first has ended");
    let stored = everything(&*place.open().await, goal.id).await;
    assert_eq!(stored.record.state, next);
    assert_eq!(stored.pending, [1, 2].map(|n| pending(launch(goal.id, n, "go"))));
}

fn session_event(id: &str) -> Envelope {
    let started = SessionStarted {
        native_id: SessionId::new(id),
        resumed: false,
        model: Some("a-model".to_owned()),
        agent_version: Some("1.2.3".to_owned()),
    };
    happened(Event::Agent { event: AgentEvent::SessionStarted(started) }, 3)
}

fn rich_goal() -> Goal {
    let mut goal = goal(1);
    goal.title = "Grüße \u{1f6a2} \"quoted\" \\ \0".to_owned();
    goal.prompt = "line\n".repeat(10_000);
    goal.model = Some("a-model".to_owned());
    goal.budget.wall = Some(Duration::new(3_600, 1));
    goal.budget.usd = Some(MicroUsd(u64::MAX));
    goal.labels = vec!["a".to_owned(), String::new()];
    goal.origin.by = Some("somebody".to_owned());
    let numbers =
        json!([0.1, 31.245270191439438, 121.48791951161945, 5e-324, f64::MAX, -0.0, u64::MAX, i64::MIN]);
    goal.metadata.insert("numbers".to_owned(), numbers);
    goal.metadata.insert("deep".to_owned(), json!({"a": [null, {"b": [true]}], "": ""}));
    goal
}

fn rich_state(goal: &Goal) -> GoalState {
    let mut first = attempt(goal.id, 1, 1, Some(2));
    first.session = Some(SessionId::new("s"));
    first.end = Some(End::Crashed { message: "signal 11".to_owned() });
    first.exit = Some(Exit { code: None, signal: Some(11), stderr_tail: "…\u{fffd}".to_owned() });
    first.limit_until = Some(at(77));
    first.usage = Usage { input: Tokens(u64::MAX), cost: MicroUsd(3_075), ..Usage::default() };
    first.context = Some((Tokens(5), None));
    first.decisions = vec![decision()];
    first.verdict = Some(verdict());
    first.read_to = u64::MAX;
    GoalState {
        first_started_at: Some(at(1)),
        workspace: Some(WorkspaceBinding {
            path: "/w".to_owned(),
            branch: Some("towline/x".to_owned()),
            base: Commit::new("b"),
            setup_changes: [("lock".to_owned(), Some("i".to_owned())), ("gone".to_owned(), None)].into(),
            base_tree: Some("t".to_owned()),
        }),
        session: Some(session("s")),
        attempts: vec![first, attempt(goal.id, 2, 3, None)],
        candidate: Some(Commit::new("c")),
        questions: vec![question()],
        baseline: Baseline::Running { round: 1, since: at(1), until: Some(at(11)) },
        ..GoalState::new(goal)
    }
}

fn rich_phases() -> Vec<Phase> {
    vec![
        Phase::Running { attempt: AttemptNo::FIRST },
        Phase::Failed { reason: FailureReason::Budget { axis: Axis::Usd } },
        Phase::Limited { until: at(500), guessed: true },
        Phase::Sleeping { until: jiff::Timestamp::MAX, reason: "tired".to_owned() },
        Phase::Blocked { question: QuestionNo(1), attempt: Some(AttemptNo::FIRST), until: Some(at(9)) },
        Phase::Escalated { reason: EscalationReason::NoProgress { times: 3 } },
        Phase::Done,
    ]
}

fn decision() -> Decision {
    Decision {
        tool: "Bash".to_owned(),
        outcome: Outcome::Deny,
        by: "rule".to_owned(),
        rule: Some("rm".to_owned()),
    }
}

fn verdict() -> Verdict {
    Verdict {
        candidate: Commit::new("c"),
        head: Some(Commit::new("h")),
        tree: "t".to_owned(),
        restored: vec!["tests/a".to_owned()],
        checks: vec![CheckResult {
            name: "tests".to_owned(),
            met: false,
            exit_code: Some(101),
            problem: None,
            evidence: "panicked".to_owned(),
            took: Duration::new(1, 999_999_999),
            output: Some(OutputHashes { stdout: "0".repeat(64), stderr: "f".repeat(64) }),
            tests: None,
        }],
        notes: vec!["setup changed lock".to_owned()],
        checkout: towline_core::Checkout::WarmThenClean,
        sandbox: Some(towline_core::Sandbox::Bubblewrap),
    }
}

/// Eight events with everything that an event can carry beside its body.
fn rich_events(round: u32) -> Vec<Envelope> {
    let tool = ToolUse {
        id: "t1".to_owned(),
        tool: ToolKind::Execute,
        name: "Bash".to_owned(),
        title: "run".to_owned(),
        status: ToolStatus::Ok,
        input: Some(json!({"command": "ls", "timeout": 121.48791951161945})),
        output: Some("x".repeat(20_000)),
        exit_code: Some(-1),
        paths: vec!["a b".to_owned()],
    };
    let limit = Limit {
        scope: Some("five_hour".to_owned()),
        status: LimitStatus::Warning,
        utilization: Some(31.245270191439438),
        resets_at: Some(at(9)),
    };
    let used = Usage { cache_read: Tokens(7), ..Usage::default() };
    let agent = [
        AgentEvent::Tool(tool),
        AgentEvent::RateLimit(limit),
        AgentEvent::Usage { model: None, used, context_used: Some(Tokens(1)), context_size: None },
        AgentEvent::Decided(decision()),
    ];
    let own = [
        Event::VerdictReached { verdict: verdict() },
        Event::AttemptEnded {
            changes: "a +1 -0".to_owned(),
            end: End::RateLimited { until: Some(at(8)) },
            exit: Exit::default(),
            work: Work::Unchecked,
        },
        Event::PhaseChanged { phase: Phase::Queued },
        Event::Notice { text: format!("round {round}") },
    ];
    let raw = RawRef { offset: i64::MAX as u64, length: 1 };
    agent
        .into_iter()
        .map(|event| Envelope {
            attempt: AttemptNo::new(round),
            source: Source::Agent,
            parent: Some("tool \"x\"".to_owned()),
            raw: Some(raw),
            ..happened(Event::Agent { event }, round.into())
        })
        .chain(own.into_iter().map(|event| Envelope { source: Source::Operator, ..happened(event, 4) }))
        .collect()
}
