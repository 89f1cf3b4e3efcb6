//! How far a goal's work and the user's branch have moved apart.

use towline_api::DivergenceReport;

use crate::context::Context;
use crate::error::Error;
use crate::find;
use crate::merge::started_from;

/// So that a reply stays small, however much conflicts.
const MOST_CONFLICTS: usize = 50;

/// Compares the work of a goal with the branch that is checked out in its repository.
pub async fn divergence(context: &Context, id: &str) -> Result<DivergenceReport, Error> {
    let found = find::goal(context, id).await?;
    let (goal, state) = (&found.record.goal, &found.record.state);
    let nothing =
        DivergenceReport { id: goal.id.to_string(), into: None, ahead: 0, behind: 0, conflicts: Vec::new() };
    let Some(candidate) = state.candidate.as_ref().filter(|_| !goal.workspace.mode.is_in_place()) else {
        return Ok(nothing);
    };
    let own = find::repository(&found.state.home, &found.record)?;
    let start = started_from(found.state.store.as_ref(), goal).await;
    let seen = own.lender().unwrap_or(&own).seeing(&own).divergence(candidate, &start)?;
    Ok(seen.map_or(nothing.clone(), |seen| DivergenceReport {
        into: Some(seen.into),
        ahead: seen.ahead,
        behind: seen.behind,
        conflicts: seen.conflicts.into_iter().take(MOST_CONFLICTS).collect(),
        ..nothing
    }))
}
