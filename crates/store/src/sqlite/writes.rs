//! What is written, as SQL. Every function runs inside the writer's transaction and may be run again.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use towline_core::{Effect, Envelope, Event, Generation, Goal, GoalId, GoalState, RawRef, Seq};

use super::caches::SummaryRow;
use super::failure::{Failure, readable};
use super::ledger::AccountRow;
use super::lists::About;
use super::notices::NoticeRow;
use super::parts::{SplitState, Written};
use super::text::{time_to_text, to_json};
use super::{caches, ledger, placing, reads};
use crate::{Append, Lease, StoreError, WorkerName};

/// A goal that is to be recorded, put into words before the writer's turn.
pub(super) struct Creation {
    goal: Goal,
    row: GoalRow,
    split: SplitState,
    summary: SummaryRow,
    event: EventRow,
}

/// What never changes about a goal.
pub(super) struct GoalRow {
    title: String,
    pub(super) created_at: String,
    pub(super) repository: String,
    /// What lists show of it.
    pub(super) about: String,
    json: String,
}

/// A transition that is to be recorded, put into words before the writer's turn.
pub(super) struct Transition {
    goal: GoalId,
    generation: Generation,
    expected: Seq,
    events: Vec<EventRow>,
    split: SplitState,
    summary: SummaryRow,
    effects: Vec<EffectRow>,
    settled: Vec<String>,
    accounts: Vec<AccountRow>,
    notices: Vec<NoticeRow>,
    quarter: String,
    at: Timestamp,
}

struct EventRow {
    at: String,
    attempt: Option<u32>,
    source: &'static str,
    kind: &'static str,
    parent: Option<String>,
    raw: Option<RawRef>,
    body: String,
}

struct EffectRow {
    key: String,
    effect: String,
}

impl Creation {
    pub(super) fn new(goal: &Goal, state: &GoalState, created: &Envelope) -> Result<Self, Failure> {
        Ok(Self {
            goal: goal.clone(),
            row: GoalRow::new(goal)?,
            summary: SummaryRow::new(goal.id, state)?,
            split: SplitState::new(state.clone())?,
            event: EventRow::new(created)?,
        })
    }

    /// Writes the goal and the first entry of its log.
    pub(super) fn write(&self, connection: &Connection) -> Result<(), Failure> {
        let id = self.goal.id.to_string();
        let state = &self.split.state;
        // What moves is in other tables: a goal can be long, and this row is written once.
        let inserted = connection
            .prepare_cached(
                "INSERT INTO goals
                     (id, title, created_at, updated_at, phase, last_seq, generation, goal, state)
                 VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6, '')
                 ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                id,
                self.row.title,
                self.row.created_at,
                self.event.at,
                state.phase.name(),
                self.row.json,
            ])?;
        if inserted == 0 {
            return Err(StoreError::Exists(self.goal.id).into());
        }
        connection
            .prepare_cached(
                "INSERT INTO positions (goal, last_seq, generation, updated_at, revision)
                 VALUES (?1, 1, 0, ?2, random())",
            )?
            .execute(params![id, self.event.at])?;
        self.split.write(connection, &id, None)?;
        self.summary.insert(connection, &id, &self.row)?;
        insert_events(connection, &id, Seq(0), std::slice::from_ref(&self.event))?;
        caches::follow(connection, &id, state)?;
        placing::add(connection, &self.goal, state)
    }
}

impl Transition {
    /// Takes the append apart; what its events become is given back beside it by the caller, who has them.
    pub(super) fn new(append: Append) -> Result<(Self, Vec<Envelope>), Failure> {
        let transition = Self {
            goal: append.goal,
            generation: append.generation,
            expected: append.expected,
            events: append.events.iter().map(EventRow::new).collect::<Result<_, _>>()?,
            accounts: AccountRow::of(&append.events, &append.state)?,
            notices: NoticeRow::of(&append)?,
            quarter: ledger::quarter_of(append.at),
            summary: SummaryRow::new(append.goal, &append.state)?,
            split: SplitState::new(append.state)?,
            effects: append.effects.iter().map(EffectRow::new).collect::<Result<_, _>>()?,
            settled: append.settled,
            at: append.at,
        };
        Ok((transition, append.events))
    }

    /// Writes all of it, or refuses.
    pub(super) fn write(&self, connection: &Connection, written: &Written) -> Result<(), Failure> {
        let id = self.goal.to_string();
        must_be_newest(connection, self.goal, self.generation)?;
        let (found, revision) = connection
            .prepare_cached("SELECT last_seq, revision FROM positions WHERE goal = ?1")?
            .query_row([&id], |row| Ok((Seq(row.get(0)?), row.get(1).ok())))?;
        if found != self.expected {
            return Err(StoreError::Conflict { goal: self.goal, expected: self.expected, found }.into());
        }
        let before = revision.and_then(|revision| written.at(self.goal, revision));
        let last = insert_events(connection, &id, self.expected, &self.events)?;
        self.write_state(connection, &id, before.as_deref())?;
        self.write_outbox(connection, &id, last)?;
        self.summary.follow(connection, &id)?;
        caches::follow(connection, &id, &self.split.state)?;
        ledger::follow(connection, &id, &self.split.state, before.as_deref(), &self.quarter)?;
        self.accounts.iter().try_for_each(|account| account.write(connection, &id))?;
        placing::follow(connection, self.goal, &self.split.state, before.as_deref())?;
        let at = time_to_text(self.at);
        self.notices.iter().try_for_each(|notice| notice.write(connection, &id, &at))?;
        let revision = write_position(connection, &id, last, &at)?;
        written.remember(self.goal, revision, &self.split.state);
        Ok(())
    }

    fn write_state(
        &self,
        connection: &Connection,
        id: &str,
        before: Option<&GoalState>,
    ) -> Result<(), Failure> {
        self.split.write(connection, id, before)?;
        if before.is_none() {
            // An earlier version may have left it there.
            connection
                .prepare_cached("UPDATE goals SET state = '' WHERE id = ?1 AND state <> ''")?
                .execute([id])?;
        }
        Ok(())
    }

    fn write_outbox(&self, connection: &Connection, id: &str, last: Seq) -> Result<(), Failure> {
        for row in &self.effects {
            // A key that is there already, settled or not, means work that is under way or done.
            connection
                .prepare_cached(
                    "INSERT INTO outbox (goal, key, place, written_seq, effect)
                     VALUES (?1, ?2, (SELECT COALESCE(MAX(place), 0) + 1 FROM outbox WHERE goal = ?1), ?3, ?4)
                     ON CONFLICT (goal, key) DO NOTHING",
                )?
                .execute(params![id, row.key, last.0, row.effect])?;
        }
        for key in &self.settled {
            // The key stays, so that it is never carried out again. The rest is not read any more, and a prompt can be long.
            connection
                .prepare_cached(
                    "UPDATE outbox SET settled = 1, effect = '' WHERE goal = ?1 AND key = ?2 AND settled = 0",
                )?
                .execute(params![id, key])?;
        }
        Ok(())
    }
}

impl GoalRow {
    fn new(goal: &Goal) -> Result<Self, Failure> {
        Ok(Self {
            title: goal.title.clone(),
            created_at: time_to_text(goal.created_at),
            repository: goal.workspace.repository.clone(),
            about: to_json("the goal's summary", &About::of(goal))?,
            json: to_json("the goal", goal)?,
        })
    }
}

impl EventRow {
    fn new(new: &Envelope) -> Result<Self, Failure> {
        Ok(Self {
            at: time_to_text(new.at),
            attempt: new.attempt.map(|attempt| attempt.get()),
            source: new.source.name(),
            kind: new.event.name(),
            parent: new.parent.clone(),
            raw: new.raw,
            body: to_json::<Event>("an event", &new.event)?,
        })
    }
}

impl EffectRow {
    fn new(effect: &Effect) -> Result<Self, Failure> {
        Ok(Self { key: effect.key(), effect: to_json("an effect", effect)? })
    }
}

/// Writes events after `last` and returns the place of the last one.
fn insert_events(connection: &Connection, id: &str, last: Seq, events: &[EventRow]) -> Result<Seq, Failure> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO events (goal, seq, at, attempt, source, kind, parent, raw_offset, raw_length, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let mut last = last;
    for row in events {
        last = last.next();
        statement.execute(params![
            id,
            last.0,
            row.at,
            row.attempt,
            row.source,
            row.kind,
            row.parent,
            row.raw.map(|raw| raw.offset),
            row.raw.map(|raw| raw.length),
            row.body,
        ])?;
    }
    Ok(last)
}

/// Moves the end of the log, and returns the revision that the state has from now on.
fn write_position(connection: &Connection, id: &str, last: Seq, at: &str) -> Result<i64, Failure> {
    let revision = connection
        .prepare_cached(
            "UPDATE positions SET last_seq = ?2, updated_at = ?3, revision = random() WHERE goal = ?1
             RETURNING revision",
        )?
        .query_row(params![id, last.0, at], |row| row.get(0))?;
    Ok(revision)
}

/// The newest generation that a lease of the goal has had.
fn newest_generation(connection: &Connection, goal: GoalId) -> Result<Generation, Failure> {
    let found = connection
        .prepare_cached("SELECT generation FROM positions WHERE goal = ?1")?
        .query_row([goal.to_string()], |row| row.get(0))
        .optional()?;
    found.map(Generation).ok_or_else(|| StoreError::NotFound(goal).into())
}

fn must_be_newest(connection: &Connection, goal: GoalId, ours: Generation) -> Result<(), Failure> {
    let held = newest_generation(connection, goal)?;
    if held == ours { Ok(()) } else { Err(StoreError::Fenced { goal, ours, held }.into()) }
}

/// Gives the lease to `worker` under a generation that was never used before. A goal of which nothing else can be read has a lease,
/// too, so that it can be removed.
pub(super) fn claim(
    connection: &Connection,
    goal: GoalId,
    worker: &WorkerName,
    now: Timestamp,
    until: Timestamp,
    proven_dead: Option<&WorkerName>,
) -> Result<Lease, Failure> {
    if let Some(held) = readable(reads::lease(connection, goal))?.flatten()
        && held.worker != *worker
        && held.until > now
        && Some(&held.worker) != proven_dead
    {
        return Err(StoreError::Held { goal, worker: held.worker, until: held.until }.into());
    }
    let generation = Generation(next_generation(connection, goal)?);
    let lease = Lease { goal, worker: worker.clone(), generation, until };
    connection
        .prepare_cached(
            "INSERT INTO leases (goal, worker, generation, until) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (goal) DO UPDATE
             SET worker = excluded.worker, generation = excluded.generation, until = excluded.until",
        )?
        .execute(params![goal.to_string(), worker.0, lease.generation.0, time_to_text(until)])?;
    Ok(lease)
}

/// Counts one more generation. A count that was lost goes on at random: the next number may have been used.
fn next_generation(connection: &Connection, goal: GoalId) -> Result<u64, Failure> {
    let id = goal.to_string();
    for substitute in [
        "INSERT OR IGNORE INTO goals
             (id, title, created_at, updated_at, phase, last_seq, generation, goal, state)
         SELECT goal, '', '', '', '', 0, 0, '', '' FROM summaries WHERE goal = ?1",
        "INSERT OR IGNORE INTO positions (goal, last_seq, generation, updated_at, revision)
         SELECT goal, 0, -1, '', 0 FROM summaries WHERE goal = ?1",
    ] {
        connection.prepare_cached(substitute)?.execute([&id])?;
    }
    let next = connection
        .prepare_cached(
            "UPDATE positions SET generation = CASE
                 WHEN typeof(generation) = 'integer' AND generation BETWEEN 0 AND 4611686018427387903
                 THEN generation + 1 ELSE random() & 4611686018427387903
             END WHERE goal = ?1 RETURNING generation",
        )?
        .query_row([&id], |row| row.get(0))
        .optional()?;
    next.ok_or_else(|| StoreError::NotFound(goal).into())
}

/// Moves the end of a lease that is still the holder's.
pub(super) fn renew(connection: &Connection, lease: &Lease, until: Timestamp) -> Result<Lease, Failure> {
    let newest = newest_generation(connection, lease.goal)?;
    let moved = connection
        .prepare_cached("UPDATE leases SET until = ?4 WHERE goal = ?1 AND worker = ?2 AND generation = ?3")?
        .execute(params![lease.goal.to_string(), lease.worker.0, lease.generation.0, time_to_text(until)])?;
    match moved {
        0 => Err(StoreError::Fenced { goal: lease.goal, ours: lease.generation, held: newest }.into()),
        _ => Ok(Lease { until, ..lease.clone() }),
    }
}

/// Removes every row of a goal, if the lease is still the newest.
pub(super) fn remove(connection: &Connection, lease: &Lease) -> Result<(), Failure> {
    must_be_newest(connection, lease.goal, lease.generation)?;
    let id = lease.goal.to_string();
    placing::remove(connection, &id)?;
    // The goal's own row last: the others refer to it.
    for statement in [
        "DELETE FROM events WHERE goal = ?1",
        "DELETE FROM outbox WHERE goal = ?1",
        "DELETE FROM leases WHERE goal = ?1",
        "DELETE FROM attempts WHERE goal = ?1",
        "DELETE FROM sessions WHERE goal = ?1",
        "DELETE FROM notices WHERE goal = ?1",
        "DELETE FROM summaries WHERE goal = ?1
             OR (short = substr(?1, -8) AND goal NOT IN (SELECT id FROM goals))",
        "DELETE FROM parts WHERE goal = ?1",
        "DELETE FROM positions WHERE goal = ?1",
        "DELETE FROM goals WHERE id = ?1",
    ] {
        connection.prepare_cached(statement)?.execute([&id])?;
    }
    Ok(())
}

/// Gives a lease back, if it is still the holder's. The goal keeps counting generations from there.
pub(super) fn release(connection: &Connection, lease: &Lease) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM leases WHERE goal = ?1 AND worker = ?2 AND generation = ?3")?
        .execute(params![lease.goal.to_string(), lease.worker.0, lease.generation.0])?;
    Ok(())
}
