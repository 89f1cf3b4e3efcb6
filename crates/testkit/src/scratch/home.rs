//! A scratch home for a person and for Towline's state.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::processes::kill_processes_with;
use super::programs::search_path;

/// The variable that decides whether Towline confines what it starts.
pub const SANDBOX: &str = "TOWLINE_SET_sandbox__mode";

/// A home, a Towline state folder and XDG folders below one temporary folder.
///
/// When it is dropped it is deleted, and processes that still have it in their environment are killed: a test that
/// fails leaves nothing behind.
#[derive(Debug)]
pub struct Home {
    root: PathBuf,
    _folder: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Makes the folders, all empty.
    pub fn new() -> Self {
        let folder = temporary_folder();
        let home = Self { root: folder.path().to_path_buf(), _folder: folder };
        for path in home.folders().map(|(_, path)| path) {
            // Private, because programs refuse a runtime folder that others may enter.
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        }
        home
    }

    /// The person's home, for `HOME`.
    pub fn path(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Towline's state, for `TOWLINE_HOME`. Its path is short enough for sockets.
    pub fn towline(&self) -> PathBuf {
        self.root.join("towline")
    }

    /// The user's configuration folder, for `XDG_CONFIG_HOME`.
    pub fn config(&self) -> PathBuf {
        self.root.join("config")
    }

    /// The whole environment of a program that is to see these folders only: `PATH`, the folders, and a git
    /// without the user's configuration.
    pub fn env(&self) -> Vec<(String, String)> {
        let folders = self.folders().map(|(name, path)| (name, path.to_string_lossy().into_owned()));
        let others = [
            ("PATH", search_path()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        folders.into_iter().chain(others).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Turns the sandbox off in the user's configuration, which a project can override.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn without_sandbox(&self) {
        let folder = self.config().join("towline");
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("config.toml"), "[sandbox]\nmode = \"off\"\n"));
        written.unwrap_or_else(|error| panic!("cannot write to {}: {error}", folder.display()));
    }

    /// What every process that was started with [`Home::env`] has in its environment, and all its descendants
    /// that have the same `HOME`: the marker to look for them by.
    pub fn marker(&self) -> String {
        format!("{}/", self.root.display())
    }

    fn folders(&self) -> [(&'static str, PathBuf); 7] {
        [
            ("HOME", self.path()),
            ("TOWLINE_HOME", self.towline()),
            ("XDG_CONFIG_HOME", self.config()),
            ("XDG_STATE_HOME", self.root.join("state")),
            ("XDG_DATA_HOME", self.root.join("data")),
            ("XDG_CACHE_HOME", self.root.join("cache")),
            ("XDG_RUNTIME_DIR", self.root.join("run")),
        ]
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        kill_processes_with(&self.marker());
    }
}

/// A temporary folder with a short path that has no symlink in it, so that it compares equal to what
/// programs report.
pub(super) fn temporary_folder() -> TempDir {
    let parent = fs::canonicalize(std::env::temp_dir()).unwrap_or_else(|_| Path::new("/tmp").to_path_buf());
    tempfile::Builder::new()
        .prefix("tl-")
        .tempdir_in(&parent)
        .unwrap_or_else(|error| panic!("cannot create a temporary folder in {}: {error}", parent.display()))
}
