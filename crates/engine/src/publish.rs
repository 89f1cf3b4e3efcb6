//! What an ended goal leaves in the user's repository: a branch at its last candidate, or a ref where it worked in place.

use tokio::sync::watch;
use towline_core::{Commit, Event, Goal, GoalState, Phase, WorkspaceBinding};
use towline_workspace::{Protect, Stop, WorkspaceError};

use crate::checkouts;
use crate::home::Home;
use crate::news::{EventSender, StopLevel, own};
use crate::place::{repository_of, workspace_of};
use crate::prepare::{stoppable, stopped};

/// Publishes the work of a goal that has ended, and reports it. No verdict follows, so checkouts are removed.
pub(crate) async fn run(
    home: Home,
    goal: Goal,
    state: GoalState,
    sender: EventSender,
    stop: watch::Receiver<StopLevel>,
) {
    let (id, of) = (goal.id, home.clone());
    if let Some(event) = publish(home, goal, state, stop).await {
        // Waits until it is recorded: the driver ends when this does. A driver that has ended needs no report.
        let _ = sender.send_and_wait(vec![own(sender.stamp(), event)]).await;
    }
    // What cannot be removed now is found by the next sweep.
    let _ = tokio::task::spawn_blocking(move || checkouts::remove(&of, id)).await;
}

/// Sets the goal's branch to its last candidate, if it has work. Gives what is to be recorded, if that is news.
async fn publish(
    home: Home,
    goal: Goal,
    state: GoalState,
    stop: watch::Receiver<StopLevel>,
) -> Option<Event> {
    let binding = state.workspace.clone()?;
    let published =
        stoppable(stopped(stop), move |halt| try_to_publish(&home, &goal, &state, binding, halt)).await;
    let why = match published {
        Ok(Ok(event)) => return event,
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic.to_string(),
    };
    Some(without_branch(&why))
}

fn without_branch(why: &str) -> Event {
    Event::Notice { text: format!("the work has no branch in your repository: {why}") }
}

fn try_to_publish(
    home: &Home,
    goal: &Goal,
    state: &GoalState,
    binding: WorkspaceBinding,
    halt: &Stop,
) -> Result<Option<Event>, WorkspaceError> {
    let Some(commit) = work_of(home, goal, state, &binding, halt)? else { return Ok(None) };
    let own = repository_of(home, goal)?.until(halt);
    let name = format!("refs/towline/{}/published", goal.id);
    let Some(branch) = binding.branch else {
        own.publish(&commit, &name)?;
        return Ok(None);
    };
    if !own.publish_branch(&goal.id.to_string(), &branch, &commit)? {
        return Ok(Some(without_branch(&format!("{branch} is yours or in use; the work is at {name}"))));
    }
    let is_news = state.branch.as_ref() != Some(&branch);
    Ok(is_news.then_some(Event::Published { branch, commit }))
}

/// The last candidate, if it is more than the base. A goal without checks has had none: one is made.
fn work_of(
    home: &Home,
    goal: &Goal,
    state: &GoalState,
    binding: &WorkspaceBinding,
    halt: &Stop,
) -> Result<Option<Commit>, WorkspaceError> {
    let candidate = match (&state.candidate, &state.phase, state.last_attempt()) {
        (Some(candidate), ..) => candidate.clone(),
        (None, Phase::Unproven, Some(last)) => {
            let (_, workspace) = workspace_of(home, goal, binding, halt)?;
            let workspace = workspace.with_message(goal.commit_message(&last.text));
            workspace.candidate(last.n.get(), &Protect::of_candidate(goal)?)?.commit
        }
        _ => return Ok(None),
    };
    Ok(Some(candidate).filter(|candidate| *candidate != goal.workspace.base))
}
