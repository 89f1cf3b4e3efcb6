//! What works in a sandbox, what does not, and what happens without one.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

#[path = "../support/mod.rs"]
mod support;

mod caches;
mod credentials;
mod limits;
mod practice;

use std::os::unix::process::CommandExt;

use support::{Desk, Ran};
use towline_testkit::hostile;
use towline_testkit::scratch::{SANDBOX, clean_command};

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

/// Any user who is not root.
const SOMEBODY: u32 = 12_345;

/// bubblewrap starts programs differently for root. The other tests run as the user who starts them.
#[test]
fn a_user_who_is_not_root_has_the_same_sandbox_and_layers_over_caches() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let desk = desk_doing("echo mine > \"$HOME/.npm/package\"; touch done");
    let (home, project) = (desk.home.path(), desk.project.path());
    std::fs::create_dir(home.join(".npm")).expect("a cache");
    std::fs::write(home.join(".npm/package"), "the user's").expect("written");
    let program = home.join("towline-of-somebody");
    std::fs::copy(env!("CARGO_BIN_EXE_towline"), &program).expect("copied");
    for place in [home.parent().expect("a scratch directory"), project] {
        let owner = format!("{SOMEBODY}:{SOMEBODY}");
        let changed = clean_command("chown").args(["-R", &owner]).arg(place).status();
        assert!(changed.is_ok_and(|status| status.success()), "{}", place.display());
    }
    let mut command = clean_command(&program);
    command.args(["run", "do it", "--json", "--check"]).uid(SOMEBODY).gid(SOMEBODY);
    command.arg(
        "test -e done && grep -qx \"the user's\" \"$HOME/.npm/package\" && echo > \"$HOME/.npm/package\"",
    );
    command.env_clear().envs(desk.variables().iter().cloned()).current_dir(project);
    let ran = Ran::from(command.output().expect("towline starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["trust"]["level"], 2, "{ran:?}");
    assert_eq!(std::fs::read_to_string(home.join(".npm/package")).expect("read"), "the user's");
}
