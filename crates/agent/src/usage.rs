//! The usage of agents that report totals.

use towline_core::{Tokens, Usage};

/// The increase. A total that has shrunk has none.
pub(crate) fn less(whole: Usage, part: Usage) -> Usage {
    let less = |whole: Tokens, part: Tokens| Tokens(whole.0.saturating_sub(part.0));
    Usage {
        input: less(whole.input, part.input),
        output: less(whole.output, part.output),
        cache_read: less(whole.cache_read, part.cache_read),
        cache_write: less(whole.cache_write, part.cache_write),
        cache_write_1h: less(whole.cache_write_1h, part.cache_write_1h),
        cost: whole.cost.saturating_sub(part.cost),
        reported: whole.reported,
        ..Usage::default()
    }
}
