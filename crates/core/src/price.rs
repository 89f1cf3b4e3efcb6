//! What tokens cost: prices of models, and how a model finds its price.
//!
//! Neighbours: the table of prices is `price_table`; agents report which tokens of which model were used; the
//! configuration may name prices of its own (`[prices]`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::price_table::{Row, TABLE};
use crate::{MicroUsd, Tokens, Usage};

/// What a million tokens of a model cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: MicroUsd,
    pub output: MicroUsd,
    /// Read from a cache; none if that costs as much as reading anew.
    pub cache_read: Option<MicroUsd>,
    /// Written to a cache; none if that costs as much as reading anew.
    pub cache_write: Option<MicroUsd>,
    /// Written to a cache that keeps it for an hour; none if that costs as much as any other write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<MicroUsd>,
}

impl Price {
    /// What these tokens cost. A part of a micro-dollar counts as a whole one, so that the sum is never too small.
    pub fn of(&self, used: &Usage) -> MicroUsd {
        let cache_write = self.cache_write.unwrap_or(self.input);
        let for_an_hour = used.cache_write_1h.0.min(used.cache_write.0);
        let parts = [
            (used.input.0, self.input),
            (used.output.0, self.output),
            (used.cache_read.0, self.cache_read.unwrap_or(self.input)),
            (used.cache_write.0 - for_an_hour, cache_write),
            (for_an_hour, self.cache_write_1h.unwrap_or(cache_write)),
        ];
        let cost = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(price.0));
        let cost = cost.sum::<u128>().div_ceil(1_000_000);
        MicroUsd(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}

/// The price of a model and of all models whose names begin with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPrice {
    /// The name, without provider and date.
    pub model: String,
    /// None when the price is unknown, and is not the one of a shorter name.
    pub price: Option<Price>,
    /// What a request costs whose context is larger than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<(Tokens, Price)>,
}

/// Prices of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceList {
    /// Those that the user names. They count first, however short their names are.
    own: Vec<ListedPrice>,
    /// Those of the table.
    table: Vec<ListedPrice>,
}

impl PriceList {
    /// The table of this version, below the user's own prices.
    pub fn with(own: &BTreeMap<String, Price>) -> Self {
        let own = own.iter().map(|(model, price)| ListedPrice {
            model: bare_name(model),
            price: Some(*price),
            above: None,
        });
        let table = TABLE.iter().map(|&Row { model, price, above, .. }| ListedPrice {
            model: model.to_owned(),
            price,
            above,
        });
        Self { own: own.collect(), table: table.collect() }
    }

    /// Whether the price of this model is known.
    pub fn knows(&self, model: &str) -> bool {
        self.find(model).is_some_and(|listed| listed.price.is_some())
    }

    /// What these tokens of a model cost, of a request with this context; none if nobody knows.
    pub fn cost(&self, model: &str, used: &Usage, context: Option<Tokens>) -> Option<MicroUsd> {
        let listed = self.find(model)?;
        let price = match (listed.above, context) {
            (Some((limit, above)), Some(context)) if context > limit => above,
            _ => listed.price?,
        };
        Some(price.of(used))
    }

    fn find(&self, model: &str) -> Option<&ListedPrice> {
        let name = bare_name(model);
        longest(&self.own, &name).or_else(|| longest(&self.table, &name))
    }
}

/// The longest listed name that matches this one.
fn longest<'a>(prices: &'a [ListedPrice], name: &str) -> Option<&'a ListedPrice> {
    prices.iter().filter(|listed| matches_name(&listed.model, name)).max_by_key(|listed| listed.model.len())
}

/// Whether a name is this one, or continues it with anything but the rest of a version number: `claude-opus-4-9` is no
/// `claude-opus-4`.
fn matches_name(listed: &str, name: &str) -> bool {
    let is_digit = |character: Option<char>| character.is_some_and(|character| character.is_ascii_digit());
    let Some(rest) = name.strip_prefix(listed) else { return false };
    let mut rest = rest.chars();
    match rest.next() {
        None => true,
        Some('-') => !(is_digit(listed.chars().last()) && is_digit(rest.next())),
        Some(next) => matches!(next, ':' | '@' | '['),
    }
}

/// A model's name without its provider (`anthropic/`, `us.anthropic.`) and without a date and what follows it
/// (`-20250929-v1:0`, `@20250929`, `-2025-08-07`).
fn bare_name(model: &str) -> String {
    const VENDORS: [&str; 3] = ["anthropic.", "openai.", "google."];
    let name = model.trim().to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = VENDORS.iter().find_map(|vendor| name.split_once(vendor)).map_or(name, |(_, name)| name);
    let date = name.match_indices(['-', '@']).find(|(at, _)| begins_with_date(&name.as_bytes()[at + 1..]));
    let name = &name[..date.map_or(name.len(), |(at, _)| at)];
    // Some name a version of Claude with a dot.
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

/// `20250929` or `2025-09-29`, of this century.
fn begins_with_date(text: &[u8]) -> bool {
    let digits = |from: usize, to: usize| {
        text.get(from..to).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
            && !text.get(to).is_some_and(u8::is_ascii_digit)
    };
    let with_dashes = digits(0, 4) && digits(5, 7) && digits(8, 10) && text[4] == b'-' && text[7] == b'-';
    text.starts_with(b"20") && (digits(0, 8) || with_dashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: u64 = 1_000_000;

    fn list() -> PriceList {
        PriceList::with(&BTreeMap::new())
    }

    /// The name in the table that a model has its price from.
    fn found(model: &str) -> Option<String> {
        list().find(model).map(|listed| listed.model.clone())
    }

    #[test]
    fn a_model_has_the_price_of_the_longest_name_without_provider_and_date() {
        for (model, wanted) in [
            ("claude-opus-4-8", "claude-opus-4-8"),
            ("claude-opus-4-8[1m]", "claude-opus-4-8"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
            ("openrouter/anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
            ("anthropic/claude-opus-4-20250514", "claude-opus-4"),
            ("openrouter/openai/gpt-5-mini", "gpt-5-mini"),
            ("gpt-5-2025-08-07", "gpt-5"),
            ("gpt-5-codex-high", "gpt-5-codex"),
            ("GPT-5.4-Mini", "gpt-5.4-mini"),
            ("models/gemini-2.5-pro-preview-03-25", "gemini-2.5-pro"),
        ] {
            assert_eq!(found(model).unwrap_or_default(), wanted, "{model}");
        }
    }

    #[test]
    fn another_version_and_an_unlisted_variant_have_no_price() {
        for model in ["claude-opus-4-9", "gpt-5.7", "gpt-50", "gpt-5.5-pro", "qwen3", "", "claude"] {
            assert!(!list().knows(model), "{model}");
            assert_eq!(list().cost(model, &Usage::default(), None), None, "{model}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_own_price() {
        let million = |usage: Usage| list().cost("claude-opus-4-8", &usage, None).expect("a price").0;
        let tokens = Tokens(1_000_000);
        let none = Usage::default();
        assert_eq!(million(Usage { input: tokens, ..none }), 5 * DOLLAR);
        assert_eq!(million(Usage { output: tokens, ..none }), 25 * DOLLAR);
        assert_eq!(million(Usage { cache_read: tokens, ..none }), DOLLAR / 2);
        assert_eq!(million(Usage { cache_write: tokens, ..none }), 6_250_000);
        assert_eq!(million(Usage { cache_write: tokens, cache_write_1h: tokens, ..none }), 10 * DOLLAR);
        let half = Tokens(500_000);
        assert_eq!(million(Usage { cache_write: tokens, cache_write_1h: half, ..none }), 8_125_000);
        assert_eq!(million(Usage { input: Tokens(1), ..none }), 5);
        assert_eq!(million(Usage { cache_read: Tokens(1), ..none }), 1, "never too small");
    }

    #[test]
    fn a_large_context_costs_what_the_tier_above_it_costs() {
        let used = Usage { input: Tokens(1_000_000), ..Usage::default() };
        let cost = |context| list().cost("gemini-2.5-pro", &used, context).expect("a price").0;
        assert_eq!(cost(None), 1_250_000);
        assert_eq!(cost(Some(Tokens(200_000))), 1_250_000);
        assert_eq!(cost(Some(Tokens(200_001))), 2_500_000);
    }

    #[test]
    fn the_users_own_prices_count_first() {
        let price = Price { input: MicroUsd(7), output: MicroUsd(9), ..Price::default() };
        let own = BTreeMap::from([("claude-opus".to_owned(), price), ("openrouter/Mine".to_owned(), price)]);
        let list = PriceList::with(&own);
        let used = Usage { input: Tokens(1_000_000), cache_write: Tokens(1_000_000), ..Usage::default() };
        for model in ["mine", "mine-20250101", "other/mine:free"] {
            assert_eq!(list.cost(model, &used, None), Some(MicroUsd(14)), "{model}");
        }
        assert_eq!(list.cost("claude-opus-4-8", &used, None), Some(MicroUsd(14)));
        assert_eq!(list.cost("claude-sonnet-5", &used, None), Some(MicroUsd(4_500_000)));
    }

    #[test]
    fn the_table_names_each_model_once_with_its_source() {
        let mut models: Vec<_> = TABLE.iter().map(|row| row.model).collect();
        models.sort_unstable();
        models.dedup();
        assert_eq!(models.len(), TABLE.len());
        for row in TABLE {
            assert!(row.source.starts_with("https://"), "{}", row.model);
            assert_eq!(bare_name(row.model), row.model);
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let written = serde_json::to_string(&list()).expect("JSON");
        assert_eq!(serde_json::from_str::<PriceList>(&written).expect("a list"), list());
    }
}
