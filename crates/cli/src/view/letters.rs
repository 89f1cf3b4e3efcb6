//! The signs that the screen is drawn with: fine ones, or plain ASCII where a terminal may not have them.

use crate::context::Context;

/// Which signs a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letters {
    /// All of them.
    Unicode,
    /// Only those of ASCII.
    Ascii,
}

impl Letters {
    /// By what the environment says about the terminal's encoding.
    pub(crate) fn of(context: &Context) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| context.variable(name));
        let is_utf_8 = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        if is_utf_8 && context.variable("TERM") != Some("dumb") { Self::Unicode } else { Self::Ascii }
    }

    /// A text of ours with signs that can be shown.
    pub(crate) fn shown(self, text: &str) -> String {
        if self == Self::Unicode {
            return text.to_owned();
        }
        let ascii = |c| match c {
            '✓' => Self::Ascii.met(),
            '✗' => Self::Ascii.missed(),
            '±' => Self::Ascii.edit(),
            '·' => Self::Ascii.call(),
            '…' => Self::Ascii.more(),
            '–' | '─' => '-',
            '“' | '”' => '"',
            c => c,
        };
        text.chars().map(ascii).collect()
    }

    const fn pick(self, unicode: char, ascii: char) -> char {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// Between facts of one line, with its spaces.
    pub(crate) const fn between(self) -> &'static str {
        match self {
            Self::Unicode => " · ",
            Self::Ascii => " - ",
        }
    }

    /// A line across the screen.
    pub(crate) const fn rule(self) -> char {
        self.pick('─', '-')
    }

    /// A check that holds.
    pub(crate) const fn met(self) -> char {
        self.pick('✓', '+')
    }

    /// A check that does not hold.
    pub(crate) const fn missed(self) -> char {
        self.pick('✗', 'x')
    }

    /// What is used of a budget.
    pub(crate) const fn full(self) -> char {
        self.pick('█', '#')
    }

    /// What is left of a budget.
    pub(crate) const fn empty(self) -> char {
        self.pick('░', '.')
    }

    /// Where something was left out.
    pub(crate) const fn more(self) -> char {
        self.pick('…', '~')
    }

    /// A change of a file.
    pub(crate) const fn edit(self) -> char {
        self.pick('±', '~')
    }

    /// Any other tool call.
    pub(crate) const fn call(self) -> char {
        self.pick('·', '-')
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
    fn fine_signs_are_for_terminals_that_say_they_have_them() {
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
