//! Usage. Tokens come with the answer to a prompt. The cost is the total of the whole session, of which only the
//! increase is new.

use towline_core::{AgentEvent, MicroUsd, Reported, Tokens, Usage};

use super::wire::{self, AnswerUsage, Prompted, TurnUsage, UsageMeta};

/// The usage of one conversation.
#[derive(Debug, Default)]
pub(super) struct AcpUsageLedger {
    /// The part of the session's cost that is already counted; may be unknown for a resumed session.
    pub(super) counted: Option<MicroUsd>,
    /// The cost of the whole session.
    pub(super) reported: Option<MicroUsd>,
    pub(super) context_used: Option<Tokens>,
    context_size: Option<Tokens>,
    /// Whether tokens are reported while they are used: then the sum at the end is not counted again.
    reports_live: bool,
}

impl AcpUsageLedger {
    /// Reads the session's totals. Unless the first total is known, only the second shows an increase.
    pub(super) fn updated(&mut self, update: &wire::Update<'_>) -> Option<AgentEvent> {
        // An unnamed currency is dollars.
        let is_usd = |currency: &wire::Text<'_>| currency.eq_ignore_ascii_case("USD");
        let dollars = update.cost.as_ref().filter(|cost| cost.currency.as_ref().is_none_or(is_usd));
        let total = dollars.and_then(|cost| MicroUsd::from_dollars(cost.amount?));
        let growth = match (total, self.counted) {
            (Some(total), Some(counted)) => total.saturating_sub(counted),
            _ => MicroUsd(0),
        };
        self.counted = total.map(|total| self.counted.unwrap_or_default().max(total)).or(self.counted);
        self.reported = total.or(self.reported);
        let context_used = update.used.filter(|used| *used > 0).map(Tokens).or(self.context_used);
        let context_size = update.size.filter(|size| *size > 0).map(Tokens).or(self.context_size);
        let news = (context_used, context_size) != (self.context_used, self.context_size);
        (self.context_used, self.context_size) = (context_used, context_size);
        let meta: Option<UsageMeta<'_>> = update.meta.and_then(wire::read);
        let tokens = meta.and_then(|meta| meta.towline);
        self.reports_live |= tokens.is_some();
        let used = tokens.as_ref().map(AnswerUsage::tokens).unwrap_or_default();
        let reported = Reported { cost: total.is_some(), ..used.reported };
        let used = Usage { cost: growth, reported, ..used };
        let model = wire::owned(tokens.and_then(|tokens| tokens.model));
        (news || !used.is_empty()).then_some(AgentEvent::Usage { model, used, context_used, context_size })
    }

    /// The usage in the answer to a prompt.
    pub(super) fn prompted(&self, answer: &Prompted<'_>, model: Option<&str>) -> Vec<AgentEvent> {
        if let Some(quota) = &answer.meta.quota {
            let event = |model: Option<&str>, count: wire::TokenCount| {
                let (input, output) = (Tokens(count.input_tokens), Tokens(count.output_tokens));
                self.event(model.map(str::to_owned), Usage { input, output, ..Usage::default() })
            };
            let models = quota.model_usage.iter();
            let by_model: Vec<_> =
                models.filter_map(|used| event(used.model.as_deref(), used.token_count)).collect();
            return if by_model.is_empty() {
                event(model, quota.token_count).into_iter().collect()
            } else {
                by_model
            };
        }
        let used = answer.usage.filter(|_| !self.reports_live).map(turn_usage);
        used.and_then(|used| self.event(model.map(str::to_owned), used)).into_iter().collect()
    }

    fn event(&self, model: Option<String>, used: Usage) -> Option<AgentEvent> {
        let (context_used, context_size) = (self.context_used, self.context_size);
        (!used.is_empty()).then_some(AgentEvent::Usage { model, used, context_used, context_size })
    }
}

impl AnswerUsage<'_> {
    fn tokens(&self) -> Usage {
        Usage {
            input: Tokens(self.input),
            output: Tokens(self.output),
            cache_read: Tokens(self.cache_read),
            cache_write: Tokens(self.cache_write),
            reported: Reported { tokens: true, cache: true, cost: false },
            ..Usage::default()
        }
    }
}

/// Some agents count reasoning within the output, others apart from it: their total shows which.
fn turn_usage(usage: TurnUsage) -> Usage {
    let TurnUsage {
        input_tokens,
        output_tokens,
        thought_tokens,
        cached_read_tokens,
        cached_write_tokens,
        ..
    } = usage;
    let knows_cache = cached_read_tokens.or(cached_write_tokens).is_some();
    let (read, written) = (cached_read_tokens.unwrap_or_default(), cached_write_tokens.unwrap_or_default());
    let apart = [input_tokens, output_tokens, thought_tokens, read, written]
        .into_iter()
        .fold(0_u64, u64::saturating_add);
    let is_apart = usage.total_tokens.is_none_or(|total| total >= apart);
    let thought = if is_apart { thought_tokens } else { 0 };
    Usage {
        input: Tokens(input_tokens),
        output: Tokens(output_tokens.saturating_add(thought)),
        cache_read: Tokens(read),
        cache_write: Tokens(written),
        reported: Reported { cache: knows_cache, ..Reported::default() },
        ..Usage::default()
    }
}
