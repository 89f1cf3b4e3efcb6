//! Lines for a screen: pieces of text with a tone each, measured in columns and cut to fit.
//!
//! Neighbours: the board makes them, the drawer writes them, [`wrapped`] does the same for lines that scroll. Nothing
//! here knows about terminals beyond how wide a character is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Paint, Tone};
use crate::output::{COLOURS, printable};

/// A line that stays on its line: nothing in it moves a cursor, and it can be cut to any width.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    /// A line with one piece.
    pub(crate) fn of(tone: Tone, text: &str) -> Self {
        Self::default().and(tone, text)
    }

    /// The line with another piece.
    pub(crate) fn and(mut self, tone: Tone, text: &str) -> Self {
        self.push(tone, text);
        self
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, tone: Tone, text: &str) {
        // A tab is as wide as it likes.
        self.pieces.push((tone, printable(text).replace('\t', " ")));
    }

    /// Adds another line to the end of this one.
    pub(crate) fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// How many columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| columns(text)).sum()
    }

    /// The line in at most so many columns, with a mark where it was cut.
    pub(crate) fn fit(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut pieces = Vec::new();
        for (tone, text) in self.pieces {
            let start = start_of(&text, left);
            let is_whole = start.len() == text.len();
            left = left.saturating_sub(columns(start));
            pieces.push((tone, start.to_owned()));
            if !is_whole {
                break;
            }
        }
        if width > 0 {
            pieces.push((Tone::Dim, "…".to_owned()));
        }
        Self { pieces }
    }

    /// The text in its colours.
    pub(crate) fn painted(&self, paint: Paint) -> String {
        self.pieces.iter().map(|(tone, text)| paint.with(*tone, text)).collect()
    }
}

/// How many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// A text in at most so many columns, with a mark where it was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    format!("{}…", start_of(text, width.saturating_sub(1)))
}

/// As much of the beginning of a text as fits so many columns.
fn start_of(text: &str, width: usize) -> &str {
    let mut left = width;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.width().unwrap_or(0)) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// A line in lines of at most so many columns, broken between words, each but the first a little further in than the
/// first, or below the value where the line has a label and a value. A word that is wider is broken inside its column.
pub(crate) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let bare = without_colours(line);
    if columns(&bare) <= width {
        return vec![line.to_owned()];
    }
    let hanging = " ".repeat(hanging_indent(&bare, width));
    let room = width.saturating_sub(hanging.len()).max(1);
    let mut lines: Vec<String> = Vec::new();
    let (mut current, mut used, mut has_words) = (String::new(), 0, false);
    for (place, word) in line.split(' ').enumerate() {
        for (part, piece) in pieces(word, room).into_iter().enumerate() {
            let wide = columns(&without_colours(&piece));
            if part > 0 || (has_words && wide > 0 && used + 1 + wide > width) {
                lines.push(std::mem::replace(&mut current, hanging.clone()).trim_end().to_owned());
                (used, has_words) = (hanging.len(), false);
            } else if place > 0 && (has_words || lines.is_empty()) {
                current.push(' ');
                used += 1;
            }
            current.push_str(&piece);
            used += wide;
            has_words |= wide > 0;
        }
    }
    lines.push(current);
    lines
}

/// A word in pieces of at most so many columns, with its colours.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut used, mut in_colour) = (0, false);
    for c in word.chars() {
        in_colour |= c == '\u{1b}';
        let wide = if in_colour { 0 } else { c.width().unwrap_or(0) };
        in_colour &= c != 'm';
        if used > 0 && used + wide > width {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        pieces.last_mut().into_iter().for_each(|piece| piece.push(c));
    }
    pieces
}

fn hanging_indent(line: &str, width: usize) -> usize {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let value = text.find("  ").map(|gap| text[gap..].trim_start_matches(' '));
    // A word that is whole in a line of its own stays whole: so that an address or a path can be copied whole.
    let below_value = value.map(|value| columns(line) - columns(value)).filter(|below| {
        let widest = value.unwrap_or_default().split(' ').map(columns).max();
        *below <= width / 2 && below + widest.unwrap_or(0) <= width
    });
    below_value.unwrap_or((indent + 2).min(width / 2))
}

fn without_colours(text: &str) -> String {
    COLOURS.iter().fold(text.to_owned(), |text, colour| text.replace(colour, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_with_a_mark() {
        let line = Line::of(Tone::Bold, "Fix ").and(Tone::Plain, "日本語 🎉 now");
        assert_eq!(line.width(), 4 + 6 + 1 + 2 + 4);
        for (width, wanted) in [
            (17, "Fix 日本語 🎉 now"),
            (16, "Fix 日本語 🎉 n…"),
            (13, "Fix 日本語 …"),
            (10, "Fix 日本…"),
            (9, "Fix 日本…"),
            (8, "Fix 日…"),
            (1, "…"),
            (0, ""),
        ] {
            let cut = line.clone().fit(width);
            assert!(cut.width() <= width, "{cut:?}");
            assert_eq!(cut.painted(Paint::Plain), wanted, "{width}");
        }
    }

    #[test]
    fn nothing_in_a_line_moves_the_cursor() {
        let line = Line::of(Tone::Plain, "a\tb\r\u{1b}[2Jc\nd");
        assert_eq!(line.painted(Paint::Plain), "a b\u{fffd}\u{fffd}[2Jc d");
    }

    #[test]
    fn long_lines_are_broken_between_words_with_a_hanging_indent() {
        for (line, wanted) in [
            ("short", vec!["short"]),
            ("  one two three four", vec!["  one two", "    three", "    four"]),
            ("an/address/that/is/wider than it", vec!["an/addre", "  ss/that/", "  is/wider", "  than it"]),
            ("id  one two six", vec!["id  one", "    two", "    six"]),
            ("id  seventeen two", vec!["id", "  seventee", "  n two"]),
            ("日本 日本 日本", vec!["日本 日本", "  日本"]),
        ] {
            assert_eq!(wrapped(line, 10), wanted, "{line}");
        }
    }

    #[test]
    fn colours_take_no_room_and_go_on_in_the_next_line() {
        let line = Paint::Colour.dim("  one two three");
        assert_eq!(wrapped(&line, 15), std::slice::from_ref(&line));
        assert_eq!(wrapped(&line, 10), ["\u{1b}[2m  one two", "    three\u{1b}[0m"]);
        let long = Paint::Colour.dim("  seventeen");
        assert_eq!(wrapped(&long, 10), ["\u{1b}[2m  sevent", "    een\u{1b}[0m"]);
    }
}
