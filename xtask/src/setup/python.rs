//! A virtual environment with the pytest that `agents/requirements.txt` pins, beside the agent CLIs.

use std::fs;

use anyhow::{Result, bail};

use super::{read, require, wait_for_turn, write};
use crate::{Places, command, print_line};

const REQUIREMENTS: &str = "requirements.txt";

/// Holds a copy of the requirements that the installed packages belong to.
const STAMP: &str = "installed-requirements.txt";

/// What the tests start.
const PYTEST: &str = "bin/pytest";

/// Makes sure that the pinned pytest is installed; does nothing when it is.
pub(super) fn install(places: &Places) -> Result<()> {
    let requirements = places.root.join("agents").join(REQUIREMENTS);
    let wanted = read(&requirements)?;
    let folder = &places.python;
    let _exclusive = wait_for_turn(&places.agents)?;
    if fs::read(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted) && folder.join(PYTEST).is_file() {
        print_line(&format!("pytest: up to date in {}", folder.display()));
        return Ok(());
    }
    require(
        "python3",
        "install Python 3.11+ with venv (Debian: apt-get install python3-venv)",
        &places.root,
    )?;
    print_line(&format!("pytest: installing into {}", folder.display()));
    // What an interpreter that was replaced has left does not work any more.
    let mut venv = command::program("python3", &places.root);
    venv.args(["-m", "venv", "--clear"]).arg(folder);
    run(venv, "Debian has this part of Python in a package of its own: apt-get install python3-venv")?;
    let mut pip = command::program(folder.join("bin/python"), &places.root);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
    ]);
    pip.arg(&requirements);
    run(pip, "it needs Python 3.11 or newer and a package registry")?;
    if !folder.join(PYTEST).is_file() {
        bail!("pip installed no {} below {}", PYTEST, folder.display());
    }
    write(&folder.join(STAMP), &wanted)
}

fn run(mut command: std::process::Command, hint: &str) -> Result<()> {
    let status = command::status(&mut command)?;
    if !status.success() {
        bail!("`{}` failed ({status}); what it printed is above ({hint})", command::shown(&command));
    }
    Ok(())
}
