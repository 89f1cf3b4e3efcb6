//! The configuration of goals, for the engine: each goal has that of its own project.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use towline_core::{AgentName, Goal, GoalId};
use towline_engine::{Resolved, Resolver, Unresolved};

use crate::agents::agents_in;
use crate::context::Context;

/// Reads the configuration of a goal's project.
pub(crate) struct Projects {
    context: Context,
    /// Where the configuration of goals is read that were drafted by this process; the others have it in their repository.
    drafted_in: Option<PathBuf>,
    /// The configuration of goals in place. Their agents can write to the project's files, so what was read first counts
    /// for them as long as this process lives.
    in_place: Mutex<BTreeMap<GoalId, Resolved>>,
}

impl Projects {
    pub(crate) fn new(context: Context, drafted_in: Option<PathBuf>) -> Self {
        Self { context, drafted_in, in_place: Mutex::default() }
    }

    fn read(&self, goal: &Goal) -> Result<Resolved, Unresolved> {
        let context = &self.context.current();
        let mut environment = context.environment.clone();
        // A server's own is not that of the user's shell.
        let search_path = goal.scheduling.search_path.iter();
        environment.extend(search_path.map(|path| ("PATH".to_owned(), path.clone())));
        let resolved = |agents, sandbox| Resolved {
            agents,
            sandbox: Arc::new(sandbox),
            environment: environment.clone(),
            tools: vec![context.program.display().to_string(), "mcp".to_owned()],
        };
        let directory = self.drafted_in.as_deref().unwrap_or_else(|| Path::new(&goal.workspace.repository));
        let found = agents_in(context, directory, goal);
        found.map(|found| resolved(found.agents, found.sandbox)).map_err(|error| {
            let reason = error.why_held();
            let understood = context.inspection(directory, &context.layer_files(directory)).config;
            let agents = understood.agents.into_iter();
            let agents = agents.map(|(name, settings)| (AgentName::new(name), settings)).collect();
            Unresolved { reason, known: resolved(agents, understood.sandbox) }
        })
    }
}

impl Resolver for Projects {
    fn resolve(&self, goal: &Goal) -> Result<Resolved, Unresolved> {
        if !goal.workspace.mode.is_in_place() {
            return self.read(goal);
        }
        let in_place = || self.in_place.lock().unwrap_or_else(PoisonError::into_inner);
        let known = in_place().get(&goal.id).cloned();
        match known {
            Some(resolved) => Ok(resolved),
            None => {
                // Not under the lock: a project that does not answer must not hold up another.
                let read = self.read(goal)?;
                Ok(in_place().entry(goal.id).or_insert(read).clone())
            }
        }
    }
}
