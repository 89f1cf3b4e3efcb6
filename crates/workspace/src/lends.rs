//! What of a repository a sandbox opens: directories with objects to read, and git directories for an agent in place.
//!
//! An agent in place writes to the git directory itself, and any file in it may name any directory of the user's: nothing is opened
//! because a file there names it, unless what it names shows that it belongs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Repository;
use crate::git_dir::alternates_of;
use crate::paths::settle;

/// How many directories the name of a submodule may have, and how many submodules may be within one another.
const DEEPEST_MODULE: usize = 8;

/// How much of a directory is looked at: git has one for each first byte of an id, and few others.
const ENTRIES: usize = 300;

/// The most that is read of a file of git's that names a directory.
const LONGEST_FILE: u64 = 64 * 1024;

impl Repository {
    /// The directories with objects that git in a clone of it reads, its submodules' included. Nothing else is needed to read the
    /// history: beside them are hooks, addresses, and whatever the user keeps there.
    pub fn lends_objects(&self) -> Vec<PathBuf> {
        let own = [&self.git_dir, &self.common_dir].map(|directory| directory.join("objects"));
        let alternates = alternates_of(&self.common_dir.join("objects")).ok().flatten().unwrap_or_default();
        let alternates = String::from_utf8_lossy(&alternates);
        let alternates = alternates.lines().map(PathBuf::from).filter(|path| path.is_absolute());
        let mut objects: Vec<PathBuf> =
            own.into_iter().chain(self.borrowed.iter().cloned()).chain(alternates).collect();
        objects.extend(objects_of_submodules(&self.common_dir));
        objects.retain(|path| holds_objects(path));
        objects.extend(self.lender().iter().flat_map(|lender| lender.lends_objects()));
        objects
    }

    /// The git directories of the user's repository, for an agent that works in it.
    pub fn git_dirs(&self) -> Vec<PathBuf> {
        let users = self.lender().unwrap_or(self);
        let (git_dir, common_dir) = (settle(&users.git_dir), settle(&users.common_dir));
        let entry = users.root().join(".git");
        let kind = entry.symlink_metadata();
        if kind.as_ref().is_ok_and(fs::Metadata::is_dir) {
            return vec![git_dir];
        }
        if !kind.is_ok_and(|kind| kind.is_file()) || !points_back(&git_dir, &entry, users.root()) {
            return Vec::new();
        }
        let is_linked = git_dir.parent() == Some(&common_dir.join("worktrees"));
        if is_linked { vec![common_dir, git_dir] } else { vec![git_dir] }
    }
}

/// Whether a git directory that a file in the work tree names is that of this work tree.
fn points_back(git_dir: &Path, entry: &Path, root: &Path) -> bool {
    let read = |name: &str| towline_files::read(&git_dir.join(name), LONGEST_FILE).unwrap_or_default();
    let linked = read("gitdir");
    if Path::new(String::from_utf8_lossy(&linked).trim()) == entry {
        return true;
    }
    // That of a submodule names its work tree in its settings.
    let config = read("config");
    let config = String::from_utf8_lossy(&config);
    let named =
        config.lines().filter_map(|line| line.trim().strip_prefix("worktree")?.trim().strip_prefix('='));
    named.map(|path| settle(&git_dir.join(path.trim()))).any(|path| path == settle(root))
}

/// Whether this is a directory of git's for objects, and no other one that a symlink or a list of git's leads to.
fn holds_objects(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let is_of_git = |name: &str| {
        let is_of_ids = name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_of_ids || ["info", "pack"].contains(&name) || name.starts_with("tmp_")
    };
    let entries = fs::read_dir(&real).into_iter().flatten().flatten().take(ENTRIES);
    real.ends_with("objects")
        && real.is_dir()
        && entries.map(|entry| entry.file_name()).all(|name| name.to_str().is_some_and(is_of_git))
}

/// The directories with objects of the submodules of a repository, also of those within them.
fn objects_of_submodules(git_dir: &Path) -> Vec<PathBuf> {
    let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut found = Vec::new();
    let mut pending = vec![(git_dir.join("modules"), 0)];
    while let Some((directory, depth)) = pending.pop() {
        if depth > DEEPEST_MODULE || !is_directory(&directory) {
            continue;
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for module in entries.map(|entry| entry.path()).filter(|path| is_directory(path)) {
            let objects = module.join("objects");
            if is_directory(&objects) {
                found.push(objects);
                pending.push((module.join("modules"), depth + 1));
            } else {
                // The name of a submodule may be a path.
                pending.push((module, depth + 1));
            }
        }
    }
    found
}
