//! What belongs to the project of a goal: its agents, their environment and the program of Towline's tools.
//!
//! The engine serves goals of many projects and stores nothing of this. It asks each time something starts for a goal, so
//! a configuration that was corrected counts from the next start, and a broken one holds no goal but its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use towline_agent::{AgentSettings, is_agents_variable};
use towline_check::Environment;
use towline_core::{AgentName, Goal, SandboxSettings};
use towline_mask::Secrets;

use crate::copied::copied_secrets;
use crate::secrecy::known_secrets;

/// Reads the configuration that holds for a goal.
pub trait Resolver: Send + Sync {
    /// The configuration as it is now.
    fn resolve(&self, goal: &Goal) -> Result<Resolved, Unresolved>;
}

/// The resolved configuration of a goal's project. It holds credentials, so it is never printed.
#[derive(Clone, Default)]
pub struct Resolved {
    /// The agents that the goal names.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// The environment that agents and checks are given their part of.
    pub environment: BTreeMap<String, String>,
    /// The program that gives agents Towline's own tools, as an MCP server on its standard input and output.
    pub tools: Vec<String>,
    /// What agents, setup and checks are confined by.
    pub sandbox: Arc<SandboxSettings>,
}

/// A configuration that cannot be used.
pub struct Unresolved {
    /// What is wrong, where, and what to do.
    pub reason: String,
    /// What is known all the same: enough to hide secrets, and to run checks without an agent.
    pub known: Resolved,
}

/// What was read of a goal's project at one moment.
#[derive(Clone)]
pub(crate) struct ProjectRead {
    pub(crate) resolved: Arc<Resolved>,
    /// Why nothing can be started with it.
    pub(crate) problem: Option<String>,
    /// The secrets in the files that the goal copies.
    pub(crate) copied: Secrets,
}

impl ProjectRead {
    pub(crate) fn of(resolver: &dyn Resolver, goal: &Goal) -> Self {
        let (resolved, problem) = match resolver.resolve(goal) {
            Ok(resolved) => (resolved, None),
            Err(Unresolved { reason, known }) => (known, Some(reason)),
        };
        Self { resolved: Arc::new(resolved), problem, copied: copied_secrets(goal).secrets }
    }
}

impl Resolved {
    /// The values that must not be shown.
    pub(crate) fn secrets(&self) -> Secrets {
        known_secrets(&self.environment, self.agents.values())
    }

    /// What the setup and the checks of this goal get of the environment.
    pub(crate) fn check_environment(&self, goal: &Goal) -> Environment {
        let is_key = |name: &str| self.agents.values().any(|agent| agent.key_variable() == Some(name));
        Environment::new(&self.environment, &goal.workspace.pass_env, |name| {
            is_agents_variable(name) || is_key(name)
        })
    }

    /// The models that it sets for the goal's agents.
    pub(crate) fn models(&self, goal: &Goal) -> BTreeMap<AgentName, String> {
        let model = |agent: &AgentName| Some((agent.clone(), self.agents.get(agent)?.model.clone()?));
        goal.agents.iter().filter_map(model).collect()
    }
}
