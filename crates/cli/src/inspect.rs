//! What was seen of agents, git and the state directory, as people and programs read it.

pub(crate) mod lines;

use towline_api::{Finding, Level};
pub(crate) use towline_app::inspect::{Mark, Row};

use crate::hints::words;

/// What a command exits with when a person must fix something.
pub(crate) const NEEDS_A_PERSON: u8 = 4;

/// The rows that are worth a person's time.
pub(crate) fn findings(section: &str, rows: &[Row]) -> Vec<Finding> {
    let finding = |row: &Row| {
        let level = match row.mark {
            Mark::Good | Mark::Plain => return None,
            Mark::Note => Level::Note,
            Mark::Problem => Level::Problem,
        };
        Some(Finding {
            section: section.to_owned(),
            agent: row.group.clone(),
            about: row.label.clone(),
            level,
            what: row.text.clone(),
            fix: row.fix.as_ref().map(words),
        })
    };
    rows.iter().filter_map(finding).collect()
}

/// How many findings have this level.
pub(crate) fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}
