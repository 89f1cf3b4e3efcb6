//! The signs that the screen is drawn with: fine ones, or plain ASCII where a terminal may not have them.

use towline_app::Context;

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
    pub fn of(context: &Context) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| context.variable(name));
        let is_utf_8 = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if is_utf_8 && context.variable("TERM") != Some("dumb") { Self::Unicode } else { Self::Ascii }
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
            let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let environment = variables.iter().map(text).collect();
            let context = Context::new(environment, std::path::PathBuf::new(), std::path::PathBuf::new());
            assert_eq!(Letters::of(&context), wanted, "{variables:?}");
        }
    }
}
