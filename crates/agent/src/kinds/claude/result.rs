//! `result`: the end of a turn.

use serde::Deserialize;
use serde_json::value::RawValue;
use towline_core::{AgentEvent, MicroUsd, TurnEnd, TurnStop};

use super::classify::TurnResult;
use super::protocol::ClaudeProtocol;
use super::usage::Totals;
use super::wire::{self, Denial, ModelUsage, ResultLine};
use crate::json::lenient;
use crate::lines::Reading;
use crate::protocol::Action;

impl ClaudeProtocol {
    pub(super) fn on_result(&mut self, line: ResultLine<'_>) -> Reading {
        let cost = line.total_cost_usd.or(line.cost_usd).and_then(MicroUsd::from_dollars);
        let totals = Totals {
            models: &part::<ModelUsage>(line.model_usage),
            cost,
            since_last: line.model_usage_since_last_result.map(|since| part::<ModelUsage>(Some(since))),
        };
        let corrected = self.usage.correct(&totals, self.model.as_deref());
        let has_cost = matches!(&corrected, Some(AgentEvent::Usage { used, .. }) if used.cost != MicroUsd(0));
        let mut actions: Vec<Action> = corrected.map(Action::emit).into_iter().collect();
        for denial in part::<Vec<Denial<'_>>>(line.permission_denials) {
            actions.extend(self.on_denial(denial.tool_name.as_str(), denial.tool_use_id.as_str()));
        }
        let result = TurnResult {
            subtype: line.subtype.into(),
            is_error: line.is_error,
            api_error_status: line.api_error_status,
            text: wire::owned(line.result).unwrap_or_default(),
            stop_reason: wire::owned(line.stop_reason),
            terminal_reason: wire::owned(line.terminal_reason),
            errors: part(line.errors),
        };
        // The CLI's own figure has replaced all estimates.
        if has_cost && (!result.is_clean() || !self.background.is_empty()) {
            let unfinished = self.usage.unfinished().into_iter();
            actions.extend(unfinished.map(|(parent, event)| Action::Emit { event, parent }));
        }
        if self.compaction.is_some() && result.is_clean() {
            actions.extend(self.on_compaction_over(&result.text));
            return Ok(actions);
        }
        self.compaction = None;
        actions.extend(self.still_running());
        actions.push(Action::emit(AgentEvent::TurnEnded(TurnEnd {
            stop: self.stop(&result),
            text: result.words(),
            structured: line.structured_output.and_then(lenient),
            inner_turns: line.num_turns,
            reported_cost: cost,
        })));
        self.calls.clear();
        self.turn_is_reported = false;
        self.evidence.in_turn = false;
        // After a failed turn nothing can use an answer.
        actions.extend(if result.is_clean() {
            self.lines.close_in_time(self.pending.is_empty())
        } else {
            self.lines.close()
        });
        self.evidence.result = Some(result);
        Ok(actions)
    }

    fn stop(&self, result: &TurnResult) -> TurnStop {
        if result.is_clean() {
            return TurnStop::Done;
        }
        if result.is_interrupted() {
            return TurnStop::Interrupted;
        }
        let reason = result.name(self.evidence.assistant_error.as_deref()).to_owned();
        TurnStop::Failed { status: result.api_error_status, reason }
    }

    fn still_running(&self) -> Option<Action> {
        let tasks: Vec<_> = self.background.values().map(String::as_str).collect();
        (!tasks.is_empty()).then(|| {
            Action::notice(format!("still running in the background as the turn ends: {}", tasks.join(", ")))
        })
    }
}

/// A part of the frame whose shape must not cost the rest.
fn part<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(lenient).unwrap_or_default()
}
