//! Goals and what happens to them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use towline_core::{
    AgentEvent, AgentName, Ask, BaselineMode, Budget, Check, CheckKind, CheckResult, Commit, End, Event,
    Exit, Goal, Origin, SessionId, SessionStarted, Verdict, Work, WorkspaceBinding, WorkspaceMode,
    WorkspaceSpec,
};

/// When every test begins.
pub(super) fn beginning() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("in range")
}

/// A goal with one check, one agent and the default budget. Each number is another goal.
pub(super) fn goal(number: u32) -> Goal {
    Goal {
        id: format!("01932f6e-7c00-7abc-8def-{number:012x}").parse().expect("a goal's id"),
        title: format!("goal {number}"),
        prompt: "Make the tests pass.".into(),
        checks: vec![Check {
            name: "tests".into(),
            kind: CheckKind::Command { run: "make test".into(), stdout: None },
            timeout: Duration::from_secs(60),
        }],
        budget: Budget::default(),
        agents: vec![AgentName::new("agent")],
        model: None,
        agent_settings: BTreeMap::new(),
        protect: Vec::new(),
        unprotect: Vec::new(),
        workspace: WorkspaceSpec {
            repository: "/repository".into(),
            mode: WorkspaceMode::Clone,
            base: Commit::new("base"),
            setup: Vec::new(),
            copy: Vec::new(),
            generated: Vec::new(),
            pass_env: Vec::new(),
            warm: Vec::new(),
            confirm: towline_core::Confirm::Clean,
            git: None,
        },
        briefing: false,
        baseline: BaselineMode::Off,
        sessions: BTreeMap::new(),
        accounts: BTreeMap::new(),
        continues: None,
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        origin: Origin { channel: "cli".into(), thread: None, by: None },
        created_at: beginning(),
    }
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

/// The verdict on a tree: the goal's check passes or fails.
pub(super) fn verdict(tree: &str, met: bool) -> Event {
    let result = CheckResult {
        name: "tests".into(),
        met,
        exit_code: Some(i32::from(!met)),
        problem: None,
        evidence: String::new(),
        took: Duration::from_secs(1),
    };
    let verdict = Verdict {
        candidate: Commit::new(format!("commit-{tree}")),
        head: None,
        tree: tree.to_owned(),
        restored: Vec::new(),
        checks: vec![result],
        notes: Vec::new(),
        checkout: towline_core::Checkout::Clean,
    };
    Event::VerdictReached { verdict }
}
