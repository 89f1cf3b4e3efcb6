//! Everything that can go wrong here, each with what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::words::listed;

/// Why a repository, a workspace or a checkout could not be used. `root` is the top of a working tree, and `directory` is where git ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The directory is in no git repository.
    #[error(
        "{} is not inside a git repository; run `git init` there and make a first commit, \
         start from a directory that is in one, or work in the directory itself (`--in-place`)",
        path.display()
    )]
    NotARepository {
        /// Where the search started.
        path: PathBuf,
    },
    /// The repository of a goal is not where it was.
    #[error("the repository {} was moved or deleted; put it back at that path", path.display())]
    RepositoryGone {
        /// Where it was.
        path: PathBuf,
    },
    /// A repository without a working tree, or the inside of a `.git` directory.
    #[error("{} has no working tree; start from a checkout of the repository, not from a bare one", path.display())]
    NoWorkingTree {
        /// Where the search started.
        path: PathBuf,
    },
    /// Git does not trust the repository because somebody else owns it.
    #[error(
        "git refuses {}, because another user owns it ({detail}); if you trust it, run \
         `git config --global --add safe.directory {}`", path.display(), path.display()
    )]
    Untrusted {
        /// The directory git was asked about.
        path: PathBuf,
        /// Git's own words.
        detail: String,
    },
    /// There is nothing to start from yet.
    #[error(
        "the repository {} has no commits yet; make a first one: `git add -A && git commit -m start`",
        root.display()
    )]
    NoCommits { root: PathBuf },
    /// The base is neither a branch, a tag nor a commit.
    #[error("there is no branch, tag or commit `{base}` in {}{}", root.display(), suggestion(similar))]
    BaseNotFound {
        /// What was asked for.
        base: String,
        root: PathBuf,
        /// Existing names that look like it, the nearest first.
        similar: Vec<String>,
    },
    /// A commit that was stored earlier is gone.
    #[error("commit {commit} is no longer in the repository {}; fetch or restore it, or start the goal anew", root.display())]
    CommitGone {
        /// The missing commit.
        commit: String,
        root: PathBuf,
    },
    /// The program `git` cannot be started.
    #[error("cannot start `git` in {}: {source}; {}", directory.display(), git_needs(source))]
    GitNotStarted {
        /// The directory it was to run in.
        directory: PathBuf,
        source: io::Error,
    },
    /// A git command failed.
    #[error("`git {command}` failed in {}: {detail}; {hint}", directory.display())]
    Git {
        command: String,
        directory: PathBuf,
        /// The first lines of what git wrote.
        detail: String,
        /// What to do next.
        hint: String,
    },
    /// Another git process holds a lock for too long.
    #[error(
        "`git {command}` found a lock in {} that did not go away: {detail}; wait for the other git process, \
         or, when none is running, delete the lock file", directory.display()
    )]
    Locked {
        command: String,
        directory: PathBuf,
        /// Git's own words; they name the lock file.
        detail: String,
    },
    /// A git command did not come to an end.
    #[error(
        "`git {command}` did not end within {} s in {}; look for a filter, a network disk or a pipe that it \
         waits for", limit.as_secs(), directory.display()
    )]
    TimedOut {
        command: String,
        directory: PathBuf,
        /// How long it was given.
        limit: Duration,
    },
    /// The caller wanted to stop.
    #[error("git was stopped on request")]
    Stopped,
    /// A file operation failed.
    #[error("cannot {action} {}: {source}; check its owner, its permissions and the free space", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// An object's bytes do not belong to its id, or it is missing.
    #[error(
        "the object {object} in the repository of {} is missing or damaged; run `git -C {} fsck`, restore it from a \
         backup or a remote, then try again", root.display(), root.display()
    )]
    Damaged {
        /// The object's id.
        object: String,
        root: PathBuf,
    },
    /// A commit has a pointer of git-lfs, and its file is nowhere.
    #[error(
        "the large file {path} is missing: git-lfs has no object {id} ({size} bytes); run `git lfs fetch`, or commit \
         the file itself"
    )]
    LargeFileMissing {
        path: String,
        /// The SHA-256 in the pointer.
        id: String,
        /// The size in the pointer.
        size: u64,
    },
    /// A filter runs a program that is a part of the repository, which an agent can change.
    #[error(
        "the filter `{setting} = {command}` of your git configuration runs `{word}`, which is inside the repository: an \
         agent could change it, and with it what your files are; install the program outside the repository, and name it by \
         its command name or its absolute path"
    )]
    FilterInside {
        /// The setting that names the command, like `filter.strip.smudge`.
        setting: String,
        command: String,
        /// What in it leads into the repository.
        word: String,
    },
    /// A FIFO, a socket or a device is where git reads a file.
    #[error("{} is not a regular file, and git would wait for it; remove it", path.display())]
    SpecialFile { path: PathBuf },
    /// A pattern of paths cannot be used.
    #[error(
        "`{pattern}` is not a usable pattern of paths: {reason}; write it relative to the repository's root, like `tests/**`"
    )]
    BadGlob { pattern: String, reason: String },
    /// A path that every goal protects is to be lifted.
    #[error("`{path}` is always protected; make the change yourself, outside of the goal")]
    AlwaysProtected { path: String },
    /// A goal id or branch name that git would not take.
    #[error("`{name}` cannot be used as {role}: {reason}; choose another name")]
    BadName {
        name: String,
        /// What it was to name.
        role: &'static str,
        reason: String,
    },
    /// A file to copy is not inside the directory it must be inside of.
    #[error("`{path}` leads out of {} ({reason}); name a file inside it", root.display())]
    OutsideRoot {
        /// The path as it was given or found.
        path: String,
        /// The directory it must stay in.
        root: PathBuf,
        /// How it leads out.
        reason: String,
    },
    /// A file to copy would become part of the agent's work.
    #[error(
        "`{path}` is neither tracked nor ignored, so a copy of it would end up in the candidate; \
         add it to .gitignore or .git/info/exclude, or commit it"
    )]
    NotIgnored {
        /// The path as it was given.
        path: String,
    },
    /// Something else is where a workspace or checkout should go.
    #[error("{} is in the way: {what}; move it away or choose another place", path.display())]
    PathTaken {
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// The workspace, or git's record of it, is gone or damaged.
    #[error("the workspace {} cannot be used: {what}; what was judged is not lost", path.display())]
    Broken {
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// Paths that were neither there before a goal nor are there now.
    #[error("not all of these were in {} before, or are now: {paths}; name paths from its top, as a diff does", root.display())]
    NoSuchPath {
        /// What was named.
        paths: String,
        root: PathBuf,
    },
    /// A merge is not finished.
    #[error(
        "a merge in {} is not finished: {} {} conflicts; finish it and commit, or undo it (`git merge --abort`)",
        root.display(), listed(paths, 5), if paths.len() == 1 { "has" } else { "have" }
    )]
    Unmerged {
        root: PathBuf,
        /// The paths with conflicts.
        paths: Vec<String>,
    },
    /// There is more than a snapshot should take in.
    #[error(
        "{} holds too much for a snapshot: more than 20,000 files or 1 GiB that git does not ignore \
         (the largest: {largest}, {megabytes} MiB); add what is no part of the work to .gitignore", path.display()
    )]
    TooLarge {
        path: PathBuf,
        /// The largest file that was seen.
        largest: String,
        megabytes: u64,
    },
}

impl WorkspaceError {
    /// Wraps an I/O error with what was tried on what; made for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// What a git command gave; none where the command failed, as against a git that could not do its work to the end.
pub(crate) fn unless_git_failed<T>(given: Result<T, WorkspaceError>) -> Result<Option<T>, WorkspaceError> {
    match given {
        Err(WorkspaceError::Git { .. }) => Ok(None),
        given => given.map(Some),
    }
}

fn suggestion(similar: &[String]) -> String {
    if similar.is_empty() {
        "; `git branch --all` lists what there is".to_owned()
    } else {
        format!("; did you mean {}?", similar.join(" or "))
    }
}

/// What to do about a git that cannot be started.
fn git_needs(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => {
            "install git 2.38 or newer and make sure it is on PATH"
        }
        // EAGAIN: no process or thread can be had.
        ErrorKind::WouldBlock => "end other processes, or raise the limit for them (`ulimit -u`)",
        _ => "check the limits of this process (`ulimit -a`)",
    }
}
