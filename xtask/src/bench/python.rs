//! The official Python SDK, for the benchmark alone: pinned, in an environment of its own below the target folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{command, print_line};

/// The SDK and its version.
const SDK: &str = "claude-agent-sdk==0.2.182";

/// Installs it, unless it is there. Gives back the interpreter that has it.
pub(super) fn install(root: &Path, folder: &Path) -> Result<PathBuf> {
    let home = folder.join("python");
    let (python, stamp) = (home.join("bin/python3"), home.join("installed"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == SDK) && python.is_file() {
        return Ok(python);
    }
    if !command::is_there(&mut command::program("python3", root)) {
        bail!("`python3` was not found, and the comparison with its SDK needs it: install Python 3.10+");
    }
    print_line(&format!("bench: installing {SDK} into {}", home.display()));
    let mut venv = command::program("python3", root);
    run(venv.args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = command::program(&python, root);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    // Its source: the ready-made packages have a whole Claude Code in them.
    run(pip.args(["--no-binary", "claude-agent-sdk", SDK]))?;
    fs::write(&stamp, SDK).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

fn run(program: &mut std::process::Command) -> Result<()> {
    let status = command::status(program)?;
    if !status.success() {
        bail!("`{}` failed ({status}); what it printed is above", command::shown(program));
    }
    Ok(())
}
