//! How a drafted goal takes part in a pool: its place in the queue, what it waits for, which files it changes.

use std::collections::BTreeMap;

use towline_api::ErrorKind;
use towline_config::{GoalFile, NamedPrerequisite, PREREQUISITES, priority_problem};
use towline_core::{Goal, GoalId, Need, Prerequisite, Scheduling};
use towline_workspace::Protect;

use crate::context::Context;
use crate::draft::Request;
use crate::error::{Action, Error};
use crate::find;
use crate::submit::must_be_short;

/// The base of a goal that starts from what its prerequisite leaves.
pub(crate) const PREREQUISITE: &str = "prerequisite";

/// Goals that are drafted together, by the names that the others may use.
pub(crate) type Siblings = BTreeMap<String, GoalId>;

/// How the goal of a request takes part in a pool.
pub(crate) async fn of(
    context: &Context,
    run: &Request,
    file: &GoalFile,
    siblings: &Siblings,
) -> Result<Scheduling, Error> {
    let given = run.after.iter().cloned().map(|(goal, need)| NamedPrerequisite { goal, need });
    let mut after: BTreeMap<GoalId, Need> = BTreeMap::new();
    for named in file.after.iter().cloned().chain(given) {
        let goal = named_goal(context, &named.goal, siblings).await?;
        let need = after.entry(goal).or_default();
        *need = named.need.max(*need);
    }
    if file.template.is_some() && after.is_empty() {
        return Err(Error::usage(format!(
            "the prompt uses `{PREREQUISITES}`, and the goal waits for no other"
        ))
        .hint("name one in `after`"));
    }
    // The file's own was checked where it is written.
    if let Some((priority, fix)) = run.priority.and_then(|given| Some((given, priority_problem(given)?))) {
        return Err(Error::usage(format!("`priority` cannot be {priority}")).hint(fix));
    }
    for (what, list) in [("labels", &run.labels), ("touches", &run.touches)] {
        must_be_short(what, list)?;
    }
    let touches = [file.touches.clone(), run.touches.clone()].concat();
    // The file's own were checked where they are written.
    Protect::of(&touches, &[])?;
    Ok(Scheduling {
        priority: run.priority.or(file.priority).unwrap_or_default(),
        after: after.into_iter().map(|(goal, need)| Prerequisite { goal, need }).collect(),
        touches,
        template: file.template.clone(),
        ..Scheduling::default()
    })
}

/// The goal that a prerequisite names: another one of those that are drafted together, or one that exists.
async fn named_goal(context: &Context, name: &str, siblings: &Siblings) -> Result<GoalId, Error> {
    if let Some(sibling) = siblings.get(plain(name)) {
        return Ok(*sibling);
    }
    match find::goal_id(context, name).await {
        Ok((_, goal)) => Ok(goal),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::usage(format!("`after` names `{name}`, and there is no such goal"))
                .hint([("a file must be added together with this one; list the goals", Action::List)]))
        }
        Err(error) => Err(error),
    }
}

/// The name of a file in the same folder, as siblings have it.
pub(crate) fn plain(name: &str) -> &str {
    name.strip_prefix("./").unwrap_or(name)
}

/// Fails if the goal starts from its prerequisite and that cannot work.
pub(crate) async fn must_have_base(
    context: &Context,
    scheduling: &Scheduling,
    siblings: &Siblings,
    repository: &str,
) -> Result<(), Error> {
    if !scheduling.base_is_prerequisite {
        return Ok(());
    }
    let refused = |what: &str| Error::usage(format!("`base = \"{PREREQUISITE}\"` needs {what}"));
    let [Prerequisite { goal, .. }] = scheduling.after.as_slice() else {
        return Err(
            refused("exactly one goal in `after`").hint("name the goal whose work this one starts from")
        );
    };
    if siblings.values().any(|sibling| sibling == goal) {
        // It is drafted in the same directory, and in a clone of its own.
        return Ok(());
    }
    let Some(state) = context.existing_state()? else { return Ok(()) };
    let workspace = state.store.load(*goal).await?.goal.workspace;
    if workspace.mode.is_in_place() || workspace.repository != repository {
        return Err(refused("a goal of this repository that works in a clone"));
    }
    Ok(())
}

/// Fails if the goal waits for others: only a server starts it when they have ended.
pub fn must_not_wait(goal: &Goal) -> Result<(), Error> {
    if goal.scheduling.after.is_empty() {
        return Ok(());
    }
    Err(Error::usage("a goal that waits for others (`after`) needs a server, and none is running")
        .hint([("start one", Action::Up), ("or queue the goal", Action::Add)]))
}
