//! Notices that a file was changed which the rules of the pool are read from, so that goals do not wait for a limit that was raised.
//!
//! Directories are watched, because editors replace files. Where the system reports no changes, a changed file counts from the next
//! look on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use towline_files::{Changes, Watched};

use crate::engine::Shared;
use crate::rules::PoolRules;
use crate::watch::AsyncWatch;

/// Changes that come within this time are noticed together: an editor makes several of one.
const TOGETHER: Duration = Duration::from_millis(100);

/// Makes the scheduler look whenever one of the files has changed, as long as the engine lives.
pub(crate) async fn watch(shared: Arc<Shared>, rules: Arc<dyn PoolRules>) {
    let Ok(watch) = AsyncWatch::new() else { return };
    let mut projects = shared.projects.subscribe();
    let mut closing = shared.signals.closing();
    let mut answered = rules.reads().answered();
    let mut files = RuleFiles { rules, watch: Arc::new(watch), seen: BTreeMap::new() };
    loop {
        let wanted = projects.borrow_and_update().clone();
        if files.follow(&wanted).await {
            shared.signals.note_move();
        }
        tokio::select! {
            others = projects.changed() => if others.is_err() { return },
            change = files.watch.changed(TOGETHER) => if change.is_err() { return },
            Ok(()) = answered.changed() => {}
            _ = closing.wait_for(|is_closing| *is_closing) => return,
        }
    }
}

struct RuleFiles {
    rules: Arc<dyn PoolRules>,
    watch: Arc<AsyncWatch>,
    /// The files of projects, and without a project those that all share.
    seen: BTreeMap<Option<String>, Seen>,
}

/// Files as they were last seen.
#[derive(Debug, Clone, Default)]
struct Seen {
    directories: BTreeSet<Watched>,
    files: BTreeMap<PathBuf, Option<FileStamp>>,
}

/// Shows whether a file is another one than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    length: u64,
    /// In seconds and nanoseconds, as the system changes it with the content, the owner and the permissions.
    changed: (i64, i64),
}

impl FileStamp {
    fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        let changed = (about.ctime(), about.ctime_nsec());
        Some(Self { device: about.dev(), inode: about.ino(), length: about.size(), changed })
    }
}

impl RuleFiles {
    /// Watches the files of these projects and of no others. Returns whether one has changed, or is new here: it may have changed before
    /// it was watched. Those of a project that does not answer count as they were.
    async fn follow(&mut self, projects: &BTreeSet<String>) -> bool {
        let of = std::iter::once(None).chain(projects.iter().cloned().map(Some));
        let looks = join_all(of.map(|project| self.look(project))).await;
        let mut has_changed = false;
        let mut before = std::mem::take(&mut self.seen);
        let watched: BTreeSet<Watched> =
            before.values().flat_map(|seen| &seen.directories).copied().collect();
        for (project, look) in looks {
            let last = before.remove(&project).unwrap_or_default();
            let is_other = |(file, stamp)| last.files.get(file) != Some(stamp);
            has_changed |= look.iter().flat_map(|seen| &seen.files).any(is_other);
            self.seen.insert(project, look.unwrap_or(last));
        }
        let wanted = |watched: &Watched| self.seen.values().any(|seen| seen.directories.contains(watched));
        watched
            .iter()
            .filter(|watched| !wanted(watched))
            .for_each(|watched| self.watch.watch.forget(*watched));
        has_changed
    }

    /// Watches the files of a project and looks at them, if they answer.
    async fn look(&self, project: Option<String>) -> (Option<String>, Option<Seen>) {
        let (rules, watch, of) = (Arc::clone(&self.rules), Arc::clone(&self.watch), project.clone());
        let look = move || {
            let files = rules.files(of.as_deref());
            // Again each time: a directory that was replaced is another one. One that cannot be watched is left out.
            let directories = files.iter().flat_map(|file| directories_of(file));
            let directories =
                directories.filter_map(|path| watch.watch.add(&path, Changes::All).ok()).collect();
            let files = files.into_iter().map(|file| (file.clone(), FileStamp::of(&file))).collect();
            Seen { directories, files }
        };
        let seen = self.rules.reads().read(project.as_deref().unwrap_or_default(), look).await;
        (project, seen.ok())
    }
}

/// The directories in which a change to the file shows: its own, or the first one above that exists; and that of the file itself
/// where this is a symlink to it.
fn directories_of(file: &Path) -> impl Iterator<Item = PathBuf> {
    let own = file.ancestors().skip(1).find(|directory| directory.is_dir()).map(Path::to_owned);
    let real = fs::canonicalize(file).ok().and_then(|real| real.parent().map(Path::to_owned));
    own.and_then(|own| fs::canonicalize(own).ok()).into_iter().chain(real)
}
