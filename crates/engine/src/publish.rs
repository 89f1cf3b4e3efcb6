//! What an ended goal leaves in the user's repository: a branch at its last candidate, or a ref where it worked in place.

use tokio::task::spawn_blocking;
use towline_core::{Commit, Goal, GoalState, Phase, WorkspaceBinding};
use towline_workspace::{Protect, WorkspaceError};

use crate::home::Home;
use crate::place::{repository_of, workspace_of};

/// Sets the goal's branch to its last candidate, if it has work. Gives the branch and the commit when that is news.
pub(crate) async fn publish(
    home: &Home,
    goal: &Goal,
    state: &GoalState,
    binding: WorkspaceBinding,
) -> Result<Option<(String, Commit)>, String> {
    let (home, goal, state) = (home.clone(), goal.clone(), state.clone());
    let published = spawn_blocking(move || -> Result<_, WorkspaceError> {
        let Some(commit) = work_of(&home, &goal, &state, &binding)? else { return Ok(Ok(None)) };
        let own = repository_of(&home, &goal)?;
        let Some(branch) = binding.branch else {
            own.publish(&commit, &format!("refs/towline/{}/published", goal.id))?;
            return Ok(Ok(None));
        };
        if !own.publish_branch(&goal.id.to_string(), &branch, &commit)? {
            let name = format!("refs/towline/{}/published", goal.id);
            return Ok(Err(format!("{branch} is yours or in use; the work is at {name}")));
        }
        let is_news = state.branch.as_ref() != Some(&branch);
        Ok(Ok(is_news.then_some((branch, commit))))
    });
    let published = published.await.map_err(|panic| panic.to_string())?;
    published.map_err(|error| error.to_string())?
}

/// The last candidate, if it is more than the base. A goal without checks has had none: one is made.
fn work_of(
    home: &Home,
    goal: &Goal,
    state: &GoalState,
    binding: &WorkspaceBinding,
) -> Result<Option<Commit>, WorkspaceError> {
    let candidate = match (&state.candidate, &state.phase, state.last_attempt()) {
        (Some(candidate), ..) => candidate.clone(),
        (None, Phase::Unproven, Some(last)) => {
            let (_, workspace) = workspace_of(home, goal, binding)?;
            workspace.candidate(last.n.get(), &Protect::of_candidate(goal)?)?.commit
        }
        _ => return Ok(None),
    };
    Ok(Some(candidate).filter(|candidate| *candidate != goal.workspace.base))
}
