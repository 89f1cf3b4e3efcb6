//! The `.git` of a private clone, and the throw-away one of a clean checkout: the user's branches, tags and remotes over
//! borrowed objects, and nothing through which the user's repository could be changed.

use std::fs;
use std::path::{Path, PathBuf};

use towline_core::{Commit, GitSettings};

use crate::git::Git;
use crate::git_dir::{GitDir, ObjectFormat, Refs, write_refs};
use crate::settings::{Configuration, Place};
use crate::threads::finish;
use crate::{Repository, WorkspaceError};

/// What the user's repository lends to a clone.
#[derive(Debug)]
pub(crate) struct Lent {
    configuration: Configuration,
    refs: Refs,
    root: PathBuf,
    common_dir: PathBuf,
    shallow: Option<Vec<u8>>,
}

/// Where a clone is.
pub(crate) enum On<'a> {
    /// On a new branch at a commit.
    Branch(&'a str, &'a Commit),
    /// On a commit and no branch.
    Commit(&'a Commit),
}

impl Repository {
    /// Looks at what a clone of this repository needs.
    pub(crate) fn lend(&self) -> Result<Lent, WorkspaceError> {
        self.lend_by(&self.git())
    }

    /// The same by the repository's own configuration alone, for a checkout: an agent may have been at the user's files. What
    /// runs there gets no secrets.
    pub(crate) fn lend_to_checkout(&self) -> Result<Lent, WorkspaceError> {
        let lent = self.lend_by(&self.plain_git())?;
        Ok(Lent { configuration: lent.configuration.without_credentials(), ..lent })
    }

    fn lend_by(&self, git: &Git) -> Result<Lent, WorkspaceError> {
        let (configuration, refs) = std::thread::scope(|scope| {
            let refs = scope.spawn(|| self.users_refs());
            (Configuration::of(git), finish(refs))
        });
        Ok(Lent {
            configuration: configuration?,
            refs: refs?,
            root: self.root().to_path_buf(),
            common_dir: self.common_dir.to_path_buf(),
            shallow: self.shallow()?,
        })
    }

    /// The user's branches, tags and remote branches. Branches of goals are not among them.
    fn users_refs(&self) -> Result<Refs, WorkspaceError> {
        let list = self
            .plain_git()
            .command("for-each-ref")
            .args(["--format=%(objectname) %(refname) %(symref)", "refs/heads", "refs/tags", "refs/remotes"])
            .line()?;
        let mut refs = Refs::default();
        for line in list.lines() {
            let mut words = line.split(' ');
            let (Some(id), Some(name), target) = (words.next(), words.next(), words.next()) else { continue };
            match target.filter(|target| !target.is_empty()) {
                _ if name.starts_with("refs/heads/towline/") || name == "refs/heads/towline" => {}
                Some(target) => refs.symbolic.push((name.to_owned(), target.to_owned())),
                None => refs.plain.push((name.to_owned(), id.to_owned())),
            }
        }
        Ok(refs)
    }
}

impl Lent {
    /// Writes the git directory of a clone. Its index is a copy of `index`.
    pub(crate) fn write(
        &self,
        git_dir: &Path,
        on: &On<'_>,
        borrowed: Vec<PathBuf>,
        settings: &GitSettings,
        index: &Path,
    ) -> Result<(), WorkspaceError> {
        let mut refs = self.refs.clone();
        let (head, commit) = match on {
            On::Branch(branch, commit) => {
                let name = format!("refs/heads/{branch}");
                refs.plain.push((name.clone(), commit.to_string()));
                (format!("ref: {name}"), commit)
            }
            On::Commit(commit) => (commit.to_string(), commit),
        };
        let users = Place { root: &self.root, common_dir: &self.common_dir };
        let mut config = self.configuration.for_clone(&users);
        let is_about_files = |name: &str| !name.starts_with("remote.") && !name.starts_with("extensions.");
        config.extend(settings.config.iter().filter(|(name, _)| is_about_files(name)).cloned());
        let contents = GitDir {
            head,
            format: ObjectFormat::of_id(commit.as_str()),
            config,
            borrowed,
            shallow: self.shallow.clone(),
            excludes: settings.excludes.clone(),
            attributes: settings.attributes.clone(),
            sparse: settings.sparse.clone(),
        };
        contents.write(git_dir)?;
        write_refs(git_dir, &refs)?;
        let target = git_dir.join("index");
        fs::copy(index, &target).map_err(WorkspaceError::io("write", &target))?;
        Ok(())
    }
}
