//! Writes the place of a goal in the pool together with its state, so that choosing the next one reads neither goals nor states.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior, params};
use towline_core::{AgentName, Goal, GoalId, GoalState, MicroUsd, Need, PoolGoal, Unavailable};

use super::failure::{Failure, readable};
use super::pool::{WHAT, goal_id};
use super::prerequisites::{self, update_dependants};
use super::reads::{self, text};
use super::text::{from_json, time_to_text, to_json};
use crate::StoreError;
use crate::pool::PoolStanding;

/// Records the place of a new goal, what it needs, and what it means to goals that need it.
pub(super) fn add(connection: &Connection, goal: &Goal, state: &GoalState) -> Result<(), Failure> {
    prerequisites::add(connection, goal)?;
    place(connection, goal, state)?;
    update_dependants(connection, &goal.id.to_string(), |need| need.is_met(state))
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

/// Removes what is stored of a goal here. Goals that need it wait for it from now on.
pub(super) fn remove(connection: &Connection, id: &str) -> Result<(), Failure> {
    remove_place(connection, id)?;
    prerequisites::remove(connection, id)
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
