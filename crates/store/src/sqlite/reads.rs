//! What is read, as SQL.

use rusqlite::{Connection, OptionalExtension, Row, params};
use towline_core::{AttemptNo, Envelope, Generation, GoalId, PoolSeq, RawRef, Seq, Source};

use super::failure::{Failure, readable};
use super::parts;
use super::text::{from_json, time_from_text};
use crate::{GoalRecord, Lease, PendingEffect, StoreError, WorkerName};

/// A goal of which only the summary is left is there, and cannot be read.
const RECORD: &str = "SELECT goals.goal, goals.state, positions.last_seq, positions.updated_at,
        leases.worker, leases.generation, leases.until
    FROM (SELECT ?1 AS id) AS wanted LEFT JOIN goals ON goals.id = wanted.id
        LEFT JOIN positions ON positions.goal = wanted.id LEFT JOIN leases ON leases.goal = wanted.id
    WHERE goals.id IS NOT NULL OR EXISTS (SELECT 1 FROM summaries WHERE summaries.goal = wanted.id)";

pub(super) const EVENTS_SINCE: &str =
    "SELECT seq, at, attempt, source, parent, raw_offset, raw_length, body, place, goal FROM events
     WHERE place > ?1 ORDER BY place";

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

/// The place of the newest event of all goals, also if its goal was removed.
pub(super) fn last_place(connection: &Connection) -> Result<PoolSeq, Failure> {
    let newest = "SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)";
    Ok(PoolSeq(connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?))
}

pub(super) fn events_since(
    connection: &Connection,
    after: PoolSeq,
    limit: usize,
) -> Result<Vec<(PoolSeq, Envelope)>, Failure> {
    let mut statement = connection.prepare_cached(EVENTS_SINCE)?;
    let mut rows = statement.query([bound(after.0)])?;
    let mut events = Vec::new();
    while events.len() < limit
        && let Some(row) = rows.next()?
    {
        events.extend(readable(placed_event(row))?);
    }
    Ok(events)
}

fn placed_event(row: &Row<'_>) -> Result<(PoolSeq, Envelope), Failure> {
    let goal = text(row, 9)?.parse().map_err(|why| Failure::unreadable("the goal of an event", why))?;
    Ok((PoolSeq(row.get(8)?), envelope(goal, row)?))
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
        let effect = from_json(&format!("effect {key}"), text(row, 1)?)?;
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

pub(super) fn must_exist(connection: &Connection, goal: GoalId) -> Result<(), Failure> {
    let found = connection
        .prepare_cached("SELECT 1 FROM goals WHERE id = ?1")?
        .query_row([goal.to_string()], |_| Ok(()))
        .optional()?;
    found.ok_or_else(|| StoreError::NotFound(goal).into())
}

/// The row's statement is still open, so the parts are of the same moment as the row.
fn record(connection: &Connection, goal: GoalId, row: &Row<'_>) -> Result<GoalRecord, Failure> {
    let state = match parts::load(connection, goal)? {
        Some(state) => state,
        // As an earlier version left it.
        None => from_json("the state", text(row, 1)?)?,
    };
    let record = GoalRecord {
        goal: from_json("the definition", text(row, 0)?)?,
        state,
        last_seq: Seq(row.get(2)?),
        updated_at: time_from_text("the time", text(row, 3)?)?,
        lease: lease_at(goal, row, 4)?,
    };
    Ok(record.with_all_in_force())
}

/// The lease in the three columns from `first` on.
pub(super) fn lease_at(goal: GoalId, row: &Row<'_>, first: usize) -> Result<Option<Lease>, Failure> {
    let Some(worker) = row.get(first)? else { return Ok(None) };
    Ok(Some(Lease {
        goal,
        worker: WorkerName(worker),
        generation: Generation(row.get(first + 1)?),
        until: time_from_text("the lease", text(row, first + 2)?)?,
    }))
}

fn envelope(goal: GoalId, row: &Row<'_>) -> Result<Envelope, Failure> {
    let seq = Seq(row.get(0)?);
    let what = || format!("event {seq}");
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
    row.get_ref(column)?.as_str().map_err(|why| {
        let name = row.as_ref().column_name(column).unwrap_or("?");
        Failure::unreadable(format!("the column {name}"), why)
    })
}
