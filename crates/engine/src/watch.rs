//! Notices that the state directory was removed or replaced under a running engine.
//!
//! SQLite and open logs continue in files that have no path any more, so nothing else would notice: a goal would run to its
//! end, and its result would be lost. If the system does not report removals, they are noticed before the next append.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use towline_files::{Changes, Watch, Watched};

use crate::error::EngineError;
use crate::home::Home;
use crate::presence::FENCED;

/// How long something may be missing that is perhaps just being replaced.
pub(crate) const REPLACED_WITHIN: Duration = Duration::from_millis(500);

/// What has to stay where it is as long as an engine runs.
#[derive(Debug)]
pub(crate) struct StateWatch {
    files: Vec<(PathBuf, Identity)>,
    /// Reports that something was removed from a directory.
    removed: watch::Sender<()>,
    /// None if the system does not report removals.
    watch: Option<Arc<AsyncWatch>>,
    _tasks: JoinSet<()>,
}

/// Identifies a file behind a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        Some(Self { device: about.dev(), inode: about.ino() })
    }
}

impl StateWatch {
    /// Watches the state directory, its database and this engine's lock.
    pub(crate) fn new(home: &Home, lock: PathBuf) -> Self {
        let removed = watch::Sender::new(());
        let watch = AsyncWatch::new().map(Arc::new).ok();
        let mut tasks = JoinSet::new();
        if let Some(watch) = &watch {
            // A directory above that is moved takes the state directory with it. A removal that is not reported, because a
            // directory cannot be watched or the relay has failed, is noticed before the next append.
            for directory in home.root().ancestors().skip(1) {
                let _ = watch.watch.add(directory, Changes::Itself);
            }
            for directory in [home.root().to_owned(), home.workspaces(), home.engines()] {
                let _ = watch.watch.add(&directory, Changes::Removals);
            }
            let (watch, removed) = (Arc::clone(watch), removed.clone());
            tasks.spawn(async move {
                while watch.changed(Duration::ZERO).await.is_ok() {
                    removed.send_replace(());
                }
            });
        }
        let files = [home.root().to_owned(), home.database(), lock];
        let files = files.into_iter().filter_map(|path| Some((path.clone(), Identity::of(&path)?)));
        Self { files: files.collect(), removed, watch, _tasks: tasks }
    }

    /// Fails when one of them is gone, or another engine has taken the place of this one.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match self.files.iter().find(|(path, known)| Identity::of(path) != Some(*known)) {
            Some((path, known)) if Identity::of(&path.with_extension(FENCED)) == Some(*known) => {
                Err(EngineError::TakenOver)
            }
            Some((path, _)) => Err(EngineError::StateGone { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// Waits until one of them is gone.
    pub(crate) async fn gone(&self) {
        let mut removals = self.removals();
        while self.check().is_ok() {
            if removals.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Changes when something was removed or moved: time to look.
    pub(crate) fn removals(&self) -> watch::Receiver<()> {
        self.removed.subscribe()
    }

    /// Watches one more directory, as long as the result lives.
    pub(crate) fn observe(&self, directory: &Path) -> Option<Observed> {
        let watch = self.watch.clone()?;
        let watched = watch.watch.add(directory, Changes::Removals).ok()?;
        Some(Observed { watch, watched })
    }
}

/// A directory that is watched.
#[derive(Debug)]
pub(crate) struct Observed {
    watch: Arc<AsyncWatch>,
    watched: Watched,
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.watch.watch.forget(self.watched);
    }
}

/// A watch that a task can wait for.
#[derive(Debug)]
pub(crate) struct AsyncWatch {
    pub(crate) watch: Watch,
    events: Receiver,
}

impl AsyncWatch {
    pub(crate) fn new() -> io::Result<Self> {
        let watch = Watch::new()?;
        // Whatever can be waited for and read is as good as a pipe.
        let events = Receiver::from_owned_fd_unchecked(watch.as_fd().try_clone_to_owned()?)?;
        Ok(Self { watch, events })
    }

    /// Waits for a change. Those that come within so much time after it are noticed together.
    pub(crate) async fn changed(&self, together: Duration) -> io::Result<()> {
        self.events.readable().await?;
        if !together.is_zero() {
            tokio::time::sleep(together).await;
        }
        let mut buffer = [0; 4096];
        while matches!(self.events.try_read(&mut buffer), Ok(length) if length > 0) {}
        Ok(())
    }
}

/// What belongs to one goal and has to stay once it was there.
#[derive(Debug, Default)]
pub(crate) struct GoalWatch {
    seen: Vec<PathBuf>,
    /// Missing at the last look. A directory that is missing for a moment is perhaps just being replaced.
    missing: Option<PathBuf>,
}

/// How certain it has to be that something is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Gone at two looks in a row.
    Twice,
    /// Gone now: something is about to begin that needs it.
    Once,
}

impl GoalWatch {
    /// Counts a directory as seen: something that was reported can only have come from there. Whether that is new.
    pub(crate) fn expect(&mut self, directory: PathBuf) -> bool {
        let is_new = !self.seen.contains(&directory);
        if is_new {
            self.seen.push(directory);
        }
        is_new
    }

    /// Whether one was missing at the last look.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.missing.is_some()
    }

    /// One of these directories that was there before and is gone.
    pub(crate) fn gone(
        &mut self,
        directories: impl IntoIterator<Item = PathBuf>,
        certainty: Certainty,
    ) -> Option<PathBuf> {
        let mut missing = None;
        for directory in directories {
            let is_there = fs::symlink_metadata(&directory).is_ok_and(|about| about.is_dir());
            if is_there {
                self.expect(directory);
            } else if self.seen.contains(&directory) {
                missing = Some(directory);
            }
        }
        let before = std::mem::replace(&mut self.missing, missing.clone());
        let is_certain = certainty == Certainty::Once || before == missing;
        missing.filter(|_| is_certain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_removed_or_replaced_part_is_reported_without_looking_and_named() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("above/state")).expect("a state directory");
        fs::create_dir_all(home.engines()).expect("a directory");
        let lock = home.engines().join("lock");
        let away = dir.path().join("away");
        fs::write(home.database(), "").expect("written");
        fs::write(&lock, "").expect("written");
        let root = home.root().to_owned();
        // A directory above is named by what is missing in it.
        let above = (dir.path().join("above"), root.clone());
        for (part, named) in
            [above, (root.clone(), root), (home.database(), home.database()), (lock.clone(), lock.clone())]
        {
            let watch = StateWatch::new(&home, lock.clone());
            watch.check().expect("nothing has happened");
            let still_there = tokio::time::timeout(Duration::from_millis(20), watch.gone()).await;
            still_there.expect_err("nothing has happened");
            fs::rename(&part, &away).expect("moved away");
            let gone = tokio::time::timeout(Duration::from_secs(20), watch.gone()).await;
            gone.unwrap_or_else(|_| panic!("the removal of {} was not reported", part.display()));
            let gone = watch.check().expect_err("it is gone");
            assert!(matches!(gone, EngineError::StateGone { path } if path == named));
            fs::create_dir(&part).expect("something in its place");
            watch.check().expect_err("it is another one");
            fs::remove_dir(&part).expect("removed");
            fs::rename(&away, &part).expect("moved back");
            watch.check().expect("it is back");
        }
    }

    #[tokio::test]
    async fn a_directory_is_observed_until_nobody_needs_it() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        let watch = StateWatch::new(&home, home.root().join("lock"));
        let goal = dir.path().join("goal");
        let mut removals = watch.removals();
        for is_observed in [true, false] {
            fs::create_dir_all(goal.join("1")).expect("made");
            let observed = watch.observe(&goal).expect("it can be observed");
            let observed = Some(observed).filter(|_| is_observed);
            if !is_observed {
                // Its end is reported as well.
                removals.changed().await.expect("a report");
            }
            fs::remove_dir(goal.join("1")).expect("removed");
            let wait = if is_observed { Duration::from_secs(20) } else { Duration::from_millis(50) };
            let reported = tokio::time::timeout(wait, removals.changed()).await;
            assert_eq!(reported.is_ok(), is_observed);
            if observed.is_some() {
                drop(observed);
                removals.changed().await.expect("a report");
            }
        }
    }

    #[test]
    fn a_directory_of_a_goal_counts_as_gone_at_the_second_look_or_when_it_is_needed() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let directory = dir.path().join("attempt");
        let look = |watch: &mut GoalWatch, certainty| watch.gone([directory.clone()], certainty).is_none();
        for certainty in [Certainty::Twice, Certainty::Once] {
            let mut watch = GoalWatch::default();
            assert!(look(&mut watch, Certainty::Once), "it was never there");
            fs::create_dir(&directory).expect("made");
            assert!(look(&mut watch, Certainty::Once));
            fs::remove_dir(&directory).expect("removed");
            assert!(look(&mut watch, Certainty::Twice), "for a moment");
            fs::create_dir(&directory).expect("made");
            assert!(look(&mut watch, Certainty::Twice), "it is back");
            fs::remove_dir(&directory).expect("removed");
            if certainty == Certainty::Twice {
                assert!(look(&mut watch, Certainty::Twice));
            }
            assert!(!look(&mut watch, certainty), "{certainty:?}");
        }
        let mut watch = GoalWatch::default();
        watch.expect(directory.clone());
        assert!(!look(&mut watch, Certainty::Once), "it was removed before the first look");
    }
}
