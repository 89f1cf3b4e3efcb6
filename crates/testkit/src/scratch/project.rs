//! A scratch git repository.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::clean_command;

/// A git repository in a temporary folder, on the branch `main` with one commit. It is deleted when dropped.
#[derive(Debug)]
pub struct Project {
    path: PathBuf,
    _folder: TempDir,
}

impl Default for Project {
    fn default() -> Self {
        Self::new()
    }
}

impl Project {
    /// Makes a repository whose first commit holds a `README.md`.
    pub fn new() -> Self {
        let folder = super::home::temporary_folder();
        let path = folder.path().join("project");
        fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        let project = Self { path, _folder: folder };
        project.git(["init", "--quiet", "--initial-branch=main"]);
        for (key, value) in
            [("user.name", "Test"), ("user.email", "test@example.invalid"), ("commit.gpgsign", "false")]
        {
            project.git(["config", key, value]);
        }
        project.write("README.md", "A scratch project.\n");
        project.commit("first");
        project
    }

    /// The folder of the repository.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, with the folders above it, at a path relative to the repository.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    /// Reads a text file at a path relative to the repository.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.path.join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Commits everything that is not ignored, of which something must have changed, and returns the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--message", message]);
        self.git(["rev-parse", "HEAD"])
    }

    /// Runs git in the repository, away from the user's configuration, and returns its output without the last
    /// line end.
    pub fn git(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        let mut git = clean_command("git");
        let output = git
            .args(arguments)
            .current_dir(&self.path)
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")])
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("cannot start git: {error}; install it"));
        assert!(
            output.status.success(),
            "{git:?} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }
}
