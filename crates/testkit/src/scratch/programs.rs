//! The programs that tests start, and how they start them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command whose environment holds nothing but `PATH`.
#[expect(clippy::disallowed_methods, reason = "tests start programs as their users would")]
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", search_path());
    command
}

/// The `towline-shim` program of this build.
pub fn supervisor_program() -> PathBuf {
    built_program("towline-shim", "cargo build -p towline-process --bin towline-shim")
}

/// The `towline` program of this build.
pub fn towline_program() -> PathBuf {
    built_program("towline", "cargo build -p towline-cli --bin towline")
}

/// Where this process looks for programs.
pub(crate) fn search_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}

/// The target folder that the running test was built into.
pub(crate) fn target_directory() -> Option<PathBuf> {
    Some(profile_directory()?.parent()?.to_path_buf())
}

/// Test programs are in `<target>/<profile>/deps`, other programs one folder above.
fn profile_directory() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    test.parent().and_then(Path::parent).map(Path::to_path_buf)
}

fn built_program(name: &str, build: &str) -> PathBuf {
    let program = profile_directory()
        .unwrap_or_else(|| panic!("cannot find the folder of this test, and so not `{name}`"))
        .join(name);
    assert!(program.is_file(), "{} is not built: run `{build}`", program.display());
    program
}
