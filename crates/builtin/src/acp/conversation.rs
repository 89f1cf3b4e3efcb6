//! The conversation so far, derived from the records of a session. It is the same while records arrive and when they
//! are read again.

use towline_core::MicroUsd;
use towline_provider::{Call, CallResult, Item, Usage};

use super::record::{Mode, Purpose, Record};

/// A rough estimate: one token per four bytes of plain text. A message has some overhead, too.
const BYTES_PER_TOKEN: u64 = 4;
const FRAME_TOKENS: u64 = 4;

/// The state of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conversation {
    /// The messages that the model gets with the next question.
    pub(super) items: Vec<Item>,
    /// Results of the last answer's calls while others are still missing.
    results: Vec<CallResult>,
    /// Tokens at the last answer, plus an estimate of what was added since.
    used: u64,
    added: u64,
    /// Whether the last answer came without a token count, which some servers do not send.
    pub(super) is_uncounted: bool,
    /// The cost of the session; `None` while no price was ever known.
    pub(super) cost: Option<MicroUsd>,
    /// Whether calls that act need permission.
    pub(super) mode: Mode,
    /// The model that is asked.
    pub(super) model: String,
}

impl Conversation {
    /// Updates the conversation with a record.
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::Item { item } => {
                // An answer has been counted as output, unless the server counts nothing.
                if !matches!(item, Item::Model(_)) || self.is_uncounted {
                    self.added += estimate(&item);
                }
                self.items.push(item);
            }
            Record::Result { result } => {
                self.added += tokens(result.output.len());
                self.results.push(result);
                if self.open_calls().is_empty() {
                    let results = self.results_in_order();
                    self.items.push(Item::Results { results });
                }
            }
            Record::Usage { purpose, usage, cost, .. } => {
                self.cost = cost.map(|cost| self.cost.unwrap_or_default() + cost).or(self.cost);
                if purpose == Purpose::Answer {
                    self.is_uncounted = usage.context() == 0;
                    if !self.is_uncounted {
                        (self.used, self.added) = (usage.context(), 0);
                    }
                }
            }
            Record::Mode { mode } => self.mode = mode,
            Record::Model { model } => self.model = model,
            Record::Compacted { after, items, .. } => {
                (self.items, self.used, self.added) = (items, after, 0);
                self.results.clear();
            }
        }
    }

    /// The calls of the last answer that have no result yet.
    pub(super) fn open_calls(&self) -> Vec<Call> {
        let has_result = |call: &&Call| self.results.iter().any(|result| result.id == call.id);
        self.last_calls().iter().filter(|call| !has_result(call)).cloned().collect()
    }

    /// An estimate of the tokens in the context.
    pub(super) const fn used(&self) -> u64 {
        self.used.saturating_add(self.added)
    }

    fn last_calls(&self) -> &[Call] {
        match self.items.last() {
            Some(Item::Model(message)) => &message.calls,
            _ => &[],
        }
    }

    fn results_in_order(&mut self) -> Vec<CallResult> {
        let mut results = std::mem::take(&mut self.results);
        let place = |result: &CallResult| self.last_calls().iter().position(|call| call.id == result.id);
        results.sort_by_key(place);
        results
    }
}

/// A rough estimate of an item's tokens.
pub(super) fn estimate(item: &Item) -> u64 {
    match item {
        Item::User { text } => tokens(text.len()),
        Item::Model(message) => {
            let call = |call: &Call| tokens(call.name.len() + call.input.to_string().len());
            tokens(message.text.len()) + message.calls.iter().map(call).sum::<u64>()
        }
        Item::Results { results } => results.iter().map(|result| tokens(result.output.len())).sum(),
    }
}

/// A rough estimate of the tokens of a text of this length.
pub(super) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_TOKEN + FRAME_TOKENS
}

pub(super) const fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use towline_provider::ModelMessage;

    use super::*;

    fn user(text: &str) -> Record {
        Record::Item { item: Item::User { text: text.into() } }
    }

    fn calls(ids: &[&str]) -> Item {
        let call = |id: &&str| Call { id: (*id).into(), name: "read".into(), input: json!({}) };
        Item::Model(ModelMessage { text: "t".into(), calls: ids.iter().map(call).collect(), native: None })
    }

    fn result(id: &str) -> CallResult {
        CallResult { id: id.into(), name: "read".into(), output: "x".repeat(400), failed: false }
    }

    fn usage(purpose: Purpose, input: u64, cost: Option<u64>) -> Record {
        let usage = Usage { input, ..Usage::default() };
        Record::Usage { purpose, model: "m".into(), usage, cost: cost.map(MicroUsd) }
    }

    #[test]
    fn results_become_an_item_in_the_order_of_their_calls_once_all_have_arrived() {
        let mut conversation = Conversation::default();
        conversation.apply(user("go"));
        conversation.apply(Record::Item { item: calls(&["a", "b"]) });
        conversation.apply(Record::Result { result: result("b") });
        let open = conversation.open_calls();
        assert_eq!((open.len(), open[0].id.as_str(), conversation.items.len()), (1, "a", 2));
        conversation.apply(Record::Result { result: result("a") });
        assert_eq!(conversation.items[2], Item::Results { results: vec![result("a"), result("b")] });
        assert_eq!(conversation.open_calls(), []);
    }

    #[test]
    fn without_a_count_the_context_is_estimated() {
        let mut conversation = Conversation::default();
        conversation.apply(user(&"x".repeat(400)));
        conversation.apply(usage(Purpose::Answer, 0, None));
        assert_eq!(conversation.used(), 104);
        conversation.apply(Record::Item { item: calls(&["a"]) });
        let message = estimate(&calls(&["a"]));
        assert_eq!(conversation.used(), 104 + message);
        conversation.apply(Record::Result { result: result("a") });
        conversation.apply(usage(Purpose::Answer, 0, None));
        assert_eq!(conversation.used(), 208 + message);
        conversation.apply(usage(Purpose::Answer, 50, None));
        conversation.apply(Record::Item { item: calls(&["b"]) });
        assert_eq!(conversation.used(), 50);
    }

    #[test]
    fn the_context_is_the_last_answers_count_and_an_estimate_of_what_came_since() {
        let mut conversation = Conversation::default();
        conversation.apply(usage(Purpose::Answer, 1000, Some(5)));
        conversation.apply(Record::Item { item: calls(&["a"]) });
        assert_eq!(conversation.used(), 1000);
        conversation.apply(Record::Result { result: result("a") });
        assert_eq!(conversation.used(), 1104);
        conversation.apply(usage(Purpose::Summary, 9000, None));
        assert_eq!((conversation.used(), conversation.cost), (1104, Some(MicroUsd(5))));
        conversation.apply(usage(Purpose::Answer, 1200, Some(7)));
        assert_eq!((conversation.used(), conversation.cost), (1200, Some(MicroUsd(12))));
        let items = vec![Item::User { text: "summary".into() }];
        conversation.apply(Record::Compacted { before: 1200, after: 90, items: items.clone() });
        assert_eq!((conversation.used(), conversation.items), (90, items));
    }
}
