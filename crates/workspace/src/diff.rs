//! What a goal changed, as text and in numbers. Reads only.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use towline_core::{Commit, harmless};

use crate::git::shown;
use crate::guard;
use crate::raw_diff::{Changed, Changes};
use crate::threads::finish;
use crate::tree::Files;
use crate::{Protect, Repository, Workspace, WorkspaceError};

/// What git prints of a difference.
const PATCH: [&str; 3] = ["--patch", "--find-renames", "--full-index"];
const NUMBERS: [&str; 3] = ["--numstat", "--find-renames", "-z"];

/// How a path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// Its content, mode or type is another one.
    Changed,
    /// It is gone.
    Deleted,
}

/// A path that differs between two commits. A renamed file is one that was deleted and one that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// The path, relative to the repository's root.
    pub path: String,
    /// How the path changed.
    pub change: Change,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        })
    }
}

impl fmt::Display for ChangedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.change, self.path)
    }
}

impl Repository {
    /// The paths of a set that differ between two commits, in their order, by objects that are proven by their ids; also
    /// those that a symlink or a submodule of the set leads to.
    pub fn changes_under(
        &self,
        paths: &Protect,
        from: &Commit,
        to: &Commit,
    ) -> Result<Vec<ChangedPath>, WorkspaceError> {
        if from == to {
            return Ok(Vec::new());
        }
        let (before, after) = std::thread::scope(|scope| {
            let before = scope.spawn(|| self.files_of(from));
            (finish(before), self.files_of(to))
        });
        let (before, after) = (before?, after?);
        let changes = changes(&before, &after);
        let found = guard::protected(&self.git(), from, &changes, paths)?;
        let change = |path: &[u8]| match &changes[path] {
            Changed { before: None, .. } => Change::Added,
            Changed { after: None, .. } => Change::Deleted,
            Changed { .. } => Change::Changed,
        };
        Ok(found.into_iter().map(|path| ChangedPath { path: shown(path), change: change(path) }).collect())
    }
}

/// What differs between the files of two commits.
fn changes(before: &Files, after: &Files) -> Changes {
    let all: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let differing = all.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let changed =
        |path: &Vec<u8>| Changed { before: before.get(path).cloned(), after: after.get(path).cloned() };
    differing.map(|path| (path.clone(), changed(path))).collect()
}

/// The lines that changed in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// The file, by its new name.
    pub path: String,
    /// Lines added; none are counted in binary files.
    pub added: Option<u64>,
    /// Lines removed; none are counted in binary files.
    pub removed: Option<u64>,
}

/// The changes of a goal in numbers. Displays as one line per file and a total.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffStat {
    /// The files, in the order of their paths.
    pub files: Vec<FileStat>,
}

impl fmt::Display for DiffStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            let path = harmless(&file.path);
            match (file.added, file.removed) {
                (Some(added), Some(removed)) => writeln!(f, "{path} +{added} -{removed}")?,
                _ => writeln!(f, "{path} (binary)")?,
            }
        }
        let count = self.files.len();
        let files = if count == 1 { "file" } else { "files" };
        let added: u64 = self.files.iter().filter_map(|file| file.added).sum();
        let removed: u64 = self.files.iter().filter_map(|file| file.removed).sum();
        write!(f, "{count} {files}, +{added} -{removed}")
    }
}

impl Repository {
    /// The patch from one commit to another.
    pub fn diff(&self, from: &Commit, to: &Commit) -> Result<String, WorkspaceError> {
        self.with_sizes(&shown(&self.diff_trees(&PATCH, from.as_str(), to.as_str())?))
    }

    /// The same as numbers.
    pub fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<DiffStat, WorkspaceError> {
        Ok(parse_numstat(&self.diff_trees(&NUMBERS, from.as_str(), to.as_str())?))
    }

    /// The patch with the sizes of binary files before and after, of which git prints only that they differ.
    fn with_sizes(&self, patch: &str) -> Result<String, WorkspaceError> {
        let blobs: BTreeSet<&str> = binary_blobs(patch).flat_map(|(_, blobs)| blobs).flatten().collect();
        if blobs.is_empty() {
            return Ok(patch.to_owned());
        }
        let input: String = blobs.iter().map(|id| format!("{id}\n")).collect();
        let git = self.git();
        let sizes = git.command("cat-file").arg("--batch-check=%(objectname) %(objectsize)");
        let sizes = sizes.input(input.into_bytes()).line()?;
        let sizes: HashMap<&str, &str> = sizes.lines().filter_map(|line| line.split_once(' ')).collect();
        let size = |blob: Option<&str>| blob.and_then(|blob| sizes.get(blob).copied()).unwrap_or("-");
        let mut shown = String::with_capacity(patch.len());
        let mut from = 0;
        for (end, [before, after]) in binary_blobs(patch) {
            shown.extend([&patch[from..end], "Binary sizes ", size(before), " ", size(after), "\n"]);
            from = end;
        }
        shown.push_str(&patch[from..]);
        Ok(shown)
    }

    fn diff_trees(&self, format: &[&str], from: &str, to: &str) -> Result<Vec<u8>, WorkspaceError> {
        let options = ["-r", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"];
        // Attributes that mark files as binary are those that they began with, not those of the work.
        let git = self.git().with_attributes_of(from);
        git.command("diff-tree").args(options).args(format).args([from, to]).run()
    }
}

impl Workspace {
    /// The patch from the base to the working tree as it is now, untracked files too.
    pub fn diff(&self) -> Result<String, WorkspaceError> {
        self.repository.with_sizes(&shown(&self.diff_to_now(&PATCH)?))
    }

    /// The same as numbers.
    pub fn diff_stat(&self) -> Result<DiffStat, WorkspaceError> {
        Ok(parse_numstat(&self.diff_to_now(&NUMBERS)?))
    }

    fn diff_to_now(&self, format: &[&str]) -> Result<Vec<u8>, WorkspaceError> {
        self.repository.require(self.base())?;
        let now = self.whole_tree(&self.snapshot()?)?;
        self.repository.diff_trees(format, self.base().as_str(), &now)
    }
}

/// Where the header of each binary file of a patch ends, and its blobs before and after. Lines of files begin with a sign, so that none
/// of them looks like one of git's.
fn binary_blobs(patch: &str) -> impl Iterator<Item = (usize, [Option<&str>; 2])> {
    let mut end = 0;
    let mut blobs = [None; 2];
    patch.split_inclusive('\n').filter_map(move |line| {
        end += line.len();
        if line.starts_with("diff ") {
            blobs = [None; 2];
        }
        if let Some(index) = line.strip_prefix("index ") {
            let both = index.split_ascii_whitespace().next().and_then(|both| both.split_once(".."));
            let real = |id: &str| !id.bytes().all(|byte| byte == b'0');
            blobs = both.map_or([None; 2], |(before, after)| {
                [before, after].map(|id| Some(id).filter(|id| real(id)))
            });
        }
        line.starts_with("Binary files ").then_some((end, blobs))
    })
}

/// Reads `added<tab>removed<tab>path<nul>`; a renamed file has an empty path there and both names after it.
fn parse_numstat(listing: &[u8]) -> DiffStat {
    let mut files = Vec::new();
    let mut records = listing.split(|byte| *byte == 0);
    while let Some(record) = records.next() {
        let mut fields = record.splitn(3, |byte| *byte == b'\t').map(shown);
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let path = if path.is_empty() { records.nth(1).map(shown).unwrap_or_default() } else { path };
        files.push(FileStat { path, added: added.parse().ok(), removed: removed.parse().ok() });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    DiffStat { files }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_neither_forges_a_line_nor_reaches_a_terminal() {
        let stat = parse_numstat(b"1\t0\ta +9 -9\n\x1b[31mb\0");
        assert_eq!(stat.to_string(), "a +9 -9\u{fffd}\u{fffd}[31mb +1 -0\n1 file, +1 -0");
    }
}
