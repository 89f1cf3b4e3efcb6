//! A turn: from a prompt to its answer. The model is asked, its calls are run, and it is asked again until it makes
//! no more calls.
//!
//! Everything is recorded before anything acts on it. A turn is cancelled by dropping its future: the calls that it
//! had begun are ended and closed in the conversation.

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use towline_provider::{Answer, ErrorClass, Item, Stop, Usage};

use super::AcpSettings;
use super::conversation::{Conversation, sum};
use super::outbox::Outbox;
use super::record::{Purpose, Record};
use super::rpc::Refusal;
use super::session::Session;
use super::trouble::{Trouble, overflow};
use super::updates;
use crate::tools::Status;

/// The results of calls that were running when something stopped them.
const CANCELLED: &str = "The user cancelled the turn while this call was running: it may or may not have been carried \
                         out. Look before you repeat it.";
const UNKNOWN_END: &str = "The result of this call could not be recorded: it may or may not have been carried out. Look before \
                           you repeat it.";
const CUT_SHORT: &str = "This call was not carried out: the answer that contained it was incomplete.";

const TOO_MANY: &str = "This call was not carried out: the turn has reached its limit of answers.";

/// Shown once per session when answers come without a token count.
const UNCOUNTED: &str = "the provider does not report how many tokens its answers take: they are not counted, and limits in tokens or \
                         dollars do not stop it";

/// A running turn.
pub(super) struct Turn<'a> {
    pub(super) session: &'a Session,
    pub(super) outbox: &'a Outbox,
    pub(super) settings: &'a AcpSettings,
    /// The tokens of its answers so far.
    totals: Usage,
    /// Whether a summary was made and has not yet been shown to help.
    pub(super) is_summed_up: bool,
}

/// Why a turn ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stopped {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

impl<'a> Turn<'a> {
    pub(super) fn new(session: &'a Session, outbox: &'a Outbox, settings: &'a AcpSettings) -> Self {
        Self { session, outbox, settings, totals: Usage::default(), is_summed_up: false }
    }

    /// Runs the turn until it ends or is cancelled, and returns the answer to the prompt.
    pub(super) async fn run(
        mut self,
        prompt: String,
        cancelled: oneshot::Receiver<()>,
    ) -> Result<Value, Refusal> {
        let stopped = tokio::select! {
            biased;
            Ok(()) = cancelled => None,
            stopped = self.work(prompt) => Some(stopped),
        };
        let stopped = match stopped {
            Some(stopped) => stopped?,
            None => {
                self.close_calls(CANCELLED)?;
                Stopped::Cancelled
            }
        };
        Ok(json!({"stopReason": stopped, "usage": updates::turn_usage(self.totals)}))
    }

    async fn work(&mut self, prompt: String) -> Result<Stopped, Trouble> {
        if let Some(focus) = compact_command(&prompt) {
            return self.compact_by_hand(focus).await;
        }
        // A turn that could not record its results has left them open.
        self.close_calls(UNKNOWN_END)?;
        self.session.record(Record::Item { item: Item::User { text: prompt } })?;
        for number in 1_u32.. {
            let answer = self.next_answer().await?;
            let calls = answer.message.calls.clone();
            self.session.record(Record::Item { item: Item::Model(answer.message) })?;
            match answer.stop {
                Stop::Done if calls.is_empty() => return Ok(Stopped::EndTurn),
                Stop::Done if self.settings.max_turns.is_some_and(|most| number >= most) => {
                    self.close_calls(TOO_MANY)?;
                    break;
                }
                Stop::Done => self.carry_out(calls).await?,
                Stop::MaxTokens | Stop::Refused => {
                    self.close_calls(CUT_SHORT)?;
                    let is_refused = answer.stop == Stop::Refused;
                    return Ok(if is_refused { Stopped::Refusal } else { Stopped::MaxTokens });
                }
            }
        }
        Ok(Stopped::MaxTurnRequests)
    }

    /// Asks the model for the next answer. A conversation that has become too long is summarised first.
    async fn next_answer(&mut self) -> Result<Answer, Trouble> {
        if self.is_crowded() {
            self.make_room("the conversation fills the context window").await?;
        }
        let answer = match self.ask_to_go_on().await {
            Err(error) if error.class == ErrorClass::Overflow => {
                self.make_room(&error.message).await?;
                self.ask_to_go_on().await?
            }
            answer => answer?,
        };
        let is_uncounted = || self.session.look(|conversation| conversation.is_uncounted);
        let was_uncounted = is_uncounted();
        self.spent(Purpose::Answer, answer.usage)?;
        if !was_uncounted && is_uncounted() {
            let params = json!({"sessionId": self.session.id, "message": UNCOUNTED});
            self.outbox.notify("_towline/problem", params);
        }
        self.is_summed_up = self.is_summed_up && self.is_crowded();
        self.send_usage(answer.usage);
        Ok(answer)
    }

    async fn make_room(&mut self, why: &str) -> Result<(), Trouble> {
        if !self.is_summed_up {
            let prompts = |item: &&Item| matches!(item, Item::User { .. });
            let last = self.session.look(|conversation| conversation.items.iter().rfind(prompts).cloned());
            self.sum_up(None, last).await?;
            self.is_summed_up = true;
            if !self.is_crowded() {
                return Ok(());
            }
        }
        Err(overflow(format!("{why}, and a summary of it did not help")))
    }

    /// Whether four fifths of the context window are used.
    fn is_crowded(&self) -> bool {
        let used = u128::from(self.session.look(Conversation::used));
        used * 5 > u128::from(self.settings.context_window) * 4
    }

    /// Counts the usage of an answer.
    pub(super) fn spent(&mut self, purpose: Purpose, usage: Usage) -> Result<(), Trouble> {
        self.totals = sum(self.totals, usage);
        let cost = self.settings.prices.map(|prices| prices.of(usage));
        let model = self.session.model_name();
        Ok(self.session.record(Record::Usage { purpose, model, usage, cost })?)
    }

    /// Reports how full the context is, what the session has cost, and what one answer used.
    pub(super) fn send_usage(&self, usage: Usage) {
        let (used, cost) = self.session.look(|conversation| (conversation.used(), conversation.cost));
        let update = updates::usage(used, self.settings.context_window, cost);
        let update = updates::with_answer(update, &self.session.model_name(), usage);
        self.outbox.update(&self.session.id, update);
    }

    fn close_calls(&self, why: &str) -> Result<(), Trouble> {
        for result in self.session.close_calls(why)? {
            let update = updates::tool_ended(&result.id, Status::Failed, &result.output, Vec::new());
            self.outbox.update(&self.session.id, update);
        }
        Ok(())
    }
}

/// The focus of the summary, when the prompt asks for one.
fn compact_command(prompt: &str) -> Option<Option<&str>> {
    let rest = prompt.trim().strip_prefix("/compact")?;
    let focus = rest.trim();
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| (!focus.is_empty()).then_some(focus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_itself_asks_for_a_summary() {
        for (prompt, wanted) in [
            ("/compact", Some(None)),
            (" /compact \n", Some(None)),
            ("/compact the tests", Some(Some("the tests"))),
            ("/compactor", None),
            ("do /compact", None),
            ("", None),
        ] {
            assert_eq!(compact_command(prompt), wanted, "{prompt:?}");
        }
    }
}
