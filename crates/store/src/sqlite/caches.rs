//! Tables that repeat part of a goal's state where the database itself must see it: its summary for lists, its
//! attempts, of which at most one may run, and its sessions.
//!
//! Appends of agent events are frequent and mostly change none, so each looks at one row and writes only what differs.

use rusqlite::{Connection, OptionalExtension, params};
use towline_core::{Attempt, Generation, GoalId, GoalState, SessionBinding};

use super::failure::Failure;
use super::lists::{Standing, short};
use super::text::{time_to_text, to_json};
use super::writes::GoalRow;
use crate::summary::asks;

/// What lists show of a state, and find it by.
pub(super) struct SummaryRow {
    phase: &'static str,
    settled: bool,
    asks: bool,
    wakes_at: Option<String>,
    standing: String,
}

impl SummaryRow {
    pub(super) fn new(goal: GoalId, state: &GoalState) -> Result<Self, Failure> {
        Ok(Self {
            phase: state.phase.name(),
            settled: state.phase.is_settled(),
            asks: asks(state),
            wakes_at: state.wakes_at(goal).map(time_to_text),
            standing: to_json("the goal's summary", &Standing::of(state))?,
        })
    }

    /// Adds the summary of a new goal.
    pub(super) fn insert(&self, connection: &Connection, id: &str, goal: &GoalRow) -> Result<(), Failure> {
        connection
            .prepare_cached(
                "INSERT INTO summaries
                     (goal, short, repository, created_at, phase, settled, asks, wakes_at, about, standing)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                id,
                short(id),
                goal.repository,
                goal.created_at,
                self.phase,
                self.settled,
                self.asks,
                self.wakes_at,
                goal.about,
                self.standing,
            ])?;
        Ok(())
    }

    /// Brings the summary in line with the state that is being written.
    pub(super) fn follow(&self, connection: &Connection, id: &str) -> Result<(), Failure> {
        connection
            .prepare_cached(
                "UPDATE summaries SET phase = ?2, settled = ?3, asks = ?4, wakes_at = ?5, standing = ?6
                 WHERE goal = ?1 AND (standing IS NOT ?6 OR wakes_at IS NOT ?5)",
            )?
            .execute(params![id, self.phase, self.settled, self.asks, self.wakes_at, self.standing])?;
        Ok(())
    }
}

/// Brings attempts and sessions in line with the state that is being written.
pub(super) fn follow(connection: &Connection, goal: &str, state: &GoalState) -> Result<(), Failure> {
    follow_attempts(connection, goal, state)?;
    match &state.session {
        Some(session) => follow_session(connection, goal, session),
        None => Ok(()),
    }
}

/// Attempts are only ever added, and only the newest that is stored can still change.
fn follow_attempts(connection: &Connection, goal: &str, state: &GoalState) -> Result<(), Failure> {
    let stored = connection
        .prepare_cached("SELECT n, ended_at FROM attempts WHERE goal = ?1 ORDER BY n DESC LIMIT 1")?
        .query_row([goal], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, Option<String>>(1)?)))
        .optional()?;
    let newest_stored = stored.as_ref().map_or(0, |(n, _)| *n);
    if let Some((n, ended_at)) = stored
        && let Some(attempt) = state.attempts.iter().find(|attempt| attempt.n.get() == n)
        && attempt.ended_at.map(time_to_text) != ended_at
    {
        connection
            .prepare_cached("UPDATE attempts SET ended_at = ?3 WHERE goal = ?1 AND n = ?2")?
            .execute(params![goal, n, attempt.ended_at.map(time_to_text)])?;
    }
    for attempt in state.attempts.iter().filter(|attempt| attempt.n.get() > newest_stored) {
        insert_attempt(connection, goal, attempt, state.generation)?;
    }
    Ok(())
}

fn insert_attempt(
    connection: &Connection,
    goal: &str,
    attempt: &Attempt,
    generation: Generation,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO attempts (goal, n, id, agent, generation, started_at, ended_at, account)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, COALESCE(
                 (SELECT value FROM json_each(goals.goal, '$.accounts') WHERE key = ?4), ?4
             ) FROM goals WHERE id = ?1",
        )?
        .execute(params![
            goal,
            attempt.n.get(),
            attempt.id.to_string(),
            attempt.agent.as_str(),
            generation.0,
            time_to_text(attempt.started_at),
            attempt.ended_at.map(time_to_text),
        ])?;
    Ok(())
}

fn follow_session(connection: &Connection, goal: &str, session: &SessionBinding) -> Result<(), Failure> {
    let (agent, native_id) = (session.agent.as_str(), session.native_id.as_str());
    let since = time_to_text(session.since);
    let wanted = (session.model.clone(), session.directory.clone(), since.clone());
    let stored: Option<(Option<String>, String, String)> = connection
        .prepare_cached(
            "SELECT model, directory, since FROM sessions WHERE goal = ?1 AND agent = ?2 AND native_id = ?3",
        )?
        .query_row([goal, agent, native_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    if stored.as_ref() == Some(&wanted) {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO sessions (goal, agent, native_id, model, directory, since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (goal, agent, native_id)
             DO UPDATE SET model = excluded.model, directory = excluded.directory, since = excluded.since",
        )?
        .execute(params![goal, agent, native_id, session.model, session.directory, since])?;
    Ok(())
}
