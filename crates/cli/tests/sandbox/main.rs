//! What works in a sandbox, what does not, and what happens without one.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

#[path = "../support/mod.rs"]
mod support;

mod caches;
mod credentials;
mod limits;
mod practice;

use support::{Desk, Ran};
use towline_testkit::hostile;
use towline_testkit::scratch::SANDBOX;

/// A desk in a sandbox, with a script that runs these commands as its work.
fn desk_doing(commands: &str) -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, commands)).in_sandbox()
}

/// Runs a goal whose check is this.
fn run(desk: &Desk, check: &str) -> Ran {
    desk.towline(["run", "do it", "--check", check, "--json"])
}

/// Runs a goal that must be done, in a sandbox.
fn run_to_done(desk: &Desk, check: &str) {
    let ran = run(desk, check);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!((&report["trust"]["level"], &report["trust"]["sandbox"]), (&2.into(), &"bubblewrap".into()));
}

#[test]
fn the_default_is_level_2_where_bubblewrap_works() {
    let mut desk = Desk::with_script(hostile::well_behaved);
    desk.unset(SANDBOX);
    let ran = desk.towline(["run", "do it", "--check", "test -e done.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["trust"]["level"], 2, "{ran:?}");
}
