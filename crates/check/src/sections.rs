//! Protected sections of files: their values must be as in the base.
//!
//! Sections are not restored, because the rest of their file is the agent's to change. A change fails the verdict, with the
//! difference as evidence. Files are compared as commits have them, so that nothing that setup or a check does counts.
//! `section_values` reads the formats.

use std::collections::BTreeSet;
use std::time::Instant;

use towline_core::{CheckResult, Commit, Goal};
use towline_workspace::{ChangedPath, FileAt, Protect, Repository, Section};

use crate::blocking::blocking;
use crate::finding::Finding;
use crate::section_values::values;
use crate::verdict::{CheckRun, Progress};
use crate::{CheckError, evidence};

/// The name of the check that a verdict has when a protected section differs.
const PROTECTED: &str = "protected";

/// Files with more bytes are not compared, and so count as changed.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The failed check of a candidate in which a protected section differs from the base.
pub(crate) async fn changed(
    run: &CheckRun<'_>,
    on_progress: &mut impl FnMut(Progress),
) -> Result<Option<CheckResult>, CheckError> {
    let started = Instant::now();
    let (repository, goal, candidate) =
        (run.repository.clone(), run.goal.clone(), run.candidate.commit.clone());
    let finding = blocking(move || compare(&repository, &goal, &candidate)).await?;
    let result = finding.into_result(PROTECTED, started.elapsed());
    if result.met {
        return Ok(None);
    }
    on_progress(Progress::Started { name: PROTECTED.to_owned(), process: None });
    on_progress(Progress::Finished { result: result.clone() });
    Ok(Some(result))
}

/// Whether the goal's protected sections are the same in a candidate and in the base.
fn compare(repository: &Repository, goal: &Goal, candidate: &Commit) -> Result<Finding, CheckError> {
    let protect = Protect::of_goal(goal)?;
    let base = &goal.workspace.base;
    let mut differing = Vec::new();
    let mut lines = Vec::new();
    for section in protect.sections() {
        let files = Protect::new(&[section.file().to_owned()])?;
        for ChangedPath { path, .. } in repository.changes_under(&files, base, candidate)? {
            let (before, after) =
                (repository.file_at(base, &path, LARGEST)?, repository.file_at(candidate, &path, LARGEST)?);
            let difference = match (&before, &after) {
                // A name that is no text cannot be asked for.
                (FileAt::Missing, FileAt::Missing) => vec!["its path cannot be read".to_owned()],
                (before, after) => difference(&Side::read(section, before), &Side::read(section, after)),
            };
            if !difference.is_empty() {
                let name = format!("{path}#{}", section.name());
                lines.push(format!("{name}:"));
                lines.extend(difference);
                differing.push(name);
            }
        }
    }
    if differing.is_empty() {
        return Ok(Finding::met());
    }
    let problem = match differing.as_slice() {
        [one] => format!("{one} is protected and differs from the base"),
        several => format!("{} protected sections differ from the base", several.len()),
    };
    Ok(Finding::not_met(problem).with_evidence(evidence::listed(lines)))
}

/// One side of a comparison.
#[derive(Debug, PartialEq, Eq)]
enum Side {
    /// The values of the section, a line for each; none where there is no such section.
    Values(Vec<String>),
    /// Why there are none to compare.
    Unreadable(String),
}

impl Side {
    fn read(section: &Section, file: &FileAt) -> Self {
        let unreadable = |why: &str| Self::Unreadable(why.to_owned());
        match file {
            FileAt::Missing => Self::Values(Vec::new()),
            FileAt::NotAFile => unreadable("it is not a regular file"),
            FileAt::TooLarge => unreadable("the file is too large to compare"),
            FileAt::Regular(bytes) => values(section, bytes)
                .map_or_else(|why| Self::Unreadable(format!("it cannot be parsed: {why}")), Self::Values),
        }
    }
}

/// The lines by which two sides differ, marked as in a patch. What cannot be read is equal to nothing.
fn difference(base: &Side, candidate: &Side) -> Vec<String> {
    let (before, after) = match (base, candidate) {
        (Side::Values(before), Side::Values(after)) => (before, after),
        (base, candidate) => return [side_lines("-", base), side_lines("+", candidate)].concat(),
    };
    if before == after {
        return Vec::new();
    }
    let (old, new): (BTreeSet<&String>, BTreeSet<&String>) =
        (before.iter().collect(), after.iter().collect());
    let gone = before.iter().filter(|line| !new.contains(line)).map(|line| format!("- {line}"));
    let added = after.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}"));
    let lines: Vec<String> = gone.chain(added).collect();
    if lines.is_empty() { vec!["the same values are in another order".to_owned()] } else { lines }
}

fn side_lines(mark: &str, side: &Side) -> Vec<String> {
    match side {
        Side::Values(lines) if lines.is_empty() => vec![format!("{mark} (no such section)")],
        Side::Values(lines) => lines.iter().map(|line| format!("{mark} {line}")).collect(),
        Side::Unreadable(why) => vec![format!("{mark} ({why})")],
    }
}
