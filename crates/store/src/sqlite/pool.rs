//! Goals that are queued or hold a slot, and what they wait for, as SQL: written with the state of each goal, so that choosing the
//! next one reads neither goals nor states, and only the first few rows of the queue.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, ToSql, TransactionBehavior, params};
use towline_core::{AgentName, Goal, GoalId, GoalState, MicroUsd, Need, PoolGoal, Prerequisite, Unavailable};

use super::failure::{Failure, readable};
use super::reads::{self, text};
use super::text::{from_json, time_from_text, time_to_text, to_json};
use crate::pool::PoolStanding;
use crate::{PoolView, QueuedGoal, StoreError, Unmet};

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

pub(super) const UNMET: &str = "SELECT needs, need, summaries.phase
    FROM prerequisites LEFT JOIN summaries ON summaries.goal = needs
    WHERE prerequisites.goal = ?1 AND met IS NOT 1 ORDER BY place";

pub(super) const WAKES: &str = "SELECT wakes_at FROM summaries
    WHERE wakes_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.goal = summaries.goal)
    ORDER BY wakes_at";

const WHAT: &str = "its place in the queue";

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

fn goal_id(text: &str) -> Result<GoalId, Failure> {
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

pub(super) fn unmet(connection: &Connection, goal: GoalId) -> Result<Vec<Unmet>, Failure> {
    reads::must_exist(connection, goal)?;
    prerequisites(connection, goal)
}

/// The prerequisites of a goal that are not met.
fn prerequisites(connection: &Connection, goal: GoalId) -> Result<Vec<Unmet>, Failure> {
    let mut statement = connection.prepare_cached(UNMET)?;
    let mut rows = statement.query([goal.to_string()])?;
    let mut unmet = Vec::new();
    while let Some(row) = rows.next()? {
        let need = Need::named(text(row, 1)?)
            .ok_or_else(|| Failure::unreadable("a prerequisite", "what it needs is unknown"))?;
        let prerequisite = Prerequisite { goal: goal_id(text(row, 0)?)?, need };
        // What is damaged in the row of another goal is that goal's.
        let phase = row.get_ref(2)?.as_bytes_or_null().ok().flatten();
        let phase = phase.map(|phase| String::from_utf8_lossy(phase).into_owned());
        unmet.push(Unmet { prerequisite, phase });
    }
    Ok(unmet)
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

/// Records the place of a new goal, what it needs, and what it means to goals that need it.
pub(super) fn add(connection: &Connection, goal: &Goal, state: &GoalState) -> Result<(), Failure> {
    let id = goal.id.to_string();
    for (place, prerequisite) in goal.scheduling.after.iter().enumerate() {
        let is_met = is_met(connection, *prerequisite)?;
        connection
            .prepare_cached(
                "INSERT INTO prerequisites (goal, place, needs, need, met) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![id, place, prerequisite.goal.to_string(), prerequisite.need.name(), is_met])?;
    }
    place(connection, goal, state)?;
    update_dependants(connection, &id, |need| need.is_met(state))
}

fn is_met(connection: &Connection, prerequisite: Prerequisite) -> Result<bool, Failure> {
    match reads::load(connection, prerequisite.goal) {
        Ok(needed) => Ok(prerequisite.need.is_met(&needed.state)),
        Err(Failure::Refused(StoreError::NotFound(_)) | Failure::Unreadable { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Brings everything in line with the state that is being written, where it differs from the one before.
pub(super) fn follow(
    connection: &Connection,
    goal: GoalId,
    state: &GoalState,
    before: Option<&GoalState>,
) -> Result<(), Failure> {
    let id = goal.to_string();
    if before.map(decisive) != Some(decisive(state)) {
        // A goal is long, and most appends change nothing that its place depends on.
        match PoolStanding::of(state).map(|_| definition(connection, &id)).transpose()?.flatten() {
            Some(goal) => place(connection, &goal, state)?,
            None => remove_place(connection, &id)?,
        }
    } else if before.and_then(GoalState::usd_left) != state.usd_left() {
        connection
            .prepare_cached("UPDATE pool SET usd_left = ?2 WHERE goal = ?1")?
            .execute(params![id, usd_left(state.usd_left())])?;
    }
    if before.is_none_or(|before| Need::ALL.iter().any(|need| need.is_met(before) != need.is_met(state))) {
        update_dependants(connection, &id, |need| need.is_met(state))?;
    }
    Ok(())
}

/// Everything in a state that decides the place of its goal, apart from its money.
type Decisive<'a> = (
    Option<PoolStanding>,
    Option<Timestamp>,
    [Option<&'a AgentName>; 2],
    &'a BTreeMap<AgentName, Unavailable>,
);

fn decisive(state: &GoalState) -> Decisive<'_> {
    let present = state.last_attempt().map(|attempt| &attempt.agent);
    let agents = [state.dispatched_agent.as_ref(), present];
    (PoolStanding::of(state), state.queued_at, agents, &state.unavailable)
}

/// The goal as it was created; none if that cannot be read.
fn definition(connection: &Connection, id: &str) -> Result<Option<Goal>, Failure> {
    let mut statement = connection.prepare_cached("SELECT goal FROM goals WHERE id = ?1")?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    readable(text(row, 0).and_then(|goal| from_json("the definition", goal)))
}

fn place(connection: &Connection, goal: &Goal, state: &GoalState) -> Result<(), Failure> {
    let id = goal.id.to_string();
    let standing = match PoolStanding::of(state) {
        Some(PoolStanding::Queued) => "queued",
        Some(PoolStanding::Working) => "working",
        None => return remove_place(connection, &id),
    };
    let PoolGoal { lane, rank, left, .. } = PoolGoal::of(goal, state);
    connection
        .prepare_cached(
            "INSERT INTO pool (goal, standing, lane, rank, usd_left, unmet)
             VALUES (?1, ?2, ?3, ?4, ?5,
                 (SELECT COUNT(*) FROM prerequisites WHERE prerequisites.goal = ?1 AND met IS NOT 1))
             ON CONFLICT (goal) DO UPDATE SET standing = excluded.standing, lane = excluded.lane,
                 rank = excluded.rank, usd_left = excluded.usd_left, unmet = excluded.unmet",
        )?
        .execute(params![id, standing, to_json(WHAT, &lane)?, time_to_text(rank), usd_left(left)])?;
    Ok(())
}

fn remove_place(connection: &Connection, id: &str) -> Result<(), Failure> {
    connection.prepare_cached("DELETE FROM pool WHERE goal = ?1")?.execute([id])?;
    Ok(())
}

/// An amount for its column, which has no place for the largest ones.
fn usd_left(left: Option<MicroUsd>) -> Option<i64> {
    left.map(|left| i64::try_from(left.0).unwrap_or(i64::MAX))
}

/// Frees goals that need this one, or holds them again.
fn update_dependants(
    connection: &Connection,
    id: &str,
    is_met: impl Fn(Need) -> bool,
) -> Result<(), Failure> {
    let mut changed = 0;
    for need in Need::ALL {
        changed += connection
            .prepare_cached(
                "UPDATE prerequisites SET met = ?3 WHERE needs = ?1 AND need = ?2 AND met IS NOT ?3",
            )?
            .execute(params![id, need.name(), is_met(need)])?;
    }
    if changed > 0 {
        connection
            .prepare_cached(
                "UPDATE pool SET unmet = (SELECT COUNT(*) FROM prerequisites
                     WHERE prerequisites.goal = pool.goal AND met IS NOT 1)
                 WHERE goal IN (SELECT goal FROM prerequisites WHERE needs = ?1)",
            )?
            .execute([id])?;
    }
    Ok(())
}

/// Removes what is stored of a goal here. Goals that need it wait for it from now on.
pub(super) fn remove(connection: &Connection, id: &str) -> Result<(), Failure> {
    remove_place(connection, id)?;
    connection.prepare_cached("DELETE FROM prerequisites WHERE goal = ?1")?.execute([id])?;
    update_dependants(connection, id, |_| false)
}

/// Gives goals of earlier versions their places, after an upgrade. A kill before the end leaves that to the next program that
/// opens the database.
pub(super) fn place_upgraded(connection: &mut Connection) -> Result<(), Failure> {
    if !connection.query_row("SELECT EXISTS (SELECT 1 FROM unplaced)", [], |row| row.get(0))? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for goal in unplaced(&transaction)? {
        match reads::load(&transaction, goal) {
            Ok(record) => {
                let wakes_at = record.state.wakes_at(goal).map(time_to_text);
                transaction
                    .prepare_cached("UPDATE summaries SET wakes_at = ?2 WHERE goal = ?1")?
                    .execute(params![goal.to_string(), wakes_at])?;
                place(&transaction, &record.goal, &record.state)?;
            }
            // Nobody can run it, and its next append places it.
            Err(Failure::Refused(StoreError::NotFound(_)) | Failure::Unreadable { .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
    transaction.execute("DELETE FROM unplaced", [])?;
    transaction.commit()?;
    Ok(())
}

fn unplaced(connection: &Connection) -> Result<Vec<GoalId>, Failure> {
    let mut statement = connection.prepare("SELECT goal FROM unplaced")?;
    let mut rows = statement.query([])?;
    let mut goals = Vec::new();
    while let Some(row) = rows.next()? {
        goals.extend(readable(text(row, 0).and_then(goal_id))?);
    }
    Ok(goals)
}
