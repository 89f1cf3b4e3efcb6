//! The checks that only git can answer: whether paths were left alone, and whether the work was committed.

use towline_core::{Commit, WorkspaceSpec};
use towline_workspace::{Candidate, Protect, Repository, WorkspaceError};

use crate::evidence;
use crate::finding::Finding;

/// Whether nothing under the paths differs between the base and the candidate. Protected paths are as in the base
/// in every candidate, so a change to them is none here.
pub(crate) fn untouched(
    repository: &Repository,
    paths: &Protect,
    base: &Commit,
    candidate: &Candidate,
) -> Result<Finding, WorkspaceError> {
    let changes = repository.changes_under(paths, base, &candidate.commit)?;
    if changes.is_empty() {
        return Ok(Finding::met());
    }
    let problem = format!("{} that must stay as in the base", paths_are(changes.len(), "changed"));
    Ok(Finding::not_met(problem).with_evidence(evidence::listed(changes.iter().map(ToString::to_string))))
}

/// Whether the agent committed: there is a commit on top of the base, and nothing that is in no commit. Whoever works in
/// place commits on top of what was committed before.
pub(crate) fn committed(
    repository: &Repository,
    place: &WorkspaceSpec,
    candidate: &Candidate,
) -> Result<Finding, WorkspaceError> {
    let mut problems = Vec::new();
    let below = match place.mode.is_in_place() {
        true => repository.committed_base(&place.base)?,
        false => place.base.clone(),
    };
    let base = &place.base;
    if candidate.head == *base {
        problems.push("there is no new commit".to_owned());
    } else if !repository.is_on_top(&candidate.head, &below)? {
        problems.push(format!(
            "the workspace is on commit {}, which is not on top of the base {}",
            candidate.head, base
        ));
    }
    if !candidate.uncommitted.is_empty() {
        problems.push(paths_are(candidate.uncommitted.len(), "not committed"));
    }
    if problems.is_empty() {
        return Ok(Finding::met());
    }
    let list = evidence::listed(candidate.uncommitted.iter().cloned());
    Ok(Finding::not_met(problems.join("; ")).with_evidence(list))
}

fn paths_are(count: usize, what: &str) -> String {
    if count == 1 { format!("1 path is {what}") } else { format!("{count} paths are {what}") }
}
