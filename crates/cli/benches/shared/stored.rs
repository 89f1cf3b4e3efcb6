//! Stores with as many goals as a bench wants, filled without running any.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use jiff::Timestamp;
use tokio::task::JoinSet;
use towline_core::{
    AgentName, Budget, Commit, Envelope, Event, Goal, GoalState, Origin, Source, WorkspaceMode, WorkspaceSpec,
};
use towline_store::{SqliteStore, Store};
use towline_testkit::scratch::Project;

/// The agent that all stored goals name.
pub(crate) const AGENT: &str = "scripted";
/// How many goals wait for the writer at once, which shares a commit among them.
const AT_ONCE: usize = 256;

static TEMPLATES: AtomicU16 = AtomicU16::new(0);

/// What all goals of a store have in common.
pub(crate) struct Template {
    /// Part of the ids of its goals: two stores on one machine never have the same goal.
    number: u16,
    repository: String,
    base: Commit,
}

impl Template {
    /// For goals that start from the present commit of a project.
    pub(crate) fn of(project: &Project) -> Self {
        let repository = project.path().display().to_string();
        let number = TEMPLATES.fetch_add(1, Ordering::Relaxed);
        Self { number, repository, base: Commit::new(project.git(["rev-parse", "HEAD"]).trim()) }
    }

    /// A goal without checks. Each number is another one, a second younger than the one before.
    pub(crate) fn goal(&self, number: usize) -> Goal {
        let second = i64::try_from(number).expect("a small number");
        let random = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let millis = 1_700_000_000_000 + second * 1_000;
        let id = format!("{millis:012x}7abc8{:03x}{:012x}", self.number, random >> 16);
        Goal {
            id: id.parse().expect("an id"),
            title: format!("Fix the tests of part {number}"),
            prompt: "Make the tests pass without changing what they ask for. ".repeat(10),
            checks: Vec::new(),
            budget: Budget::default(),
            agents: vec![AgentName::new(AGENT)],
            model: None,
            agent_settings: BTreeMap::new(),
            protect: Vec::new(),
            unprotect: Vec::new(),
            workspace: self.workspace(),
            briefing: false,
            baseline: towline_core::BaselineMode::Off,
            sessions: BTreeMap::new(),
            accounts: BTreeMap::new(),
            continues: None,
            scheduling: towline_core::Scheduling::default(),
            labels: Vec::new(),
            metadata: BTreeMap::new(),
            origin: Origin { channel: "cli".to_owned(), thread: None, by: None },
            created_at: Timestamp::new(1_700_000_000 + second, 0).expect("in range"),
        }
    }

    fn workspace(&self) -> WorkspaceSpec {
        WorkspaceSpec {
            mode: WorkspaceMode::Clone,
            repository: self.repository.clone(),
            base: self.base.clone(),
            setup: Vec::new(),
            copy: Vec::new(),
            generated: Vec::new(),
            pass_env: Vec::new(),
            warm: Vec::new(),
            confirm: towline_core::Confirm::Clean,
            git: None,
        }
    }
}

/// Adds goals to a store.
pub(crate) fn fill(database: &Path, goals: impl Iterator<Item = (GoalState, Goal)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(database).expect("a store");
        let mut waiting = JoinSet::new();
        for (state, goal) in goals {
            if waiting.len() == AT_ONCE {
                waiting.join_next().await;
            }
            let store = store.clone();
            waiting.spawn(async move {
                let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
                store.create(&goal, &state, created).await.expect("it is written");
            });
        }
        waiting.join_all().await;
    });
}
