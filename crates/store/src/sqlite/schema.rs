//! The tables' versions. Migrations are SQL files; each is applied once and never changed afterwards.

use refinery::{Migration, Runner};
use rusqlite::{Connection, TransactionBehavior};

use super::failure::{database, explain};
use crate::StoreError;

/// Every migration, in order.
const MIGRATIONS: &[(&str, &str)] = &[
    ("V1__goals", include_str!("../../migrations/sqlite/V1__goals.sql")),
    ("V2__summaries", include_str!("../../migrations/sqlite/V2__summaries.sql")),
    ("V3__parts", include_str!("../../migrations/sqlite/V3__parts.sql")),
    ("V4__baselines", include_str!("../../migrations/sqlite/V4__baselines.sql")),
    ("V5__ledger", include_str!("../../migrations/sqlite/V5__ledger.sql")),
    ("V6__unknown_usage", include_str!("../../migrations/sqlite/V6__unknown_usage.sql")),
    ("V7__pool", include_str!("../../migrations/sqlite/V7__pool.sql")),
    ("V8__ready", include_str!("../../migrations/sqlite/V8__ready.sql")),
    ("V9__spent", include_str!("../../migrations/sqlite/V9__spent.sql")),
];

/// How often another process may get in the way of a migration before that is an error.
const TRIES: usize = 3;

/// A migration that a database reports it has.
struct Applied {
    version: i32,
    checksum: String,
}

/// Refuses a database that a newer program has changed, before anything in it is touched.
pub(super) fn refuse_newer(path: &str, connection: &Connection) -> Result<(), StoreError> {
    let newest = known(path)?.last().map_or(0, Migration::version);
    let applied = applied(connection).map_err(|error| explain(path, &error))?;
    if applied.iter().any(|migration| migration.version > newest) {
        return Err(StoreError::TooNew { path: path.to_owned() });
    }
    Ok(())
}

/// The version of a database that is about to be changed; none when it is new or up to date.
pub(super) fn version_to_leave(path: &str, connection: &Connection) -> Result<Option<i32>, StoreError> {
    let newest = known(path)?.last().map_or(0, Migration::version);
    let applied = applied(connection).map_err(|error| explain(path, &error))?;
    Ok(applied.last().map(|migration| migration.version).filter(|version| *version < newest))
}

/// Applies what is missing, all of it or nothing.
pub(super) fn bring_up_to_date(path: &str, connection: &mut Connection) -> Result<(), StoreError> {
    let known = known(path)?;
    let mut failed = None;
    for _ in 0..TRIES {
        if is_current(path, &known, connection)? {
            return Ok(());
        }
        // Another process may do the same at this moment, and one of the two then fails: look again before calling
        // that a failure.
        failed = apply(&known, connection).err();
    }
    match failed {
        Some(error) => Err(explain_migration(path, &error)),
        None if is_current(path, &known, connection)? => Ok(()),
        None => {
            Err(database(path, "its tables are not up to date although they were just made so; try again"))
        }
    }
}

fn apply(known: &[Migration], connection: &mut Connection) -> Result<(), refinery::Error> {
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let applied = Runner::new(known).set_grouped(true).run(connection);
    connection.set_transaction_behavior(TransactionBehavior::Deferred);
    applied.map(drop)
}

fn known(path: &str) -> Result<Vec<Migration>, StoreError> {
    MIGRATIONS
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, sql).map_err(|error| database(path, error)))
        .collect()
}

/// Whether all migrations are there, and are the ones that this program knows.
fn is_current(path: &str, known: &[Migration], connection: &Connection) -> Result<bool, StoreError> {
    let applied = applied(connection).map_err(|error| explain(path, &error))?;
    for (known, applied) in known.iter().zip(&applied) {
        if known.version() != applied.version || known.checksum().to_string() != applied.checksum {
            let message = format!(
                "its tables were made by another build of Towline (migration {} differs); use another TOWLINE_HOME",
                applied.version
            );
            return Err(database(path, message));
        }
    }
    Ok(applied.len() >= known.len())
}

/// What the database reports about itself; nothing when it is new.
fn applied(connection: &Connection) -> rusqlite::Result<Vec<Applied>> {
    // The list of tables has another name in every database.
    let there =
        "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'refinery_schema_history'";
    if connection.query_row(there, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Vec::new());
    }
    let mut statement =
        connection.prepare("SELECT version, checksum FROM refinery_schema_history ORDER BY version")?;
    let rows = statement.query_map([], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }))?;
    rows.collect()
}

fn explain_migration(path: &str, error: &refinery::Error) -> StoreError {
    let cause = std::error::Error::source(error).and_then(|source| source.downcast_ref::<rusqlite::Error>());
    match cause {
        Some(cause) => explain(path, cause),
        None => database(path, error),
    }
}
