//! Usage: the agent reports totals since the conversation began, in any process. Events have the increases.
//!
//! When a conversation is resumed, the agent first repeats the total at the end of its last turn. When the context
//! overflows, it forgets the total and counts from zero.

use std::collections::HashMap;

use towline_core::{AgentEvent, Reported, Tokens, Usage};

use super::protocol::CodexProtocol;
use super::wire::{Counts, TokenUsage, UsageNews};
use crate::protocol::Action;
use crate::usage::less;

#[derive(Debug, Default)]
pub(super) struct CodexUsageLedger {
    /// Whether our conversation was resumed.
    pub(super) has_past: bool,
    /// The last total of each conversation, by its id.
    counted: HashMap<String, Usage>,
    pub(super) context_used: Option<Tokens>,
    context_size: Option<Tokens>,
    /// The tokens in the context before the running summary.
    pub(super) before_compaction: Option<Tokens>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsageOwner {
    /// Used in the current turn of our conversation.
    OurTurn,
    /// Used in our conversation at another time.
    OurPast,
    Subagent,
}

impl CodexUsageLedger {
    fn count(
        &mut self,
        thread: &str,
        whose: UsageOwner,
        usage: &TokenUsage,
        model: Option<&str>,
    ) -> Option<AgentEvent> {
        let total = counted(&usage.total);
        let known = match (self.counted.get(thread), whose) {
            (Some(known), _) => *known,
            (None, UsageOwner::OurTurn) if self.has_past => less(total, counted(&usage.last)),
            (None, UsageOwner::OurPast) if self.has_past => total,
            (None, _) => Usage::default(),
        };
        let growth = less(total, known);
        match self.counted.get_mut(thread) {
            Some(counted) => *counted = total,
            None => drop(self.counted.insert(thread.to_owned(), total)),
        }
        let mut is_news = !growth.is_empty();
        let on_main = whose != UsageOwner::Subagent;
        if on_main {
            let used = tokens(in_context(usage));
            let size = usage.model_context_window.map(tokens).filter(|size| size.0 > 0);
            is_news |= self.context_used != Some(used) || (size.is_some() && self.context_size != size);
            self.context_used = Some(used);
            self.context_size = size.or(self.context_size);
        }
        is_news.then(|| AgentEvent::Usage {
            model: model.filter(|_| on_main).map(str::to_owned),
            used: growth,
            context_used: self.context_used.filter(|_| on_main),
            context_size: self.context_size.filter(|_| on_main),
        })
    }
}

impl CodexProtocol {
    pub(super) fn on_usage(&mut self, news: &UsageNews<'_>) -> Vec<Action> {
        let whose = if !self.is_ours(&news.thread_id) {
            UsageOwner::Subagent
        } else if self.turn.as_deref() == Some(news.turn_id.as_str()) {
            UsageOwner::OurTurn
        } else {
            UsageOwner::OurPast
        };
        let model = self.model.as_deref();
        let event = self.usage.count(&news.thread_id, whose, &news.token_usage, model);
        event.map(|event| self.within(&news.thread_id, event)).into_iter().collect()
    }
}

/// The tokens in the context: those of the last request. After an overflow, the context is full.
fn in_context(usage: &TokenUsage) -> i64 {
    let has_overflowed = counted(&usage.total).is_empty();
    if has_overflowed { usage.total.total_tokens } else { usage.last.total_tokens }
}

fn tokens(count: i64) -> Tokens {
    Tokens(u64::try_from(count).unwrap_or_default())
}

fn counted(counts: &Counts) -> Usage {
    let from_cache = counts.cached_input_tokens.max(0);
    let to_cache = counts.cache_write_input_tokens.max(0);
    Usage {
        input: tokens(counts.input_tokens.saturating_sub(from_cache).saturating_sub(to_cache)),
        output: tokens(counts.output_tokens),
        cache_read: tokens(from_cache),
        cache_write: tokens(to_cache),
        reported: Reported { tokens: true, cache: true, cost: false },
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(input: i64, cached: i64, output: i64) -> Counts {
        Counts {
            total_tokens: input + output,
            input_tokens: input,
            cached_input_tokens: cached,
            cache_write_input_tokens: 0,
            output_tokens: output,
        }
    }

    fn resumed() -> CodexUsageLedger {
        CodexUsageLedger { has_past: true, ..CodexUsageLedger::default() }
    }

    fn usage(total: Counts, last: Counts) -> TokenUsage {
        TokenUsage { total, last, model_context_window: Some(1000) }
    }

    /// Added input, cache and output, and the tokens in the context.
    fn added(event: Option<AgentEvent>) -> Option<(u64, u64, u64, Option<u64>)> {
        match event? {
            AgentEvent::Usage { used, context_used, .. } => {
                Some((used.input.0, used.cache_read.0, used.output.0, context_used.map(|used| used.0)))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn totals_become_increases_and_the_cache_is_not_counted_twice() {
        let mut ledger = CodexUsageLedger::default();
        let first = usage(counts(100, 20, 5), counts(100, 20, 5));
        assert_eq!(added(ledger.count("t", UsageOwner::OurTurn, &first, None)), Some((80, 20, 5, Some(105))));
        assert_eq!(added(ledger.count("t", UsageOwner::OurTurn, &first, None)), None);
        let second = usage(counts(300, 70, 15), counts(200, 50, 10));
        assert_eq!(
            added(ledger.count("t", UsageOwner::OurTurn, &second, None)),
            Some((150, 50, 10, Some(210)))
        );
    }

    #[test]
    fn the_usage_of_an_earlier_process_is_not_counted_again() {
        let mut ledger = resumed();
        let past = usage(counts(100, 0, 5), counts(60, 0, 5));
        assert_eq!(added(ledger.count("t", UsageOwner::OurPast, &past, None)), Some((0, 0, 0, Some(65))));
        let now = usage(counts(140, 0, 7), counts(40, 0, 2));
        assert_eq!(added(ledger.count("t", UsageOwner::OurTurn, &now, None)), Some((40, 0, 2, Some(42))));

        let mut without_repetition = resumed();
        assert_eq!(
            added(without_repetition.count("t", UsageOwner::OurTurn, &now, None)),
            Some((40, 0, 2, Some(42)))
        );
        let mut fresh_instead = CodexUsageLedger::default();
        assert_eq!(
            added(fresh_instead.count("t", UsageOwner::OurTurn, &now, None)),
            Some((140, 0, 7, Some(42)))
        );
    }

    #[test]
    fn after_an_overflow_counting_begins_again() {
        let mut ledger = CodexUsageLedger::default();
        let before = usage(counts(900, 0, 5), counts(900, 0, 5));
        ledger.count("t", UsageOwner::OurTurn, &before, None);
        let nothing = |total_tokens| Counts { total_tokens, ..counts(0, 0, 0) };
        let overflow = usage(nothing(1000), nothing(95));
        assert_eq!(
            added(ledger.count("t", UsageOwner::OurTurn, &overflow, None)),
            Some((0, 0, 0, Some(1000)))
        );
        let after = usage(counts(70, 0, 2), counts(70, 0, 2));
        assert_eq!(added(ledger.count("t", UsageOwner::OurTurn, &after, None)), Some((70, 0, 2, Some(72))));
    }

    #[test]
    fn subagents_are_counted_and_fill_no_context() {
        let mut ledger = resumed();
        let theirs = usage(counts(10, 0, 1), counts(10, 0, 1));
        assert_eq!(added(ledger.count("sub", UsageOwner::Subagent, &theirs, None)), Some((10, 0, 1, None)));
        assert_eq!(ledger.context_used, None);
    }

    #[test]
    fn implausible_counts_are_ignored() {
        let odd = Counts {
            total_tokens: -1,
            input_tokens: i64::MIN,
            cached_input_tokens: i64::MAX,
            ..counts(0, 0, -5)
        };
        assert_eq!(
            counted(&odd),
            Usage {
                cache_read: Tokens(u64::try_from(i64::MAX).expect("positive")),
                reported: Reported { tokens: true, ..Reported::default() },
                ..Usage::default()
            }
        );
    }
}
