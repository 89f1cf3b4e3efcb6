//! What looking at something gives: facts for programs, rows for people.

use crate::error::{Action, Hint};

/// How a row is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Good,
    /// Neither good nor bad.
    Plain,
    /// Worth knowing; nothing has to be done.
    Note,
    /// Must be fixed.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it belongs to within its section, such as an agent.
    pub group: Option<String>,
    /// How it is to be taken.
    pub mark: Mark,
    /// What was looked at, in a word or two.
    pub label: String,
    /// What was seen.
    pub text: String,
    /// What can be done with what was seen, and what that does.
    pub more: Option<(Action, &'static str)>,
    /// What to do about it.
    pub fix: Option<Hint>,
    /// Further lines, each shortened to fit.
    pub details: Vec<String>,
}

impl Row {
    /// A row without a fix.
    pub fn new(mark: Mark, label: impl Into<String>, text: impl Into<String>) -> Self {
        let (label, text) = (label.into(), text.into());
        Self { group: None, mark, label, text, more: None, fix: None, details: Vec::new() }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn fix(self, fix: impl Into<Hint>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// A section: its facts and its rows.
pub(crate) struct Section<F> {
    pub(crate) facts: F,
    pub(crate) rows: Vec<Row>,
}
