//! A first look at whether the work of many goals is merged: a few git commands for all goals of a repository together.
//!
//! Nothing is removed because of it: `removal` looks at each goal by itself before anything goes.

use std::collections::{BTreeMap, BTreeSet};

use towline_core::Commit;

use crate::git::{records, shown};
use crate::merge::current_branch;
use crate::removal::OUR_BRANCHES;
use crate::{Repository, WorkspaceError};

/// The work of one goal.
#[derive(Debug, Clone)]
pub struct GoalWork {
    /// The commit that it started from.
    pub base: Commit,
    /// The last commit that was judged.
    pub candidate: Commit,
    /// The branch that it ended as.
    pub branch: String,
}

/// Whether the user's branches have the work of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// They have all of it.
    Merged,
    /// A part of it is in none of them.
    Unmerged,
    /// Only a look at this goal alone can show it.
    Unclear,
}

/// What a commit changes: each path with what it has before and after.
type FileChanges = Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>;
/// What is at each path of a commit.
type FileIds = BTreeMap<Vec<u8>, Vec<u8>>;

/// A file that is not there, as git writes it.
const NOTHING: u8 = b'0';

impl Repository {
    /// How far the work of each goal is merged, in their order. This is the user's repository.
    pub fn standings(&self, goals: &[GoalWork]) -> Result<Vec<Standing>, WorkspaceError> {
        let (ours, users) = self.branches()?;
        let missing = self.missing_candidates(goals)?;
        let unnamed = self.unnamed(goals, &missing, &users)?;
        let tips = if unnamed.is_empty() { Vec::new() } else { self.tips()? };
        let changes = self.changes(goals, &unnamed)?;
        Ok(goals
            .iter()
            .map(|goal| {
                let was_moved = ours.get(&goal.branch).is_some_and(|at| at != goal.candidate.as_str());
                if was_moved || missing.contains(goal.candidate.as_str()) {
                    Standing::Unclear
                } else if unnamed.contains(goal.candidate.as_str()) {
                    compared(changes.get(goal.candidate.as_str()).map_or(&[], Vec::as_slice), &tips)
                } else {
                    Standing::Merged
                }
            })
            .collect())
    }

    /// The commits of goals' branches by name, and those of all other branches and tags.
    fn branches(&self) -> Result<(BTreeMap<String, String>, Vec<String>), WorkspaceError> {
        let places = ["refs/heads", "refs/remotes", "refs/tags"];
        let git = self.git();
        let list = git.command("for-each-ref").arg("--format=%(objectname) %(refname)").args(places);
        let (mut ours, mut users) = (BTreeMap::new(), Vec::new());
        for (commit, name) in list.line()?.lines().filter_map(|line| line.split_once(' ')) {
            if name.starts_with(OUR_BRANCHES) {
                let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
                ours.insert(branch.to_owned(), commit.to_owned());
            } else {
                users.push(commit.to_owned());
            }
        }
        Ok((ours, users))
    }

    /// Bases and candidates that are not in the repository.
    fn missing_candidates(&self, goals: &[GoalWork]) -> Result<BTreeSet<String>, WorkspaceError> {
        let lines: String = goals.iter().map(|goal| format!("{}\n{}\n", goal.candidate, goal.base)).collect();
        let looked = self.git().command("cat-file").arg("--batch-check").input(lines.into_bytes()).line()?;
        let gone: BTreeSet<&str> = looked.lines().filter_map(|line| line.strip_suffix(" missing")).collect();
        let is_gone =
            |goal: &&GoalWork| gone.contains(goal.candidate.as_str()) || gone.contains(goal.base.as_str());
        Ok(goals.iter().filter(is_gone).map(|goal| goal.candidate.to_string()).collect())
    }

    /// Candidates that none of these commits has.
    fn unnamed(
        &self,
        goals: &[GoalWork],
        missing: &BTreeSet<String>,
        users: &[String],
    ) -> Result<BTreeSet<String>, WorkspaceError> {
        let candidates: BTreeSet<&str> = goals.iter().map(|goal| goal.candidate.as_str()).collect();
        let wanted = candidates.iter().filter(|candidate| !missing.contains(**candidate));
        let wanted = wanted.map(|candidate| format!("{candidate}\n"));
        if candidates.iter().all(|candidate| missing.contains(*candidate)) {
            return Ok(BTreeSet::new());
        }
        let lines: String = wanted.chain(users.iter().map(|commit| format!("^{commit}\n"))).collect();
        let list = self.git().command("rev-list").arg("--stdin").input(lines.into_bytes()).line()?;
        Ok(list.lines().filter(|commit| candidates.contains(commit)).map(str::to_owned).collect())
    }

    /// The files of the branch that the user is on, and of the one that it follows.
    fn tips(&self) -> Result<Vec<FileIds>, WorkspaceError> {
        let Some(branch) = current_branch(self)?.map(|branch| format!("refs/heads/{branch}")) else {
            return Ok(Vec::new());
        };
        let followed = self.git().command("for-each-ref").args(["--format=%(upstream)", &branch]).line()?;
        let names = [branch, followed];
        let names = names.iter().filter(|name| !name.is_empty() && !name.starts_with(OUR_BRANCHES));
        let mut tips = Vec::new();
        for name in names {
            if let Some(at) = self.find_commit(name)? {
                let list = self.git().command("ls-tree").args(["-r", "-z", at.as_str()]).run()?;
                tips.push(records(&list).filter_map(file_of).collect());
            }
        }
        Ok(tips)
    }

    /// What each of these candidates changes.
    fn changes(
        &self,
        goals: &[GoalWork],
        wanted: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FileChanges>, WorkspaceError> {
        let goals = goals.iter().filter(|goal| wanted.contains(goal.candidate.as_str()));
        let lines: String = goals.map(|goal| format!("{} {}\n", goal.candidate, goal.base)).collect();
        if lines.is_empty() {
            return Ok(BTreeMap::new());
        }
        let git = self.git();
        let diff = git.command("diff-tree").args(["--stdin", "-r", "-z", "--no-renames"]);
        let output = diff.input(lines.into_bytes()).run()?;
        let mut changes: BTreeMap<String, FileChanges> = BTreeMap::new();
        let (mut of, mut records) = (String::new(), records(&output));
        while let Some(record) = records.next() {
            match record.strip_prefix(b":") {
                None => of = shown(record).trim().to_owned(),
                Some(about) => {
                    let path = records.next().unwrap_or_default().to_vec();
                    let parts: Vec<&[u8]> = about.split(|byte| *byte == b' ').collect();
                    if let [old_mode, new_mode, old, new, ..] = parts.as_slice() {
                        let side = |mode: &[u8], id: &[u8]| [mode, id].join(&b' ');
                        let change = (path, side(old_mode, old), side(new_mode, new));
                        changes.entry(of.clone()).or_default().push(change);
                    }
                }
            }
        }
        Ok(changes)
    }
}

/// A line of `ls-tree`: what is at which path.
fn file_of(record: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let mut parts = record[..tab].split(|byte| *byte == b' ');
    let (mode, id) = (parts.next()?, parts.nth(1)?);
    Some((record[tab + 1..].to_vec(), [mode, id].join(&b' ')))
}

/// Whether one of the tips has all changes, or all of them lack one.
fn compared(changes: &[(Vec<u8>, Vec<u8>, Vec<u8>)], tips: &[FileIds]) -> Standing {
    let is_nothing = |side: &[u8]| side.iter().all(|byte| *byte == NOTHING || *byte == b' ');
    let has = |tip: &FileIds, path: &[u8], side: &[u8]| match tip.get(path) {
        Some(there) => there == side,
        None => is_nothing(side),
    };
    if tips.iter().any(|tip| changes.iter().all(|(path, _, new)| has(tip, path, new))) {
        Standing::Merged
    } else if tips.iter().all(|tip| changes.iter().any(|(path, old, _)| has(tip, path, old))) {
        Standing::Unmerged
    } else {
        Standing::Unclear
    }
}
