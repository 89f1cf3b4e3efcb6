//! Goals that are queued or hold a slot, as SQL: choosing the next one reads neither goals nor states, and only the first few rows of
//! the queue. `placing` writes the rows, `prerequisites` has what they wait for.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, ToSql};
use towline_core::{GoalId, MicroUsd, PoolGoal};

use super::failure::{Failure, readable};
use super::prerequisites::prerequisites;
use super::reads::text;
use super::text::{from_json, time_from_text, time_to_text};
use crate::{PoolView, QueuedGoal};

pub(super) const WORKING: &str = "SELECT goal, lane, rank, usd_left, COALESCE(
        (SELECT (SELECT MAX(CAST(TOTAL(cost) + TOTAL(estimate) AS INTEGER), 0) FROM ledger
            WHERE ledger.goal = attempts.goal AND ledger.attempt = attempts.n)
        FROM attempts WHERE attempts.goal = pool.goal AND ended_at IS NULL), 0)
    FROM pool WHERE standing = 'working' ORDER BY rank, goal";

/// The next lane in which a goal could start: one step in the index, however many goals each has.
pub(super) const NEXT_LANE: &str =
    "SELECT MIN(lane) FROM pool WHERE standing = 'queued' AND unmet = 0 AND lane > ?1";

/// How many lanes of a project are looked at. Goals with labels or files of their own each have a lane of their own.
const LANES_OF_PROJECT: usize = 64;

/// How many goals of the queue are looked at where a project has more lanes than that: whoever waits longest is among them.
const FURTHER: usize = 1_024;

// No attempt of a queued goal runs.
pub(super) const FIRST_OF_LANE: &str = "SELECT goal, lane, rank, usd_left, 0 FROM pool
    WHERE standing = 'queued' AND unmet = 0 AND lane = ?1 ORDER BY rank, goal";

pub(super) const READY: &str = "SELECT goal, lane, rank, usd_left, 0 FROM pool
    WHERE standing = 'queued' AND unmet = 0 AND (rank, goal) > (?1, ?2) ORDER BY rank, goal";

pub(super) const QUEUE: &str = "SELECT goal, lane, rank, usd_left, 0 FROM pool
    WHERE standing = 'queued' AND (rank, goal) > (?1, ?2) ORDER BY rank, goal";

pub(super) const WAKES: &str = "SELECT wakes_at FROM summaries
    WHERE wakes_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.goal = summaries.goal)
    ORDER BY wakes_at";

pub(super) const WHAT: &str = "its place in the queue";

pub(super) fn view(connection: &Connection, most: usize) -> Result<PoolView, Failure> {
    let mut statement = connection.prepare_cached(WORKING)?;
    let mut rows = statement.query([])?;
    let mut working = Vec::new();
    while let Some(row) = rows.next()? {
        working.extend(readable(pool_goal(row))?);
    }
    let (mut queued, mut rest) = (Vec::new(), None);
    if first_of_lanes(connection, most, &mut queued)? == Lanes::TooMany {
        let known: BTreeSet<GoalId> = queued.iter().map(|goal: &PoolGoal| goal.goal).collect();
        let first = ready(connection, None, FURTHER)?;
        rest = first.last().filter(|_| first.len() == FURTHER).map(|last| (last.rank, last.goal));
        queued.extend(first.into_iter().filter(|goal| !known.contains(&goal.goal)));
    }
    queued.sort_by_key(|goal| (goal.rank, goal.goal));
    Ok(PoolView { working, queued, rest })
}

/// Whether every lane was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lanes {
    All,
    TooMany,
}

/// A lane as it is stored, be it damaged.
enum StoredLane {
    /// Perhaps no UTF-8.
    Text(Vec<u8>),
    Other(Value),
}

impl StoredLane {
    fn of(stored: ValueRef<'_>) -> rusqlite::Result<Self> {
        Ok(match stored {
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            other => Self::Other(other.try_into()?),
        })
    }

    /// How all lanes of its project begin; nothing for one that is damaged.
    fn project(&self) -> &[u8] {
        const NEXT_FIELD: &[u8] = b"\",\"agent\":";
        let Self::Text(lane) = self else { return &[] };
        let end = lane.windows(NEXT_FIELD.len()).position(|part| part == NEXT_FIELD);
        end.map_or(&[], |end| &lane[..=end])
    }
}

impl ToSql for StoredLane {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Text(text) => ValueRef::Text(text),
            Self::Other(other) => other.into(),
        }))
    }
}

/// Adds the first goals of the first lanes of each project.
fn first_of_lanes(
    connection: &Connection,
    most: usize,
    queued: &mut Vec<PoolGoal>,
) -> Result<Lanes, Failure> {
    let mut statement = connection.prepare_cached(NEXT_LANE)?;
    let (mut after, mut project, mut of_project) = (StoredLane::Text(Vec::new()), Vec::new(), 0);
    let mut lanes = Lanes::All;
    loop {
        let lane = statement.query_row([&after], |row| StoredLane::of(row.get_ref(0)?))?;
        if matches!(lane, StoredLane::Other(Value::Null)) {
            return Ok(lanes);
        }
        let is_same = lane.project() == project && !project.is_empty();
        of_project = if is_same { of_project + 1 } else { 1 };
        project = lane.project().to_vec();
        if of_project > LANES_OF_PROJECT {
            lanes = Lanes::TooMany;
            // After all lanes of this project: no text has this byte.
            after = StoredLane::Text([project.as_slice(), &[0xff]].concat());
            continue;
        }
        first_of_lane(connection, &lane, most, queued)?;
        after = lane;
    }
}

/// The goals that wait longest of those that wait for no other, after this place.
pub(super) fn ready(
    connection: &Connection,
    after: Option<(Timestamp, GoalId)>,
    limit: usize,
) -> Result<Vec<PoolGoal>, Failure> {
    let mut statement = connection.prepare_cached(READY)?;
    let mut rows = statement.query(place_in_queue(after))?;
    let mut goals = Vec::new();
    while goals.len() < limit
        && let Some(row) = rows.next()?
    {
        goals.extend(readable(pool_goal(row))?);
    }
    Ok(goals)
}

/// A place as the columns have it; before all others if there is none.
fn place_in_queue(after: Option<(Timestamp, GoalId)>) -> [String; 2] {
    after.map(|(rank, goal)| [time_to_text(rank), goal.to_string()]).unwrap_or_default()
}

/// Adds the first goals of a lane. Rows that cannot be read take no place from others.
fn first_of_lane(
    connection: &Connection,
    lane: &StoredLane,
    most: usize,
    queued: &mut Vec<PoolGoal>,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(FIRST_OF_LANE)?;
    let mut rows = statement.query([lane])?;
    let mut found = 0;
    while found < most
        && let Some(row) = rows.next()?
    {
        let goal = readable(pool_goal(row))?;
        found += usize::from(goal.is_some());
        queued.extend(goal);
    }
    Ok(())
}

fn pool_goal(row: &Row<'_>) -> Result<PoolGoal, Failure> {
    Ok(PoolGoal {
        goal: goal_id(text(row, 0)?)?,
        lane: from_json(WHAT, text(row, 1)?)?,
        rank: time_from_text(WHAT, text(row, 2)?)?,
        left: row.get::<_, Option<u64>>(3)?.map(MicroUsd),
        spent: MicroUsd(row.get(4)?),
    })
}

pub(super) fn goal_id(text: &str) -> Result<GoalId, Failure> {
    text.parse().map_err(|why| Failure::unreadable("a goal's id", why))
}

pub(super) fn queue(
    connection: &Connection,
    after: Option<(Timestamp, GoalId)>,
    limit: usize,
) -> Result<Vec<QueuedGoal>, Failure> {
    let mut statement = connection.prepare_cached(QUEUE)?;
    let mut rows = statement.query(place_in_queue(after))?;
    let mut queue = Vec::new();
    while queue.len() < limit
        && let Some(row) = rows.next()?
    {
        if let Some(goal) = readable(pool_goal(row))? {
            let unmet = readable(prerequisites(connection, goal.goal))?.unwrap_or_default();
            queue.push(QueuedGoal { goal, unmet });
        }
    }
    Ok(queue)
}

pub(super) fn next_wake(connection: &Connection) -> Result<Option<Timestamp>, Failure> {
    let mut statement = connection.prepare_cached(WAKES)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let wakes_at = text(row, 0).and_then(|time| time_from_text("the time to wake", time));
        if let Some(wakes_at) = readable(wakes_at)? {
            return Ok(Some(wakes_at));
        }
    }
    Ok(None)
}
