//! The reading side: a few threads with a connection each, so that a long read stops neither the writer nor
//! another read, and no read stops the async runtime.

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::{self, Failure};
use super::threads::{Jobs, Threads};
use crate::StoreError;

/// A read; it answers for itself.
type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The reading threads.
pub(super) struct Readers {
    threads: Threads<Read>,
    path: String,
}

impl Readers {
    /// Starts one thread for each connection.
    pub(super) fn start(path: &str, connections: Vec<Connection>) -> Result<Self, StoreError> {
        let bodies = connections.into_iter().map(|connection| move |jobs| serve(&connection, &jobs));
        let threads = Threads::start("store-reader", bodies)
            .map_err(|error| failure::explain_io(path, "start a reading thread", &error))?;
        Ok(Self { threads, path: path.to_owned() })
    }

    /// Does `work` on one of the threads, in one transaction: all of it sees the same moment.
    pub(super) async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Read = Box::new(move |connection| {
            // Whoever asked may have stopped waiting, which is no concern of ours.
            let _ = reply.send(at_one_moment(connection, work));
        });
        if self.threads.send(job).await.is_err() {
            return Err(failure::closed(&self.path));
        }
        match answer.await {
            Ok(outcome) => outcome.map_err(|failure| failure.explained(&self.path)),
            Err(_) => Err(failure::closed(&self.path)),
        }
    }
}

fn serve(connection: &Connection, jobs: &Jobs<Read>) {
    while let Some(job) = jobs.next() {
        job(connection);
    }
}

fn at_one_moment<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // `unchecked` only gives up the proof that no transaction is open; each thread runs one job at a time.
    let transaction = connection.unchecked_transaction()?;
    let read = work(&transaction)?;
    transaction.finish()?;
    Ok(read)
}
