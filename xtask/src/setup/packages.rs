//! Programs that come with the system. On Debian, and as root, the missing ones are installed; elsewhere setup fails with
//! the command to run, so that no test is skipped.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{Places, command, print_line};

/// What the tests start, and the Debian package that has it.
const PROGRAMS: [(&str, &str); 7] = [
    ("bwrap", "bubblewrap"),
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("git-lfs", "git-lfs"),
    ("go", "golang-go"),
    ("jq", "jq"),
    ("make", "make"),
];

/// Makes sure that all programs are there; does nothing when they are.
pub(super) fn install(places: &Places) -> Result<()> {
    let (programs, packages): (Vec<&str>, Vec<&str>) = missing().into_iter().unzip();
    if packages.is_empty() {
        return Ok(());
    }
    if !is_on_path("apt-get") || !is_root(places) {
        bail!(
            "the tests need {}, which this machine does not have: run `sudo apt-get install {}`",
            programs.join(", "),
            packages.join(" ")
        );
    }
    print_line(&format!("packages: installing {}", packages.join(", ")));
    run(apt_get(places).arg("update"))?;
    run(apt_get(places).args(["install", "--yes", "--no-install-recommends"]).args(&packages))?;
    let still_missing: Vec<&str> = missing().into_iter().map(|(program, _)| program).collect();
    if !still_missing.is_empty() {
        bail!("apt-get installed {}, but there is no {}", packages.join(", "), still_missing.join(", no "));
    }
    Ok(())
}

fn missing() -> Vec<(&'static str, &'static str)> {
    PROGRAMS.into_iter().filter(|(program, _)| !is_on_path(program)).collect()
}

/// Not every program can be asked for its version in the same way.
fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root(places: &Places) -> bool {
    let id = command::output(command::program("id", &places.root).arg("-u"));
    id.is_ok_and(|id| id.trim_ascii() == b"0")
}

fn apt_get(places: &Places) -> Command {
    let mut apt_get = command::program("apt-get", &places.root);
    apt_get.env("DEBIAN_FRONTEND", "noninteractive");
    apt_get
}

fn run(command: &mut Command) -> Result<()> {
    let status = command::status(command)?;
    if !status.success() {
        bail!("`{}` failed ({status}); what it printed is above", command::shown(command));
    }
    Ok(())
}
