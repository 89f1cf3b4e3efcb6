//! Upgrades: copied whole, refused whole, and safe from a kill at any moment.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;

use super::earlier::of_first_version;
use super::processes::{assert_consistent, child_database, listen, send_line, test_again};
use super::{DEADLINE, Scratch, SqliteStore, number};
use crate::{Listing, Store, StoreError, UpgradeGuard, UpgradeStep};

/// The step at which the child stays, so that it is killed there.
const STAY: &str = "TOWLINE_STORE_TEST_STAY";

/// Enough for several steps of each kind.
const GOALS: u32 = 4_000;

/// Notes the steps of an upgrade, and refuses on request.
#[derive(Default)]
struct Watching {
    /// How many permissions are given before the first refusal; none refuses nothing.
    refuses_after: Option<usize>,
    permissions: AtomicUsize,
    steps: Mutex<Vec<UpgradeStep>>,
}

impl UpgradeGuard for Watching {
    fn permit(&self) -> Result<(), StoreError> {
        let given = self.permissions.fetch_add(1, Ordering::SeqCst);
        match self.refuses_after {
            Some(most) if given >= most => Err(StoreError::InUse { path: "it".to_owned(), pids: vec![7] }),
            _ => Ok(()),
        }
    }

    fn progress(&self, step: UpgradeStep) {
        self.steps.lock().expect("nobody panics").push(step);
    }
}

fn open(scratch: &Scratch, guard: Arc<dyn UpgradeGuard>) -> Result<SqliteStore, StoreError> {
    SqliteStore::open_guarded(&scratch.database(), &guard)
}

fn copy(scratch: &Scratch) -> PathBuf {
    scratch.0.path().join("towline.db.v1")
}

fn version(connection: &Connection) -> i64 {
    number(connection, "SELECT MAX(version) FROM refinery_schema_history")
}

#[tokio::test]
async fn an_upgrade_reports_its_steps_and_a_database_that_is_up_to_date_has_none() {
    let scratch = of_first_version(GOALS).await;
    let watching = Arc::new(Watching::default());
    let store = open(&scratch, Arc::clone(&watching) as _).expect("it opens");
    assert_eq!(store.list(&Listing::first(9)).await.expect("a list").len(), 9);
    let steps = std::mem::take(&mut *watching.steps.lock().expect("nobody panics"));
    let copying: Vec<(u64, u64)> = steps
        .iter()
        .filter_map(|step| match step {
            UpgradeStep::Copying { done, total } => Some((*done, *total)),
            _ => None,
        })
        .collect();
    assert!(copying.len() > 3 && copying.is_sorted(), "{copying:?}");
    assert!(copying.last().is_some_and(|(done, total)| done == total), "{copying:?}");
    assert!(steps[copying.len()..].len() > 3, "{steps:?}");
    assert!(steps[copying.len()..].iter().all(|step| *step == UpgradeStep::ChangingTables), "{steps:?}");
    let again = open(&scratch, Arc::clone(&watching) as _);
    again.expect("it opens");
    assert_eq!(*watching.steps.lock().expect("nobody panics"), vec![]);
    assert_eq!(watching.permissions.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_upgrade_that_is_not_permitted_changes_nothing() {
    let scratch = of_first_version(3).await;
    let before = std::fs::read(scratch.database()).expect("the file");
    let refused = open(&scratch, Arc::new(Watching { refuses_after: Some(0), ..Watching::default() }));
    assert!(matches!(refused, Err(StoreError::InUse { ref pids, .. }) if *pids == [7]), "{refused:?}");
    assert_eq!(version(&scratch.raw()), 1);
    assert_eq!(std::fs::read(scratch.database()).expect("the file").len(), before.len());
    assert!(!copy(&scratch).exists());
}

/// What earlier versions wrote in the meantime is in the copy, and so is what is in the log alone.
#[tokio::test]
async fn a_copy_of_an_upgrade_that_did_not_come_about_is_made_again() {
    let scratch = of_first_version(3).await;
    let refusing = Watching { refuses_after: Some(1), ..Watching::default() };
    open(&scratch, Arc::new(refusing)).expect_err("an engine began meanwhile");
    assert_eq!(version(&scratch.raw()), 1);
    let raw = scratch.raw();
    raw.execute_batch("PRAGMA journal_mode = WAL; UPDATE goals SET title = 'later'").expect("it is changed");
    let log = std::fs::metadata(scratch.0.path().join("towline.db-wal")).expect("a log").len();
    assert!(log > 0, "the change is in the log");
    scratch.store();
    let copied = Connection::open(copy(&scratch)).expect("a copy");
    assert_eq!(
        (version(&copied), number(&copied, "SELECT COUNT(*) FROM goals WHERE title = 'later'")),
        (1, 3)
    );
}

#[tokio::test]
async fn what_an_upgrade_that_was_cut_off_left_is_replaced() {
    let scratch = of_first_version(3).await;
    let unfinished = scratch.0.path().join("towline.db.v1.part");
    let log = scratch.0.path().join("towline.db.v1-wal");
    for left in [&unfinished, &log] {
        std::fs::write(left, "half a copy").expect("written");
    }
    scratch.store();
    assert!(!unfinished.exists() && !log.exists());
    let without_log = [1, 1];
    assert_eq!(std::fs::read(copy(&scratch)).expect("a copy")[18..20], without_log);
    assert_eq!(number(&Connection::open(copy(&scratch)).expect("a copy"), "SELECT COUNT(*) FROM goals"), 3);
}

#[tokio::test]
async fn of_processes_that_upgrade_at_once_one_does_and_the_others_wait() {
    let scratch = of_first_version(GOALS).await;
    let path = scratch.database();
    thread::scope(|scope| {
        let open = || super::super::connection::open_existing(&path, &(Arc::new(Watching::default()) as _));
        let opening: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        for opened in opening {
            opened.join().expect("it does not panic").expect("it opens");
        }
    });
    assert_consistent(&scratch);
    assert_eq!(version(&Connection::open(copy(&scratch)).expect("a copy")), 1);
}

/// Stays at one step of the upgrade until it is killed.
struct Staying {
    at: usize,
    steps: AtomicUsize,
}

impl UpgradeGuard for Staying {
    fn permit(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn progress(&self, step: UpgradeStep) {
        if self.steps.fetch_add(1, Ordering::SeqCst) == self.at {
            send_line(&format!("{step:?}"));
            thread::sleep(DEADLINE);
        }
    }
}

#[test]
fn a_kill_at_any_step_of_an_upgrade_loses_nothing() {
    if let Some(path) = child_database() {
        let at = std::env::var(STAY).expect("a step").parse().expect("a number");
        SqliteStore::open_guarded(&path, &(Arc::new(Staying { at, steps: AtomicUsize::new(0) }) as _))
            .expect("it opens");
        return send_line("open");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let scratch = runtime.block_on(of_first_version(GOALS));
    let mut reached = Vec::new();
    loop {
        let step_name = kill_at(&scratch, reached.len());
        if step_name == "open" {
            break;
        }
        assert_consistent(&scratch);
        assert_eq!(
            (version(&scratch.raw()), number(&scratch.raw(), "SELECT COUNT(*) FROM goals")),
            (1, GOALS.into())
        );
        if copy(&scratch).exists() {
            let copied = Connection::open(copy(&scratch)).expect("a copy");
            assert_eq!(number(&copied, "SELECT COUNT(*) FROM goals"), i64::from(GOALS), "after {step_name}");
        }
        reached.push(step_name);
    }
    let changing = reached.iter().filter(|step| *step == "ChangingTables").count();
    assert!(changing > 3 && reached.len() > changing + 3, "{reached:?}");
    let store = scratch.store();
    let listed = runtime.block_on(crate::list_all(&store, Listing::all())).expect("a list");
    assert_eq!(listed.len(), usize::try_from(GOALS).expect("few"));
    assert!(listed.iter().all(|row| matches!(row, crate::Listed::Goal(_))));
    assert!(!scratch.0.path().join("towline.db.v1.part").exists());
}

/// Runs the upgrade in a process that is killed at this step, and returns the step, or `open` when it had fewer.
fn kill_at(scratch: &Scratch, step: usize) -> String {
    let test = "a_kill_at_any_step_of_an_upgrade_loses_nothing";
    let mut command = test_again(module_path!(), test, &scratch.database());
    let mut child = command.env(STAY, step.to_string()).stdin(Stdio::null()).spawn().expect("it starts");
    let lines = listen(child.stdout.take().expect("its output"));
    let step_name = lines.recv_timeout(DEADLINE).expect("the child gets there");
    child.kill().expect("it is ours");
    child.wait().expect("it is gone");
    step_name
}
