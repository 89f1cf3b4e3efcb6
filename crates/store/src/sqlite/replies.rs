//! Answers to requests that must be carried out once, as SQL.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::failure::Failure;
use super::reads::text;
use super::text::{time_from_text, time_to_text};
use crate::StoredReply;

const WHAT: &str = "a stored reply";

/// A reply that cannot be read is an error: without it, the request would be carried out twice.
fn load(connection: &Connection, key: &str) -> Result<Option<StoredReply>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT request, status, body, at FROM replies WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(StoredReply {
        request: text(row, 0)?.to_owned(),
        status: row.get(1)?,
        body: text(row, 2)?.to_owned(),
        at: time_from_text(WHAT, text(row, 3)?)?,
    }))
}

pub(super) fn begin(
    connection: &Connection,
    key: &str,
    reply: &StoredReply,
    since: Timestamp,
) -> Result<Option<StoredReply>, Failure> {
    connection.prepare_cached("DELETE FROM replies WHERE at < ?1")?.execute([time_to_text(since)])?;
    let known = load(connection, key)?;
    if known.is_none() {
        store(connection, key, reply)?;
    }
    Ok(known)
}

pub(super) fn finish(connection: &Connection, key: &str, reply: Option<&StoredReply>) -> Result<(), Failure> {
    match reply {
        Some(reply) => store(connection, key, reply),
        None => {
            connection.prepare_cached("DELETE FROM replies WHERE key = ?1")?.execute([key])?;
            Ok(())
        }
    }
}

fn store(connection: &Connection, key: &str, reply: &StoredReply) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO replies (key, request, status, body, at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (key) DO UPDATE SET request = excluded.request, status = excluded.status,
                 body = excluded.body, at = excluded.at",
        )?
        .execute(params![key, reply.request, reply.status, reply.body, time_to_text(reply.at)])?;
    Ok(())
}
