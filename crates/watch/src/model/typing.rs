//! A line that a person types.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The longest text that is taken.
const LONGEST: usize = 64 * 1024;

/// A text with a cursor in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    text: String,
    /// The place of the cursor, in bytes.
    cursor: usize,
}

/// What a key means while one types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The text has changed, or the cursor has moved.
    Edited,
    Enter,
    Escape,
    /// A key that means nothing here.
    Other,
}

impl Line {
    /// A text with the cursor at its end.
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before and after the cursor.
    pub(crate) fn around_cursor(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Inserts text at the cursor. Line breaks stay.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut room = LONGEST.saturating_sub(self.text.len()).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.text.insert_str(self.cursor, &text[..room]);
        self.cursor += room;
    }

    /// Puts a text that was typed earlier on lines before this one, unless it is there.
    pub(crate) fn put_before(&mut self, earlier: &str) {
        let is_there =
            self.text.strip_prefix(earlier).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'));
        if !is_there {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            self.text.insert_str(0, &format!("{earlier}{gap}"));
            self.cursor += earlier.len() + gap.len();
        }
    }

    /// Takes a key.
    pub(crate) fn take(&mut self, key: KeyEvent) -> Typed {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::ALT) => self.insert("\n"),
            KeyCode::Enter => return Typed::Enter,
            KeyCode::Esc => return Typed::Escape,
            KeyCode::Char('j') if with_control => self.insert("\n"),
            KeyCode::Char('a') if with_control => self.cursor = 0,
            KeyCode::Char('e') if with_control => self.cursor = self.text.len(),
            KeyCode::Char('u') if with_control => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('w') if with_control => self.delete_word(),
            KeyCode::Char('h') if with_control => self.delete_before(),
            KeyCode::Char(_) if with_control => return Typed::Other,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.delete_before(),
            KeyCode::Delete => {
                let end = self.next();
                self.text.drain(self.cursor..end);
            }
            KeyCode::Left => self.cursor = self.previous(),
            KeyCode::Right => self.cursor = self.next(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return Typed::Other,
        }
        Typed::Edited
    }

    fn previous(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(place, _)| place)
    }

    fn next(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    fn delete_before(&mut self) {
        let start = self.previous();
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    fn delete_word(&mut self) {
        let before = self.text[..self.cursor].trim_end();
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |space| space + before[space..].chars().next().map_or(1, char::len_utf8));
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_text_at_the_cursor() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        let [left, right, home, end, back, delete] =
            [KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End, KeyCode::Backspace, KeyCode::Delete]
                .map(plain);
        for (start, keys, wanted) in [
            ("ab", vec![left, plain(KeyCode::Char('日')), right, plain(KeyCode::Char('!'))], "a日b!|"),
            ("日本", vec![back, back, back], "|"),
            ("use the wrong one", vec![control('w'), control('w')], "use the |"),
            ("a b", vec![home, delete, delete, end, control('h')], "|"),
            ("abc", vec![left, control('u')], "|c"),
            ("a", vec![KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT), plain(KeyCode::Char('b'))], "a\nb|"),
        ] {
            let mut line = Line::of(start);
            assert!(keys.into_iter().all(|key| line.take(key) == Typed::Edited), "{start}");
            let (before, after) = line.around_cursor();
            assert_eq!(format!("{before}|{after}"), wanted, "{start}");
        }
    }

    #[test]
    fn an_earlier_text_is_put_before_once_and_the_cursor_keeps_its_place() {
        let mut line = Line::of("new");
        line.take(KeyEvent::new(KeyCode::Home, KeyModifiers::NONE));
        line.put_before("old");
        line.put_before("old");
        assert_eq!(line.around_cursor(), ("old\n", "new"));
        line.put_before("ol");
        assert_eq!(line.text(), "ol\nold\nnew");
    }

    #[test]
    fn pasted_text_keeps_its_lines_and_has_an_end() {
        let mut line = Line::of("");
        line.insert("one\r\ntwo\rthree");
        assert_eq!(line.text(), "one\ntwo\nthree");
        line.insert(&"日".repeat(LONGEST));
        assert!(line.text().len() <= LONGEST);
    }
}
