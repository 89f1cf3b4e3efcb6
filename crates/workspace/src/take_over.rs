//! Taking an agent's commits into our own repository: as a pack that is made from its objects and read as if it came from a
//! stranger. Every object is hashed on the way, so none can pass for another.

use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::git::{GitCommand, borrowed_path, quoted_path};
use crate::git_dir::{ObjectFormat, alternates_of};
use crate::paths::remove_tree;
use crate::stored::first_missing;
use crate::{Repository, WorkspaceError, walk};

/// How many branches and tags a warning names.
const NAMED: usize = 8;

impl Repository {
    /// Takes over all commits up to `head` that are not below `base`, with everything in them. The objects of a clone are
    /// named; those of the user's repository are seen anyway. What is wrong with the commits, if they cannot be used.
    pub(crate) fn take_over(
        &self,
        head: &Commit,
        base: &Commit,
        clone: Option<&Path>,
    ) -> Result<Result<(), String>, WorkspaceError> {
        if ObjectFormat::of_id(head.as_str()) != ObjectFormat::of_id(base.as_str()) {
            return Ok(Err("HEAD is not a commit of this repository".to_owned()));
        }
        if let Some(objects) = clone
            && !self.may_borrow(objects)?
        {
            return Ok(Err("its object directory is not as git leaves it".to_owned()));
        }
        if self.stored(head, base)?.is_ok() {
            return Ok(Ok(()));
        }
        match self.take_in(head, base, clone) {
            Ok(()) if self.stored(head, base)?.is_ok() => Ok(Ok(())),
            Ok(()) => Ok(Err(format!("objects of {} are missing or damaged", head.short()))),
            Err(WorkspaceError::Git { detail, .. }) => Ok(Err(detail)),
            Err(error) => Err(error),
        }
    }

    /// Stores everything in a commit of ours that is not below another one, so that nothing that happens to the user's
    /// repository loses it.
    pub(crate) fn store(&self, commit: &Commit, below: &Commit) -> Result<(), WorkspaceError> {
        if self.lender().is_none() || self.stored(commit, below)?.is_ok() {
            return Ok(());
        }
        self.take_in(commit, below, None)?;
        let root = self.root().to_path_buf();
        self.stored(commit, below)?.map_err(|object| WorkspaceError::Damaged { object, root })
    }

    fn take_in(&self, head: &Commit, base: &Commit, clone: Option<&Path>) -> Result<(), WorkspaceError> {
        let revisions = format!("{head}\n^{base}\n").into_bytes();
        let git = self.git().borrowing(clone.map(Path::to_path_buf));
        let pack = git.command("pack-objects").arg("--no-reuse-delta").input(revisions);
        let incoming = self.git_dir.join("incoming");
        let taken = self.pack_and_check(&incoming, pack, "--strict").and_then(|[pack, index]| {
            let name = pack.file_stem().unwrap_or_default();
            let target = self.git_dir.join("objects/pack").join(name);
            for (from, end) in [(&pack, "pack"), (&index, "idx")] {
                let to = target.with_extension(end);
                fs::rename(from, &to).map_err(WorkspaceError::io("write", &to))?;
            }
            Ok(())
        });
        remove_tree(&incoming)?;
        taken
    }

    /// Packs what the command asks for into a new folder, and has git look at every object in it. Gives the pack and its index.
    pub(crate) fn pack_and_check(
        &self,
        folder: &Path,
        pack: GitCommand<'_>,
        check: &str,
    ) -> Result<[PathBuf; 2], WorkspaceError> {
        remove_tree(folder)?;
        fs::create_dir(folder).map_err(WorkspaceError::io("create", folder))?;
        let name = pack.args(["--revs", "--quiet"]).arg(folder.join("pack")).line()?;
        let [pack, index] =
            [format!("pack-{name}.pack"), "checked.idx".to_owned()].map(|name| folder.join(name));
        self.git().command("index-pack").args([check, "-o"]).arg(&index).arg(&pack).run()?;
        Ok([pack, index])
    }

    /// Whether everything that the commits hold is in our own repository itself; what is not, if not.
    fn stored(&self, head: &Commit, base: &Commit) -> Result<Result<(), String>, WorkspaceError> {
        let walk = ["--objects", head.as_str(), "--not", base.as_str()];
        match self.git().command("rev-list").args(walk).line() {
            Ok(listing) => {
                let missing = first_missing(&self.git_dir.join("objects"), listing.lines())?;
                Ok(missing.map_or(Ok(()), |object| Err(object.to_owned())))
            }
            Err(WorkspaceError::Git { detail, .. }) => Ok(Err(detail)),
            Err(error) => Err(error),
        }
    }

    /// Names branches and tags of the user's that an agent's commits have in their history. After a merge of the work, git
    /// counts them as merged, also where the agent has dropped what they change.
    pub(crate) fn warn_of_merged(
        &self,
        goal: &str,
        head: &Commit,
        base: &Commit,
    ) -> Result<Option<String>, WorkspaceError> {
        let Some(users) = self.lender().map(|users| users.seeing(self)) else { return Ok(None) };
        let git = users.plain_git();
        let list = |without: &[&Commit]| {
            let list = git.command("for-each-ref").arg(format!("--merged={head}"));
            let list = list.args(without.iter().map(|commit| format!("--no-merged={commit}")));
            let names = list.args([
                "--format=%(refname:short) (%(objectname:short))",
                "refs/heads",
                "refs/remotes",
                "refs/tags",
            ]);
            let names = names.line()?;
            let names = names.lines().filter(|name| !name.starts_with("towline/"));
            Ok::<_, WorkspaceError>(names.map(str::to_owned).collect())
        };
        let mut names: Vec<String> = list(&[base])?;
        // What the user has merged of the goal before is no news.
        if !names.is_empty()
            && let Some(published) = users.find_commit(&format!("refs/towline/{goal}/published"))?
        {
            names = list(&[base, &published])?;
        }
        Ok((!names.is_empty()).then(|| {
            format!(
                "the agent's commits have {} in their history: git will count that as merged with this work, even if its \
                 changes were dropped",
                crate::words::listed(&names, NAMED)
            )
        }))
    }

    /// Whether git can read the object directory of a clone without waiting, and finds nothing there but the clone's own
    /// objects and those that were lent to it.
    pub(crate) fn may_borrow(&self, objects: &Path) -> Result<bool, WorkspaceError> {
        let Some(lent) = self.lender().map(Self::objects) else { return Ok(false) };
        // Clones of earlier versions have no slash at the end of the path.
        let lines = [borrowed_path(&lent), quoted_path(&lent)];
        let list = alternates_of(objects).ok().flatten();
        let as_lent = list.is_some_and(|list| lines.iter().any(|line| list.trim_ascii_end() == line));
        Ok(as_lent && !walk::holds_special(objects)?)
    }
}
