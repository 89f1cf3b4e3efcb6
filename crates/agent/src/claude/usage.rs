//! What was used: each message counted once as it comes, and squared with the CLI's own totals at each result.
//!
//! An `assistant` line repeats the usage that its message started with, once per content block; the final output
//! count is only in the stream; subagents show no stream at all. So every message is remembered with what was
//! counted of it, only growth is reported, and what is still missing at a result is reported then. The sum of all
//! events is what the CLI reports, and a killed turn is paid for as far as it went.

use std::collections::HashMap;

use towline_core::{AgentEvent, MicroUsd, Tokens, Usage};

use super::wire;

#[derive(Debug, Default)]
pub(super) struct UsageLedger {
    /// What has been counted of each message, by its id.
    messages: HashMap<String, Usage>,
    /// The message being written in each thread: the stream does not repeat its id. The main thread is "".
    current: HashMap<String, (String, Option<String>)>,
    /// The sum of all events so far.
    counted: Usage,
    context_used: Option<Tokens>,
    context_size: Option<Tokens>,
}

/// The thread of the main conversation.
const MAIN: &str = "";

impl UsageLedger {
    /// A message with an id was seen, whole or at its start.
    pub(super) fn saw(&mut self, parent: Option<&str>, message: &wire::Message<'_>) -> Option<AgentEvent> {
        let id = wire::text(&message.id);
        let used = message.usage?;
        let model = message.model.as_ref().map(|model| model.as_str().to_owned());
        self.current.insert(parent.unwrap_or(MAIN).to_owned(), (id.to_owned(), model.clone()));
        self.count(parent, id, model, used)
    }

    /// The message being written in a thread used more.
    pub(super) fn grew(&mut self, parent: Option<&str>, used: wire::Usage) -> Option<AgentEvent> {
        let (id, model) = self.current.get(parent.unwrap_or(MAIN))?.clone();
        self.count(parent, &id, model, used)
    }

    fn count(
        &mut self,
        parent: Option<&str>,
        id: &str,
        model: Option<String>,
        used: wire::Usage,
    ) -> Option<AgentEvent> {
        let known = self.messages.get(id).copied().unwrap_or_default();
        let now = largest(known, used);
        let growth = less(now, known);
        if growth.is_empty() {
            return None;
        }
        self.messages.insert(id.to_owned(), now);
        self.counted += growth;
        let on_main = parent.is_none();
        if on_main {
            self.context_used = Some(now.tokens());
        }
        Some(AgentEvent::Usage {
            model,
            used: growth,
            context_used: self.context_used.filter(|_| on_main),
            context_size: self.context_size.filter(|_| on_main),
        })
    }

    /// The conversation was summarised: what the messages before it took is no longer in the context.
    pub(super) fn compacted(&mut self, context_used: Option<Tokens>) {
        self.context_used = context_used;
    }

    /// Squares the count with the totals of the process, both cumulative. `main_model` is the one that the
    /// session runs on: its window is the size of the context.
    pub(super) fn square(
        &mut self,
        models: &wire::ModelUsage,
        cost: Option<MicroUsd>,
        main_model: Option<&str>,
    ) -> Option<AgentEvent> {
        let reported = models.values().fold(Usage::default(), |sum, model| sum + total(model));
        let reported = Usage { cost: cost.unwrap_or_default(), ..reported };
        let missing = less(reported, self.counted);
        self.counted += missing;
        let size = window(models, main_model);
        let news = size.is_some() && size != self.context_size;
        self.context_size = size.or(self.context_size);
        if missing.is_empty() && !news {
            return None;
        }
        Some(AgentEvent::Usage {
            model: only(models.keys()).cloned(),
            used: missing,
            context_used: self.context_used,
            context_size: self.context_size,
        })
    }
}

fn total(model: &wire::ModelUsed) -> Usage {
    let tokens = |count: Option<u64>| Tokens(count.unwrap_or_default());
    Usage {
        input: tokens(model.input_tokens),
        output: tokens(model.output_tokens),
        cache_read: tokens(model.cache_read_input_tokens),
        cache_write: tokens(model.cache_creation_input_tokens),
        cost: MicroUsd::default(),
    }
}

/// The counts of one message only grow; a field that is missing says nothing.
fn largest(known: Usage, used: wire::Usage) -> Usage {
    let grown = |known: Tokens, now: Option<u64>| known.max(Tokens(now.unwrap_or_default()));
    Usage {
        input: grown(known.input, used.input_tokens),
        output: grown(known.output, used.output_tokens),
        cache_read: grown(known.cache_read, used.cache_read_input_tokens),
        cache_write: grown(known.cache_write, used.cache_creation_input_tokens),
        cost: known.cost,
    }
}

fn less(whole: Usage, part: Usage) -> Usage {
    let less = |whole: Tokens, part: Tokens| Tokens(whole.0.saturating_sub(part.0));
    Usage {
        input: less(whole.input, part.input),
        output: less(whole.output, part.output),
        cache_read: less(whole.cache_read, part.cache_read),
        cache_write: less(whole.cache_write, part.cache_write),
        cost: whole.cost.saturating_sub(part.cost),
    }
}

fn window(models: &wire::ModelUsage, main_model: Option<&str>) -> Option<Tokens> {
    let main = main_model.and_then(|name| models.get(name)).or_else(|| only(models.values()));
    main.and_then(|model| model.context_window).filter(|window| *window > 0).map(Tokens)
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(id: &str, input: u64, output: u64) -> String {
        json!({"id": id, "model": "m", "usage": {"input_tokens": input, "output_tokens": output}}).to_string()
    }

    fn saw(ledger: &mut UsageLedger, parent: Option<&str>, message: &str) -> Option<(u64, u64, Option<u64>)> {
        shown(ledger.saw(parent, &serde_json::from_str(message).expect("a message")))
    }

    fn shown(event: Option<AgentEvent>) -> Option<(u64, u64, Option<u64>)> {
        match event? {
            AgentEvent::Usage { used, context_used, .. } => {
                Some((used.input.0, used.output.0, context_used.map(|tokens| tokens.0)))
            }
            other => panic!("{other:?}"),
        }
    }

    fn models(value: Value) -> wire::ModelUsage {
        serde_json::from_value(value).expect("usage by model")
    }

    #[test]
    fn a_message_is_counted_once_however_often_it_is_shown() {
        let mut ledger = UsageLedger::default();
        let first = message("a", 100, 1);
        assert_eq!(saw(&mut ledger, None, &first), Some((100, 1, Some(101))));
        assert_eq!(saw(&mut ledger, None, &first), None);
        let final_count = wire::Usage { output_tokens: Some(20), ..wire::Usage::default() };
        assert_eq!(shown(ledger.grew(None, final_count)), Some((0, 19, Some(120))));
        assert_eq!(saw(&mut ledger, None, &message("b", 300, 1)), Some((300, 1, Some(301))));
        assert_eq!(saw(&mut ledger, None, &first), None);
    }

    #[test]
    fn threads_do_not_mix_and_only_the_main_one_fills_the_context() {
        let mut ledger = UsageLedger::default();
        saw(&mut ledger, None, &message("a", 100, 1));
        assert_eq!(saw(&mut ledger, Some("t"), &message("b", 50, 1)), Some((50, 1, None)));
        let final_count = wire::Usage { output_tokens: Some(20), ..wire::Usage::default() };
        assert_eq!(shown(ledger.grew(None, final_count)), Some((0, 19, Some(120))));
        assert_eq!(shown(ledger.grew(Some("t"), final_count)), Some((0, 19, None)));
        assert_eq!(shown(ledger.grew(Some("unknown"), final_count)), None);
    }

    #[test]
    fn totals_are_squared_over_all_models_and_never_counted_down() {
        let mut ledger = UsageLedger::default();
        saw(&mut ledger, None, &message("a", 100, 1));
        let totals = models(json!({
            "big": {"inputTokens": 90, "outputTokens": 20, "contextWindow": 1_000_000},
            "small": {"inputTokens": 5, "outputTokens": 5, "contextWindow": 200_000},
        }));
        let wanted = AgentEvent::Usage {
            model: None,
            used: Usage { output: Tokens(24), cost: MicroUsd(7), ..Usage::default() },
            context_used: Some(Tokens(101)),
            context_size: Some(Tokens(1_000_000)),
        };
        assert_eq!(ledger.square(&totals, Some(MicroUsd(7)), Some("big")), Some(wanted));
        assert_eq!(ledger.square(&totals, Some(MicroUsd(7)), Some("big")), None);
        assert_eq!(ledger.square(&totals, Some(MicroUsd(3)), Some("big")), None);
    }
}
