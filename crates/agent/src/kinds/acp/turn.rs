//! Turns: from a prompt to its answer. The process outlives a turn. It ends when its input is closed: when a turn is
//! over and no message of the operator waits.

use towline_core::{AgentEvent, MessageNo, TurnStop};

use super::classify::{Failed, Outcome};
use super::preset::Preset;
use super::protocol::AcpProtocol;
use super::wire::{self, Prompted};
use crate::jsonrpc::RpcError;
use crate::protocol::Action;

/// The current turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The operator's message that the model does not yet visibly work on.
    unheard: Option<MessageNo>,
    /// Whether the agent wrote or did something.
    is_busy: bool,
    /// Whether the agent was asked to end it.
    pub(super) is_interrupted: bool,
}

impl AcpProtocol {
    /// Begins a turn, which answers the prompt or this message of the operator.
    pub(super) fn begin_turn(&mut self, message: Option<MessageNo>) {
        self.turn = Turn { unheard: message, ..Turn::default() };
        self.evidence.in_turn = true;
    }

    /// The agent works, so the last message has reached it.
    pub(super) fn work_is_seen(&mut self) -> Vec<Action> {
        self.turn.is_busy = true;
        self.heard()
    }

    fn heard(&mut self) -> Vec<Action> {
        let Some(message) = self.turn.unheard.take() else { return Vec::new() };
        vec![Action::emit(AgentEvent::TurnStarted), Action::emit(AgentEvent::Heard { message })]
    }

    /// A prompt was answered.
    pub(super) fn on_prompted(&mut self, answer: Result<Prompted<'_>, RpcError>) -> Vec<Action> {
        let mut actions = match &answer {
            Ok(_) => self.heard(),
            // It may never have reached the model.
            Err(_) => {
                self.turn.unheard.take().map(|_| Action::emit(AgentEvent::TurnStarted)).into_iter().collect()
            }
        };
        self.speech.over(&mut actions);
        let text = self.speech.take_last();
        let outcome = match answer {
            Ok(answer) => {
                let used = self.usage.prompted(&answer, self.model.as_deref());
                actions.extend(used.into_iter().map(Action::emit));
                self.stopped(&answer, text)
            }
            Err(error) => Outcome::Failed(Failed::Prompt { error, text }),
        };
        actions.extend(self.withdraw_requests());
        let stop = outcome.stop();
        let continues = stop == TurnStop::Done;
        actions.push(Action::turn_ended(stop, outcome.words(), self.usage.reported));
        self.calls.clear();
        self.evidence.in_turn = false;
        self.evidence.outcome = Some(outcome);
        let next = if continues { self.send_next_message() } else { None };
        actions.extend(next.or_else(|| self.lines.close()));
        actions
    }

    fn stopped(&self, answer: &Prompted<'_>, text: String) -> Outcome {
        let Some(reason) = wire::owned(answer.stop_reason.clone()) else { return Outcome::Nameless { text } };
        if reason != "end_turn" {
            return Outcome::Stopped { reason, text };
        }
        // When the conversation is read again, a turn that the agent was asked to end is the last.
        let was_interrupted = self.was_interrupted && self.operator_messages.waiting.is_empty();
        // Some agents report a normal end when they are interrupted while they wait to ask the model again.
        if self.turn.is_interrupted || was_interrupted {
            return Outcome::Stopped { reason: "cancelled".to_owned(), text };
        }
        // It reports the same when the model's answer broke off, was blocked, or never came.
        let has_no_tokens = |quota: &wire::Quota<'_>| quota.token_count == wire::TokenCount::default();
        let broke_off =
            self.preset == Preset::Gemini && answer.meta.quota.as_ref().is_some_and(has_no_tokens);
        if broke_off || !self.turn.is_busy {
            return Outcome::Empty { text };
        }
        Outcome::Stopped { reason, text }
    }
}
