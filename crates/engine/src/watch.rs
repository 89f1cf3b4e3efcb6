//! Notices that the state directory was removed or replaced under a running engine.
//!
//! SQLite and open logs go on in files that nobody can find any more, so nothing else would notice: a goal would run to its
//! end, and what became of it would be lost.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::EngineError;
use crate::home::Home;

/// How often it is looked whether the state directory is still there.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What has to stay where it is as long as an engine runs.
#[derive(Debug)]
pub(crate) struct StateWatch {
    files: Vec<(PathBuf, Identity)>,
}

/// What tells a file from another by the same name.
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
        let files = [home.root().to_owned(), home.database(), lock];
        let files = files.into_iter().filter_map(|path| Some((path.clone(), Identity::of(&path)?)));
        Self { files: files.collect() }
    }

    /// Fails when one of them is gone.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match self.files.iter().find(|(path, known)| Identity::of(path) != Some(*known)) {
            Some((path, _)) => Err(EngineError::StateGone { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// Waits until one of them is gone.
    pub(crate) async fn gone(&self) {
        while self.check().is_ok() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
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
    /// Counts a directory as seen: something that was reported can only have come from there.
    pub(crate) fn expect(&mut self, directory: PathBuf) {
        if !self.seen.contains(&directory) {
            self.seen.push(directory);
        }
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

    #[test]
    fn each_removed_or_replaced_part_is_named() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        let lock = home.root().join("lock");
        for part in [home.root().to_owned(), home.database(), lock.clone()] {
            fs::create_dir_all(home.root()).expect("a directory");
            fs::write(home.database(), "").expect("written");
            fs::write(&lock, "").expect("written");
            let watch = StateWatch::new(&home, lock.clone());
            watch.check().expect("nothing has happened");
            let other = dir.path().join("other");
            fs::rename(&part, &other).expect("moved away");
            let gone = watch.check().expect_err("it is gone");
            assert!(matches!(gone, EngineError::StateGone { path } if path == part));
            fs::create_dir(&part).expect("something in its place");
            watch.check().expect_err("it is another one");
            fs::remove_dir(&part).expect("removed");
            fs::rename(&other, &part).expect("moved back");
            watch.check().expect("it is back");
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
