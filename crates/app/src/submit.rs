//! Handing a drafted goal to the pool.

use towline_core::{Envelope, Event, GoalState, Source};
use towline_store::GoalRecord;

use crate::add::must_have_clone;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;

/// The most entries of a list that comes with a goal, and the longest text of one.
const MOST_ENTRIES: usize = 64;
const LONGEST_ENTRY: usize = 256;

/// Records a drafted goal. It waits in the queue until a pool starts it.
pub async fn submit(context: &Context, draft: Draft) -> Result<GoalRecord, Error> {
    let goal = must_have_clone(context, draft)?.goal;
    let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
    Ok(context.state()?.store.create(&goal, &GoalState::new(&goal), created).await?)
}

/// Fails if a list that comes with a goal is too long, or has an entry that is empty or too long.
pub(crate) fn must_be_short(what: &str, list: &[String]) -> Result<(), Error> {
    let is_long = list.len() > MOST_ENTRIES || list.iter().any(|entry| entry.len() > LONGEST_ENTRY);
    if is_long || list.iter().any(|entry| entry.trim().is_empty()) {
        let bounds = format!("at most {MOST_ENTRIES} texts of 1 to {LONGEST_ENTRY} bytes");
        return Err(Error::usage(format!("`{what}` takes {bounds}")));
    }
    Ok(())
}
