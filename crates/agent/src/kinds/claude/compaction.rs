//! The summary before the prompt: a separate turn that counts as none.
//!
//! The prompt is sent when that turn is over, whether or not there is a summary.

use towline_core::{AgentEvent, SessionId};

use super::protocol::ClaudeProtocol;
use super::wire::{self, SystemLine};
use crate::protocol::Action;

/// A summary that was requested.
#[derive(Debug)]
pub(super) struct Compaction {
    focus: String,
    happened: bool,
    /// Why there is no summary, as far as the CLI reported.
    problem: Option<String>,
    /// Whether the session was reported before its `init`, which comes after the summary.
    pub(super) session_was_reported: bool,
}

impl Compaction {
    pub(super) fn new(focus: &str) -> Self {
        Self { focus: focus.to_owned(), happened: false, problem: None, session_was_reported: false }
    }
}

impl ClaudeProtocol {
    /// The first message: the command that requests a summary, or the prompt.
    pub(super) fn send_opening(&mut self) -> Vec<Action> {
        match &self.compaction {
            Some(compaction) => {
                let command = format!("/compact {}", compaction.focus);
                self.send_message("compact", command.trim_end()).into_iter().collect()
            }
            None => self.send_prompt(),
        }
    }

    pub(super) fn on_status(&mut self, line: SystemLine<'_>) -> Vec<Action> {
        let is_compacting = line.status.is_some_and(|status| status.get() == "\"compacting\"");
        let failed = wire::text(&line.compact_result) == "failed";
        let problem = failed.then(|| wire::owned(line.compact_error).unwrap_or_default());
        let Some(compaction) = &mut self.compaction else {
            return problem
                .map(|why| Action::notice(format!("compaction failed: {why}")))
                .into_iter()
                .collect();
        };
        compaction.problem = problem.or(compaction.problem.take());
        // A summary takes time, and `init` comes after it. The session must be known earlier.
        match line.session_id {
            Some(id) if is_compacting && self.session.is_none() => {
                compaction.session_was_reported = true;
                self.on_session(SessionId::new(id.as_str()), None)
            }
            _ => Vec::new(),
        }
    }

    /// The conversation was summarised, by our request or by the CLI itself.
    pub(super) fn on_compacted(&mut self) {
        if let Some(compaction) = &mut self.compaction {
            compaction.happened = true;
        }
    }

    /// The turn for the summary is over; the prompt follows.
    pub(super) fn on_compaction_over(&mut self, words: &str) -> Vec<Action> {
        let Some(compaction) = self.compaction.take() else { return Vec::new() };
        let mut actions = Vec::new();
        if !compaction.happened {
            let problem = compaction.problem.filter(|problem| !problem.is_empty());
            let reason = problem.unwrap_or_else(|| words.to_owned());
            actions.push(Action::emit(AgentEvent::NotCompacted { reason }));
        }
        actions.extend(self.send_prompt());
        actions
    }
}
