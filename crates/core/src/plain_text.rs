//! Text of others without what a terminal would act upon. Everything that is shown, stored as evidence or written into a
//! commit passes through here.
//!
//! Programs that colour their output do so into pipes, too, and in a terminal they move the cursor about instead of printing
//! spaces and line ends. What a program draws a second time is there twice.

use std::borrow::Cow;
use std::ops::RangeInclusive;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// The eight-bit form of the beginning of a control sequence.
const SEQUENCE: char = '\u{9b}';

/// What a control sequence does to the text around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Move {
    Stay,
    /// What follows is further along the line.
    Along,
    /// What follows is in another line.
    Across,
    /// What follows is written over the line.
    Back,
}

/// What changes the order of text, or is there and cannot be seen. The page has the same list, in `web/src/lib/text.ts`.
const UNSEEN: [RangeInclusive<char>; 19] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff9}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d159}'..='\u{1d159}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether a terminal takes the character for an order instead of showing it, or shows nothing at all, so that a line hides
/// something.
pub fn misleads(c: char) -> bool {
    (c.is_control() && c != '\t') || (!c.is_ascii() && UNSEEN.iter().any(|range| range.contains(&c)))
}

/// Like [`misleads`], but not for the joiner and the form of an emoji, which are shown by what they join.
pub fn misleads_after(before: Option<char>, c: char) -> bool {
    let joins = matches!(c, '\u{200d}' | '\u{fe0f}');
    misleads(c) && !(joins && before.is_some_and(is_pictorial))
}

/// Whether the character is an emoji, or the end of one.
fn is_pictorial(c: char) -> bool {
    matches!(c, '\u{fe0f}' | '\u{2190}'..='\u{27ff}' | '\u{2900}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// The text with a sign in the place of each character that [`misleads`], line ends included.
pub fn harmless(text: &str) -> String {
    let mut before = None;
    text.chars()
        .map(|c| {
            let shown = if misleads_after(before, c) { '\u{fffd}' } else { c };
            before = Some(shown);
            shown
        })
        .collect()
}

/// The text as a person would read it, where it holds control sequences of a terminal.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) && !text.contains(SEQUENCE) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(plain_line).collect::<Vec<_>>().join("\n"))
}

/// The line as a person would read it: without control sequences, without a carriage return at its end, and without
/// what a carriage return has written over. Tabs stay. Where the cursor was moved, words stay apart, by a line end if
/// it went to another line: so there may be several lines in it.
pub fn plain_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line.trim_end_matches('\r').chars().peekable();
    while let Some(next) = rest.next() {
        let moved = match next {
            ESCAPE => skip_sequence(&mut rest),
            SEQUENCE => skip_control_sequence(&mut rest),
            '\r' => Move::Back,
            _ if next.is_control() && next != '\t' => Move::Stay,
            _ => {
                shown.push(next);
                Move::Stay
            }
        };
        let begun = !shown.is_empty() && !shown.ends_with('\n');
        match moved {
            Move::Along if begun && !shown.ends_with(' ') => shown.push(' '),
            Move::Across if begun => shown.push('\n'),
            Move::Back => shown.truncate(shown.rfind('\n').map_or(0, |end| end + 1)),
            Move::Stay | Move::Along | Move::Across => {}
        }
    }
    shown.truncate(shown.trim_end_matches('\n').len());
    shown
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an escape. A sequence that does not end takes the rest of the line with it only if it is a string.
fn skip_sequence(rest: &mut Rest<'_>) -> Move {
    match rest.peek() {
        Some('[') => {
            rest.next();
            return skip_control_sequence(rest);
        }
        // Titles, addresses and device strings: up to a bell or the string terminator.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        // Designations such as of character sets: intermediate characters, then one more.
        Some(' '..='/') => {
            while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            rest.next_if(|c| matches!(c, '0'..='~'));
        }
        // Down, to the next line, up.
        Some('D' | 'E' | 'M') => {
            rest.next();
            return Move::Across;
        }
        Some('0'..='~') => {
            rest.next();
        }
        _ => {}
    }
    Move::Stay
}

/// Parameters, intermediate characters, and the one that ends it.
fn skip_control_sequence(rest: &mut Rest<'_>) -> Move {
    let mut parameters = String::new();
    while let Some(next) = rest.next_if(|c| matches!(c, ' '..='?')) {
        parameters.push(next);
    }
    match rest.next_if(|c| matches!(c, '@'..='~')) {
        // To a column; without a number, the first.
        Some('G' | '`') if matches!(parameters.as_str(), "" | "0" | "1") => Move::Back,
        // To a column, or by some of them.
        Some('C' | 'a' | 'G' | '`' | 'I') => Move::Along,
        // By some lines, or to a place on the screen.
        Some('A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'e' | 'f') => Move::Across,
        _ => Move::Stay,
    }
}

fn skip_string(rest: &mut Rest<'_>) {
    while let Some(next) = rest.next() {
        match next {
            BELL | '\u{9c}' => return,
            ESCAPE => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{harmless, misleads, plain_line, without_escapes};

    #[test]
    fn no_character_moves_the_cursor_turns_the_line_or_hides() {
        assert_eq!(
            harmless("a\u{1b}[2J\r\n\t\u{9b}\u{202e}\u{2066}\u{200b}\u{2028}\u{e0041}\u{200d}ä"),
            "a\u{fffd}[2J\u{fffd}\u{fffd}\t\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}ä"
        );
    }

    #[test]
    fn no_character_that_cannot_be_seen_is_left_and_emoji_stay_whole() {
        let unseen = "\u{ad}\u{34f}\u{115f}\u{17b4}\u{180b}\u{200c}\u{2800}\u{3164}\u{fe0f}\u{ffa0}\u{1bca0}\u{1d159}\u{1d17a}\u{e0100}\u{e01ef}";
        assert_eq!(unseen.chars().find(|c| !misleads(*c)), None);
        for emoji in ["👩\u{200d}🚀", "⚠\u{fe0f}", "❤\u{fe0f}\u{200d}🔥"] {
            assert_eq!(harmless(emoji), emoji);
        }
        assert_eq!(harmless("👩\u{200d}\u{200d}🚀1\u{fe0f}"), "👩\u{200d}\u{fffd}🚀1\u{fffd}");
    }

    #[test]
    fn of_a_text_only_what_steers_a_terminal_is_taken_off() {
        let coloured = "\u{1b}[31merror\u{1b}[0m: no key\n\n  \u{9b}1mset one\u{9b}0m\r\n";
        assert_eq!(without_escapes(coloured), "error: no key\n\n  set one\n");
        let plain = "50 %\r100 %\u{8}\n\ttabs";
        assert_eq!(without_escapes(plain), plain);
    }

    #[test]
    fn control_sequences_of_every_form_are_taken_off_and_nothing_else() {
        for (line, wanted) in [
            ("plain text\tand a tab", "plain text\tand a tab"),
            ("ends with CRLF\r", "ends with CRLF"),
            ("ends with two\r\r", "ends with two"),
            ("\u{1b}[1;31mred\u{1b}[0m and not", "red and not"),
            ("\u{1b}[38:2::255:0:0mtrue colour\u{1b}[m", "true colour"),
            ("\u{1b}[?25lhidden cursor\u{1b}[?25h", "hidden cursor"),
            ("\u{1b}[2 qcursor form", "cursor form"),
            ("\u{9b}1mbold", "bold"),
            ("\u{1b}]0;a title\u{7}text", "text"),
            ("\u{1b}]8;;http://x/\u{1b}\\text\u{1b}]8;;\u{1b}\\ after", "text after"),
            ("\u{1b}Pq device string\u{1b}\\text", "text"),
            ("\u{1b}7saved\u{1b}8\u{1b}=\u{1b}>\u{1b}cdone", "saveddone"),
            ("\u{1b}(Bcharset\u{1b}#8", "charset"),
            ("bells\u{7} and back\u{8}spaces\0", "bells and backspaces"),
            ("10 %\r50 %\r100 %\r", "100 %"),
            ("brackets [0m stay, as do ü and 漢", "brackets [0m stay, as do ü and 漢"),
            ("", ""),
        ] {
            assert_eq!(plain_line(line), wanted, "{line:?}");
        }
    }

    #[test]
    fn words_that_only_the_cursor_keeps_apart_stay_apart() {
        for (line, wanted) in [
            ("two\u{1b}[1Cwords\u{1b}[5C\u{1b}[20Gand \u{1b}[Cmore", "two words and more"),
            ("\u{1b}[4Cindented", "indented"),
            ("first\u{1b}[3;1Hsecond\u{1b}[1B\u{1b}[1Bthird\u{1b}Mfourth", "first\nsecond\nthird\nfourth"),
            ("\u{1b}[2J\u{1b}[Htop\u{1b}[A", "top"),
            ("old\u{1b}[2K\u{1b}[Gnew", "new"),
            ("first\u{1b}[1B10 %\r20 %\u{1b}[2K\u{1b}[1G30 %", "first\n30 %"),
            ("erased\u{1b}[K\u{1b}[J\u{1b}[1mbold", "erasedbold"),
        ] {
            assert_eq!(plain_line(line), wanted, "{line:?}");
        }
    }

    #[test]
    fn a_sequence_that_does_not_end_takes_no_text_of_others_with_it() {
        for (line, wanted) in [
            ("cut\u{1b}", "cut"),
            ("cut\u{1b}[", "cut"),
            ("cut\u{1b}[1;3", "cut"),
            ("cut\u{1b}]0;title", "cut"),
            ("cut\u{1b}(", "cut"),
            ("odd\u{1b}ütext", "oddütext"),
            ("odd\u{1b}[1ütext", "oddütext"),
            ("twice\u{1b}\u{1b}[1mtext", "twicetext"),
        ] {
            assert_eq!(plain_line(line), wanted, "{line:?}");
        }
    }
}
