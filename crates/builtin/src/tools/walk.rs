//! Files below a folder, except git's own and those that git ignores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::places::Places;

/// The longest time of a walk.
const LONGEST: Duration = Duration::from_secs(60);

/// How deep a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The folder itself.
    One,
    All,
}

/// What ends a walk early: its caller, or a timeout.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    given_up: Arc<AtomicBool>,
    until: Instant,
}

/// Ends the walk when it is dropped.
#[derive(Debug)]
pub(super) struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Patience {
    pub(super) fn new() -> (Self, GiveUp) {
        let given_up = Arc::new(AtomicBool::new(false));
        (Self { given_up: Arc::clone(&given_up), until: Instant::now() + LONGEST }, GiveUp(given_up))
    }

    /// Whether it is time to stop.
    pub(super) fn is_over(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Walks below `folder`, sorted by name. Unreadable entries are skipped.
pub(super) fn below(folder: &Path, places: &Places, depth: Depth) -> impl Iterator<Item = DirEntry> {
    let mut walk = WalkBuilder::new(folder);
    walk.hidden(false)
        .git_global(false)
        .require_git(false)
        // Ignore files above a workspace that is no repository do not apply to it.
        .parents(places.root().join(".git").exists())
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(std::cmp::Ord::cmp);
    if depth == Depth::One {
        walk.max_depth(Some(1));
    }
    walk.build().filter_map(Result::ok).filter(|entry| entry.depth() > 0)
}

/// A pattern for files. One without a slash matches names in any folder.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let built = GlobBuilder::new(&anywhere).literal_separator(true).empty_alternates(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        format!("`{pattern}` is not a glob ({}); write one like `src/**/*.rs`", error.kind())
    })
}
