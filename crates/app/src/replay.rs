//! An attempt once more, from the raw bytes that its agent left.

use jiff::Timestamp;
use towline_api::{ReplayReport, ReplayedDifference};
use towline_core::{AttemptNo, Envelope, Event, GoalId, Seq};
use towline_engine::replay::{Comparison, Difference, Over, Replay, ReplayError, Replayed, Taken, Wording};
use towline_mask::shows_marker;

use crate::context::Context;
use crate::error::{Action, Error};
use crate::find::{self, Found};

/// How many events are read at once.
const PAGE: usize = 500;

/// Whether the bytes of an attempt still mean what is stored.
pub struct ReplayOutcome {
    pub goal: GoalId,
    pub attempt: AttemptNo,
    /// How many events are the same, or the first that is not.
    pub outcome: Result<u64, Difference>,
    /// How much of the bytes may be shown.
    pub wording: Wording,
}

impl ReplayOutcome {
    /// As programs read it.
    pub fn report(&self) -> ReplayReport {
        // What cannot be written as JSON is no event.
        let shown = |event: &Event| serde_json::to_value(event).unwrap_or_default();
        let difference = self.outcome.as_ref().err().map(|difference| {
            let fresh = difference.fresh.as_ref().filter(|_| self.wording == Wording::All);
            ReplayedDifference {
                stored: difference.stored.as_ref().map(|stored| shown(&stored.event)),
                replayed: fresh.map(|fresh| shown(&fresh.event)),
            }
        });
        let same = self.outcome.as_ref().map_or_else(|difference| difference.same, |same| *same);
        ReplayReport { goal: self.goal.to_string(), attempt: self.attempt.get(), same, difference }
    }
}

/// Reads an attempt again, the last one if none is named. `show` gets all events of the goal in their order, with a time
/// for those of the attempt: when they happened.
pub async fn replay(
    context: &Context,
    id: &str,
    attempt: Option<u32>,
    show: impl AsyncFnMut(&Envelope, Option<Timestamp>),
) -> Result<ReplayOutcome, Error> {
    let found = find::goal(context, id).await?;
    let number = find::attempt_or_last(&found.record, attempt)?;
    let comparison = Comparison::new(number, open(&found, number)?);
    let (outcome, wording) = compare(&found, number, comparison, show).await?;
    Ok(ReplayOutcome { goal: found.record.goal.id, attempt: number, outcome, wording })
}

fn open(found: &Found, number: AttemptNo) -> Result<Replay, Error> {
    let record = &found.record;
    let goal = record.goal.id;
    let is_over = record.state.attempt(number).is_some_and(|attempt| attempt.end.is_some());
    let over = if is_over { Over::Recorded } else { Over::NotYet };
    Replay::open(&found.state.home, goal, number, over).map_err(|error| match &error {
        ReplayError::NotStarted { .. } => {
            Error::not_found(error.to_string()).hint([("see why", Action::Show(goal))])
        }
        ReplayError::Removed { .. } => Error::not_found(error.to_string())
            .hint([("raw output stays for `retention.logs`; the events are still there", Action::Log(goal))]),
        ReplayError::NotOver { .. } => {
            Error::usage(error.to_string()).hint([("follow it", Action::Follow(goal))])
        }
        ReplayError::Unreadable { .. } => Error::internal(error.to_string())
            .hint([("the raw log can still be read", Action::RawLog(goal.short(), number.get()))]),
    })
}

/// Holds the stored log against the replay, and shows what happened meanwhile.
async fn compare(
    found: &Found,
    attempt: AttemptNo,
    mut comparison: Comparison,
    mut show: impl AsyncFnMut(&Envelope, Option<Timestamp>),
) -> Result<(Result<u64, Difference>, Wording), Error> {
    let mut after = Seq(0);
    loop {
        let page = found.state.store.events(found.record.goal.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok((comparison.finish(), Wording::All)) };
        after = last.seq;
        for stored in &page {
            match comparison.take(stored) {
                Ok(Taken::Elsewhere) => show(stored, None).await,
                Ok(Taken::Beside) => show(stored, Some(stored.at)).await,
                Ok(Taken::Same(fresh)) => show(stored, fresh.at.or(Some(stored.at))).await,
                Err(difference) if hides(found, attempt).await? => {
                    return Ok((Err(difference), Wording::Kind));
                }
                Err(difference) => {
                    // From where they differ on, all events of the bytes.
                    let first = difference.fresh.as_deref().cloned();
                    for fresh in first.into_iter().chain(comparison.rest()) {
                        let Replayed { at, source, parent, raw, event } = fresh;
                        let at = at.unwrap_or(stored.at);
                        let fresh = Envelope { at, source, parent, raw, event, ..stored.clone() };
                        show(&fresh, Some(at)).await;
                    }
                    return Ok((Err(difference), Wording::All));
                }
            }
        }
    }
}

/// Whether what is stored of the attempt hides something: then the bytes may not be shown either, because whoever reads
/// them now may not know what is secret in them.
async fn hides(found: &Found, attempt: AttemptNo) -> Result<bool, Error> {
    let mut after = Seq(0);
    loop {
        let page = found.state.store.events(found.record.goal.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(false) };
        after = last.seq;
        let mut of_attempt = page.iter().filter(|event| event.attempt == Some(attempt));
        if of_attempt.any(|event| shows_marker(&serde_json::to_string(&event.event).unwrap_or_default())) {
            return Ok(true);
        }
    }
}
