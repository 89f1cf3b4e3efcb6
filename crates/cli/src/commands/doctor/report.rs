//! What the sections found: facts for programs, rows for people, and among the rows what is worth a person's time.

use serde::Serialize;

use super::agents::AgentsFacts;
use super::configuration::ConfigurationFacts;
use super::git::GitFacts;
use super::processes::ProcessesFacts;
use super::store::StoreFacts;

/// How a row is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
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
pub(super) struct Row {
    /// What it belongs to within its section, such as an agent.
    pub(super) group: Option<String>,
    /// How it is to be taken.
    pub(super) mark: Mark,
    /// What was looked at, in a word or two.
    pub(super) label: String,
    /// What was seen.
    pub(super) text: String,
    /// What to do about it.
    pub(super) fix: Option<String>,
    /// Further lines, each shortened to fit.
    pub(super) details: Vec<String>,
}

impl Row {
    /// A row without a fix.
    pub(super) fn new(mark: Mark, label: impl Into<String>, text: impl Into<String>) -> Self {
        let (label, text) = (label.into(), text.into());
        Self { group: None, mark, label, text, fix: None, details: Vec::new() }
    }

    /// Adds what to do about it.
    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// A section: its facts and its rows.
pub(super) struct Section<F> {
    /// For programs.
    pub(super) facts: F,
    /// For people.
    pub(super) rows: Vec<Row>,
}

/// Something that is worth a person's time.
#[derive(Debug, Serialize)]
struct Finding {
    section: &'static str,
    /// The agent, if it is about one.
    agent: Option<String>,
    about: String,
    level: Mark,
    what: String,
    fix: Option<String>,
}

/// Everything that was seen: the shape that programs rely on.
#[derive(Serialize)]
pub(super) struct Report {
    ok: bool,
    towline: &'static str,
    findings: Vec<Finding>,
    #[serde(flatten)]
    agents: AgentsFacts,
    git: GitFacts,
    store: StoreFacts,
    configuration: ConfigurationFacts,
    processes: ProcessesFacts,
    #[serde(skip)]
    sections: Vec<(&'static str, Vec<Row>)>,
}

impl Report {
    /// Puts the sections together.
    pub(super) fn new(
        agents: Section<AgentsFacts>,
        git: Section<GitFacts>,
        store: Section<StoreFacts>,
        configuration: Section<ConfigurationFacts>,
        processes: Section<ProcessesFacts>,
    ) -> Self {
        let sections = vec![
            ("agents", agents.rows),
            ("git", git.rows),
            ("store", store.rows),
            ("configuration", configuration.rows),
            ("processes", processes.rows),
        ];
        let findings: Vec<Finding> = sections.iter().flat_map(|(name, rows)| findings(name, rows)).collect();
        Self {
            ok: findings.iter().all(|finding| finding.level != Mark::Problem),
            towline: env!("CARGO_PKG_VERSION"),
            findings,
            agents: agents.facts,
            git: git.facts,
            store: store.facts,
            configuration: configuration.facts,
            processes: processes.facts,
            sections,
        }
    }

    /// Whether nothing has to be fixed.
    pub(super) const fn is_fine(&self) -> bool {
        self.ok
    }

    /// The rows by section.
    pub(super) fn sections(&self) -> &[(&'static str, Vec<Row>)] {
        &self.sections
    }

    /// How many rows have this mark.
    pub(super) fn count(&self, mark: Mark) -> usize {
        self.findings.iter().filter(|finding| finding.level == mark).count()
    }
}

fn findings(section: &'static str, rows: &[Row]) -> Vec<Finding> {
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
