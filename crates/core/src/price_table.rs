//! What models cost, as their providers list it. The whole table is in this file: prices change, so each part names
//! where its numbers are from, and [`AS_OF`] names the day on which they were looked up.
//!
//! Numbers are thousandths of a dollar for a million tokens, at the standard rate: no batches, no priority. A model that is
//! known to cost something else than the shorter name before it, and whose price was not found, is listed without one.

use crate::{MicroUsd, Price, Tokens};

/// The day on which the prices were looked up.
pub const AS_OF: &str = "2026-11-16";

/// A model, or all models whose names begin so, and what they cost.
pub(crate) struct Row {
    /// The name, without provider and date.
    pub(crate) model: &'static str,
    /// None when only this is known: it is not the price of a shorter name.
    pub(crate) price: Option<Price>,
    /// What a request costs whose prompt is longer than this.
    pub(crate) above: Option<(Tokens, Price)>,
    /// Where the numbers are from.
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever updates the table"))]
    pub(crate) source: &'static str,
}

/// In thousandths of a dollar for a million tokens. `cache_write` is for five minutes.
const fn rates(input: u64, output: u64, cache_read: u64, cache_write: u64, cache_write_1h: u64) -> Price {
    Price {
        input: MicroUsd(input * 1_000),
        output: MicroUsd(output * 1_000),
        cache_read: Some(MicroUsd(cache_read * 1_000)),
        cache_write: Some(MicroUsd(cache_write * 1_000)),
        cache_write_1h: Some(MicroUsd(cache_write_1h * 1_000)),
    }
}

/// For providers that charge nothing beyond the input for what they write to a cache.
const fn free_writes(input: u64, output: u64, cache_read: u64) -> Price {
    rates(input, output, cache_read, input, input)
}

const fn row(source: &'static str, model: &'static str, price: Price) -> Row {
    Row { model, price: Some(price), above: None, source }
}

const fn tiered(source: &'static str, model: &'static str, price: Price, tokens: u64, above: Price) -> Row {
    Row { model, price: Some(price), above: Some((Tokens(tokens), above)), source }
}

const fn unlisted(source: &'static str, model: &'static str) -> Row {
    Row { model, price: None, above: None, source }
}

/// The price page of Anthropic.
const ANTHROPIC: &str = "https://platform.claude.com/docs/en/about-claude/pricing";
/// The pages of single models of Anthropic.
const OPUS_5_5: &str = "https://platform.claude.com/docs/en/models/opus-5-5/overview";
const SONNET_5_5: &str = "https://platform.claude.com/docs/en/models/sonnet-5-5/overview";
const SONNET_5: &str = "https://platform.claude.com/docs/en/models/sonnet-5/overview";
/// Writing to the cache costs 1.25 times the input, and twice the input for an hour, by the same pages.
const HAIKU_5_5: &str = "https://platform.claude.com/docs/en/models/haiku-5-5/overview";
/// The page of this model of OpenAI's, which lists GPT-5 beside it.
const GPT_5: &str = "https://developers.openai.com/api/docs/models/gpt-5-codex";
/// GitHub's list of what providers charge for a token of the models in Copilot.
const GITHUB: &str = "https://github.com/github/docs/blob/main/data/tables/copilot/models-and-pricing.yml";
/// The price page of Google.
const GOOGLE: &str = "https://ai.google.dev/gemini-api/docs/pricing";

/// The price of Opus from 4.5 to 5.
const OPUS: Price = rates(5_000, 25_000, 500, 6_250, 10_000);
/// The price of Opus before.
const EARLY_OPUS: Price = rates(15_000, 75_000, 1_500, 18_750, 30_000);
/// The price of Sonnet up to 4.6.
const EARLY_SONNET: Price = rates(3_000, 15_000, 300, 3_750, 6_000);
/// The price of Sonnet from 5.
const SONNET: Price = rates(2_000, 10_000, 200, 2_500, 4_000);
const FABLE_5: Price = rates(10_000, 50_000, 1_000, 12_500, 20_000);
const FABLE_5_1: Price = rates(10_000, 50_000, 250, 12_500, 20_000);

/// All prices. The order has no meaning: the longest name counts.
pub(crate) const TABLE: &[Row] = &[
    row(ANTHROPIC, "claude-fable-5-1", FABLE_5_1),
    row(ANTHROPIC, "claude-mythos-5-1", FABLE_5_1),
    row(ANTHROPIC, "claude-fable-5", FABLE_5),
    row(ANTHROPIC, "claude-mythos-5", FABLE_5),
    row(OPUS_5_5, "claude-opus-5-5", rates(4_000, 20_000, 200, 5_000, 8_000)),
    row(ANTHROPIC, "claude-opus-5", OPUS),
    row(ANTHROPIC, "claude-opus-4-8", OPUS),
    row(ANTHROPIC, "claude-opus-4-7", OPUS),
    row(ANTHROPIC, "claude-opus-4-6", OPUS),
    row(ANTHROPIC, "claude-opus-4-5", OPUS),
    row(ANTHROPIC, "claude-opus-4-1", EARLY_OPUS),
    row(ANTHROPIC, "claude-opus-4-0", EARLY_OPUS),
    row(ANTHROPIC, "claude-opus-4", EARLY_OPUS),
    row(ANTHROPIC, "claude-3-opus", EARLY_OPUS),
    row(SONNET_5_5, "claude-sonnet-5-5", SONNET),
    row(SONNET_5, "claude-sonnet-5", SONNET),
    row(ANTHROPIC, "claude-sonnet-4-6", EARLY_SONNET),
    row(ANTHROPIC, "claude-sonnet-4-5", EARLY_SONNET),
    row(ANTHROPIC, "claude-sonnet-4-0", EARLY_SONNET),
    row(ANTHROPIC, "claude-sonnet-4", EARLY_SONNET),
    row(ANTHROPIC, "claude-3-7-sonnet", EARLY_SONNET),
    tiered(
        HAIKU_5_5,
        "claude-haiku-5-5",
        rates(100, 500, 10, 125, 200),
        100_000,
        rates(500, 2_500, 50, 625, 1_000),
    ),
    row(ANTHROPIC, "claude-haiku-4-5", rates(1_000, 5_000, 100, 1_250, 2_000)),
    row(ANTHROPIC, "claude-3-5-haiku", rates(800, 4_000, 80, 1_000, 1_600)),
    row(ANTHROPIC, "claude-3-haiku", rates(250, 1_250, 30, 300, 500)),
    row(GPT_5, "gpt-5", free_writes(1_250, 10_000, 125)),
    row(GPT_5, "gpt-5-codex", free_writes(1_250, 10_000, 125)),
    row(GITHUB, "gpt-5-mini", free_writes(250, 2_000, 25)),
    unlisted(GPT_5, "gpt-5-nano"),
    unlisted(GPT_5, "gpt-5-pro"),
    row(GITHUB, "gpt-5.3-codex", free_writes(1_750, 14_000, 175)),
    tiered(GITHUB, "gpt-5.4", free_writes(2_500, 15_000, 250), 272_000, free_writes(5_000, 22_500, 500)),
    row(GITHUB, "gpt-5.4-mini", free_writes(750, 4_500, 75)),
    row(GITHUB, "gpt-5.4-nano", free_writes(200, 1_250, 20)),
    unlisted(GITHUB, "gpt-5.4-pro"),
    tiered(GITHUB, "gpt-5.5", free_writes(5_000, 30_000, 500), 272_000, free_writes(10_000, 45_000, 1_000)),
    unlisted(GITHUB, "gpt-5.5-pro"),
    tiered(GITHUB, "gpt-5.6-luna", rates(200, 1_200, 20, 250, 250), 200_000, rates(400, 1_800, 40, 500, 500)),
    tiered(
        GITHUB,
        "gpt-5.6-terra",
        rates(2_000, 12_000, 200, 2_500, 2_500),
        272_000,
        rates(4_000, 18_000, 400, 5_000, 5_000),
    ),
    tiered(
        GITHUB,
        "gpt-5.6-sol",
        rates(5_000, 30_000, 500, 6_250, 6_250),
        272_000,
        rates(10_000, 45_000, 1_000, 12_500, 12_500),
    ),
    tiered(
        GOOGLE,
        "gemini-2.5-pro",
        free_writes(1_250, 10_000, 125),
        200_000,
        free_writes(2_500, 15_000, 250),
    ),
    row(GOOGLE, "gemini-2.5-flash", free_writes(300, 2_500, 30)),
    unlisted(GOOGLE, "gemini-2.5-flash-lite"),
    tiered(
        GITHUB,
        "gemini-3.1-pro",
        free_writes(2_000, 12_000, 200),
        200_000,
        free_writes(4_000, 18_000, 400),
    ),
    row(GITHUB, "gemini-3.5-flash", free_writes(1_500, 9_000, 150)),
    row(GITHUB, "gemini-3.6-flash", free_writes(750, 3_750, 75)),
    row(GITHUB, "gemini-3.7-flash", free_writes(750, 3_750, 75)),
];
