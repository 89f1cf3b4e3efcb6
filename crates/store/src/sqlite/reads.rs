//! What is read, as SQL.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use towline_core::{AttemptNo, Envelope, Generation, GoalId, PoolSeq, RawRef, Seq, Source};

use super::failure::Failure;
use super::parts;
use super::text::{from_json, time_from_text};
use crate::{GoalRecord, Lease, PendingEffect, StoreError, WorkerName};

const RECORD: &str = "SELECT goals.goal, goals.state, positions.last_seq, positions.updated_at,
        leases.worker, leases.generation, leases.until
    FROM goals JOIN positions ON positions.goal = goals.id LEFT JOIN leases ON leases.goal = goals.id
    WHERE goals.id = ?1";

pub(super) const EVENTS_SINCE: &str =
    "SELECT seq, at, attempt, source, parent, raw_offset, raw_length, body, place, goal FROM events
     WHERE place > ?1 ORDER BY place LIMIT ?2";

pub(super) fn load(connection: &Connection, goal: GoalId) -> Result<GoalRecord, Failure> {
    let mut statement = connection.prepare_cached(RECORD)?;
    let mut rows = statement.query([goal.to_string()])?;
    match rows.next()? {
        Some(row) => record(connection, goal, row),
        None => Err(StoreError::NotFound(goal).into()),
    }
}

pub(super) fn events(
    connection: &Connection,
    goal: GoalId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Envelope>, Failure> {
    must_exist(connection, goal)?;
    let mut statement = connection.prepare_cached(
        "SELECT seq, at, attempt, source, parent, raw_offset, raw_length, body FROM events
         WHERE goal = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = statement.query(params![goal.to_string(), bound(after.0), bound(limit as u64)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(envelope(goal, row)?);
    }
    Ok(events)
}

pub(super) fn events_since(
    connection: &Connection,
    after: PoolSeq,
    limit: usize,
) -> Result<Vec<(PoolSeq, Envelope)>, Failure> {
    let mut statement = connection.prepare_cached(EVENTS_SINCE)?;
    let mut rows = statement.query(params![bound(after.0), bound(limit as u64)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let goal = text(row, 9)?.parse().map_err(|why| Failure::unreadable("the goal of an event", why))?;
        events.push((PoolSeq(row.get(8)?), envelope(goal, row)?));
    }
    Ok(events)
}

/// A number for a column that is only compared with it.
fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn pending(connection: &Connection, goal: GoalId) -> Result<Vec<PendingEffect>, Failure> {
    must_exist(connection, goal)?;
    let mut statement = connection
        .prepare_cached("SELECT key, effect FROM outbox WHERE goal = ?1 AND settled = 0 ORDER BY place")?;
    let mut rows = statement.query([goal.to_string()])?;
    let mut pending = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        let effect = from_json(&format!("effect {key} of goal {goal}"), text(row, 1)?)?;
        pending.push(PendingEffect { key, effect });
    }
    Ok(pending)
}

/// The stored lease, in force or not.
pub(super) fn lease(connection: &Connection, goal: GoalId) -> Result<Option<Lease>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT worker, generation, until FROM leases WHERE goal = ?1")?;
    let mut rows = statement.query([goal.to_string()])?;
    match rows.next()? {
        Some(row) => lease_at(goal, row, 0),
        None => Ok(None),
    }
}

fn must_exist(connection: &Connection, goal: GoalId) -> Result<(), Failure> {
    let found = connection
        .prepare_cached("SELECT 1 FROM goals WHERE id = ?1")?
        .query_row([goal.to_string()], |_| Ok(()))
        .optional()?;
    found.ok_or_else(|| StoreError::NotFound(goal).into())
}

/// The row's statement is still open, so the parts are of the same moment as the row.
fn record(connection: &Connection, goal: GoalId, row: &Row<'_>) -> Result<GoalRecord, Failure> {
    let whole = part_of(goal, row, 0, "goal")?;
    let state = match parts::load(connection, goal).map_err(|failure| Failure::of_goal(goal, failure))? {
        Some(state) => state,
        // As an earlier version left it.
        None => part_of(goal, row, 1, "the state of goal")?,
    };
    let record = GoalRecord {
        goal: whole,
        state,
        last_seq: Seq(row.get(2)?),
        updated_at: time_from_text(&format!("the time of goal {goal}"), text(row, 3)?)?,
        lease: lease_at(goal, row, 4)?,
    };
    Ok(record.with_checks_in_force())
}

/// A column that holds JSON of this goal. What is wrong with it concerns no other goal.
fn part_of<T: DeserializeOwned>(
    goal: GoalId,
    row: &Row<'_>,
    column: usize,
    what: &str,
) -> Result<T, Failure> {
    let what = format!("{what} {goal}");
    let text = row.get_ref(column)?.as_str().map_err(|why| Failure::unreadable(what.as_str(), why));
    text.and_then(|text| from_json(&what, text)).map_err(|failure| Failure::of_goal(goal, failure))
}

/// The lease in the three columns from `first` on.
pub(super) fn lease_at(goal: GoalId, row: &Row<'_>, first: usize) -> Result<Option<Lease>, Failure> {
    let Some(worker) = row.get(first)? else { return Ok(None) };
    Ok(Some(Lease {
        goal,
        worker: WorkerName(worker),
        generation: Generation(row.get(first + 1)?),
        until: time_from_text(&format!("the lease of goal {goal}"), text(row, first + 2)?)?,
    }))
}

fn envelope(goal: GoalId, row: &Row<'_>) -> Result<Envelope, Failure> {
    let seq = Seq(row.get(0)?);
    let what = || format!("event {seq} of goal {goal}");
    let attempt = match row.get::<_, Option<u32>>(2)? {
        Some(n) => {
            Some(AttemptNo::new(n).ok_or_else(|| Failure::unreadable(what(), "there is no attempt 0"))?)
        }
        None => None,
    };
    let raw = match (row.get(5)?, row.get(6)?) {
        (Some(offset), Some(length)) => Some(RawRef { offset, length }),
        _ => None,
    };
    Ok(Envelope {
        goal,
        seq,
        at: time_from_text(&what(), text(row, 1)?)?,
        attempt,
        source: Source::named(text(row, 3)?)
            .ok_or_else(|| Failure::unreadable(what(), "its source is unknown"))?,
        parent: row.get(4)?,
        raw,
        event: from_json(&what(), text(row, 7)?)?,
    })
}

/// A text column without copying it: bodies and states can be large.
pub(super) fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str, Failure> {
    row.get_ref(column)?.as_str().map_err(|why| Failure::unreadable(format!("column {column}"), why))
}
