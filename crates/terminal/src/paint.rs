//! Colours, where they are wanted.

use owo_colors::{OwoColorize, Style};

use crate::printable;

/// Whether and how text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Colour,
    /// As it is.
    Plain,
}

/// What a text is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    Terminal,
    /// Or a pipe.
    File,
}

/// How a text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
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
    /// Colours for a terminal, unless the variables say that the person does not want any; elsewhere only where they insist.
    pub fn wanted<'a>(medium: Medium, variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        if variable("NO_COLOR").is_some() {
            return Self::Plain;
        }
        if variable("CLICOLOR_FORCE").is_some_and(|force| force != "0") {
            return Self::Colour;
        }
        let refused = variable("CLICOLOR") == Some("0") || variable("TERM") == Some("dumb");
        if medium == Medium::Terminal && !refused { Self::Colour } else { Self::Plain }
    }

    /// A success.
    pub fn good(self, text: &str) -> String {
        self.with(Tone::Good, text)
    }

    /// A failure.
    pub fn bad(self, text: &str) -> String {
        self.with(Tone::Bad, text)
    }

    /// What a person should look at.
    pub fn warn(self, text: &str) -> String {
        self.with(Tone::Warn, text)
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.with(Tone::Dim, text)
    }

    /// What the eye should find first.
    pub fn bold(self, text: &str) -> String {
        self.with(Tone::Bold, text)
    }

    /// The text in the colour of its tone. Whatever the text is made of, the colours are the only orders in it.
    pub fn with(self, tone: Tone, text: &str) -> String {
        let text = printable(text);
        let style = match tone {
            _ if self == Self::Plain => return text,
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
        let wanted = |medium, variables: &[(&str, &'static str)]| {
            let find =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            Paint::wanted(medium, find)
        };
        for (medium, variables, paint) in [
            (Medium::Terminal, vec![], Paint::Colour),
            (Medium::File, vec![], Paint::Plain),
            (Medium::Terminal, vec![("NO_COLOR", "1")], Paint::Plain),
            (Medium::Terminal, vec![("TERM", "dumb")], Paint::Plain),
            (Medium::Terminal, vec![("CLICOLOR", "0")], Paint::Plain),
            (Medium::Terminal, vec![("CLICOLOR", "1")], Paint::Colour),
            (Medium::File, vec![("CLICOLOR", "1")], Paint::Plain),
            (Medium::File, vec![("CLICOLOR_FORCE", "1")], Paint::Colour),
            (Medium::File, vec![("CLICOLOR_FORCE", "0")], Paint::Plain),
            (Medium::Terminal, vec![("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], Paint::Plain),
        ] {
            assert_eq!(wanted(medium, &variables), paint, "{medium:?} {variables:?}");
        }
    }
}
