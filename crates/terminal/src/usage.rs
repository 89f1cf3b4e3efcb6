//! What a goal has used, in words.

use towline_core::Usage;

/// What was used. Agents that report their cost do so at the end of a turn; until then it is estimated, where the price of the
/// model is known.
pub fn spent(usage: &Usage) -> String {
    let more = if usage.partial { "+" } else { "" };
    let tokens = format!("{}{more} tokens", short_number(usage.tokens().0));
    match (usage.knows_tokens(), usage.knows_cost()) {
        (true, true) => format!("{tokens} · {}", usage.spent()),
        (true, false) => format!("{tokens} · cost unknown"),
        (false, true) => format!("tokens unknown · {}", usage.spent()),
        (false, false) => "usage unknown".to_owned(),
    }
}

/// A short form of a number: 950, 12k, 1.2M.
pub fn short_number(number: u64) -> String {
    let tenths = |unit: u64, name: &str| match (number / unit, number % unit * 10 / unit) {
        (whole @ 100.., _) | (whole, 0) => format!("{whole}{name}"),
        (whole, tenth) => format!("{whole}.{tenth}{name}"),
    };
    match number {
        ..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0, 999, 1_000, 1_250, 45_000, 123_456, 2_000_000, 2_340_000].map(short_number);
        assert_eq!(shown, ["0", "999", "1k", "1.2k", "45k", "123k", "2M", "2.3M"]);
    }
}
