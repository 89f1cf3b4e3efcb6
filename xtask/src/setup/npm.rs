//! Packages of npm, pinned by a lock file.
//!
//! The install scripts of the packages are not run: native binaries are in their platform packages. Npm installs the
//! packages of this platform only, so the binary that is there is the right one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{read, require, require_npm, wait_for_turn, write};
use crate::{Places, command, print_line};

const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";

/// Holds a copy of the lock file that the installed packages belong to.
const STAMP: &str = "installed-package-lock.json";

/// Packages that are installed together.
pub(super) struct Packages<'a> {
    /// What they are called on the screen.
    pub(super) name: &'static str,
    /// Where the manifest and the lock file are.
    pub(super) pinned: &'a Path,
    /// Where they are installed.
    pub(super) folder: &'a Path,
    /// What the tests start of them, by name.
    pub(super) programs: &'static [(&'static str, &'static str)],
}

impl Packages<'_> {
    /// Makes sure that they are installed; does nothing when they are.
    pub(super) fn install(&self, places: &Places) -> Result<()> {
        let (name, folder) = (self.name, self.folder);
        let lock = read(&self.pinned.join(LOCK))?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let _exclusive = wait_for_turn(folder)?;

        if fs::read(folder.join(STAMP)).is_ok_and(|stamp| stamp == lock) && self.missing().is_empty() {
            print_line(&format!("{name}: up to date in {}", folder.display()));
            return Ok(());
        }
        require("git", "install git (Debian: apt-get install git)", &places.root)?;
        require_npm(places)?;

        write(&folder.join(MANIFEST), &read(&self.pinned.join(MANIFEST))?)?;
        write(&folder.join(LOCK), &lock)?;
        print_line(&format!("{name}: installing into {}", folder.display()));
        self.run_npm(&["ci", "--no-audit", "--no-fund", "--ignore-scripts"])?;
        self.require_programs()?;
        write(&folder.join(STAMP), &lock)?;
        let installed: Vec<&str> = self.programs.iter().map(|(name, _)| *name).collect();
        print_line(&format!("{name}: installed {}", installed.join(", ")));
        Ok(())
    }

    /// Whether this folder has the packages that are pinned.
    pub(super) fn is_current(&self, folder: &Path) -> bool {
        let pinned = fs::read(self.pinned.join(LOCK)).ok();
        pinned.is_some() && fs::read(folder.join(STAMP)).ok() == pinned
    }

    /// Installs what a manifest wants, whatever the lock file pins.
    pub(super) fn install_newest(&self, manifest: &[u8]) -> Result<()> {
        // What is there would decide which version npm takes.
        let _ = fs::remove_file(self.folder.join(LOCK));
        write(&self.folder.join(MANIFEST), manifest)?;
        print_line(&format!("{}: installing into {}", self.name, self.folder.display()));
        self.run_npm(&[
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--omit-lockfile-registry-resolved",
        ])?;
        self.require_programs()
    }

    fn require_programs(&self) -> Result<()> {
        let missing = self.missing();
        if !missing.is_empty() {
            bail!(
                "npm installed no {} for this platform below {}; the tests run where all pinned packages do",
                missing.join(", no "),
                self.folder.display()
            );
        }
        Ok(())
    }

    fn run_npm(&self, arguments: &[&str]) -> Result<()> {
        let mut npm = command::program("npm", self.folder);
        npm.args(arguments);
        let status = command::status(&mut npm)?;
        if !status.success() {
            bail!(
                "`{}` in {} failed ({status}); what it printed is above",
                command::shown(&npm),
                self.folder.display()
            );
        }
        Ok(())
    }

    /// The programs that are not installed.
    fn missing(&self) -> Vec<&'static str> {
        let programs = self.programs.iter();
        programs.filter(|(_, path)| find(self.folder, path).is_none()).map(|(name, _)| *name).collect()
    }
}

/// The file below `folder` that a path leads to, in which a folder's name may have one `*`.
fn find(folder: &Path, path: &str) -> Option<PathBuf> {
    let Some((first, rest)) = path.split_once('/') else {
        return Some(folder.join(path)).filter(|file| file.is_file());
    };
    let Some((start, end)) = first.split_once('*') else {
        return find(&folder.join(first), rest);
    };
    let fits = |name: &str| name.len() >= first.len() - 1 && name.starts_with(start) && name.ends_with(end);
    fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| fits(&entry.file_name().to_string_lossy()))
        .find_map(|entry| find(&entry.path(), rest))
}
