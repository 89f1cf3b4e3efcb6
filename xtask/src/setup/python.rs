//! Virtual environments with packages that a file of requirements pins by their hashes, beside the agent CLIs.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::{read, require, wait_for_turn, write};
use crate::{Places, command, print_line};

const REQUIREMENTS: &str = "requirements.txt";

/// Holds a copy of the requirements that the installed packages belong to.
const STAMP: &str = "installed-requirements.txt";

/// Packages of Python that are installed together.
pub(super) struct Environment<'a> {
    /// What they are called on the screen.
    pub(super) name: &'static str,
    /// Where the requirements are.
    pub(super) pinned: &'a Path,
    /// Where they are installed.
    pub(super) folder: &'a Path,
    /// A file that the tests use of them.
    pub(super) program: &'static str,
}

impl Environment<'_> {
    /// Makes sure that they are installed; does nothing when they are.
    pub(super) fn install(&self, places: &Places) -> Result<()> {
        let (name, folder) = (self.name, self.folder);
        let requirements = self.pinned.join(REQUIREMENTS);
        let wanted = read(&requirements)?;
        let _exclusive = wait_for_turn(&places.agents)?;
        if fs::read(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted) && self.is_there() {
            print_line(&format!("{name}: up to date in {}", folder.display()));
            return Ok(());
        }
        require(
            "python3",
            "install Python 3.11+ with venv (Debian: apt-get install python3-venv)",
            &places.root,
        )?;
        print_line(&format!("{name}: installing into {}", folder.display()));
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
        if !self.is_there() {
            bail!("pip installed no {} below {}", self.program, folder.display());
        }
        write(&folder.join(STAMP), &wanted)
    }

    fn is_there(&self) -> bool {
        self.folder.join(self.program).is_file()
    }
}

fn run(mut command: std::process::Command, hint: &str) -> Result<()> {
    let status = command::status(&mut command)?;
    if !status.success() {
        bail!("`{}` failed ({status}); what it printed is above ({hint})", command::shown(&command));
    }
    Ok(())
}
