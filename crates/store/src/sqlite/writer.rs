//! The writing side: one thread that owns the one writing connection.
//!
//! Jobs that wait at the same moment share one transaction, because waiting for the disk is what costs. Each has a
//! savepoint of its own, so that a refused one takes nothing with it, and none is answered before the commit. When
//! a shared transaction fails as a whole, its jobs are done again one by one: what one of them saw of another that
//! was undone must not reach anybody.

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::failure::{self, Failure};
use super::threads::{Jobs, Threads};
use crate::StoreError;

/// How many jobs share a commit at most: bounds how long the first of them waits for the others.
const GROUP: usize = 64;

/// The writing thread.
pub(super) struct Writer {
    threads: Threads<Box<dyn Write>>,
    path: String,
}

impl Writer {
    /// Starts the thread; from now on the connection is its own.
    pub(super) fn start(path: &str, connection: Connection) -> Result<Self, StoreError> {
        let body = |jobs| serve(connection, &jobs);
        let threads = Threads::start("store-writer", [body])
            .map_err(|error| failure::explain_io(path, "start the writing thread", &error))?;
        Ok(Self { threads, path: path.to_owned() })
    }

    /// Does `work` and returns once it is safe on disk. The work may be done more than once, undone in between.
    /// A caller that stops waiting does not stop work that is queued.
    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Job { path: self.path.clone(), work, outcome: None, reply });
        if self.threads.send(job).await.is_err() {
            return Err(failure::closed(&self.path));
        }
        answer.await.unwrap_or_else(|_| Err(failure::closed(&self.path)))
    }
}

/// A job whose result's type does not matter to the thread.
trait Write: Send {
    /// Does the work inside a transaction and keeps the result.
    fn run(&mut self, connection: &Connection) -> Ran;
    /// Answers with the result of the last run, which is safe by now.
    fn answer(self: Box<Self>);
    /// Answers that the transaction around the work failed.
    fn fail(self: Box<Self>, error: &rusqlite::Error);
}

/// The result of a job.
#[must_use]
enum Ran {
    Accepted,
    Refused,
}

struct Job<T, W> {
    path: String,
    work: W,
    outcome: Option<Result<T, Failure>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Write for Job<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> Result<T, Failure> + Send,
{
    fn run(&mut self, connection: &Connection) -> Ran {
        let outcome = (self.work)(connection);
        let ran = if outcome.is_ok() { Ran::Accepted } else { Ran::Refused };
        self.outcome = Some(outcome);
        ran
    }

    fn answer(self: Box<Self>) {
        let answer = match self.outcome {
            Some(outcome) => outcome.map_err(|failure| failure.explained(&self.path)),
            None => Err(failure::closed(&self.path)),
        };
        // Whoever asked may have stopped waiting; the work is done all the same.
        let _ = self.reply.send(answer);
    }

    fn fail(self: Box<Self>, error: &rusqlite::Error) {
        let _ = self.reply.send(Err(failure::explain(&self.path, error)));
    }
}

fn serve(mut connection: Connection, jobs: &Jobs<Box<dyn Write>>) {
    while let Some(first) = jobs.next() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Some(job) = jobs.waiting()
        {
            group.push(job);
        }
        write_group(&mut connection, group);
    }
}

fn write_group(connection: &mut Connection, mut group: Vec<Box<dyn Write>>) {
    let together = in_one_transaction(connection, &mut group);
    match together {
        Ok(()) => group.into_iter().for_each(|job| job.answer()),
        // Nothing was tried yet, and trying each alone would only wait as long again for each.
        Err(Trouble::Begin(error)) => group.into_iter().for_each(|job| job.fail(&error)),
        Err(_) if group.len() > 1 => group.into_iter().for_each(|job| write_group(connection, vec![job])),
        // What went wrong is the job's own result.
        Err(Trouble::Undone) => group.into_iter().for_each(|job| job.answer()),
        Err(Trouble::Commit(error)) => group.into_iter().for_each(|job| job.fail(&error)),
    }
}

/// Why a transaction failed as a whole.
enum Trouble {
    /// It could not begin: another process is writing.
    Begin(rusqlite::Error),
    /// SQLite undid all of it because of an error in one job.
    Undone,
    /// It could not be made durable.
    Commit(rusqlite::Error),
}

fn in_one_transaction(connection: &mut Connection, group: &mut [Box<dyn Write>]) -> Result<(), Trouble> {
    // Other processes write to the same file: taking the write lock first means that waiting happens here, under
    // the busy timeout, and never as a failure in the middle.
    let mut transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Trouble::Begin)?;
    for job in group {
        let savepoint = transaction.savepoint().map_err(Trouble::Commit)?;
        let finished = match job.run(&savepoint) {
            Ran::Accepted => savepoint.commit(),
            Ran::Refused => savepoint.finish(),
        };
        // On a full disk and the like, SQLite may end the transaction on its own.
        if transaction.is_autocommit() {
            return Err(Trouble::Undone);
        }
        finished.map_err(Trouble::Commit)?;
    }
    transaction.commit().map_err(Trouble::Commit)
}
