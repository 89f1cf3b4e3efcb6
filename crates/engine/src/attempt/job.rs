//! What an attempt and a conversation with a judge have in common, and where the two differ.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use towline_agent::AgentSettings;
use towline_core::LaunchProblem;

use super::start::with_tools;
use super::{API_VARIABLE, AttemptJob, TOKEN_VARIABLE};
use crate::confinement::{give_back, give_back_of_judge};
use crate::engine::Shared;
use crate::home::Home;
use crate::news::StopLevel;
use crate::prepare::refresh;
use crate::question_file::{self, QUESTION_VARIABLE};
use crate::runs::GOAL_VARIABLE;

impl AttemptJob {
    /// The place of what it leaves.
    pub(super) fn dir(&self, home: &Home) -> PathBuf {
        match &self.judge {
            Some(judge) => judge.run_dir.clone(),
            None => home.attempt(self.goal.id, self.launch.attempt),
        }
    }

    /// Where the agent works.
    pub(crate) fn directory(&self) -> String {
        let workspace = self.workspace.as_ref().map(|workspace| workspace.path.clone());
        let judge = self.judge.as_ref().map(|judge| judge.directory.display().to_string());
        judge.or(workspace).unwrap_or_default()
    }

    /// The agent's settings; with Towline's own tools, except for a judge.
    pub(super) fn settings(&self) -> Result<AgentSettings, LaunchProblem> {
        if let Some(judge) = &self.judge {
            return Ok(judge.settings.clone());
        }
        let name = &self.launch.agent;
        let settings = self.resolved.agents.get(name).ok_or_else(|| LaunchProblem::Other {
            message: format!("agent `{name}` is no longer in the configuration; add `[agents.{name}]`"),
        })?;
        Ok(with_tools(settings, &self.resolved.tools))
    }

    /// Towline's own variables. A judge has no token, and does not know where the engine is.
    pub(super) fn variables(&self, shared: &Shared, dir: &Path) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::from([(GOAL_VARIABLE.to_owned(), self.goal.id.to_string())]);
        if self.judge.is_none() {
            let engines = format!("unix:{}", shared.home.engines().display());
            variables.extend([
                (QUESTION_VARIABLE.to_owned(), question_file::path(dir).display().to_string()),
                (API_VARIABLE.to_owned(), engines),
                (TOKEN_VARIABLE.to_owned(), shared.secret.token(self.launch.id)),
            ]);
        }
        variables
    }

    /// Gives the user what the agent has refreshed of what signs it in.
    pub(super) async fn give_back(&self, home: &Home) -> Result<(), String> {
        match self.judge {
            Some(_) => give_back_of_judge(home, &self.goal).await,
            None => give_back(home, &self.goal).await,
        }
    }

    /// Makes the workspace ready for another attempt. A judge has a checkout of its own.
    pub(super) async fn refresh(
        &self,
        shared: &Shared,
        stop: watch::Receiver<StopLevel>,
    ) -> Result<(), LaunchProblem> {
        match self.judge {
            Some(_) => Ok(()),
            None => refresh(&shared.home, &self.goal, stop).await,
        }
    }
}
