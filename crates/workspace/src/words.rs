//! Names that are not ours, in the words of errors.

use towline_core::harmless;

/// The first names of a list, on one line: a file's name may hold line ends and orders to a terminal, and would forge what
/// is reported about it.
pub(crate) fn listed(names: &[String], most: usize) -> String {
    let named: Vec<String> = names.iter().take(most).map(|name| harmless(name)).collect();
    match names.len().saturating_sub(most) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_are_listed_and_none_of_them_begins_a_line_or_moves_the_cursor() {
        let names = ["a.rs", "b\nerror: forged", "\u{1b}[2J\u{202e}c", "ä b"].map(str::to_owned);
        assert_eq!(listed(&names, 4), "a.rs, b\u{fffd}error: forged, \u{fffd}[2J\u{fffd}c, ä b");
        assert_eq!(listed(&names, 1), "a.rs and 3 more");
    }
}
