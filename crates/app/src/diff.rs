//! What a goal changed.

use towline_core::{GoalId, Phase};
use towline_engine::workspace_of;
use towline_workspace::Stop;

use crate::context::Context;
use crate::error::Error;
use crate::find;

/// How much of a change is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it, as a patch.
    Patch,
    /// The files, and how many lines changed.
    Stat,
}

/// What a goal changed.
pub struct Change {
    pub goal: GoalId,
    /// The change, with its secrets.
    pub text: String,
}

/// The change of a goal: that of the proven candidate when the goal is done, else what is in the workspace now. What was proven can be seen without the workspace, which may have been removed.
pub async fn diff(context: &Context, id: &str, detail: Detail) -> Result<Change, Error> {
    let found = find::goal(context, id).await?;
    let (record, home) = (&found.record, &found.state.home);
    let Some(binding) = &record.state.workspace else {
        return Err(Error::not_found(format!("goal {} has no workspace yet", record.goal.id.short())));
    };
    let proven = record.state.candidate.as_ref().filter(|_| record.state.phase == Phase::Done);
    let repository = find::repository(home, record)?;
    let now = || workspace_of(home, &record.goal, binding, &Stop::default()).map(|(_, workspace)| workspace);
    let text = match (proven, detail) {
        (Some(candidate), Detail::Patch) => repository.diff(&binding.base, candidate)?,
        (Some(candidate), Detail::Stat) => repository.diff_stat(&binding.base, candidate)?.to_string(),
        (None, Detail::Patch) => now()?.diff()?,
        (None, Detail::Stat) => now()?.diff_stat()?.to_string(),
    };
    Ok(Change { goal: record.goal.id, text })
}
