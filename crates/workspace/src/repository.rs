//! The user's repository: finding it, naming a base in it, seeing what is not committed.
//!
//! Neighbours: everything else here works through a [`Repository`]. It never writes to the user's index,
//! branches or files.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use towline_core::{Commit, GitSettings};

use crate::control::must_not_wait;
use crate::embedded::{self, Nested};
use crate::git::{Git, Stop, about_and_path, records, shown};
use crate::measure::measure;
use crate::paths::{from_bytes, settle};
use crate::snapshot::{Snapshot, Source};
use crate::tree::ProvenFiles;
use crate::walk::{self, Special};
use crate::{Before, Candidate, Consent, WorkspaceError, unless_git_failed};

/// How many similar names an error about an unknown base offers.
const SUGGESTIONS: usize = 3;

/// The message of a commit that holds what was in no commit when a goal began.
pub(crate) const SNAPSHOT_MESSAGE: &str = "towline: uncommitted changes at the goal's start";

/// The most that is read of a configuration.
const LONGEST_CONFIG: u64 = 1024 * 1024;

/// Whose repository it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user's, with all their work in it.
    User,
    /// One of our own, for a goal.
    Towline,
}

/// A git repository with a working tree.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
    /// What git keeps about this working tree: its HEAD, its index, what is under way in it.
    pub(crate) git_dir: PathBuf,
    /// What git keeps for all working trees, and about the main one.
    pub(crate) common_dir: PathBuf,
    owner: Owner,
    /// The user's repository whose objects one of our own borrows.
    lender: Option<Arc<Self>>,
    /// How one of our own reads and writes files.
    pub(crate) settings: Arc<GitSettings>,
    /// Further directories with objects that are seen.
    pub(crate) borrowed: Vec<PathBuf>,
    stop: Option<Stop>,
    /// The files of commits that were proven before.
    pub(crate) proven: ProvenFiles,
}

impl Repository {
    /// The files of a commit.
    pub fn files(&self, commit: &Commit) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.files_of(commit)?.keys().map(|path| shown(path)).collect())
    }

    /// Makes a repository of a directory, with everything in it as its first commit.
    pub fn init(directory: &Path, message: &str) -> Result<Self, WorkspaceError> {
        let git = Git::discovering(directory);
        git.command("init").args(["--quiet", "--initial-branch=main"]).run()?;
        git.command("add").args(["--all"]).run()?;
        git.command("commit").args(["--quiet", "--message", message]).run()?;
        Self::discover(directory)
    }

    /// Finds the repository that `from` is in, upward from there.
    pub fn discover(from: &Path) -> Result<Self, WorkspaceError> {
        must_not_wait(from)?;
        Self::discover_as_is(from)
    }

    fn discover_as_is(from: &Path) -> Result<Self, WorkspaceError> {
        let git = Git::discovering(from);
        let ask = |what: &[&str]| git.command("rev-parse").arg("--path-format=absolute").args(what).path();
        let asked = ["--show-toplevel", "--git-dir", "--git-common-dir"];
        let together = match ask(&asked) {
            Err(WorkspaceError::Git { detail, .. }) if detail.contains("work tree") => {
                return Err(WorkspaceError::NoWorkingTree { path: from.to_path_buf() });
            }
            other => other?,
        };
        let lines: Vec<&[u8]> = together.as_os_str().as_bytes().split(|byte| *byte == b'\n').collect();
        let [root, git_dir, common_dir] = match lines.as_slice() {
            [root, git_dir, common_dir] => {
                [*root, *git_dir, *common_dir].map(|path| from_bytes(path).to_owned())
            }
            // A path has a line end in it: they are read one by one.
            _ => [ask(&asked[..1])?, ask(&asked[1..2])?, ask(&asked[2..])?],
        };
        Ok(Self::from_parts(root, git_dir, common_dir, Owner::User))
    }

    /// The repository whose root was found before. Where everything is at its usual place, and no setting moves it, git need not be
    /// asked again.
    pub fn at(root: &Path) -> Result<Self, WorkspaceError> {
        must_not_wait(root)?;
        let git_dir = root.join(".git");
        let is_whole = git_dir.join("HEAD").is_file()
            && ["objects", "refs"].iter().all(|name| git_dir.join(name).is_dir())
            && !git_dir.is_symlink();
        let config = towline_files::read(&git_dir.join("config"), LONGEST_CONFIG).unwrap_or_default();
        let config = String::from_utf8_lossy(&config);
        let is_usual = config.contains("bare = false") && !config.to_lowercase().contains("worktree");
        if is_whole && is_usual && !git_dir.join("commondir").exists() {
            return Ok(Self::from_parts(root.to_path_buf(), git_dir.clone(), git_dir, Owner::User));
        }
        if !git_dir.is_symlink() && !git_dir.exists() {
            return Err(WorkspaceError::RepositoryGone { path: root.to_path_buf() });
        }
        // Git also looks in the directories above it.
        let found = Self::discover_as_is(root)?;
        let is_same = found.root() == settle(root);
        if is_same { Ok(found) } else { Err(WorkspaceError::NotARepository { path: root.to_path_buf() }) }
    }

    pub(crate) fn from_parts(root: PathBuf, git_dir: PathBuf, common_dir: PathBuf, owner: Owner) -> Self {
        let (lender, settings, borrowed) = (None, Arc::default(), Vec::new());
        Self {
            root,
            git_dir,
            common_dir,
            owner,
            lender,
            settings,
            borrowed,
            stop: None,
            proven: ProvenFiles::default(),
        }
    }

    /// The same, whose work ends when somebody wants it.
    pub fn until(&self, stop: &Stop) -> Self {
        let lender = self.lender.as_ref().map(|lender| Arc::new(lender.until(stop)));
        Self { stop: Some(stop.clone()), lender, ..self.clone() }
    }

    /// The same, which reads and writes files in this way.
    pub(crate) fn with_settings(self, settings: &GitSettings) -> Self {
        Self { settings: Arc::new(settings.clone()), ..self }
    }

    /// The same, which borrows objects of the user's repository.
    pub(crate) fn lent_by(self, users: &Self) -> Self {
        Self { lender: Some(Arc::new(users.clone())), stop: users.stop.clone(), ..self }
    }

    /// The user's repository, which also sees what is in our own for a goal.
    pub fn seeing(&self, own: &Self) -> Self {
        Self { borrowed: vec![own.objects()], ..self.clone() }
    }

    /// The user's repository whose objects this one of ours borrows; none for a folder that is in no repository.
    pub fn lender(&self) -> Option<&Self> {
        self.lender.as_deref()
    }

    /// The top of the working tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit that a branch, a tag, a hash or an expression like `HEAD~2` names now.
    pub fn resolve(&self, base: &str) -> Result<Commit, WorkspaceError> {
        if let Some(commit) = self.find_commit(base)? {
            return Ok(commit);
        }
        if self.find_commit("HEAD")?.is_none() && (base == "HEAD" || self.names()?.is_empty()) {
            return Err(WorkspaceError::NoCommits { root: self.root.clone() });
        }
        let similar = similar(base, self.names()?);
        Err(WorkspaceError::BaseNotFound { base: base.to_owned(), root: self.root.clone(), similar })
    }

    /// Paths with changes that are in no commit: modified, staged, deleted and untracked ones, not ignored
    /// ones. A git repository of its own inside the working tree is one path with a slash at its end.
    pub fn uncommitted(&self) -> Result<Vec<String>, WorkspaceError> {
        walk::prepare_for_git(&self.root, Special::Refuse)?;
        let status = self
            .git()
            .command("status")
            .args([
                "--porcelain=v1",
                "-z",
                "--untracked-files=all",
                "--no-renames",
                "--ignore-submodules=none",
            ])
            .run()?;
        // Each record is two letters of state, a space and the path.
        let mut paths: Vec<String> = records(&status).filter_map(|line| line.get(3..)).map(shown).collect();
        paths.sort();
        // A file that is only out of the index is both deleted and untracked.
        paths.dedup();
        Ok(paths)
    }

    /// A commit of HEAD and everything in the working tree that is not ignored, made without touching index
    /// or files. HEAD itself when there is nothing to add. Repositories inside the repository are left out:
    /// they are the user's own affair.
    pub fn snapshot_dirty(&self, consent: Consent) -> Result<Before, WorkspaceError> {
        walk::prepare_for_git(&self.root, Special::Refuse)?;
        self.refuse_conflicts()?;
        let head = self.resolve("HEAD")?;
        let git = self.git();
        measure(&self.root, &embedded::untracked(&git)?.files, consent)?;
        let snapshot = self.snapshot(&head, Nested::LeftOut)?;
        let tree = snapshot.index.write_tree()?;
        let is_head = tree == self.tree_of(&head)?;
        let base = if is_head { head } else { self.commit_tree(&tree, &head, SNAPSHOT_MESSAGE)? };
        Ok(Before { base, warnings: snapshot.warnings })
    }

    /// Everything in the working tree that is not ignored.
    pub(crate) fn snapshot(&self, head: &Commit, nested: Nested) -> Result<Snapshot, WorkspaceError> {
        let worktrees = self.lender().unwrap_or(self).worktree_records();
        let source = Source {
            git: &self.git(),
            git_dir: &self.git_dir,
            hints: self.lender().map(Self::index),
            worktrees: &worktrees,
            base: head,
            nested,
            special: Special::Refuse,
        };
        source.snapshot()
    }

    /// Fails when a merge is not finished: files with conflict marks in them are nothing to start from.
    pub(crate) fn refuse_conflicts(&self) -> Result<(), WorkspaceError> {
        let listing = self.git().command("ls-files").args(["--unmerged", "-z"]).run()?;
        // Each record is `mode hash stage<tab>path`, up to three for a path.
        let paths = records(&listing).filter_map(about_and_path).map(|(_, path)| path);
        let mut paths: Vec<String> = paths.map(shown).collect();
        paths.dedup();
        if paths.is_empty() {
            return Ok(());
        }
        Err(WorkspaceError::Unmerged { root: self.root.clone(), paths })
    }

    /// A commit as it is, to be judged like an agent's work.
    pub fn as_candidate(&self, commit: &Commit) -> Result<Candidate, WorkspaceError> {
        let [tree] = self.find_objects([format!("{commit}^{{tree}}")])?;
        let tree = tree.ok_or_else(|| self.commit_gone(commit))?;
        Ok(Candidate {
            commit: commit.clone(),
            head: commit.clone(),
            tree,
            restored: Vec::new(),
            uncommitted: Vec::new(),
            warnings: Vec::new(),
            ignored: Vec::new(),
        })
    }

    /// Whether a commit is on top of another one: not the same, and with the other one in its history.
    pub fn is_on_top(&self, commit: &Commit, of: &Commit) -> Result<bool, WorkspaceError> {
        if commit == of {
            return Ok(false);
        }
        let args = ["--is-ancestor", of.as_str(), commit.as_str()];
        Ok(self.plain_git().command("merge-base").args(args).query()?.is_some())
    }

    /// Git in the user's working tree.
    pub(crate) fn git(&self) -> Git {
        match self.owner {
            Owner::User => self.located(),
            Owner::Towline => self.plain_git(),
        }
    }

    /// The same, for objects and refs alone: what the user has configured outside the repository does not count, and cannot
    /// be in the way.
    pub(crate) fn plain_git(&self) -> Git {
        self.located().alone()
    }

    fn located(&self) -> Git {
        let git = Git::at(&self.git_dir, &self.root).borrowing(self.borrowed.iter().cloned());
        git.until(self.stop.clone())
    }

    /// Git as the user would run it in their working tree. It finds the repository by itself, so that hooks see what
    /// they always see.
    pub(crate) fn users_git(&self) -> Git {
        Git::discovering(&self.root).for_user()
    }

    /// Where git keeps its records of linked worktrees.
    pub(crate) fn worktree_records(&self) -> PathBuf {
        self.common_dir.join("worktrees")
    }

    /// The commit that a name resolves to, if any.
    pub(crate) fn find_commit(&self, name: &str) -> Result<Option<Commit>, WorkspaceError> {
        let found = self
            .plain_git()
            .command("rev-parse")
            .args(["--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])
            .query();
        // Some malformed names end git with 128 instead of a quiet "no".
        let found = unless_git_failed(found)?.flatten();
        Ok(found.map(|line| Commit::new(shown(line.trim_ascii_end()))))
    }

    /// Fails when a commit that was stored earlier is gone.
    pub(crate) fn require(&self, commit: &Commit) -> Result<(), WorkspaceError> {
        self.find_commit(commit.as_str())?.map(|_| ()).ok_or_else(|| self.commit_gone(commit))
    }

    /// The ids of the objects that names resolve to, if any, with one start of git. Only for names of our own making: nobody
    /// else's are certain to be free of line ends.
    pub(crate) fn find_objects<const N: usize>(
        &self,
        names: [String; N],
    ) -> Result<[Option<String>; N], WorkspaceError> {
        let found = self
            .plain_git()
            .command("cat-file")
            .arg("--batch-check=%(objectname)")
            .input(names.map(|name| name + "\n").concat().into_bytes())
            .line()?;
        let mut lines = found.lines();
        // A name that resolves to nothing comes back with the problem behind it.
        Ok(std::array::from_fn(|_| lines.next().filter(|line| !line.contains(' ')).map(str::to_owned)))
    }

    /// The error for a commit that was stored earlier and is gone.
    pub(crate) fn commit_gone(&self, commit: &Commit) -> WorkspaceError {
        WorkspaceError::CommitGone { commit: commit.to_string(), root: self.root.clone() }
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: &Commit) -> Result<String, WorkspaceError> {
        self.plain_git().command("rev-parse").args(["--verify", &format!("{commit}^{{tree}}")]).line()
    }

    /// Makes a commit object; no branch moves.
    pub(crate) fn commit_tree(
        &self,
        tree: &str,
        parent: &Commit,
        message: &str,
    ) -> Result<Commit, WorkspaceError> {
        self.plain_git()
            .with_author(self.settings.author.as_ref())
            .command("commit-tree")
            .args([tree, "-p", parent.as_str()])
            .input(message.as_bytes().to_vec())
            .line()
            .map(Commit::new)
    }

    /// Keeps a commit alive under a ref of ours; what the ref held before stays in its reflog.
    pub(crate) fn keep(&self, reference: &str, commit: &Commit) -> Result<(), WorkspaceError> {
        self.plain_git()
            .command("update-ref")
            .args(["--create-reflog", "-m", "towline: keep", reference, commit.as_str()])
            .run()?;
        Ok(())
    }

    /// Branches, remote branches and tags.
    fn names(&self) -> Result<Vec<String>, WorkspaceError> {
        let list = self
            .git()
            .command("for-each-ref")
            .args(["--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags"])
            .line()?;
        Ok(list.lines().map(str::to_owned).collect())
    }
}

/// The names that are nearest to a mistyped one.
fn similar(wanted: &str, names: Vec<String>) -> Vec<String> {
    let short = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
    let key = wanted.to_lowercase();
    let limit = (key.len() / 3).max(2);
    let mut scored: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| {
            let whole = edit_distance(&key, &name.to_lowercase());
            let last = edit_distance(&short(&key), &short(&name));
            let contains = key.len() > 2 && name.to_lowercase().contains(&key);
            let score = if contains { whole.min(last).min(limit) } else { whole.min(last) };
            (score <= limit).then_some((score, name))
        })
        .collect();
    scored.sort();
    scored.into_iter().map(|(_, name)| name).take(SUGGESTIONS).collect()
}

/// How many characters must be typed, deleted or replaced to get from one text to the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_offered_and_far_ones_are_not() {
        let names = ["main", "origin/main", "develop", "feature/login"].map(str::to_owned).to_vec();
        assert_eq!(similar("mian", names.clone()), ["main", "origin/main"]);
        assert_eq!(similar("login", names.clone()), ["feature/login"]);
        assert_eq!(similar("something-else", names), Vec::<String>::new());
    }
}
