//! Goals of a repository that have not ended, to see whether a goal is added for the second time.

use std::collections::BTreeSet;

use towline_core::{Goal, GoalId};
use towline_store::{GoalRecord, GoalSummary, Listed, Listing, Order, list_all};

use crate::context::{Context, State};
use crate::error::Error;

/// Goals of a repository that have not ended.
pub(crate) struct Unended {
    state: Option<State>,
    /// Those of the repository that was asked about first. Goals that are added together are of one repository.
    listed: Option<Vec<GoalSummary>>,
    /// Those that were found to be the same as one that is added. Two files may be equal.
    found: BTreeSet<GoalId>,
}

/// A goal with the same prompt that has not ended.
pub(crate) enum Like {
    /// It asks for exactly the same.
    Same(Box<GoalRecord>),
    Other(GoalId),
}

impl Like {
    pub(crate) const fn goal(&self) -> GoalId {
        match self {
            Self::Same(record) => record.goal.id,
            Self::Other(goal) => *goal,
        }
    }
}

impl Unended {
    pub(crate) fn new(context: &Context) -> Result<Self, Error> {
        Ok(Self { state: context.existing_state()?, listed: None, found: BTreeSet::new() })
    }

    /// The goal that is most like this one. One that asks for the same is given once.
    pub(crate) async fn like(&mut self, goal: &Goal) -> Result<Option<Like>, Error> {
        let Some(state) = self.state.clone() else { return Ok(None) };
        if self.listed.is_none() {
            let repository = Some(goal.workspace.repository.clone());
            // Of equal files the first one is the goal that was added first.
            let order = Order::OldestFirst;
            let listing = Listing { repository, settled: Some(false), order, ..Listing::all() };
            let listed = list_all(state.store.as_ref(), listing).await?;
            self.listed = Some(listed.into_iter().filter_map(Listed::readable).collect());
        }
        let mut other = None;
        // Most goals differ in their titles, and need not be read.
        for listed in self.listed.iter().flatten().filter(|listed| listed.title == goal.title) {
            let record = state.store.load(listed.id).await?;
            if asks_for_same(&record, goal) && self.found.insert(listed.id) {
                return Ok(Some(Like::Same(Box::new(record))));
            }
            if record.goal.prompt == goal.prompt {
                other.get_or_insert(Like::Other(listed.id));
            }
        }
        Ok(other)
    }
}

/// Whether all is equal but what each goal has of its own, what depends on the moment, and what came into force later.
fn asks_for_same(there: &GoalRecord, goal: &Goal) -> bool {
    let mut same = goal.clone();
    same.id = there.goal.id;
    same.created_at = there.goal.created_at;
    same.origin.clone_from(&there.goal.origin);
    same.workspace.base.clone_from(&there.goal.workspace.base);
    same.workspace.git.clone_from(&there.goal.workspace.git);
    same.scheduling.search_path.clone_from(&there.goal.scheduling.search_path);
    if there.state.replaced_checks.is_some() {
        same.checks.clone_from(&there.goal.checks);
    }
    if there.state.inherited.as_ref().is_some_and(|inherited| inherited.prompt.is_some()) {
        same.prompt.clone_from(&there.goal.prompt);
    }
    same == there.goal
}
