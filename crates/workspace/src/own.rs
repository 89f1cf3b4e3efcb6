//! Towline's own repository of a goal: where its base, its candidates and their checkouts come from.
//!
//! It borrows the objects of the user's repository and adds its own. Nothing in it is believed but objects by their ids:
//! configuration, attributes, ignore rules and the list of borrowed objects are written anew from what the goal has frozen
//! each time it is opened, and what git would read besides is removed. It is never collected, so that nothing in it is lost
//! whatever happens in the user's repository.

use std::fs;
use std::path::{Path, PathBuf};

use towline_core::{Commit, GitSettings};

use crate::git_dir::{GitDir, ObjectFormat};
use crate::large_files::{Pointers, is_pointer_on_disk};
use crate::paths::{is_directory, remove_tree, settle};
use crate::repository::Owner;
use crate::settings::for_own;
use crate::{Repository, WorkspaceError, walk};

/// The branch of a repository of our own. It is never checked out anywhere.
pub(crate) const OWN_BRANCH: &str = "refs/heads/towline";

/// What git would read from its directory and we never write.
const NOT_OURS: [&str; 8] = [
    "commondir",
    "gitdir",
    "config.worktree",
    "hooks",
    "info/grafts",
    "objects/info/commit-graph",
    "objects/info/commit-graphs",
    "objects/pack/multi-pack-index",
];

impl Repository {
    /// Our own repository for a goal of this one, at `directory`. Made when it is not there.
    pub fn own(
        &self,
        directory: &Path,
        base: &Commit,
        settings: &GitSettings,
    ) -> Result<Self, WorkspaceError> {
        let contents = GitDir {
            format: ObjectFormat::of_id(base.as_str()),
            borrowed: vec![self.objects()],
            shallow: self.shallow()?,
            sparse: settings.sparse.clone(),
            ..for_folder(settings)
        };
        seal(directory, &contents)?;
        let directory = settle(directory);
        let own = Self::from_parts(self.root().to_path_buf(), directory.clone(), directory, Owner::Towline);
        Ok(own.lent_by(self).with_settings(settings))
    }

    /// The commits of a shallow clone whose parents are not there, as git lists them.
    pub(crate) fn shallow(&self) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let file = self.common_dir.join("shallow");
        towline_files::read_if_present(&file, LONGEST_SHALLOW).map_err(WorkspaceError::io("read", &file))
    }

    /// Our own repository for a folder that is in none, at `directory`. Made when it is missing, or when an earlier call was
    /// cut off.
    pub fn create_own(
        folder: &Path,
        directory: &Path,
        settings: &GitSettings,
    ) -> Result<Self, WorkspaceError> {
        seal(directory, &for_folder(settings))?;
        let repository = Self::open_own(folder, directory, settings)?;
        if repository.find_commit(OWN_BRANCH)?.is_none() {
            let git = repository.git();
            let tree = git.command("mktree").line()?;
            let empty = git.command("commit-tree").args([&tree, "-m", "towline: an empty folder"]).line()?;
            git.command("update-ref").args([OWN_BRANCH, &empty]).run()?;
        }
        Ok(repository)
    }

    /// A repository that [`Self::create_own`] has made.
    pub fn open_own(folder: &Path, directory: &Path, settings: &GitSettings) -> Result<Self, WorkspaceError> {
        let (folder, directory) = (settle(folder), settle(directory));
        let broken = |what: String| Err(WorkspaceError::Broken { path: folder.clone(), what });
        if !folder.is_dir() {
            return broken("the directory is gone".to_owned());
        }
        if !directory.join("objects").is_dir() {
            return broken(format!("its history in {} is gone", directory.display()));
        }
        seal(&directory, &for_folder(settings))?;
        let own = Self::from_parts(folder, directory.clone(), directory, Owner::Towline);
        Ok(own.with_settings(settings))
    }

    /// What of the user's own git configuration counts in a folder without a repository.
    pub fn folder_settings(folder: &Path) -> Result<GitSettings, WorkspaceError> {
        let nowhere = folder.join(".git");
        let users = Self::from_parts(folder.to_path_buf(), nowhere.clone(), nowhere, Owner::User);
        let configuration = crate::settings::Configuration::of(&crate::git::Git::discovering(folder))?;
        Ok(users.frozen(&configuration))
    }

    /// The directory with its objects.
    pub(crate) fn objects(&self) -> PathBuf {
        settle(&self.common_dir.join("objects"))
    }

    /// The index in which our own repository has its view of the workspace.
    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// Writes the files of a commit to a directory, as the only entries of the index. Gives the large files among them.
    pub(crate) fn check_out(
        &self,
        commit: &Commit,
        directory: &Path,
        index: &Path,
    ) -> Result<Pointers, WorkspaceError> {
        forget_index(index)?;
        let pointers = self.pointers(commit)?;
        self.lend_large_files(&pointers, &self.large_files())?;
        let git = self.git().with_work_tree(directory).with_index(index);
        let written = git.command("read-tree").args(["--reset", "-u", commit.as_str()]).run();
        let unfilled = match written {
            Ok(_) => self.unfilled(commit, &pointers, |path, _| is_pointer_on_disk(directory, path))?,
            Err(WorkspaceError::Git { .. }) => {
                self.unfilled(commit, &pointers, |_, file| self.lacks(file))?
            }
            Err(_) => None,
        };
        match unfilled {
            Some(missing) => Err(missing),
            None => written.map(|_| pointers),
        }
    }

    /// Makes the files of a commit the only entries of the index. Nothing is known about the files on disk.
    pub(crate) fn read_into_index(&self, commit: &Commit) -> Result<(), WorkspaceError> {
        forget_index(&self.index())?;
        self.git().command("read-tree").args(["--reset", commit.as_str()]).run()?;
        Ok(())
    }
}

/// Removes an index, and the lock of a git process that was killed: an index of ours has one user at a time.
fn forget_index(index: &Path) -> Result<(), WorkspaceError> {
    remove_tree(index)?;
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    remove_tree(Path::new(&lock))
}

/// The most commits without parents that a shallow clone lists, in bytes.
const LONGEST_SHALLOW: u64 = 16 * 1024 * 1024;

fn for_folder(settings: &GitSettings) -> GitDir {
    GitDir {
        head: format!("ref: {OWN_BRANCH}"),
        config: for_own(settings),
        excludes: settings.excludes.clone(),
        attributes: settings.attributes.clone(),
        ..GitDir::default()
    }
}

/// Makes the directory what it is to be.
fn seal(directory: &Path, contents: &GitDir) -> Result<(), WorkspaceError> {
    if fs::symlink_metadata(directory).is_ok_and(|about| !about.is_dir()) {
        remove_tree(directory)?;
    }
    for name in NOT_OURS {
        remove_tree(&directory.join(name))?;
    }
    let index = directory.join("index");
    if is_directory(&index) {
        remove_tree(&index)?;
    }
    walk::remove_special(directory)?;
    contents.write(directory)
}
