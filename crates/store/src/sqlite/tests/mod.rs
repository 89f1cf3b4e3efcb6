//! What the SQLite store promises beyond the suite that holds for every store.

mod agreement;
mod damage;
mod earlier;
mod full_disk;
mod grouping;
mod ledger;
mod lists;
mod opening;
mod parts;
mod pool;
mod processes;
mod tables;
mod upgrading;

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::SqliteStore;
use crate::conformance::Place;
use crate::{Store, StoreError};

mod conformance {
    use super::Scratch;

    crate::conformance_tests!(Scratch::new());
}

/// Longer than anything here takes, shorter than anybody's patience.
const DEADLINE: Duration = Duration::from_secs(60);

/// A directory of its own for one test.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(TempDir::new().expect("a scratch directory"))
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("towline.db")
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.database()).expect("it opens")
    }

    /// A connection past the store, as somebody with the `sqlite3` program has it.
    fn raw(&self) -> Connection {
        Connection::open(self.database()).expect("it opens")
    }
}

#[async_trait]
impl Place for Scratch {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store())
    }
}

/// A job that blocks the writer until it is released.
struct Gate {
    entered: oneshot::Receiver<()>,
    release: mpsc::Sender<()>,
}

/// The write that a gate blocks.
type Blocked<'store> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + 'store>>;

impl Gate {
    /// The gate and the write that it blocks.
    fn new(store: &SqliteStore) -> (Self, Blocked<'_>) {
        let (enter, entered) = oneshot::channel();
        let (release, released) = mpsc::channel();
        let mut enter = Some(enter);
        let blocked = store.write(move |_| {
            if let Some(enter) = enter.take() {
                let _ = enter.send(());
            }
            let _ = released.recv_timeout(DEADLINE);
            Ok(())
        });
        (Self { entered, release }, Box::pin(blocked))
    }

    async fn entered(&mut self) {
        let entered = tokio::time::timeout(DEADLINE, &mut self.entered).await;
        entered.expect("the writer gets there in time").expect("the writer is alive");
    }

    fn open(self) {
        self.release.send(()).expect("the writer waits in it");
    }
}

/// Polls once, which is what queues a job; returns whether it is answered.
async fn is_answered<T>(future: &mut Pin<Box<impl Future<Output = T> + ?Sized>>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// The texts in the first column of what a query finds.
fn texts(raw: &Connection, sql: &str) -> Vec<String> {
    let mut statement = raw.prepare(sql).expect("a query");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("texts")
}

fn number(raw: &Connection, sql: &str) -> i64 {
    raw.query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// The steps in which SQLite answers a query.
fn plan(raw: &Connection, sql: &str, values: &[Value]) -> Vec<String> {
    let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a query");
    let steps = statement.query_map(params_from_iter(values), |row| row.get("detail")).expect("a plan");
    steps.collect::<Result<_, _>>().expect("texts")
}
