//! What the sections found, put together.

use serde::Serialize;

use super::configuration::ConfigurationFacts;
use super::git::GitFacts;
use super::processes::ProcessesFacts;
use super::store::StoreFacts;
use crate::inspect::agents::AgentsFacts;
use crate::inspect::rows::{Finding, Mark, Row, Section, findings};

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
