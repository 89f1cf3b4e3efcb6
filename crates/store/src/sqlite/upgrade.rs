//! Bringing a database of an earlier version up to date: copied first, changed in one transaction, by one process at a time.
//!
//! A kill at any moment leaves the old tables or the new ones. A copy that was cut off has another name, and the next upgrade
//! replaces it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};

use super::failure::{self, explain};
use super::schema;
use crate::{StoreError, UpgradeGuard, UpgradeStep};

/// How long to wait for another process that upgrades or holds the database.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often to look whether it is done.
const PAUSE: Duration = Duration::from_millis(50);

/// Pages that are copied between two reports.
const PAGES: i32 = 128;

/// SQLite's own instructions between two reports.
const INSTRUCTIONS: i32 = 100_000;

/// Copies the database to `towline.db.vN` and changes its tables.
pub(super) fn run(
    path: &Path,
    writer: &mut Connection,
    guard: &Arc<dyn UpgradeGuard>,
) -> Result<(), StoreError> {
    let shown = path.display().to_string();
    let _lock = lock_directory(path, &**guard)?;
    // Another process may have done it meanwhile.
    let Some(version) = schema::version_to_leave(&shown, writer)? else { return Ok(()) };
    guard.permit()?;
    let copy = beside(path, &format!(".v{version}"));
    copy_to(&copy, writer, &**guard)?;
    // A copy of a database that is not changed in the end is made again by the next upgrade.
    guard.permit()?;
    let explained = |error| explain(&shown, &error);
    let reporter = Arc::clone(guard);
    let report = move || {
        reporter.progress(UpgradeStep::ChangingTables);
        false
    };
    guard.progress(UpgradeStep::ChangingTables);
    writer.progress_handler(INSTRUCTIONS, Some(report)).map_err(explained)?;
    let changed = schema::bring_up_to_date(&shown, writer);
    writer.progress_handler(0, None::<fn() -> bool>).map_err(explained)?;
    changed
}

/// One upgrade at a time. The system releases the lock with the process.
fn lock_directory(path: &Path, guard: &dyn UpgradeGuard) -> Result<File, StoreError> {
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = directory.display().to_string();
    let failed = |error: io::Error| failure::explain_io(&shown, "lock it", &error);
    let file = File::open(directory).map_err(failed)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(error) if error != rustix::io::Errno::WOULDBLOCK => return Err(failed(error.into())),
            Err(_) if Instant::now() > deadline => {
                let message = "another process has been upgrading the database in it for 5 minutes; try again when that process has ended";
                return Err(StoreError::Unavailable { path: shown, message: message.to_owned() });
            }
            Err(_) => {
                guard.progress(UpgradeStep::Waiting);
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Copies the database with all that is in its log. The copy has its name only when it is whole and on the disk. One that
/// an interrupted upgrade left is replaced: the database may have changed since.
fn copy_to(copy: &Path, source: &Connection, guard: &dyn UpgradeGuard) -> Result<(), StoreError> {
    let shown = copy.display().to_string();
    let unfinished = beside(copy, ".part");
    let failed = |error: io::Error| failure::explain_io(&shown, "copy the database to it", &error);
    let copied = make_empty(&unfinished)
        .map_err(failed)
        .and_then(|()| copy_pages(&unfinished, source, guard).map_err(|error| explain(&shown, &error)))
        .and_then(|()| settle(&unfinished, copy).map_err(failed));
    if copied.is_err() {
        // What cannot be removed is replaced by the next upgrade.
        let _ = fs::remove_file(&unfinished);
    }
    copied
}

/// Makes the file for its owner alone, in the place of one that was cut off. SQLite would make one for everybody to read.
fn make_empty(unfinished: &Path) -> io::Result<()> {
    remove_if_present(unfinished)?;
    towline_files::create_new(unfinished).map(drop)
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn copy_pages(to: &Path, source: &Connection, guard: &dyn UpgradeGuard) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut target = Connection::open_with_flags(to, flags)?;
    // A copy that is cut off is thrown away, and a whole one is synced at its end.
    target.pragma_update(None, "synchronous", "OFF")?;
    target.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    copy_steps(&Backup::new(source, &mut target)?, guard)?;
    // Without a log of its own, the copy is one file.
    target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
}

fn copy_steps(backup: &Backup<'_, '_>, guard: &dyn UpgradeGuard) -> rusqlite::Result<()> {
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        let step = backup.step(PAGES)?;
        let progress = backup.progress();
        let [total, left] = [progress.pagecount, progress.remaining].map(|n| u64::try_from(n).unwrap_or(0));
        guard.progress(UpgradeStep::Copying { done: total.saturating_sub(left), total });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::Busy | StepResult::Locked if Instant::now() > deadline => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
            StepResult::Busy | StepResult::Locked => thread::sleep(PAUSE),
            _ => deadline = Instant::now() + PATIENCE,
        }
    }
}

/// Gives the copy its name once it cannot be lost any more.
fn settle(unfinished: &Path, copy: &Path) -> io::Result<()> {
    File::open(unfinished)?.sync_all()?;
    // Whoever looked into an earlier copy may have left a log, which SQLite would take for the new one's.
    for log in ["-wal", "-shm", "-journal"] {
        remove_if_present(&beside(copy, log))?;
    }
    fs::rename(unfinished, copy)?;
    match copy.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
