//! Turns: their beginning and end, and failures in between.

use towline_core::{AgentEvent, ToolStatus, ToolUse, TurnStop};

use super::classify::{ErrorName, TurnResult};
use super::opening::CodexStage;
use super::protocol::CodexProtocol;
use super::wire;
use crate::failures::Retries;
use crate::lines::{Reading, Unknown};
use crate::protocol::Action;
use crate::text;

impl CodexProtocol {
    pub(super) fn on_turn_started(&mut self, news: wire::TurnNews<'_>) -> Reading {
        if !self.is_ours(&news.thread_id) {
            self.subagents_at_work.insert(news.thread_id.into());
            return Ok(Vec::new());
        }
        // After the input is closed, a new turn is cut off.
        if !self.lines.listens() {
            return Ok(Vec::new());
        }
        self.turn = Some(news.turn.id);
        if self.stage != CodexStage::Prompted {
            return Ok(Vec::new());
        }
        self.lines.keep_open();
        self.evidence.in_turn = true;
        let is_reported = std::mem::replace(&mut self.turn_is_reported, true);
        let reported = (!is_reported).then(|| Action::emit(AgentEvent::TurnStarted));
        Ok(reported.into_iter().chain(self.send_held_messages()).collect())
    }

    pub(super) fn on_turn_completed(&mut self, news: wire::TurnNews<'_>) -> Reading {
        if !self.is_ours(&news.thread_id) {
            self.subagents_at_work.remove(news.thread_id.as_str());
            return Ok(self.close_if_due().into_iter().collect());
        }
        let is_other = self.turn.as_ref().is_some_and(|turn| *turn != news.turn.id);
        if is_other || !self.lines.listens() {
            return Ok(Vec::new());
        }
        let result = TurnResult { status: news.turn.status, error: news.turn.error };
        Ok(match self.stage {
            CodexStage::Opening => Vec::new(),
            CodexStage::Compacting => self.on_compaction_over(result),
            CodexStage::Prompted => self.end_turn(result),
        })
    }

    /// The end of a turn that cannot be read.
    pub(super) fn on_odd_end(&mut self, unknown: Unknown, params: &str) -> Reading {
        let reported = self.lines.unknown(unknown.0, params);
        Ok(reported.into_iter().chain(self.lines.close_in_time(self.is_idle())).collect())
    }

    /// The turn is over, and so is everything that only it could use.
    pub(super) fn end_turn(&mut self, result: TurnResult) -> Vec<Action> {
        let mut actions = self.cancel_calls();
        actions.extend(self.withdraw_requests());
        actions.extend(self.subagents_left());
        let words = if result.is_clean() { std::mem::take(&mut self.last_message) } else { result.words() };
        actions.push(Action::turn_ended(stop(&result), words, None));
        self.turn = None;
        self.turn_is_reported = false;
        self.evidence.in_turn = false;
        // After a failed turn nothing can use what still runs.
        actions.extend(if result.is_clean() {
            self.lines.close_in_time(self.is_idle())
        } else {
            self.lines.close()
        });
        self.evidence.result = Some(result);
        actions
    }

    /// What still runs does not outlive the turn: it ends with the process.
    fn cancel_calls(&mut self) -> Vec<Action> {
        let thread = self.thread.as_deref();
        let ours = self.calls.extract_if(.., |_, open| thread == Some(open.thread.as_str()));
        let cancelled =
            ours.map(|(_, open)| ToolUse { status: ToolStatus::Cancelled, input: None, ..open.tool });
        cancelled.map(|tool| Action::emit(AgentEvent::Tool(tool))).collect()
    }

    fn withdraw_requests(&mut self) -> Vec<Action> {
        let thread = self.thread.as_deref();
        let ours = self.pending.extract_if(.., |_, pending| thread == Some(pending.thread.as_str()));
        ours.map(|(request, _)| Action::emit(AgentEvent::Withdrawn { request })).collect()
    }

    fn subagents_left(&mut self) -> Vec<Action> {
        match self.subagents_at_work.len() {
            0 => Vec::new(),
            count => self.notice(format!("subagents still at work as the turn ends: {count}")),
        }
    }

    pub(super) fn on_error(&mut self, news: wire::ErrorNews<'_>) -> Reading {
        if !news.will_retry {
            // The end of the turn repeats it.
            return Ok(Vec::new());
        }
        let name = ErrorName::of(&news.error);
        let is_ours = self.is_ours(&news.thread_id);
        if is_ours {
            self.evidence.retries.add(name.status);
        }
        let attempt = if is_ours { self.evidence.retries.count } else { 0 };
        let words = news.error.additional_details.unwrap_or(news.error.message);
        let event = AgentEvent::Retrying {
            status: name.status,
            attempt,
            // The delay is not reported.
            delay_ms: 0,
            error: text::one_line(&words),
        };
        Ok(vec![self.within(&news.thread_id, event)])
    }

    /// The model answers: earlier failures are over.
    pub(super) fn request_worked(&mut self) {
        self.evidence.retries = Retries::default();
    }
}

fn stop(result: &TurnResult) -> TurnStop {
    if result.is_clean() {
        return TurnStop::Done;
    }
    if result.is_interrupted() {
        return TurnStop::Interrupted;
    }
    let name = result.name();
    TurnStop::Failed { status: name.status, reason: name.name }
}
