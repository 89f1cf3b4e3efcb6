//! The beginning of a conversation: `initialize`, the conversation itself, a summary if requested, the prompt.
//!
//! A summary is a separate turn that counts as none. The prompt is sent when that turn is over, whether or not there
//! is a summary.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use towline_core::{AgentEvent, End, SessionId, SessionStarted, Tokens};

use super::classify::{TurnResult, failed, is_in_use};
use super::protocol::CodexProtocol;
use super::wire::{self, lenient};
use crate::jsonrpc::{RpcError, notification};
use crate::protocol::Action;

/// The stage of the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CodexStage {
    /// There is no conversation yet.
    #[default]
    Opening,
    /// The summary before the prompt is running.
    Compacting,
    /// The prompt was sent.
    Prompted,
}

/// What a request of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodexPurpose {
    Initialize,
    Thread,
    /// A copy of the requested conversation.
    Fork,
    Compact,
    Prompt,
    /// An operator's request. Other frames show whether it took effect.
    Steer,
}

/// A requested summary.
#[derive(Debug, Default)]
pub(super) struct CodexCompaction {
    happened: bool,
}

impl CodexProtocol {
    pub(super) fn send_hello(&mut self) -> Option<Action> {
        let client = json!({"name": "towline", "title": "Towline", "version": env!("CARGO_PKG_VERSION")});
        self.ask_of_agent("initialize", CodexPurpose::Initialize, "initialize", json!({"clientInfo": client}))
    }

    pub(super) fn on_answer_to(
        &mut self,
        purpose: CodexPurpose,
        result: Result<&RawValue, RpcError>,
    ) -> Vec<Action> {
        match (purpose, result) {
            (CodexPurpose::Initialize, Ok(_)) => self.send_opening(),
            (CodexPurpose::Thread | CodexPurpose::Fork, Ok(answer)) => self.on_thread_answer(answer, purpose),
            (CodexPurpose::Thread, Err(error)) if self.asked.is_some() && is_in_use(&error) => {
                self.send_fork(error)
            }
            (CodexPurpose::Compact, Err(error)) => self.not_compacted(error.message),
            (CodexPurpose::Prompt, Ok(answer)) => {
                if let Some(wire::TurnAnswer { turn }) = lenient(answer) {
                    self.turn.get_or_insert(turn.id);
                }
                Vec::new()
            }
            (CodexPurpose::Compact, Ok(_)) | (CodexPurpose::Steer, _) => Vec::new(),
            (
                CodexPurpose::Initialize | CodexPurpose::Thread | CodexPurpose::Fork | CodexPurpose::Prompt,
                Err(error),
            ) => self.on_refused_request(purpose, error),
        }
    }

    /// A refusal that leaves no conversation, or no turn in it.
    fn on_refused_request(&mut self, purpose: CodexPurpose, error: RpcError) -> Vec<Action> {
        let what = match purpose {
            CodexPurpose::Initialize => "to begin",
            CodexPurpose::Thread | CodexPurpose::Fork => "the conversation",
            CodexPurpose::Compact | CodexPurpose::Prompt | CodexPurpose::Steer => "the prompt",
        };
        self.evidence.refused_request = Some((what, error.message));
        self.lines.close().into_iter().collect()
    }

    fn send_opening(&mut self) -> Vec<Action> {
        let hello = self.lines.write(notification("initialized", Value::Null));
        let (method, params) = self.opening.clone();
        let thread = self.ask_of_agent("thread", CodexPurpose::Thread, method, params);
        hello.into_iter().chain(thread).collect()
    }

    /// Another process has the conversation open, so only a copy of it can be resumed. The refusal counts until there
    /// is one.
    fn send_fork(&mut self, error: RpcError) -> Vec<Action> {
        self.evidence.refused_request = Some(("the conversation", error.message));
        let params = self.opening.1.clone();
        self.ask_of_agent("fork", CodexPurpose::Fork, "thread/fork", params).into_iter().collect()
    }

    fn on_thread_answer(&mut self, answer: &RawValue, purpose: CodexPurpose) -> Vec<Action> {
        if let Some(answer) = lenient(answer) {
            return self.on_thread(answer, purpose == CodexPurpose::Fork);
        }
        let error = RpcError { message: "its answer was not understood".to_owned(), ..RpcError::default() };
        let counted = self.lines.unknown(format!("answer to {}", self.opening.0), answer.get());
        let closed = self.on_refused_request(CodexPurpose::Thread, error);
        counted.into_iter().chain(closed).collect()
    }

    fn on_thread(&mut self, answer: wire::ThreadAnswer, is_copy: bool) -> Vec<Action> {
        let id = SessionId::new(&answer.thread.id);
        let resumed = self.asked.as_ref() == Some(&id) || is_copy;
        self.evidence.refused_request = None;
        self.thread = Some(answer.thread.id);
        self.model = answer.model;
        self.usage.has_past = resumed;
        self.evidence.session_started = true;
        let mut actions = vec![Action::emit(AgentEvent::SessionStarted(SessionStarted {
            native_id: id.clone(),
            resumed,
            model: self.model.clone(),
            agent_version: answer.thread.cli_version,
        }))];
        let notice = match &self.asked {
            Some(asked) if is_copy => Some(Action::notice(format!(
                "another process has session {asked} open: the agent continues in a copy of it, session {id}"
            ))),
            Some(asked) if !resumed => Some(Action::not_resumed(asked, &id)),
            _ => None,
        };
        actions.extend(notice);
        for text in std::mem::take(&mut self.unused) {
            actions.extend(self.notice(text));
        }
        actions.extend(self.send_first(resumed));
        actions
    }

    /// Sends the request for a summary, or the prompt.
    fn send_first(&mut self, resumed: bool) -> Vec<Action> {
        match &self.compaction {
            None => self.send_prompt(),
            Some(_) if !resumed => {
                self.not_compacted("the conversation is new, there is nothing to summarise".to_owned())
            }
            Some(_) => {
                self.stage = CodexStage::Compacting;
                let params = json!({"threadId": self.thread});
                let request =
                    self.ask_of_agent("compact", CodexPurpose::Compact, "thread/compact/start", params);
                request.into_iter().collect()
            }
        }
    }

    pub(super) fn send_prompt(&mut self) -> Vec<Action> {
        self.stage = CodexStage::Prompted;
        self.turn = None;
        let params = json!({
            "threadId": self.thread,
            "clientUserMessageId": "prompt",
            "input": [text_input(&self.prompt)],
        });
        self.ask_of_agent("prompt", CodexPurpose::Prompt, "turn/start", params).into_iter().collect()
    }

    /// The conversation was summarised, by our request or by the agent itself.
    pub(super) fn on_compacted(&mut self, before: Option<Tokens>) -> Action {
        if let Some(compaction) = &mut self.compaction {
            compaction.happened = true;
        }
        Action::emit(AgentEvent::Compacted { before, after: self.usage.context_used })
    }

    /// The turn for the summary is over. The prompt follows, unless it would fail for the same reason.
    pub(super) fn on_compaction_over(&mut self, result: TurnResult) -> Vec<Action> {
        let happened = self.compaction.as_ref().is_some_and(|compaction| compaction.happened);
        if result.is_clean() && happened {
            self.compaction = None;
            return self.send_prompt();
        }
        if result.is_clean() {
            return self.not_compacted("the agent gave no reason".to_owned());
        }
        let end = failed(&self.evidence, &result);
        let is_fatal = result.is_interrupted() || !matches!(end, End::Crashed { .. } | End::Refused { .. });
        if is_fatal { self.end_turn(result) } else { self.not_compacted(result.words()) }
    }

    fn not_compacted(&mut self, reason: String) -> Vec<Action> {
        self.compaction = None;
        let reported = Action::emit(AgentEvent::NotCompacted { reason });
        [reported].into_iter().chain(self.send_prompt()).collect()
    }
}

/// A text for the model.
pub(super) fn text_input(text: &str) -> Value {
    json!({"type": "text", "text": text, "text_elements": []})
}
