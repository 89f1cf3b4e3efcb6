//! Colours, where they are wanted.

use owo_colors::{OwoColorize, Style};

use crate::context::Context;
use crate::output;

/// Whether and how text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// With colours.
    Colour,
    /// As it is.
    Plain,
}

impl Paint {
    /// Colours for a terminal, unless the person does not want any.
    pub(crate) fn for_stdout(context: &Context) -> Self {
        let refused = context.variable("NO_COLOR").is_some() || context.variable("TERM") == Some("dumb");
        if output::is_terminal() && !refused { Self::Colour } else { Self::Plain }
    }

    /// Good news.
    pub(crate) fn good(self, text: &str) -> String {
        self.with(text, Style::new().green())
    }

    /// Bad news.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with(text, Style::new().red())
    }

    /// What a person should look at.
    pub(crate) fn warn(self, text: &str) -> String {
        self.with(text, Style::new().yellow())
    }

    /// What matters less.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with(text, Style::new().dimmed())
    }

    /// Headings.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with(text, Style::new().bold())
    }

    /// Whatever the text is made of, the colours are the only orders in it.
    fn with(self, text: &str, style: Style) -> String {
        let text = output::printable(text);
        match self {
            Self::Colour => text.style(style).to_string(),
            Self::Plain => text,
        }
    }
}
