//! The line that a person types below the live view.

/// The longest line that is taken.
const LONGEST: usize = 64 * 1024;

/// A line that is being typed. The terminal does not echo it; the block shows it.
#[derive(Default)]
pub(crate) struct Input {
    typed: Vec<u8>,
    escape: Escape,
}

/// How much of a key that sends several bytes has come.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// The escape character.
    Begun,
    /// A sequence that ends with a letter or `~`.
    Sequence,
}

impl Input {
    /// Takes a byte from the keyboard, and returns the line that it completes.
    pub(crate) fn take(&mut self, byte: u8) -> Option<String> {
        if self.escape != Escape::None {
            self.escape = match (self.escape, byte) {
                (Escape::Begun, b'[' | b'O') => Escape::Sequence,
                (Escape::Sequence, ..0x40) => Escape::Sequence,
                _ => Escape::None,
            };
            return None;
        }
        match byte {
            b'\n' | b'\r' => {
                let line = self.text();
                self.typed.clear();
                return Some(line);
            }
            0x08 | 0x7f => self.delete_character(),
            // Ctrl-U and Ctrl-W, as in a shell.
            0x15 => self.typed.clear(),
            0x17 => self.delete_word(),
            0x1b => self.escape = Escape::Begun,
            b'\t' => self.typed.push(b' '),
            ..0x20 => {}
            _ if self.typed.len() < LONGEST => self.typed.push(byte),
            _ => {}
        }
        None
    }

    /// What was typed so far. Bytes that are no text are shown as such.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.typed).into_owned()
    }

    fn delete_character(&mut self) {
        let is_continued = |byte: u8| byte & 0xc0 == 0x80;
        while self.typed.pop().is_some_and(is_continued) {}
    }

    fn delete_word(&mut self) {
        let end = self.typed.trim_ascii_end().len();
        let start = self.typed[..end].iter().rposition(|byte| *byte == b' ').map_or(0, |space| space + 1);
        self.typed.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_line_and_enter_completes_it() {
        for (keys, wanted) in [
            ("yes\n", "yes"),
            ("yes\r", "yes"),
            ("\n", ""),
            ("nö\u{7f}\u{7f}\u{7f}\u{7f}yes\n", "yes"),
            ("use the wrong one\u{17}\u{17}right one\n", "use the right one"),
            ("nothing\u{15}all\n", "all"),
            ("a\u{1b}[A\u{1b}[3~\u{1b}OPb\tc\u{1}\n", "ab c"),
        ] {
            let mut input = Input::default();
            let lines: Vec<String> = keys.bytes().filter_map(|byte| input.take(byte)).collect();
            assert_eq!((lines, input.text()), (vec![wanted.to_owned()], String::new()), "{keys:?}");
        }
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut input = Input::default();
        for _ in 0..2 * LONGEST {
            input.take(b'x');
        }
        assert_eq!(input.text().len(), LONGEST);
    }
}
