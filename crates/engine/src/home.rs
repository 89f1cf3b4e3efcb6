//! Where things are in the state directory.

use std::io;
use std::path::{Path, PathBuf};

use towline_core::{AttemptNo, Goal, GoalId, GoalState, WorkspaceBinding};

/// The directories in it.
const DIRECTORIES: [&str; 12] = [
    "attempts",
    "demo",
    "engines",
    "homes",
    "keys",
    "proofs",
    "sessions",
    "sign-in",
    "told",
    TRUSTED,
    "verify",
    "workspaces",
];

/// The directory of what the user trusts.
const TRUSTED: &str = "trusted";

/// The suffix of a checkout of the base.
pub(crate) const BASE: &str = ".base";

/// The suffix of what belongs to a judge.
pub(crate) const JUDGE: &str = ".judge";

/// The state directory: `TOWLINE_HOME`, or `towline` below the user's state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    /// The state directory that it is inside of; itself, but for one of its own for the run of a proof's checks.
    hidden: PathBuf,
}

impl Home {
    /// Makes the directory, for its owner alone, when it is missing.
    pub fn create(root: PathBuf) -> io::Result<Self> {
        towline_files::create_private_dir(&root)?;
        Self::open(&root)
    }

    /// A directory that is there already; nothing is changed. Fails when something else is in the place of one of its
    /// directories: what a symlink leads to is not ours.
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        for directory in DIRECTORIES {
            towline_files::must_lead_through_directories(&root, Path::new(directory))?;
        }
        Ok(Self { hidden: root.clone(), root })
    }

    /// A new state directory inside of this one, for goals that this one does not know. What is confined there sees neither of them.
    pub fn inside(&self, name: &str) -> io::Result<Self> {
        let root = self.proofs().join(name);
        self.make(&root)?;
        Ok(Self { hidden: self.root.clone(), ..Self::open(&root)? })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that confined programs do not see.
    pub(crate) fn hidden(&self) -> &Path {
        &self.hidden
    }

    /// The keys that sign proofs.
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// The state directories of runs of proofs' checks.
    pub fn proofs(&self) -> PathBuf {
        proofs_in(&self.root)
    }

    /// The file of the SQLite database.
    pub fn database(&self) -> PathBuf {
        self.root.join("towline.db")
    }

    /// What a running server is known by.
    pub(crate) fn server(&self) -> PathBuf {
        self.root.join("server.json")
    }

    /// The file whose lock is the right to become the server.
    pub(crate) fn server_lock(&self) -> PathBuf {
        self.root.join("server.starting.lock")
    }

    /// The sample projects of demos.
    pub fn samples(&self) -> PathBuf {
        self.root.join("demo")
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
    pub fn setup_logs(&self, goal: GoalId) -> PathBuf {
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

    /// Where the workspace of a goal is now: of one that another goal continues, it was moved aside.
    pub(crate) fn workspace_of(&self, goal: &Goal, state: &GoalState) -> PathBuf {
        match state.continued_by {
            Some(_) => self.moved_workspace(goal.id),
            None => self.workspace(goal.place()),
        }
    }

    /// Where the workspace of a goal is, if that is not where its state has it. The state directory was moved or copied then, and a copy
    /// must leave the workspaces of the original alone. None for a goal that works in place, or whose workspace was not made yet.
    pub(crate) fn moved_place(&self, goal: &Goal, state: &GoalState) -> Option<String> {
        let stored = state.workspace.as_ref().filter(|_| !goal.workspace.mode.is_in_place())?;
        let here = self.workspace_of(goal, state);
        let is_same = Path::new(&stored.path) == here
            || here
                .canonicalize()
                .is_ok_and(|here| Path::new(&stored.path).canonicalize().is_ok_and(|stored| stored == here));
        (!is_same).then(|| here.display().to_string())
    }

    /// The same for a workspace that is bound to a goal, wherever that was when it was bound.
    pub(crate) fn bound_workspace(&self, binding: &WorkspaceBinding) -> PathBuf {
        let bound = Path::new(&binding.path);
        bound.file_name().map_or_else(|| bound.to_owned(), |name| self.workspaces().join(name))
    }

    /// Where the workspace of a goal is moved when another goal continues it.
    pub(crate) fn moved_workspace(&self, goal: GoalId) -> PathBuf {
        self.workspaces().join(format!("{goal}.continued"))
    }

    /// What confined programs have in the place of the user's home, by goal.
    pub(crate) fn homes(&self) -> PathBuf {
        self.root.join("homes")
    }

    /// The one of a goal's agents.
    pub(crate) fn agents_home(&self, goal: GoalId) -> PathBuf {
        self.homes().join(goal.to_string())
    }

    /// The one of the checks on a candidate.
    pub(crate) fn checks_home(&self, goal: GoalId) -> PathBuf {
        self.homes().join(format!("{goal}.checks"))
    }

    /// The one of the checks on the base.
    pub(crate) fn base_home(&self, goal: GoalId) -> PathBuf {
        self.homes().join(format!("{goal}{BASE}"))
    }

    /// The one of a goal's judges.
    pub(crate) fn judges_home(&self, goal: GoalId) -> PathBuf {
        self.homes().join(format!("{goal}{JUDGE}"))
    }

    /// What setup left in the user's caches before any agent of the goal.
    pub(crate) fn filled_caches(&self, goal: GoalId) -> PathBuf {
        self.homes().join(format!("{goal}.caches"))
    }

    /// The homes that go with the workspace of a goal; none if another goal continues it and has them.
    pub(crate) fn homes_of(&self, goal: &Goal, state: &GoalState) -> Vec<PathBuf> {
        match state.continued_by {
            Some(_) => Vec::new(),
            None => vec![self.agents_home(goal.place()), self.filled_caches(goal.place())],
        }
    }

    /// The file whose lock is the right to copy credentials.
    pub(crate) fn credentials_lock(&self) -> PathBuf {
        self.root.join("credentials.lock")
    }

    /// Towline's own repository of a goal, with its base and its candidates.
    pub fn history(&self, goal: GoalId) -> PathBuf {
        self.root.join("workspaces").join(format!("{goal}.git"))
    }

    /// The file whose lock is the right to add goals of files.
    pub(crate) fn adding_lock(&self) -> PathBuf {
        self.root.join("adding.lock")
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

    /// Where the commit that a goal starts from is checked out to be checked.
    pub(crate) fn base_verification(&self, goal: GoalId) -> PathBuf {
        self.verifications().join(format!("{goal}{BASE}"))
    }

    /// Where a goal's judges work: a directory that holds nothing but a checkout of the candidate.
    pub(crate) fn judges_place(&self, goal: GoalId) -> PathBuf {
        self.verifications().join(format!("{goal}{JUDGE}"))
    }

    /// The token of the operator.
    pub fn operator_token(&self) -> PathBuf {
        self.root.join("operator-token")
    }

    /// Codes and sessions of the page.
    pub(crate) fn sign_in(&self) -> PathBuf {
        self.root.join("sign-in")
    }

    /// What the user has accepted of repositories' files.
    pub fn trusted(&self) -> PathBuf {
        self.root.join(TRUSTED)
    }

    /// The secret that attempts' tokens follow from.
    pub(crate) fn secret(&self) -> PathBuf {
        self.root.join("token")
    }

    /// Makes a directory in the state directory, with those in between, for their owner alone. The state directory itself is
    /// never created again: it was removed on purpose, or by an attacker.
    pub fn make(&self, directory: &Path) -> io::Result<()> {
        towline_files::create_dir_below(&self.root, self.inner(directory)?)
    }

    /// Removes something from the state directory. Symlinks are removed and never followed.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        towline_files::remove_below(&self.root, self.inner(path)?)
    }

    fn inner<'a>(&self, path: &'a Path) -> io::Result<&'a Path> {
        path.strip_prefix(&self.root)
            .map_err(|_| io::Error::other(format!("{} is outside of the state directory", path.display())))
    }

    /// Sockets and locks of living engines.
    pub fn engines(&self) -> PathBuf {
        self.root.join("engines")
    }
}

/// Where a state directory has others inside of it.
pub(crate) fn proofs_in(state_directory: &Path) -> PathBuf {
    state_directory.join("proofs")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn goal() -> GoalId {
        "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("a goal id")
    }

    /// The user's files, and a state directory beside them.
    fn scratch() -> (tempfile::TempDir, Home, PathBuf) {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        let users = dir.path().join("users");
        fs::create_dir_all(users.join(goal().to_string())).expect("a directory");
        fs::write(users.join(goal().to_string()).join("precious"), "content").expect("written");
        (dir, home, users)
    }

    #[test]
    fn something_else_in_the_place_of_a_directory_is_named() {
        for directory in DIRECTORIES {
            let (_dir, home, users) = scratch();
            let planted = home.root().join(directory);
            symlink(&users, &planted).expect("a symlink");
            let refused = Home::open(home.root()).expect_err("a symlink").to_string();
            let expected = "it is a symlink and not a directory; remove it and try again";
            assert_eq!(refused, format!("{}: {expected}", planted.display()));
            fs::remove_file(&planted).expect("removed");
            fs::write(&planted, "").expect("written");
            Home::open(home.root()).expect_err("a file");
        }
    }

    #[test]
    fn removal_follows_no_symlink_at_any_level() {
        let (_dir, home, users) = scratch();
        let precious = users.join(goal().to_string()).join("precious");
        let places = [home.goal_logs(goal()), home.verification(goal()), home.workspace(goal())];
        for place in &places {
            home.make(place).expect("made");
            home.remove(place).expect("removed");
            symlink(&users, place).expect("a symlink");
            home.make(place).expect_err("a symlink is in its place");
            home.remove(place).expect("the symlink goes");
            assert!(!place.is_symlink());
            let above = place.parent().expect("a parent");
            fs::remove_dir(above).expect("empty");
            symlink(&users, above).expect("a symlink");
            home.make(place).expect_err("a symlink is on the way");
            home.remove(place).expect_err("a symlink is on the way");
            assert!(precious.exists());
        }
        home.remove(&precious).expect_err("it is outside");
    }

    #[test]
    fn a_state_directory_inside_of_another_hides_both() {
        let (_dir, home, _users) = scratch();
        let inner = home.inside("one").expect("made");
        assert_eq!(inner.root(), home.root().join("proofs/one"));
        assert_eq!((inner.hidden(), home.hidden()), (home.root(), home.root()));
        assert!(inner.verification(goal()).starts_with(inner.root()));
    }

    #[test]
    fn a_state_directory_that_is_gone_is_not_made_anew() {
        let (_dir, home, _users) = scratch();
        fs::remove_dir_all(home.root()).expect("removed");
        home.make(&home.goal_logs(goal())).expect_err("it is gone");
        assert!(!home.root().exists());
    }
}
