//! Goals and what happens to them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use towline_core::{
    AgentEvent, Answerer, Ask, Budget, Check, CheckKind, CheckResult, Commit, End, Event, Exit, Goal,
    NextSession, QuestionNo, Reply, SessionId, SessionStarted, Verdict, Work, WorkspaceBinding,
};

/// When every test begins.
pub(crate) fn beginning() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("in range")
}

/// A goal with one check, one agent and the default budget. Each number is another goal.
pub(crate) fn goal(number: u32) -> Goal {
    let kind = CheckKind::Command { run: "make test".into(), stdout: None };
    let check = Check::new("tests", kind, Duration::from_secs(60));
    let stored = json!({
        "id": format!("01932f6e-7c00-7abc-8def-{number:012x}"), "title": format!("goal {number}"),
        "prompt": "Make the tests pass.", "checks": [check], "budget": Budget::default(), "agents": ["agent"],
        "model": null, "protect": [],
        "workspace": {"repository": "/repository", "base": "base", "setup": [], "copy": []},
        "briefing": false, "baseline": "off", "labels": [], "metadata": {},
        "origin": {"channel": "cli", "thread": null, "by": null}, "created_at": beginning(),
    });
    serde_json::from_value(stored).expect("a goal")
}

/// The goal with another budget.
pub(super) fn goal_with(budget: Budget) -> Goal {
    Goal { budget, ..goal(1) }
}

pub(super) fn prepared() -> Event {
    let workspace = WorkspaceBinding {
        path: "/workspace".into(),
        branch: Some("towline/goal".into()),
        base: Commit::new("base"),
        setup_changes: BTreeMap::new(),
        base_tree: Some("base-tree".into()),
    };
    Event::Prepared { workspace, warnings: Vec::new() }
}

pub(super) fn session() -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: SessionId::new("session"),
        resumed: false,
        model: None,
        agent_version: None,
    })
}

pub(super) fn notice(text: &str) -> AgentEvent {
    AgentEvent::Notice { text: text.to_owned() }
}

pub(super) fn ended(end: End) -> Event {
    Event::AttemptEnded { end, exit: Exit::default(), work: Work::Nothing, changes: String::new() }
}

pub(super) fn crashed() -> Event {
    ended(End::Crashed { message: "exit code 1".into() })
}

/// A question with two options that a running agent waits for.
pub(super) fn question() -> Ask {
    let ask = Ask::choice("Which colour?".into(), vec!["red".into(), "blue".into()]);
    Ask { request: Some("r1".into()), ..ask }
}

/// A person answers a question.
pub(super) fn answered(question: QuestionNo) -> Event {
    Event::Answered { question, reply: chosen("blue"), by: Answerer::Person }
}

pub(super) fn chosen(answer: &str) -> Reply {
    Reply::Chosen { answers: vec![answer.to_owned()] }
}

/// The operator has the goal try once more.
pub(super) fn retry() -> Event {
    Event::RetryRequested { budget: Vec::new(), session: NextSession::Resumed, model: None }
}

/// The result of a command that exits with 0 or 1.
pub(super) fn check_result(name: &str, met: bool) -> CheckResult {
    CheckResult {
        name: name.into(),
        met,
        exit_code: Some(i32::from(!met)),
        problem: None,
        evidence: String::new(),
        took: Duration::ZERO,
        output: None,
        tests: None,
    }
}

/// The verdict on a tree: the goal's check passes or fails.
pub(super) fn verdict(tree: &str, met: bool) -> Event {
    let verdict = Verdict {
        candidate: Commit::new(format!("commit-{tree}")),
        head: None,
        tree: tree.to_owned(),
        restored: Vec::new(),
        checks: vec![check_result("tests", met)],
        notes: Vec::new(),
        checkout: towline_core::Checkout::Clean,
        sandbox: None,
    };
    Event::VerdictReached { verdict }
}
