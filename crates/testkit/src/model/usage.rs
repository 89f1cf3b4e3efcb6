//! Token counts, in the four kinds that the APIs distinguish.

use std::iter::Sum;
use std::ops::Add;

use serde_json::Value;

/// The tokens of one answer, or a total of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Input tokens that no cache held.
    pub input: u64,
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_creation: u64,
}

impl Usage {
    /// What a reply reports unless its script sets another.
    pub const DEFAULT_REPLY: Self = Self { input: 100, output: 20, cache_read: 50, cache_creation: 0 };

    /// Reads the four counts of an Anthropic `usage` object, which Claude Code prints too; a missing count is zero.
    pub fn from_json(usage: &Value) -> Self {
        let count = |field: &str| usage[field].as_u64().unwrap_or(0);
        Self {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_creation: count("cache_creation_input_tokens"),
        }
    }

    /// All input tokens, whatever the cache did with them.
    pub fn all_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_creation
    }

    /// The same counts for a format that does not distinguish input that was written to the cache.
    pub(super) fn without_cache_writes(self) -> Self {
        Self { input: self.input + self.cache_creation, cache_creation: 0, ..self }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_creation: self.cache_creation + other.cache_creation,
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}
