//! Locks and leases that an agent planted: they hold a goal up for a bounded time at most.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use support::{Desk, Ran};
use towline_process::ProcessId;
use towline_store::{SqliteStore, Store, WorkerName};
use towline_testkit::hostile;

/// Leaves a goal that could go on, held by this worker until then, whose lock this process holds.
fn held(desk: &Desk, worker: &str, until: Timestamp) -> (String, File) {
    let ran = desk.towline(["run", "fix it", "--check", "false", "--budget", "attempts=1", "--json"]);
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let state = desk.home.towline();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(&state.join("towline.db")).expect("the store");
        let id = goal.parse().expect("an id");
        let worker = WorkerName(worker.to_owned());
        store.claim(id, &worker, now(), until, None).await.expect("claimed");
    });
    let lock = File::create(state.join(format!("engines/{worker}.lock"))).expect("a file");
    lock.lock().expect("locked");
    (goal, lock)
}

#[expect(clippy::disallowed_methods, reason = "leases follow wall time")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn far() -> Timestamp {
    "9000-01-01T00:00:00Z".parse().expect("a time")
}

/// The name that an engine in this process would have.
fn living_name() -> String {
    let ProcessId { pid, start_time } = ProcessId::of(std::process::id()).expect("this process");
    let namespace = std::fs::metadata("/proc/self/ns/pid").expect("a namespace").ino();
    format!("{pid}-{start_time}-{namespace}-00000000")
}

fn retry(desk: &Desk, goal: &str) -> (Ran, Duration) {
    let started = Instant::now();
    let ran = desk.towline(["retry", goal, "--budget", "attempts=+1", "--json"]);
    (ran, started.elapsed())
}

#[test]
fn a_lease_of_a_made_up_engine_is_taken_over_at_once() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (goal, _lock) = held(&desk, "made-up", far());
    let (ran, _) = retry(&desk, &goal);
    assert_eq!(ran.code, Some(3), "the check fails as before: {ran:?}");
}

#[test]
fn a_lease_that_no_engine_writes_is_taken_over_though_its_holder_lives() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (goal, _lock) = held(&desk, &living_name(), far());
    let (ran, _) = retry(&desk, &goal);
    assert_eq!(ran.code, Some(3), "the check fails as before: {ran:?}");
}

#[test]
fn a_lease_whose_holder_lives_is_an_error_within_seconds() {
    let desk = Desk::with_script(hostile::well_behaved);
    let until = now() + SignedDuration::from_secs(60);
    let (goal, lock) = held(&desk, &living_name(), until);
    let (ran, took) = retry(&desk, &goal);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("is driven by another towline process"), "{}", ran.stderr);
    assert!(took < Duration::from_secs(20), "{took:?}");
    drop(lock);
    let (ran, _) = retry(&desk, &goal);
    assert_eq!(ran.code, Some(3), "the check fails as before: {ran:?}");
}

#[test]
fn a_lock_on_work_in_place_that_is_never_released_is_an_error_that_names_its_holder() {
    let desk = Desk::with_script(hostile::well_behaved);
    let path = desk.home.towline().join("in-place.lock");
    let lock = File::create(&path).expect("a file");
    lock.lock().expect("locked");
    let ran = desk.towline(["run", "fix it", "--in-place", "--check", "true"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let holder = format!("another process (pid {}) has held it for too long", std::process::id());
    for wanted in [path.display().to_string(), holder] {
        assert!(ran.stderr.contains(&wanted), "no {wanted:?} in {}", ran.stderr);
    }
}
