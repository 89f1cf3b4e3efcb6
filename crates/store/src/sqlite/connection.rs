//! Opening the file: who may read it, how it is written, and how long to wait for others.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::{self, explain};
use super::{placing, schema, upgrade};
use crate::{StoreError, UpgradeGuard};

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(10);

/// How many reads can go on at once.
const READERS: usize = 2;

/// Pages in the log before they are moved into the database: larger means fewer waits for the disk in between.
const CHECKPOINT_PAGES: u32 = 4_000;

/// What the log file is cut back to after it has grown, in bytes.
const LOG_BYTES: u32 = 64 << 20;

/// The connections of one store.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
}

/// Opens the database, made and brought up to date where needed.
pub(super) fn open(path: &Path, guard: &Arc<dyn UpgradeGuard>) -> Result<Connections, StoreError> {
    // Closing a file drops every lock that this process has on it, also those of SQLite's own descriptors. Only
    // `create` opens the file past SQLite, and this keeps it away from a database that is being opened.
    static OPENING: Mutex<()> = Mutex::new(());
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);

    create(path).map_err(|error| failure::explain_io(&path.display().to_string(), "create it", &error))?;
    open_existing(path, guard)
}

/// Opens a file that is there, be it empty. Other processes may be doing the same.
pub(super) fn open_existing(path: &Path, guard: &Arc<dyn UpgradeGuard>) -> Result<Connections, StoreError> {
    let shown = path.display().to_string();
    let path = &settled(path).map_err(|error| failure::explain_io(&shown, "find its directory", &error))?;
    must_be_regular_files(path)?;
    let explained = |error| explain(&shown, &error);
    let mut writer = connect(path).map_err(explained)?;
    schema::refuse_newer(&shown, &writer)?;
    use_log(&writer).map_err(explained)?;
    match schema::version_to_leave(&shown, &writer)? {
        Some(_) => upgrade::run(path, &mut writer, guard)?,
        None => schema::bring_up_to_date(&shown, &mut writer)?,
    }
    placing::place_upgraded(&mut writer).map_err(|failure| failure.explained(&shown))?;
    let readers = (0..READERS).map(|_| reader(path)).collect::<Result<_, _>>().map_err(explained)?;
    Ok(Connections { writer, readers })
}

/// Makes the file with its directories, for nobody but their owner. SQLite gives the files beside it the same mode.
fn create(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        towline_files::create_private_dir(directory)?;
    }
    match towline_files::create_new(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The path with its directory as it really is: SQLite is asked below to follow no symlink, and the user's directories may
/// be behind some.
fn settled(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) if !directory.as_os_str().is_empty() => {
            Ok(directory.canonicalize()?.join(name))
        }
        _ => Ok(path.to_owned()),
    }
}

/// SQLite would wait at a FIFO in the place of one of its files, and write to wherever a symlink leads.
fn must_be_regular_files(path: &Path) -> Result<(), StoreError> {
    for beside in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(beside);
        let file = Path::new(&file);
        towline_files::must_be_regular_or_absent(file)
            .map_err(|error| failure::database(&file.display().to_string(), error))?;
    }
    Ok(())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // No `CREATE`, because SQLite would make a file for everybody to read; no `URI`, because a path is a path.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Every transition must survive a power failure: with NORMAL, the last ones may not.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS, an ordinary sync leaves data in the drive's cache.
    connection.pragma_update(None, "fullfsync", "ON")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    // What a statement may have to undo would be a new file in the system's temporary directory, for nearly every append.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// A connection that cannot change anything. Not opened as read-only: the last one to close the database tidies
/// the log away, and a read-only one could not.
fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", "ON")?;
    Ok(connection)
}

/// Switches to the write-ahead log, in which reads and writes do not wait for each other. The database remembers
/// it, so that only its first opening has something to do.
fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY;
    loop {
        // SQLite's own timeout does not cover this switch when two processes do it at once.
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            // Where files cannot be shared in memory, the older journal stays: slower, and just as safe.
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_needs_a_file_in_the_temporary_directory() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("towline.db");
        std::fs::write(&path, "").expect("an empty database");
        let in_memory = 2;
        for connection in [connect(&path), reader(&path)] {
            let connection = connection.expect("a connection");
            let store: i64 =
                connection.query_row("PRAGMA temp_store", [], |row| row.get(0)).expect("a setting");
            assert_eq!(store, in_memory);
        }
    }
}
