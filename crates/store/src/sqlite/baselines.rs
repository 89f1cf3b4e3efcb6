//! Results of checks on bases, as SQL.

use rusqlite::{Connection, params};

use super::failure::Failure;
use super::reads::text;
use super::text::{from_json, time_from_text, time_to_text, to_json};
use crate::{MOST_BASELINES, StoredBaseline};

const WHAT: &str = "a stored baseline";

pub(super) fn load(connection: &Connection, key: &str) -> Result<Option<StoredBaseline>, Failure> {
    let mut statement = connection.prepare_cached("SELECT found_at, checks FROM baselines WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let found_at = time_from_text(WHAT, text(row, 0)?)?;
    Ok(Some(StoredBaseline { checks: from_json(WHAT, text(row, 1)?)?, found_at }))
}

pub(super) fn store(connection: &Connection, key: &str, baseline: &StoredBaseline) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO baselines (key, found_at, checks) VALUES (?1, ?2, ?3)
             ON CONFLICT (key) DO UPDATE SET found_at = excluded.found_at, checks = excluded.checks",
        )?
        .execute(params![key, time_to_text(baseline.found_at), to_json(WHAT, &baseline.checks)?])?;
    connection
        .prepare_cached(
            "DELETE FROM baselines WHERE key NOT IN
                 (SELECT key FROM baselines ORDER BY found_at DESC, key LIMIT ?1)",
        )?
        .execute([i64::try_from(MOST_BASELINES).unwrap_or(i64::MAX)])?;
    Ok(())
}
