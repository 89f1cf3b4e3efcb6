//! SQLite's errors in our words: what happened, and what to do next.

use std::io;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use towline_core::GoalId;

use crate::StoreError;

/// Why a job did not go through. The path of the database is not known where jobs run; `explained` adds it.
#[derive(Debug)]
pub(super) enum Failure {
    /// The rules of the store refuse it.
    Refused(StoreError),
    /// The database refuses it.
    Sql(rusqlite::Error),
    /// Something stored cannot be understood, or something to be stored cannot be written down.
    Unreadable {
        /// What it is about.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Failure {
    pub(super) fn unreadable(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Unreadable { what: what.into(), why: why.to_string() }
    }

    /// What cannot be read is a goal's own: other goals can be read.
    pub(super) fn of_goal(self, goal: GoalId) -> Self {
        match self {
            Self::Unreadable { what, why } => {
                let why = format!("{what} of goal {goal} cannot be read ({why})");
                Self::Refused(StoreError::Unreadable { goal, why })
            }
            failure => failure,
        }
    }

    pub(super) fn explained(self, path: &str) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(error) => explain(path, &error),
            Self::Unreadable { what, why } => database(
                path,
                format!("{what} cannot be read ({why}); was it written by another version of Towline?"),
            ),
        }
    }
}

/// None for a row that cannot be read, which hides no other row.
pub(super) fn readable<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(Failure::Unreadable { .. }) => Ok(None),
        read => read.map(Some),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        match error {
            // The database works. One value in it is none that its column can have.
            FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..) => Self::unreadable("a value", error),
            error => Self::Sql(error),
        }
    }
}

/// What an error of SQLite means for whoever called the store.
pub(super) fn explain(path: &str, error: &rusqlite::Error) -> StoreError {
    let Some(cause) = error.sqlite_error() else {
        return database(path, error);
    };
    // SQLite names this one as the sign of a full disk when the shared index of the log cannot grow.
    if cause.code == ErrorCode::DiskFull || cause.extended_code == SQLITE_IOERR_SHMSIZE {
        return StoreError::NoSpace { path: path.to_owned() };
    }
    let advice = match cause.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            return unavailable(
                path,
                error,
                "another process has been writing for long; try again when it is done",
            );
        }
        ErrorCode::SystemIoFailure => {
            return unavailable(
                path,
                error,
                "the disk does not take or give it; look at its health and its quota",
            );
        }
        ErrorCode::NotADatabase => "it is no database of Towline; move it away, or use another TOWLINE_HOME",
        ErrorCode::DatabaseCorrupt => {
            "it is damaged; keep a copy, then restore a backup or try `sqlite3 FILE .recover`"
        }
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            "check the permissions of the file and its directory"
        }
        _ => return database(path, error),
    };
    database(path, format!("{error}: {advice}"))
}

/// What an error of the file system means, met before SQLite has the file.
pub(super) fn explain_io(path: &str, doing: &str, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::NoSpace { path: path.to_owned() }
        }
        _ => database(path, format!("cannot {doing}: {error}; check the permissions of the directory")),
    }
}

/// The store was closed under a call: its threads are gone.
pub(super) fn closed(path: &str) -> StoreError {
    database(path, "the store has ended inside this process; open it again")
}

fn unavailable(path: &str, error: &rusqlite::Error, advice: &str) -> StoreError {
    StoreError::Unavailable { path: path.to_owned(), message: format!("{error}: {advice}") }
}

pub(super) fn database(path: &str, message: impl ToString) -> StoreError {
    StoreError::Database { path: path.to_owned(), message: message.to_string() }
}
