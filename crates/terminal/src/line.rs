//! Lines for a screen, in their colours: measured in columns, cut to fit, or broken between words.
//!
//! Nothing here knows about terminals beyond how wide a character is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::COLOURS;

/// How many columns a text takes. Colours take none.
pub fn columns(text: &str) -> usize {
    without_colours(text).width()
}

/// A text in at most so many columns, with a mark where it was cut.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mut start = pieces(text, width - 1).swap_remove(0);
    // The first character may be wider than the room.
    if columns(&start) >= width {
        start.clear();
    }
    // What was cut off may have ended a colour.
    let [end, dim] = if start.contains('\u{1b}') { [COLOURS[0], COLOURS[2]] } else { ["", ""] };
    format!("{start}{end}{dim}…{end}")
}

/// A line in lines of at most so many columns, broken between words, each but the first a little further in than the
/// first, or below the value where the line has a label and a value. A word that is wider is broken inside its column.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    if columns(line) <= width {
        return vec![line.to_owned()];
    }
    let hanging = " ".repeat(hanging_indent(&without_colours(line), width));
    let room = width.saturating_sub(hanging.len()).max(1);
    let mut lines: Vec<String> = Vec::new();
    let (mut current, mut used, mut has_words) = (String::new(), 0, false);
    for (place, word) in line.split(' ').enumerate() {
        for (part, piece) in pieces(word, room).into_iter().enumerate() {
            let wide = columns(&piece);
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
    use crate::Paint;

    #[test]
    fn a_line_is_cut_by_columns_with_a_mark() {
        let line = "Fix 日本語 🎉 now";
        assert_eq!(columns(line), 4 + 6 + 1 + 2 + 4);
        for (width, wanted) in [
            (17, line),
            (16, "Fix 日本語 🎉 n…"),
            (13, "Fix 日本語 …"),
            (10, "Fix 日本…"),
            (9, "Fix 日本…"),
            (8, "Fix 日…"),
            (1, "…"),
            (0, ""),
        ] {
            let shorter = cut(line, width);
            assert!(columns(&shorter) <= width, "{shorter:?}");
            assert_eq!(shorter, wanted, "{width}");
        }
        assert_eq!([1, 2, 3].map(|width| cut("日本", width)), ["…", "…", "日…"]);
        let painted = format!("{} words", Paint::Colour.bold("bold"));
        assert_eq!(cut(&painted, 7), "\u{1b}[1mbold\u{1b}[0m w\u{1b}[0m\u{1b}[2m…\u{1b}[0m");
        assert_eq!(columns(&painted), 10);
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
