//! The signs that the screen is drawn with: fine ones, or plain ASCII where a terminal may not have them.

use unicode_width::UnicodeWidthStr;

/// Which signs a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// All of them.
    Unicode,
    /// Only those of ASCII.
    Ascii,
}

impl Letters {
    /// Chosen by the encoding in the environment.
    pub fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let given = |name| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(given);
        let is_utf_8 = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if is_utf_8 && variable("TERM") != Some("dumb") { Self::Unicode } else { Self::Ascii }
    }

    /// A text with signs that can be shown, as wide as before. Where only ASCII can be shown, nothing else is left: in an encoding of one
    /// byte per character, bytes of UTF-8 can be orders to the terminal.
    pub fn shown(self, text: &str) -> String {
        if self == Self::Unicode || text.is_ascii() {
            return text.to_owned();
        }
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let unknown = rest.find(|c| ascii(c).is_some()).unwrap_or(rest.len());
            // Characters that are joined take less room together.
            shown.extend(std::iter::repeat_n('?', rest[..unknown].width()));
            shown.extend(ascii(c).filter(|_| unknown == 0));
            rest = &rest[if unknown == 0 { c.len_utf8() } else { unknown }..];
        }
        shown
    }

    /// The sign for a line end inside of a line.
    pub const fn line_end(self) -> &'static str {
        match self {
            Self::Unicode => "⏎",
            Self::Ascii => "\\n",
        }
    }
}

/// The character of ASCII that means the same; none where there is none.
const fn ascii(c: char) -> Option<char> {
    Some(match c {
        '✓' => '+',
        '✗' => 'x',
        '±' | '…' => '~',
        '·' | '–' | '─' => '-',
        '“' | '”' => '"',
        '█' => '#',
        '░' => '.',
        c if c.is_ascii() => c,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_words_without_fine_signs() {
        let text = "✓ done · “ä” … – ✗ ±";
        assert_eq!(Letters::Unicode.shown(text), text);
        assert_eq!(Letters::Ascii.shown(text), "+ done - \"?\" ~ - x ~");
    }

    #[test]
    fn in_ascii_no_byte_can_be_an_order_and_each_text_is_as_wide_as_before() {
        // The last bytes of these begin sequences in an encoding of one byte per character.
        for text in
            ["a\u{4db}2Jb", "\u{29d}0;title\u{29c}", "日本語", "ü", "e\u{301}", "👩\u{200d}🚀 up", "\u{fffd}"]
        {
            let shown = Letters::Ascii.shown(text);
            assert!(shown.is_ascii(), "{shown:?}");
            assert_eq!(shown.width(), text.width(), "{text:?} {shown:?}");
        }
        assert_eq!(Letters::Ascii.shown("日本 ü…\u{1b}[31mx"), "???? ?~\u{1b}[31mx");
    }

    #[test]
    fn fine_signs_are_for_terminals_that_report_utf_8() {
        for (variables, wanted) in [
            (vec![("LANG", "en_GB.UTF-8")], Letters::Unicode),
            (vec![("LC_ALL", "C.utf8"), ("LANG", "C")], Letters::Unicode),
            (vec![("LC_ALL", ""), ("LC_CTYPE", "UTF-8")], Letters::Unicode),
            (vec![("LC_ALL", "POSIX"), ("LANG", "en_GB.UTF-8")], Letters::Ascii),
            (vec![("LANG", "en_GB.UTF-8"), ("TERM", "dumb")], Letters::Ascii),
            (vec![("LANG", "de_DE.ISO-8859-1")], Letters::Ascii),
            (vec![], Letters::Ascii),
        ] {
            let find =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            assert_eq!(Letters::of(find), wanted, "{variables:?}");
        }
    }
}
