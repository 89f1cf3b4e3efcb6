//! Colours, where they are wanted.

use owo_colors::{OwoColorize, Style};
use towline_app::Context;

use crate::output;

/// Whether and how text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Colour,
    /// As it is.
    Plain,
}

/// How a text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// What the eye should find first.
    Bold,
    /// What matters less.
    Dim,
    Good,
    Bad,
    /// What a person should look at.
    Warn,
}

impl Paint {
    /// Colours for a terminal, unless the person does not want any; elsewhere only where they insist.
    pub(crate) fn for_stdout(context: &Context) -> Self {
        Self::wanted(output::is_terminal(), |name| context.variable(name))
    }

    fn wanted<'a>(is_terminal: bool, variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        if variable("NO_COLOR").is_some() {
            return Self::Plain;
        }
        if variable("CLICOLOR_FORCE").is_some_and(|force| force != "0") {
            return Self::Colour;
        }
        let refused = variable("CLICOLOR") == Some("0") || variable("TERM") == Some("dumb");
        if is_terminal && !refused { Self::Colour } else { Self::Plain }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with(Tone::Good, text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with(Tone::Bad, text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.with(Tone::Warn, text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with(Tone::Dim, text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with(Tone::Bold, text)
    }

    /// Whatever the text is made of, the colours are the only orders in it.
    pub(crate) fn with(self, tone: Tone, text: &str) -> String {
        let text = output::printable(text);
        let style = match tone {
            _ if self == Self::Plain => return text,
            Tone::Plain => return text,
            Tone::Bold => Style::new().bold(),
            Tone::Dim => Style::new().dimmed(),
            Tone::Good => Style::new().green(),
            Tone::Bad => Style::new().red(),
            Tone::Warn => Style::new().yellow(),
        };
        text.style(style).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_where_they_are_wanted() {
        let wanted = |is_terminal, variables: &[(&str, &'static str)]| {
            let find =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            Paint::wanted(is_terminal, find)
        };
        for (is_terminal, variables, paint) in [
            (true, vec![], Paint::Colour),
            (false, vec![], Paint::Plain),
            (true, vec![("NO_COLOR", "1")], Paint::Plain),
            (true, vec![("TERM", "dumb")], Paint::Plain),
            (true, vec![("CLICOLOR", "0")], Paint::Plain),
            (true, vec![("CLICOLOR", "1")], Paint::Colour),
            (false, vec![("CLICOLOR", "1")], Paint::Plain),
            (false, vec![("CLICOLOR_FORCE", "1")], Paint::Colour),
            (false, vec![("CLICOLOR_FORCE", "0")], Paint::Plain),
            (true, vec![("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], Paint::Plain),
        ] {
            assert_eq!(wanted(is_terminal, &variables), paint, "{is_terminal} {variables:?}");
        }
    }
}
