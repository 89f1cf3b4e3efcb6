//! The summary that the conversation is to begin with: a turn of its own that counts as none.
//!
//! It comes before the prompt, which is sent when it is over, whether or not there is a summary then.

use towline_core::{AgentEvent, SessionId};

use super::protocol::ClaudeProtocol;
use super::wire::{self, SystemLine};
use crate::protocol::Action;

/// A summary under way.
#[derive(Debug)]
pub(super) struct Compaction {
    focus: String,
    happened: bool,
    /// Why it did not happen, as far as the CLI said.
    problem: Option<String>,
    /// Whether the session was told of before its `init`, which comes after the summary.
    pub(super) session_was_told: bool,
}

impl Compaction {
    pub(super) fn new(focus: &str) -> Self {
        Self { focus: focus.to_owned(), happened: false, problem: None, session_was_told: false }
    }
}

impl ClaudeProtocol {
    /// What is sent first: the command that asks for a summary, or the prompt.
    pub(super) fn send_opening(&mut self) -> Vec<Action> {
        match &self.compaction {
            Some(compaction) => {
                let command = format!("/compact {}", compaction.focus);
                self.say("compact", command.trim_end()).into_iter().collect()
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
        // A summary takes its time, and `init` comes after it: that the session is there must be known before.
        match line.session_id {
            Some(id) if is_compacting && self.session.is_none() => {
                compaction.session_was_told = true;
                self.on_session(SessionId::new(id.as_str()), None)
            }
            _ => Vec::new(),
        }
    }

    /// The conversation was summarised, at our wish or at the CLI's own.
    pub(super) fn on_compacted(&mut self) {
        if let Some(compaction) = &mut self.compaction {
            compaction.happened = true;
        }
    }

    /// The turn that was to bring the summary is over: now comes the prompt.
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
