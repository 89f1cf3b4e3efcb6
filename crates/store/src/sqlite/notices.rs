//! Phases that somebody is to be notified of, as SQL: written with the events that report them.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use towline_core::{Event, Seq};

use super::failure::{Failure, readable};
use super::reads::text;
use super::text::{from_json, time_from_text, time_to_text, to_json};
use crate::pool::is_notable;
use crate::{Append, NoticeId, NoticeOutcome, PendingNotice};

pub(super) const DUE: &str =
    "SELECT id, goal, seq, phase, at, tries FROM notices WHERE due <= ?1 ORDER BY due, id";

const WHAT: &str = "a notification";

/// A notification that is to be recorded, put into words before the writer's turn.
pub(super) struct NoticeRow {
    seq: u64,
    phase: String,
}

impl NoticeRow {
    pub(super) fn of(append: &Append) -> Result<Vec<Self>, Failure> {
        let mut rows = Vec::new();
        for (seq, event) in (append.expected.0 + 1..).zip(append.events.iter().filter(|_| append.notifies)) {
            if let Event::PhaseChanged { phase } = &event.event
                && is_notable(phase)
            {
                rows.push(Self { seq, phase: to_json(WHAT, phase)? });
            }
        }
        Ok(rows)
    }

    pub(super) fn write(&self, connection: &Connection, goal: &str, at: &str) -> Result<(), Failure> {
        connection
            .prepare_cached("INSERT INTO notices (goal, seq, phase, at, due) VALUES (?1, ?2, ?3, ?4, ?4)")?
            .execute(params![goal, self.seq, self.phase, at])?;
        Ok(())
    }
}

pub(super) fn due(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<PendingNotice>, Failure> {
    let mut statement = connection.prepare_cached(DUE)?;
    let mut rows = statement.query([time_to_text(now)])?;
    let mut notices = Vec::new();
    while notices.len() < limit
        && let Some(row) = rows.next()?
    {
        notices.extend(readable(notice(row))?);
    }
    Ok(notices)
}

fn notice(row: &Row<'_>) -> Result<PendingNotice, Failure> {
    Ok(PendingNotice {
        id: NoticeId(row.get(0)?),
        goal: text(row, 1)?.parse().map_err(|why| Failure::unreadable("the goal of a notification", why))?,
        seq: Seq(row.get(2)?),
        phase: from_json(WHAT, text(row, 3)?)?,
        at: time_from_text(WHAT, text(row, 4)?)?,
        tries: row.get(5)?,
    })
}

pub(super) fn settle(
    connection: &Connection,
    notice: NoticeId,
    outcome: NoticeOutcome,
) -> Result<(), Failure> {
    match outcome {
        NoticeOutcome::Settled => {
            connection.prepare_cached("DELETE FROM notices WHERE id = ?1")?.execute([notice.0])?
        }
        NoticeOutcome::Again(at) => connection
            .prepare_cached("UPDATE notices SET tries = tries + 1, due = ?2 WHERE id = ?1")?
            .execute(params![notice.0, time_to_text(at)])?,
    };
    Ok(())
}
