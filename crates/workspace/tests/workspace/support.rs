//! A scratch repository, and looking at working trees without changing them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use towline_workspace::{Commit, Repository, Workspace, WorkspacePlan, create};

/// The id that the workspaces of these tests use.
pub(crate) const GOAL: &str = "0198c0de-0000-7000-8000-00000000abcd";
/// The branch that belongs to it.
pub(crate) const BRANCH: &str = "towline/abcd-fix";

/// A repository in a scratch directory: `src/lib.rs`, `tests/a.rs`, `tests/b.rs`, and `*.log`, `.env` and
/// `target/` ignored.
pub(crate) struct Project {
    scratch: TempDir,
    pub(crate) root: PathBuf,
}

impl Project {
    pub(crate) fn new() -> Self {
        let project = Self::empty();
        write(&project.root, ".gitignore", "*.log\n.env\ntarget/\n");
        write(&project.root, "src/lib.rs", "pub fn one() -> u8 {\n    1\n}\n");
        write(&project.root, "tests/a.rs", "assert a\n");
        write(&project.root, "tests/b.rs", "assert b\n");
        git(&project.root, ["add", "-A"]);
        git(&project.root, ["commit", "-q", "-m", "start"]);
        project
    }

    /// A repository without commits.
    pub(crate) fn empty() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        git(&root, ["init", "-q", "-b", "main"]);
        // What the user who runs the tests has configured must not matter.
        for (key, value) in [
            ("core.excludesFile", "/dev/null"),
            ("core.attributesFile", "/dev/null"),
            ("core.autocrlf", "false"),
        ] {
            git(&root, ["config", key, value]);
        }
        Self { scratch, root }
    }

    /// The same scratch directory with another repository in it.
    pub(crate) fn with_root(self, root: PathBuf) -> Self {
        Self { root, ..self }
    }

    /// A path beside the repository.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::discover(&self.root).unwrap()
    }

    pub(crate) fn head(&self) -> Commit {
        Commit::new(git(&self.root, ["rev-parse", "HEAD"]))
    }

    pub(crate) fn plan(&self) -> WorkspacePlan {
        WorkspacePlan {
            goal: GOAL.to_owned(),
            branch: BRANCH.to_owned(),
            path: self.beside("workspaces/fix"),
            own: self.beside("workspaces/fix.git"),
            base: self.head(),
            copy: Vec::new(),
            settings: self.repository().git_settings(&self.head()).unwrap(),
        }
    }

    /// Towline's own repository for the workspaces of these tests.
    pub(crate) fn own(&self) -> Repository {
        let WorkspacePlan { own, base, settings, .. } = self.plan();
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        self.repository().own(&own, &base, &settings).unwrap()
    }

    pub(crate) fn workspace(&self) -> Workspace {
        create(&self.repository(), &self.plan()).unwrap()
    }

    /// All files of a commit: path → mode and content.
    pub(crate) fn files_of(&self, commit: &Commit) -> BTreeMap<String, String> {
        let listing = self.git_of_goal(["ls-tree", "-r", "-z", commit.as_str()]);
        let entries = listing.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| {
                let tab = entry.iter().position(|byte| *byte == b'\t').unwrap();
                let about = String::from_utf8_lossy(&entry[..tab]).into_owned();
                let (mode, hash) = (&about[..6], about.rsplit(' ').next().unwrap());
                let content = match mode {
                    "160000" => hash.to_owned(),
                    _ => String::from_utf8_lossy(&self.git_of_goal(["cat-file", "blob", hash])).into_owned(),
                };
                (String::from_utf8_lossy(&entry[tab + 1..]).into_owned(), format!("{mode} {content}"))
            })
            .collect()
    }

    /// Waits until the file system's clock shows a later second than the file was changed in.
    pub(crate) fn wait_for_a_second_after(&self, file: &Path) {
        let changed = fs::metadata(file).unwrap().mtime();
        let probe = self.beside("probe");
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            fs::write(&probe, "tick").unwrap();
            if fs::metadata(&probe).unwrap().mtime() > changed {
                return;
            }
            assert!(Instant::now() < deadline, "the file system's clock does not advance");
            std::thread::yield_now();
        }
    }

    /// The commit a ref of the user's repository points to, if it exists.
    pub(crate) fn reference(&self, name: &str) -> Option<Commit> {
        let found = git(&self.root, ["for-each-ref", "--format=%(objectname)", name]);
        (!found.is_empty()).then(|| Commit::new(found))
    }

    /// The same in Towline's own repository.
    pub(crate) fn own_reference(&self, name: &str) -> Option<Commit> {
        let found = self.git_of_goal(["for-each-ref", "--format=%(objectname)", name]);
        let found = String::from_utf8(found).unwrap().trim_end().to_owned();
        (!found.is_empty()).then(|| Commit::new(found))
    }

    /// The first parent of a commit in Towline's own repository.
    pub(crate) fn parent_of(&self, commit: &Commit) -> Commit {
        let parent = self.git_of_goal(["rev-parse", &format!("{commit}^")]);
        Commit::new(String::from_utf8(parent).unwrap().trim_end())
    }

    /// What git prints in Towline's own repository.
    pub(crate) fn git_of_goal<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Vec<u8> {
        let own = self.beside("workspaces/fix.git");
        let place = if own.is_dir() { own } else { self.root.join(".git") };
        let mut command = git_command(&self.root);
        let output = command.env("GIT_DIR", place).args(args).output().unwrap();
        assert!(output.status.success(), "git failed: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

/// Git as these tests run it: no configuration but the repository's own, a fixed identity.
#[expect(clippy::disallowed_methods, reason = "tests prepare and inspect repositories with git itself")]
fn git_command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_AUTHOR_NAME", "Someone")
        .env("GIT_AUTHOR_EMAIL", "someone@example.org")
        .env("GIT_COMMITTER_NAME", "Someone")
        .env("GIT_COMMITTER_EMAIL", "someone@example.org")
        .args(["-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null"]);
    command
}

pub(crate) fn git_bytes<A: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = A>) -> Vec<u8> {
    let output = git_command(directory).args(args).output().unwrap();
    assert!(output.status.success(), "git failed: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// What git prints when it is given this to read.
pub(crate) fn git_with_input<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
    input: impl AsRef<[u8]>,
) -> Vec<u8> {
    let mut command = git_command(directory);
    let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_ref()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

pub(crate) fn git<A: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = A>) -> String {
    String::from_utf8(git_bytes(directory, args)).unwrap().trim_end().to_owned()
}

/// Runs a git command that is expected to fail, like a merge with conflicts.
pub(crate) fn git_fails<A: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = A>) {
    let output = git_command(directory).args(args).output().unwrap();
    assert!(!output.status.success(), "git succeeded: {}", String::from_utf8_lossy(&output.stdout));
}

pub(crate) fn write(directory: &Path, name: impl AsRef<Path>, content: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(crate) fn commit_all(directory: &Path, message: &str) -> Commit {
    git(directory, ["add", "-A"]);
    git(directory, ["commit", "-q", "-m", message]);
    Commit::new(git(directory, ["rev-parse", "HEAD"]))
}

/// Everything about a working tree that its owner could notice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    status: String,
    index: Vec<u8>,
    head: String,
    branches: String,
    stash: String,
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl State {
    /// What HEAD names.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    pub(crate) fn of(directory: &Path) -> Self {
        let git_dir = PathBuf::from(git(directory, ["rev-parse", "--absolute-git-dir"]));
        let mut files = BTreeMap::new();
        collect(directory, directory, &mut files);
        Self {
            status: git(directory, ["status", "--porcelain=v2", "--branch", "--ignored", "-uall"]),
            index: fs::read(git_dir.join("index")).unwrap(),
            head: fs::read_to_string(git_dir.join("HEAD")).unwrap(),
            branches: git(directory, ["for-each-ref", "refs/heads/main", "refs/tags", "refs/remotes"]),
            stash: git(directory, ["for-each-ref", "refs/stash"]),
            files,
        }
    }
}

/// What git has about a repository, its objects and what is Towline's aside: path → content. What another git writes on its
/// own, like the times in an index, is not in it.
pub(crate) fn git_data(git_dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = files_below(git_dir);
    let is_towlines = |path: &Path| path.components().any(|part| part.as_os_str() == "towline");
    files.retain(|path, _| !path.starts_with("objects") && !is_towlines(path) && path != Path::new("index"));
    files
}

/// All files below a directory but git's own: path → mode and content, or where a symlink points.
pub(crate) fn files_below(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    collect(directory, directory, &mut files);
    files
}

/// Only the names of the files below a directory, in order.
pub(crate) fn names_below(directory: &Path) -> Vec<String> {
    files_below(directory).into_keys().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn collect(top: &Path, directory: &Path, files: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path == top.join(".git") {
            continue;
        }
        let about = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(top).unwrap().to_path_buf();
        let mode = about.permissions().mode();
        if about.is_dir() {
            collect(top, &path, files);
        } else if about.is_symlink() {
            files.insert(name, (mode, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
        } else {
            files.insert(name, (mode, fs::read(&path).unwrap()));
        }
    }
}

/// A list of strings, for functions that take owned ones.
pub(crate) fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// A map of expected files, as [`Project::files_of`] gives them.
pub(crate) fn expected(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}
