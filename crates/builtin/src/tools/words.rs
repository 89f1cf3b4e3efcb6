//! Texts for people and models that several tools need.

use std::fmt::Write;

use towline_core::misleads;

/// `text` on one line of at most `longest` characters, without control characters.
pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    let mut characters = text.trim().chars();
    for character in characters.by_ref().take(longest) {
        match character {
            '\n' => line.push('⏎'),
            '\t' => line.push(' '),
            '\r' => {}
            other if misleads(other) => line.push('\u{fffd}'),
            other => line.push(other),
        }
    }
    let left = characters.count();
    if left > 0 {
        let _ = write!(line, "… ({left} more characters)");
    }
    line
}

/// `1 match`, `2 matches`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_people_is_short_and_harmless() {
        assert_eq!(one_line("  a\r\nb\tc\u{1b}[31m ", 20), "a⏎b c\u{fffd}[31m");
        assert_eq!(one_line("äöüß", 3), "äöü… (1 more characters)");
        assert_eq!(one_line("", 3), "");
    }
}
