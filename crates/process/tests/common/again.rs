//! Runs a test again in a process of its own, in another role, perhaps as an ordinary user.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The role of a test that was run again, and the directory that it was given.
const ROLE: &str = "TOWLINE_TEST_ROLE";
const DIRECTORY: &str = "TOWLINE_TEST_DIRECTORY";
/// The supervisor's program, for whoever cannot go where it was built.
const SUPERVISOR: &str = "TOWLINE_TEST_SUPERVISOR";

pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, PathBuf::from(std::env::var_os(DIRECTORY)?)))
}

pub(crate) fn supervisor() -> PathBuf {
    std::env::var_os(SUPERVISOR).map_or_else(|| env!("CARGO_BIN_EXE_towline-shim").into(), PathBuf::from)
}

/// This test in another role. It is to pass there as well.
pub(crate) fn start_again(test: &str, role: &str, directory: &Path) -> Child {
    command(&std::env::current_exe().unwrap(), test, role, directory).spawn().unwrap()
}

/// The arguments and variables that make a program of a run this test in another role.
pub(crate) fn arguments(test: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [program, test.to_owned(), "--exact".to_owned(), "--nocapture".to_owned()].into()
}

pub(crate) fn variables(role: &str, directory: &Path) -> [(String, String); 3] {
    [(ROLE, role), (DIRECTORY, directory.to_str().unwrap()), (SUPERVISOR, supervisor().to_str().unwrap())]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Runs the test in another role as a user that nobody else is at the moment.
pub(crate) fn must_pass_as_ordinary_user(test: &str, role: &str, directory: &Path) {
    let programs = [std::env::current_exe().unwrap(), supervisor()];
    let [program, supervisor] = ["test", "towline-shim"].map(|name| directory.join(name));
    for (from, to) in programs.iter().zip([&program, &supervisor]) {
        fs::copy(from, to).unwrap();
    }
    let work = directory.join("ordinary");
    fs::create_dir(&work).unwrap();
    for path in [directory, &program, &supervisor, &work] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = command(&program, test, role, &work);
    command.env(SUPERVISOR, supervisor).env("TMPDIR", &work).env("HOME", &work).current_dir(&work);
    if rustix::process::geteuid().is_root() {
        let user = 100_000 + std::process::id();
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the child ran another test: {text}");
}

#[expect(clippy::disallowed_methods, reason = "the child is this very test in another role")]
fn command(program: &Path, test: &str, role: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).envs(variables(role, directory));
    command
}
