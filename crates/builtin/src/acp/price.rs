//! Prices of tokens. Money is counted in whole millionths of a dollar, rounded once per answer.

use std::str::FromStr;

use towline_core::MicroUsd;
use towline_provider::Usage;

/// Prices are stored in this fraction of a micro-dollar.
const SCALE: u64 = 1_000_000;
const DECIMALS: usize = 6;

/// The prices of a model, in dollars per million tokens, which is micro-dollars per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

/// Why prices cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPrices {
    /// A part is not of the form `kind=USD`.
    #[error("`{0}` is not a price; write input=USD,output=USD, in dollars per million tokens")]
    NoPrice(String),
    /// There is no such kind of tokens.
    #[error("unknown kind of token `{0}`; the kinds are input, output, cache_read and cache_write")]
    UnknownKind(String),
    /// A number cannot be read.
    #[error("`{0}` is not an amount in dollars; write it like 3 or 0.25, with at most {DECIMALS} decimals")]
    NoNumber(String),
    /// A required kind is missing.
    #[error("the price of {0} is missing; write input=USD,output=USD")]
    Missing(&'static str),
    /// A kind is given twice.
    #[error("there are two prices for `{0}`; remove one")]
    Twice(String),
}

impl Prices {
    /// The cost of this usage.
    #[must_use]
    pub(super) fn of(&self, usage: Usage) -> MicroUsd {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let scaled: u128 = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        let scale = u128::from(SCALE);
        MicroUsd(u64::try_from((scaled + scale / 2) / scale).unwrap_or(u64::MAX))
    }
}

/// `input=USD,output=USD[,cache_read=USD][,cache_write=USD]`; tokens of a cache cost as much as input unless given.
impl FromStr for Prices {
    type Err = BadPrices;

    fn from_str(text: &str) -> Result<Self, BadPrices> {
        let [mut input, mut output, mut cache_read, mut cache_write] = [None; 4];
        for part in text.split(',') {
            let (kind, number) =
                part.trim().split_once('=').ok_or_else(|| BadPrices::NoPrice(part.trim().to_owned()))?;
            let price = match kind {
                "input" => &mut input,
                "output" => &mut output,
                "cache_read" => &mut cache_read,
                "cache_write" => &mut cache_write,
                unknown => return Err(BadPrices::UnknownKind(unknown.to_owned())),
            };
            let number = dollars(number).ok_or_else(|| BadPrices::NoNumber(number.to_owned()))?;
            if price.replace(number).is_some() {
                return Err(BadPrices::Twice(kind.to_owned()));
            }
        }
        let input = input.ok_or(BadPrices::Missing("input"))?;
        let output = output.ok_or(BadPrices::Missing("output"))?;
        Ok(Self {
            input,
            output,
            cache_read: cache_read.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
        })
    }
}

/// A decimal number in units of 1/[`SCALE`], parsed exactly, which floating point cannot do.
fn dollars(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > DECIMALS {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let decimals: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    whole.checked_mul(SCALE)?.checked_add(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage { input, output, cache_read, cache_write }
    }

    #[test]
    fn a_million_tokens_cost_their_price_and_parts_are_rounded_once() {
        let prices: Prices = "input=3,output=15,cache_read=0.3,cache_write=3.75".parse().unwrap();
        for (used, cost) in [
            (usage(1_000_000, 0, 0, 0), 3_000_000),
            (usage(0, 1_000_000, 0, 0), 15_000_000),
            (usage(0, 0, 1_000_000, 1_000_000), 4_050_000),
            (usage(0, 0, 1, 0), 0),
            (usage(0, 0, 1, 1), 4),
            (usage(0, 0, 2, 0), 1),
            (usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX), u64::MAX),
        ] {
            assert_eq!(prices.of(used), MicroUsd(cost), "{used:?}");
        }
    }

    #[test]
    fn tokens_of_a_cache_cost_as_much_as_input_unless_given() {
        let prices: Prices = "output=1, input=0.000001".parse().unwrap();
        assert_eq!(prices.of(usage(500_000, 0, 250_000, 250_000)), MicroUsd(1));
    }

    #[test]
    fn a_wrong_price_is_refused_with_the_right_form() {
        for (text, wanted) in [
            ("", BadPrices::NoPrice(String::new())),
            ("input", BadPrices::NoPrice("input".into())),
            ("input=1", BadPrices::Missing("output")),
            ("output=1", BadPrices::Missing("input")),
            ("input=1,output=1,cached=1", BadPrices::UnknownKind("cached".into())),
            ("input=1,output=1,input=1", BadPrices::Twice("input".into())),
            ("input=-1,output=1", BadPrices::NoNumber("-1".into())),
            ("input=1e3,output=1", BadPrices::NoNumber("1e3".into())),
            ("input=1.0000001,output=1", BadPrices::NoNumber("1.0000001".into())),
            ("input=.5,output=1", BadPrices::NoNumber(".5".into())),
            ("input=99999999999999999999,output=1", BadPrices::NoNumber("99999999999999999999".into())),
        ] {
            assert_eq!(text.parse::<Prices>(), Err(wanted), "{text}");
        }
    }
}
