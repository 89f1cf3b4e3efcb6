//! Whether what the goal needs is still where it was.

use tokio::time::Instant;
use towline_core::{Event, Incoming};

use super::Driver;
use crate::error::EngineError;
use crate::watch::{Certainty, REPLACED_WITHIN};

impl Driver {
    /// An attempt that has begun has a directory.
    pub(super) fn expect_attempt_of(&mut self, incoming: &[Incoming]) {
        let has_begun =
            |news: &&Incoming| matches!(news.event, Event::AttemptStarted { .. } | Event::Agent { .. });
        let mut attempts = incoming.iter().filter(has_begun).filter_map(|news| news.stamp.attempt);
        if let Some(attempt) = attempts.next_back() {
            let directory = self.shared.home.attempt(self.goal.id, attempt);
            let goal = directory.parent().unwrap_or(&directory);
            if self.attempts.is_none() {
                self.attempts = self.shared.watch.observe(goal);
            }
            if self.watch.expect(directory) {
                // It may have been removed before it was observed.
                self.look_at = Some(Instant::now());
            }
        }
    }

    /// Fails when what is recorded could not be found any more, or what is about to begin has lost its place. A directory of
    /// the user's is theirs to remove.
    pub(super) fn look(&mut self, certainty: Certainty) -> Result<(), EngineError> {
        self.shared.watch.check()?;
        let home = &self.shared.home;
        let attempt = self.state.phase.living_attempt();
        let attempt = attempt.map(|attempt| home.attempt(self.goal.id, attempt));
        let workspace = (!self.goal.workspace.mode.is_in_place()).then(|| home.workspace(self.goal.place()));
        match self.watch.gone(attempt.into_iter().chain(workspace), certainty) {
            Some(path) => Err(EngineError::GoalFilesGone { goal: self.goal.id, path }),
            None => Ok(()),
        }
    }

    /// Something was removed somewhere, or was missing a moment ago.
    pub(super) fn look_again(&mut self) -> Result<(), EngineError> {
        self.look(Certainty::Twice)?;
        self.look_at = self.watch.is_in_doubt().then(|| Instant::now() + REPLACED_WITHIN);
        Ok(())
    }
}
