//! The rules of a pool in a test, which can change them at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use towline_core::{AgentName, Caps, Commit, Goal, Inherited, MicroUsd};
use towline_store::GoalRecord;

use super::values::beginning;
use crate::reads::Reads;
use crate::resolver::{Resolved, Resolver, Unresolved};
use crate::rules::{Limits, PoolRules, ProjectRules};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// How long a read hangs at most, so that a test that fails comes to its end.
const HANGS: Duration = Duration::from_secs(60);

/// Rules that a test sets.
#[derive(Debug, Default)]
pub(super) struct TestRules {
    rules: Mutex<Rules>,
    changed: Condvar,
    reads: Reads,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    pub(super) caps: Caps,
    pub(super) day: Option<MicroUsd>,
    pub(super) pool: Option<MicroUsd>,
    pub(super) projects: BTreeMap<String, MicroUsd>,
    pub(super) free_space: u64,
    /// What agents lack.
    pub(super) missing_credentials: BTreeMap<AgentName, String>,
    /// Projects whose configuration cannot be used.
    pub(super) broken: BTreeMap<String, String>,
    /// Projects whose directories do not answer, and how often each was asked for anything.
    pub(super) hung: BTreeMap<String, usize>,
    /// Where the rules are supposed to be read from.
    pub(super) files: BTreeSet<PathBuf>,
    /// Why nothing can be inherited.
    pub(super) inherits_nothing: Option<String>,
}

impl TestRules {
    pub(super) fn capped(pool: usize) -> Arc<Self> {
        let rules = Self::default();
        rules.set(|rules| rules.caps.pool = pool);
        Arc::new(rules)
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules.lock().expect("unharmed"));
        self.changed.notify_all();
    }

    pub(super) fn get(&self) -> Rules {
        self.rules.lock().expect("unharmed").clone()
    }

    /// Waits until the project answers.
    fn ask(&self, project: &str) {
        let mut rules = self.rules.lock().expect("unharmed");
        if let Some(asked) = rules.hung.get_mut(project) {
            *asked += 1;
        }
        let is_hung = |rules: &mut Rules| rules.hung.contains_key(project);
        drop(self.changed.wait_timeout_while(rules, HANGS, is_hung).expect("unharmed"));
    }
}

impl PoolRules for TestRules {
    fn limits(&self, now: Timestamp) -> Limits {
        let Rules { caps, day, pool, free_space, .. } = self.get();
        let mut today = (beginning(), beginning() + DAY);
        while today.1 <= now {
            today = (today.1, today.1 + DAY);
        }
        Limits { caps, day, pool, today, free_space }
    }

    fn project(&self, project: &str, agents: &BTreeSet<AgentName>) -> ProjectRules {
        self.ask(project);
        let Rules { projects, missing_credentials, broken, .. } = self.get();
        let lacks = |agent: &AgentName| Some((agent.clone(), missing_credentials.get(agent)?.clone()));
        ProjectRules {
            problem: broken.get(project).cloned(),
            budget: projects.get(project).copied(),
            without_credentials: agents.iter().filter_map(lacks).collect(),
        }
    }

    fn last_budget(&self, project: &str) -> Option<MicroUsd> {
        self.get().projects.get(project).copied()
    }

    fn files(&self, project: Option<&str>) -> BTreeSet<PathBuf> {
        match project {
            Some(project) => {
                self.ask(project);
                BTreeSet::new()
            }
            None => self.get().files,
        }
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn problem(&self) -> Option<String> {
        None
    }

    fn inherited(&self, goal: &Goal, prerequisites: &[GoalRecord]) -> Result<Inherited, String> {
        if let Some(problem) = self.get().inherits_nothing {
            return Err(problem);
        }
        let before: Vec<String> = prerequisites.iter().map(|record| record.goal.title.clone()).collect();
        let prompt = Some(format!("{} After: {}.", goal.prompt, before.join(", ")));
        let base = goal.scheduling.base_is_prerequisite.then(|| Commit::new("candidate"));
        Ok(Inherited { prompt, base })
    }
}

impl Resolver for TestRules {
    fn resolve(&self, goal: &Goal) -> Result<Resolved, Unresolved> {
        self.ask(&goal.workspace.repository);
        Ok(Resolved::default())
    }
}
