//! A first look at whether the work of many goals is merged: a few git commands for all goals of a repository together.
//!
//! Nothing is removed because of it: `removal` looks at each goal by itself before anything goes.

use std::collections::{BTreeMap, BTreeSet};

use towline_core::Commit;

use crate::git::{records, shown};
use crate::raw_diff::{Changed, Changes, tree_entries};
use crate::removal::OUR_BRANCHES;
use crate::tree::Files;
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

impl Repository {
    /// How far the work of each goal is merged, in their order. This is the user's repository.
    pub fn standings(&self, goals: &[GoalWork]) -> Result<Vec<Standing>, WorkspaceError> {
        let (ours, users) = self.branches()?;
        let missing = self.missing_candidates(goals)?;
        let unnamed = self.unnamed(goals, &missing, &users)?;
        let tips = if unnamed.is_empty() { Vec::new() } else { self.files_of_tips()? };
        let changes = self.changes(goals, &unnamed)?;
        Ok(goals
            .iter()
            .map(|goal| {
                let was_moved = ours.get(&goal.branch).is_some_and(|at| at != goal.candidate.as_str());
                if was_moved || missing.contains(goal.candidate.as_str()) {
                    Standing::Unclear
                } else if unnamed.contains(goal.candidate.as_str()) {
                    compared(changes.get(goal.candidate.as_str()).unwrap_or(&Changes::new()), &tips)
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
        let commits = goals.iter().flat_map(|goal| [goal.candidate.as_str(), goal.base.as_str()]);
        let gone = self.git().missing(commits)?;
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
        let candidates = goals.iter().map(|goal| goal.candidate.as_str());
        let candidates: BTreeSet<&str> = candidates.filter(|commit| !missing.contains(*commit)).collect();
        if candidates.is_empty() {
            return Ok(BTreeSet::new());
        }
        let wanted = candidates.iter().map(|candidate| format!("{candidate}\n"));
        let lines: String = wanted.chain(users.iter().map(|commit| format!("^{commit}\n"))).collect();
        let list = self.git().command("rev-list").arg("--stdin").input(lines.into_bytes()).line()?;
        Ok(list.lines().filter(|commit| candidates.contains(commit)).map(str::to_owned).collect())
    }

    /// The files of the branch that the user is on, and of the one that it follows.
    fn files_of_tips(&self) -> Result<Vec<Files>, WorkspaceError> {
        let files = |at: Commit| {
            let list = self.git().command("ls-tree").args(["-r", "-z", at.as_str()]).run()?;
            Ok(tree_entries(&list).collect())
        };
        self.tips()?.into_iter().map(files).collect()
    }

    /// What each of these candidates changes.
    fn changes(
        &self,
        goals: &[GoalWork],
        wanted: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Changes>, WorkspaceError> {
        let goals = goals.iter().filter(|goal| wanted.contains(goal.candidate.as_str()));
        let lines: String = goals.map(|goal| format!("{} {}\n", goal.candidate, goal.base)).collect();
        if lines.is_empty() {
            return Ok(BTreeMap::new());
        }
        let git = self.git();
        let diff = git.command("diff-tree").args(["--stdin", "-r", "-z", "--no-renames"]);
        let output = diff.input(lines.into_bytes()).run()?;
        let mut changes: BTreeMap<String, Changes> = BTreeMap::new();
        let (mut of, mut records) = (String::new(), records(&output));
        while let Some(record) = records.next() {
            match record.strip_prefix(b":") {
                None => of = shown(record).trim().to_owned(),
                Some(about) => {
                    let path = records.next().unwrap_or_default().to_vec();
                    let changed = Changed::read(about).map(|changed| (path, changed));
                    changes.entry(of.clone()).or_default().extend(changed);
                }
            }
        }
        Ok(changes)
    }
}

/// Whether one of the tips has all changes, or all of them lack one.
fn compared(changes: &Changes, tips: &[Files]) -> Standing {
    let has_after = |tip: &Files| changes.iter().all(|(path, now)| tip.get(path) == now.after.as_ref());
    let has_before = |tip: &Files| changes.iter().any(|(path, now)| tip.get(path) == now.before.as_ref());
    if tips.iter().any(has_after) {
        Standing::Merged
    } else if tips.iter().all(has_before) {
        Standing::Unmerged
    } else {
        Standing::Unclear
    }
}
