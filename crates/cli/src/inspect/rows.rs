//! What looking at something gives: facts for programs, rows for people, and among the rows what is worth a person's time.

use serde::Serialize;

/// What a command exits with when a person must fix something.
pub(crate) const NEEDS_A_PERSON: u8 = 4;

/// How a row is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mark {
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
pub(crate) struct Row {
    /// What it belongs to within its section, such as an agent.
    pub(crate) group: Option<String>,
    /// How it is to be taken.
    pub(crate) mark: Mark,
    /// What was looked at, in a word or two.
    pub(crate) label: String,
    /// What was seen.
    pub(crate) text: String,
    /// What to do about it.
    pub(crate) fix: Option<String>,
    /// Further lines, each shortened to fit.
    pub(crate) details: Vec<String>,
}

impl Row {
    /// A row without a fix.
    pub(crate) fn new(mark: Mark, label: impl Into<String>, text: impl Into<String>) -> Self {
        let (label, text) = (label.into(), text.into());
        Self { group: None, mark, label, text, fix: None, details: Vec::new() }
    }

    /// Adds what to do about it.
    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// A section: its facts and its rows.
pub(crate) struct Section<F> {
    /// For programs.
    pub(crate) facts: F,
    /// For people.
    pub(crate) rows: Vec<Row>,
}

/// Something that is worth a person's time.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    section: &'static str,
    /// The agent, if it is about one.
    agent: Option<String>,
    about: String,
    /// How it is to be taken.
    pub(crate) level: Mark,
    what: String,
    fix: Option<String>,
}

/// What of these rows is worth a person's time.
pub(crate) fn findings(section: &'static str, rows: &[Row]) -> Vec<Finding> {
    let worth = rows.iter().filter(|row| matches!(row.mark, Mark::Note | Mark::Problem));
    let finding = |row: &Row| Finding {
        section,
        agent: row.group.clone(),
        about: row.label.clone(),
        level: row.mark,
        what: row.text.clone(),
        fix: row.fix.clone(),
    };
    worth.map(finding).collect()
}
