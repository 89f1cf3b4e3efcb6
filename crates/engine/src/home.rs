//! Where things are in the state directory.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use towline_core::{AttemptNo, GoalId};

/// The state directory: `TOWLINE_HOME`, or `towline` below the user's state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Makes the directory, for its owner alone, when it is missing.
    pub fn create(root: PathBuf) -> io::Result<Self> {
        make_private(&root)?;
        Self::open(&root)
    }

    /// A directory that is there already; nothing is changed.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.root.join("towline.db")
    }

    /// What the attempts of all goals leave, by goal.
    pub(crate) fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// What an attempt leaves: its launch, its raw bytes, its exit record, the runs of its checks.
    pub fn attempt(&self, goal: GoalId, attempt: AttemptNo) -> PathBuf {
        self.goal_logs(goal).join(attempt.to_string())
    }

    /// What all attempts of one goal leave, and the logs of its setup and its checks.
    pub(crate) fn goal_logs(&self, goal: GoalId) -> PathBuf {
        self.attempts().join(goal.to_string())
    }

    /// The logs of the commands that make a workspace ready.
    pub(crate) fn setup_logs(&self, goal: GoalId) -> PathBuf {
        self.goal_logs(goal).join("setup")
    }

    /// The logs of checks on the commit that a goal starts from.
    pub(crate) fn base_checks(&self, goal: GoalId) -> PathBuf {
        self.goal_logs(goal).join("base")
    }

    /// The logs of checks that ran once more on the work of an ended goal.
    pub(crate) fn rechecks(&self, goal: GoalId) -> PathBuf {
        self.goal_logs(goal).join("again")
    }

    /// Where the agents of all goals work, by goal.
    pub(crate) fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// Conversations of the built-in agent.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// Where a goal's agent works. It never changes: agents find their sessions by it.
    pub(crate) fn workspace(&self, goal: GoalId) -> PathBuf {
        self.workspaces().join(goal.to_string())
    }

    /// The history of a goal that works in a folder without git.
    pub fn history(&self, goal: GoalId) -> PathBuf {
        self.root.join("workspaces").join(format!("{goal}.git"))
    }

    /// The file whose lock is the right to begin work in place.
    pub(crate) fn in_place_lock(&self) -> PathBuf {
        self.root.join("in-place.lock")
    }

    /// Where the candidates of all goals are checked out, by goal.
    pub(crate) fn verifications(&self) -> PathBuf {
        self.root.join("verify")
    }

    /// Where a goal's candidates are checked out to be checked.
    pub(crate) fn verification(&self, goal: GoalId) -> PathBuf {
        self.verifications().join(goal.to_string())
    }

    /// The secret that attempts' tokens follow from.
    pub(crate) fn secret(&self) -> PathBuf {
        self.root.join("token")
    }

    /// Sockets and locks of living engines.
    pub(crate) fn engines(&self) -> PathBuf {
        self.root.join("engines")
    }
}

/// Makes a directory and its parents, readable for their owner alone.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file that its owner alone can read, in the place of what was there.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
