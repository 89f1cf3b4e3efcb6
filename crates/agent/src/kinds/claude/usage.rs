//! Usage: each message is counted once as it arrives, and corrected by the CLI's own totals at each result.
//!
//! An `assistant` line repeats the usage at the start of its message, once per content block. The final output count
//! is only in the stream, and subagents have no stream. So the counted usage of every message is stored, only
//! increases are reported, and what is missing at a result is reported then. The sum of all events is what the CLI
//! reports, and a killed turn is counted as far as it went. Until the result, what subagents write is estimated by
//! its length. The totals lack messages that are not finished: those of an interrupted turn, and of
//! subagents in the background. Their estimates stay.
//!
//! The totals of a result are those of the process in older versions, and those of the session in newer ones,
//! including all earlier processes. The newest versions also report the usage since the last result; for the others,
//! the numbers show which they are.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::value::RawValue;
use towline_core::{AgentEvent, MicroUsd, Reported, Tokens, Uncounted, Usage};

use super::wire;
use crate::usage::less;

#[derive(Debug, Default)]
pub(super) struct ClaudeUsageLedger {
    /// The messages by id.
    messages: HashMap<String, SeenMessage>,
    /// The last message of each thread, because the stream does not repeat its id. The main thread is "".
    current: HashMap<String, LastMessage>,
    /// The sum of all events so far.
    counted: Usage,
    /// The usage of the session before this process.
    pub(super) before: Usage,
    /// The usage of this process, by the results so far.
    reported: Usage,
    /// The part of the totals that this process did not use, once a result has shown it.
    base: Option<Usage>,
    pub(super) context_used: Option<Tokens>,
    context_size: Option<Tokens>,
}

#[derive(Debug, Clone, Copy, Default)]
struct SeenMessage {
    counted: Usage,
    /// What a subagent has written of it, by its length.
    written: Tokens,
}

#[derive(Debug)]
struct LastMessage {
    id: String,
    model: Option<String>,
    /// Its place among all messages.
    number: usize,
    /// Whether its end will be seen.
    is_streamed: bool,
    is_finished: bool,
    /// What the main conversation has written of it. Its length counts only if the end of the message is not seen.
    content: Vec<Box<RawValue>>,
}

/// The thread of the main conversation.
const MAIN: &str = "";

/// Low on purpose, so that estimates tend to be too high: not all that is paid for is shown.
const BYTES_PER_TOKEN: usize = 3;

impl ClaudeUsageLedger {
    /// Counts a message with an id, seen at its start or with a block of its content.
    pub(super) fn saw(&mut self, parent: Option<&str>, message: &wire::Message<'_>) -> Option<AgentEvent> {
        let id = wire::text(&message.id);
        let used = message.usage?;
        let model = message.model.as_ref().map(|model| model.as_str().to_owned());
        let thread = parent.unwrap_or(MAIN);
        if self.current.get(thread).is_none_or(|last| last.id != id) {
            let last = LastMessage {
                id: id.to_owned(),
                model: model.clone(),
                number: self.messages.len(),
                is_streamed: false,
                is_finished: false,
                content: Vec::new(),
            };
            self.current.insert(thread.to_owned(), last);
        }
        let written = match (parent, message.content) {
            (Some(_), Some(content)) => tokens_of(content),
            (None, Some(content)) => {
                self.on_main_content(content);
                Tokens(0)
            }
            (_, None) => Tokens(0),
        };
        self.count(parent, id, model, used, written)
    }

    fn on_main_content(&mut self, content: &RawValue) {
        if let Some(last) = self.current.get_mut(MAIN).filter(|last| !last.is_finished) {
            last.content.push(content.to_owned());
        }
    }

    /// Counts a message at the start of its stream.
    pub(super) fn began(&mut self, parent: Option<&str>, message: &wire::Message<'_>) -> Option<AgentEvent> {
        let event = self.saw(parent, message);
        if let Some(last) = self.current.get_mut(parent.unwrap_or(MAIN)) {
            last.is_streamed = true;
        }
        event
    }

    /// Counts an increase of the message that a thread is writing.
    pub(super) fn grew(&mut self, parent: Option<&str>, used: wire::Usage) -> Option<AgentEvent> {
        let last = self.current.get(parent.unwrap_or(MAIN))?;
        let (id, model) = (last.id.clone(), last.model.clone());
        self.count(parent, &id, model, used, Tokens(0))
    }

    /// The model has ended its message, or a subagent has returned its result.
    pub(super) fn finished(&mut self, parent: Option<&str>) {
        if let Some(last) = self.current.get_mut(parent.unwrap_or(MAIN)) {
            last.is_finished = true;
            last.content.clear();
        }
    }

    fn count(
        &mut self,
        parent: Option<&str>,
        id: &str,
        model: Option<String>,
        used: wire::Usage,
        written: Tokens,
    ) -> Option<AgentEvent> {
        let known = self.messages.get(id).copied();
        let counted = known.unwrap_or_default().counted;
        let now = largest(counted, used);
        let growth = less(now, counted);
        let on_main = parent.is_none();
        let used = Usage { written, ..growth };
        if known.is_none() || !used.is_empty() {
            let seen = self.messages.entry(id.to_owned()).or_default();
            seen.counted = now;
            seen.written = seen.written + written;
        }
        if used.is_empty() {
            return None;
        }
        self.counted += growth;
        if on_main {
            self.context_used = Some(now.tokens());
        }
        Some(AgentEvent::Usage {
            model,
            used,
            context_used: self.context_used.filter(|_| on_main),
            context_size: self.context_size.filter(|_| on_main),
        })
    }

    /// Corrects the count by a result. `main_model` is the session's model: its window is the size of the context.
    pub(super) fn correct(&mut self, totals: &Totals<'_>, main_model: Option<&str>) -> Option<AgentEvent> {
        self.reported = match &totals.since_last {
            Some(since) => self.reported + sum(since),
            None => {
                let used = sum(totals.models);
                let reported = Reported { cost: totals.cost.is_some(), ..used.reported };
                self.without_past(Usage { cost: totals.cost.unwrap_or_default(), reported, ..used })
            }
        };
        let models = totals.models;
        let missing = less(self.reported, self.counted);
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

    /// The estimates of messages that the totals lack, with their threads. Only the last message of a thread can be
    /// unfinished. The end of a message without a stream, as subagents have none, is not seen: the newest that the totals
    /// leave room for are taken for unfinished.
    pub(super) fn unfinished(&self) -> Vec<(Option<String>, AgentEvent)> {
        let mut lacking = less(self.counted, self.reported);
        let mut unfinished = Vec::new();
        let mut newest: Vec<_> = self.current.iter().filter(|(_, last)| !last.is_finished).collect();
        newest.sort_by_key(|(_, last)| Reverse((last.is_streamed, last.number)));
        for (thread, last) in newest {
            let SeenMessage { counted: used, written } =
                self.messages.get(&last.id).copied().unwrap_or_default();
            if !last.is_streamed && !holds_input(lacking, used) {
                continue;
            }
            lacking = less(lacking, used);
            let written = last.content.iter().fold(written, |sum, content| sum + tokens_of(content));
            let uncounted = Uncounted {
                input: used.input,
                output: used.output,
                cache_read: used.cache_read,
                cache_write: used.cache_write,
                cache_write_1h: used.cache_write_1h,
            };
            let event = AgentEvent::Usage {
                model: last.model.clone(),
                used: Usage { uncounted, written, ..Usage::default() },
                context_used: None,
                context_size: None,
            };
            unfinished.push(((thread != MAIN).then(|| thread.clone()), event));
        }
        unfinished
    }

    /// Totals without the usage of earlier processes. The first totals that are at least the sum of both are totals
    /// of the session.
    fn without_past(&mut self, totals: Usage) -> Usage {
        let has_past = self.before.tokens() != Tokens(0);
        let is_of_session =
            has_past && holds(totals, self.before + Usage { cost: MicroUsd(0), ..self.counted });
        let base = *self.base.get_or_insert(if is_of_session { self.before } else { Usage::default() });
        less(totals, base)
    }
}

/// The usage in a result.
pub(super) struct Totals<'a> {
    /// By model, of the process or of the session.
    pub(super) models: &'a wire::ModelUsage,
    /// The same for the cost.
    pub(super) cost: Option<MicroUsd>,
    /// The usage of this process since its last result.
    pub(super) since_last: Option<wire::ModelUsage>,
}

/// What the content of a message amounts to, by its length.
fn tokens_of(content: &RawValue) -> Tokens {
    let bytes = match wire::Content::read(Some(content)) {
        Some(wire::Content::Text(text)) => text.as_str().len(),
        Some(wire::Content::Blocks(blocks)) => blocks.into_iter().map(length).sum(),
        None => 0,
    };
    Tokens(u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX))
}

fn length(block: &RawValue) -> usize {
    let Ok(block) = serde_json::from_str::<wire::Block<'_>>(block.get()) else { return 0 };
    let input = block.input.map_or(0, |input| input.get().len());
    // Of a thought, only a summary or nothing may be shown.
    let encrypted = wire::text(&block.signature).len() + wire::text(&block.data).len();
    let thought = wire::text(&block.thinking).len().max(encrypted * 3 / 4);
    wire::text(&block.text).len() + thought + input
}

fn sum(models: &wire::ModelUsage) -> Usage {
    models.values().fold(Usage::default(), |sum, model| sum + total(model))
}

/// Whether the input of a message, which is known from its start, is a part of `whole`. Half of it is enough: the CLI's
/// own requests, which it does not show, are in its totals and make the rest smaller.
fn holds_input(whole: Usage, message: Usage) -> bool {
    let input = |usage: Usage| (usage.input + usage.cache_read + usage.cache_write).0;
    input(message) != 0 && input(whole) >= input(message).div_ceil(2)
}

/// Whether `part` fits into `whole`.
fn holds(whole: Usage, part: Usage) -> bool {
    let tokens = |usage: Usage| [usage.input, usage.output, usage.cache_read, usage.cache_write];
    tokens(whole).iter().zip(tokens(part)).all(|(whole, part)| *whole >= part) && whole.cost >= part.cost
}

fn total(model: &wire::ModelUsed) -> Usage {
    let tokens = |count: Option<u64>| Tokens(count.unwrap_or_default());
    Usage {
        cost: model.cost_usd.and_then(MicroUsd::from_dollars).unwrap_or_default(),
        input: tokens(model.input_tokens),
        output: tokens(model.output_tokens),
        cache_read: tokens(model.cache_read_input_tokens),
        cache_write: tokens(model.cache_creation_input_tokens),
        reported: Reported {
            tokens: model.input_tokens.is_some(),
            cache: model.cache_read_input_tokens.is_some(),
            cost: model.cost_usd.is_some(),
        },
        ..Usage::default()
    }
}

/// The counts of one message only grow. A missing field changes nothing.
fn largest(known: Usage, used: wire::Usage) -> Usage {
    let grown = |known: Tokens, now: Option<u64>| known.max(Tokens(now.unwrap_or_default()));
    let for_an_hour = used.cache_creation.and_then(|creation| creation.ephemeral_1h_input_tokens);
    Usage {
        input: grown(known.input, used.input_tokens),
        output: grown(known.output, used.output_tokens),
        cache_read: grown(known.cache_read, used.cache_read_input_tokens),
        cache_write: grown(known.cache_write, used.cache_creation_input_tokens),
        cache_write_1h: grown(known.cache_write_1h, for_an_hour),
        reported: Reported {
            cache: known.reported.cache || used.cache_read_input_tokens.is_some(),
            ..known.reported
        },
        ..known
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

    fn saw(
        ledger: &mut ClaudeUsageLedger,
        parent: Option<&str>,
        message: &str,
    ) -> Option<(u64, u64, Option<u64>)> {
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
        let mut ledger = ClaudeUsageLedger::default();
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
        let mut ledger = ClaudeUsageLedger::default();
        saw(&mut ledger, None, &message("a", 100, 1));
        assert_eq!(saw(&mut ledger, Some("t"), &message("b", 50, 1)), Some((50, 1, None)));
        let final_count = wire::Usage { output_tokens: Some(20), ..wire::Usage::default() };
        assert_eq!(shown(ledger.grew(None, final_count)), Some((0, 19, Some(120))));
        assert_eq!(shown(ledger.grew(Some("t"), final_count)), Some((0, 19, None)));
        assert_eq!(shown(ledger.grew(Some("unknown"), final_count)), None);
    }

    #[test]
    fn a_subagent_without_a_stream_is_estimated_by_what_it_writes_and_counted_by_the_result() {
        let mut ledger = ClaudeUsageLedger::default();
        let uncounted = |ledger: &mut ClaudeUsageLedger, parent: Option<&str>, id: &str, content: Value| {
            let usage = json!({"input_tokens": 10, "output_tokens": 1});
            let message = json!({"id": id, "model": "m", "usage": usage, "content": content}).to_string();
            match ledger.saw(parent, &serde_json::from_str(&message).expect("a message")) {
                Some(AgentEvent::Usage { used, .. }) => Some((used.input.0, used.output.0, used.written.0)),
                other => other.map(|other| panic!("{other:?}")),
            }
        };
        let text = json!([{"type": "text", "text": "x".repeat(300)}]);
        let call =
            json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "y".repeat(284)}}]);
        assert_eq!(uncounted(&mut ledger, Some("t"), "a", text.clone()), Some((10, 1, 100)));
        assert_eq!(uncounted(&mut ledger, Some("t"), "a", call), Some((0, 0, 100)));
        assert_eq!(uncounted(&mut ledger, Some("t"), "a", json!("z".repeat(3))), Some((0, 0, 1)));
        let thought = |thinking: &str, signature: usize| json!([{"type": "thinking", "thinking": thinking, "signature": "s".repeat(signature)}]);
        assert_eq!(uncounted(&mut ledger, Some("t"), "a", thought("", 4_000)), Some((0, 0, 1_000)), "hidden");
        let long = thought(&"t".repeat(3_000), 400);
        assert_eq!(uncounted(&mut ledger, Some("t"), "a", long), Some((0, 0, 1_000)), "shown");
        let redacted = json!([{"type": "redacted_thinking", "data": "d".repeat(400)}]);
        assert_eq!(uncounted(&mut ledger, Some("t"), "a", redacted), Some((0, 0, 100)), "redacted");
        assert_eq!(uncounted(&mut ledger, None, "b", text), Some((10, 1, 0)));
        let totals = models(json!({"m": {"inputTokens": 20, "outputTokens": 250}}));
        let totals = Totals { models: &totals, cost: Some(MicroUsd(7)), since_last: None };
        assert_eq!(shown(ledger.correct(&totals, Some("m"))), Some((0, 248, Some(11))));
    }

    #[test]
    fn a_subagent_that_was_cut_off_is_found_beside_a_request_that_was_not_shown() {
        let mut ledger = ClaudeUsageLedger::default();
        saw(&mut ledger, Some("done"), &message("a", 900, 1));
        saw(&mut ledger, Some("cut off"), &message("b", 1_000, 1));
        let mut unfinished = |input: u64| {
            let totals = models(json!({"m": {"inputTokens": input}}));
            ledger.correct(&Totals { models: &totals, cost: None, since_last: None }, None);
            ledger.unfinished().into_iter().map(|(thread, _)| thread.expect("a subagent")).collect::<Vec<_>>()
        };
        assert_eq!(unfinished(950), ["cut off"], "50 tokens were used unseen");
        assert!(unfinished(1_950).is_empty(), "all is reported");
    }

    #[test]
    fn totals_correct_all_models_and_never_reduce_the_count() {
        let mut ledger = ClaudeUsageLedger::default();
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
        let totals = |cost| Totals { models: &totals, cost: Some(MicroUsd(cost)), since_last: None };
        assert_eq!(ledger.correct(&totals(7), Some("big")), Some(wanted));
        assert_eq!(ledger.correct(&totals(7), Some("big")), None);
        assert_eq!(ledger.correct(&totals(3), Some("big")), None);
    }

    /// Five processes of one session, each with one message, and the counted usage.
    fn five_attempts(totals: impl Fn(u64) -> (Value, Option<Value>)) -> Usage {
        let mut all = Usage::default();
        for attempt in 1..=5 {
            let mut ledger = ClaudeUsageLedger { before: all, ..ClaudeUsageLedger::default() };
            let (of_all, since_last) = totals(attempt);
            let of_all = models(of_all);
            let started = message(&format!("m{attempt}"), 211, 1);
            let started = ledger.saw(None, &serde_json::from_str(&started).expect("a message"));
            let totals = Totals {
                cost: MicroUsd::from_dollars(of_all["m"].cost_usd.expect("a cost")),
                models: &of_all,
                since_last: since_last.map(models),
            };
            for event in [started, ledger.correct(&totals, Some("m"))].into_iter().flatten() {
                let AgentEvent::Usage { used, .. } = event else { panic!("{event:?}") };
                all += used;
            }
        }
        all
    }

    #[test]
    fn totals_of_the_process_or_of_the_session_are_counted_once() {
        let used = |messages: u64| json!({"m": {"inputTokens": 211 * messages, "outputTokens": 20 * messages, "costUSD": 0.00196 * messages as f64}});
        let wanted =
            Usage { input: Tokens(1_055), output: Tokens(100), cost: MicroUsd(9_800), ..Usage::default() };
        assert_eq!(five_attempts(|_| (used(1), None)), wanted, "of the process");
        assert_eq!(five_attempts(|attempt| (used(attempt), None)), wanted, "of the session");
        assert_eq!(
            five_attempts(|attempt| (used(attempt), Some(used(1)))),
            wanted,
            "with the growth beside them"
        );
    }

    #[test]
    fn later_results_of_a_process_have_the_same_past_as_its_first() {
        let before = Usage { input: Tokens(10), ..Usage::default() };
        let mut ledger = ClaudeUsageLedger { before, ..ClaudeUsageLedger::default() };
        let mut counted = |id: &str, total: u64| {
            let seen = saw(&mut ledger, None, &message(id, 5, 0)).map_or(0, |(input, ..)| input);
            let totals = models(json!({"m": {"inputTokens": total}}));
            let totals = Totals { models: &totals, cost: None, since_last: None };
            seen + shown(ledger.correct(&totals, None)).map_or(0, |(input, ..)| input)
        };
        assert_eq!([counted("a", 15), counted("b", 20), counted("c", 27)], [5, 5, 7]);
    }
}
