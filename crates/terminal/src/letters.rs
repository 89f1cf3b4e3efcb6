//! The signs that the screen is drawn with: fine ones, or plain ASCII where a terminal may not have them.

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

    /// A text of ours with signs that can be shown, each as wide as before.
    pub fn shown(self, text: &str) -> String {
        let ascii = |c| match c {
            '✓' => '+',
            '✗' => 'x',
            '±' | '…' => '~',
            '·' | '–' | '─' => '-',
            '“' | '”' => '"',
            '█' => '#',
            '░' => '.',
            c => c,
        };
        match self {
            Self::Unicode => text.to_owned(),
            Self::Ascii => text.chars().map(ascii).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_words_without_fine_signs() {
        let text = "✓ done · “ä” … – ✗ ±";
        assert_eq!(Letters::Unicode.shown(text), text);
        assert_eq!(Letters::Ascii.shown(text), "+ done - \"ä\" ~ - x ~");
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
