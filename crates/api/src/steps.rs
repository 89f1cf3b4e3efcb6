//! What commands that change something report: `init`, `merge`, `push`, `verify`, `rm`, `gc`.

use serde::{Deserialize, Serialize};

use crate::VerdictReport;

/// The reply of `merge --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergeReport {
    /// The goal's id.
    pub id: String,
    /// The branch that gets the work.
    pub into: String,
    /// `already_there`, `fast_forward`, `merge_commit`, `squash` or `reworded`.
    pub way: String,
    /// The branch's commit before.
    pub before: String,
    /// The branch's commit afterwards; null for a commit that a dry run does not make.
    pub commit: Option<String>,
    /// The goal's commit that is merged.
    pub candidate: String,
    /// How many files change.
    pub files: usize,
    /// Whether checks have passed on exactly these files.
    pub proven: bool,
    /// What the checks found on the merge; null where they were not needed.
    pub verdict: Option<VerdictReport>,
    /// Whether nothing was changed on purpose.
    pub dry_run: bool,
}

/// The work of a goal beside the branch that is checked out in its repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DivergenceReport {
    /// The goal's id.
    pub id: String,
    /// The branch; null where none is checked out, or the goal has no work to merge.
    pub into: Option<String>,
    /// Commits of the work that the branch does not have.
    pub ahead: usize,
    /// Commits of the branch that the work does not have.
    pub behind: usize,
    /// Paths in which the two conflict, at most 50.
    pub conflicts: Vec<String>,
}

/// The reply of `push --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PushReport {
    /// The goal's id.
    pub id: String,
    pub remote: String,
    /// The goal's branch there.
    pub branch: String,
    /// The commit that was pushed.
    pub commit: String,
    /// Whether checks have passed on it.
    pub proven: bool,
    /// What the remote answered, in lines.
    pub answer: Vec<String>,
}

/// The reply of `verify --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyReport {
    /// The goal's id.
    pub id: String,
    /// The commit that was checked again.
    pub candidate: String,
    /// Whether all checks pass now.
    pub met: bool,
    /// Whether each check ended as recorded.
    pub agrees: bool,
    /// The recorded verdict.
    pub recorded: VerdictReport,
    /// The new verdict.
    pub now: VerdictReport,
}

/// One entry of `rm --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RmReport {
    /// The goal's id.
    pub id: String,
    /// Whether it was removed.
    pub removed: bool,
    /// Why it was not.
    pub error: Option<String>,
    /// Work that only this goal had.
    #[serde(rename = "kept")]
    pub preserved: Vec<PreservedReport>,
    /// Files that were not removed.
    pub left: Option<String>,
    /// Bytes that were freed.
    pub bytes: u64,
}

/// Work that only a goal had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PreservedReport {
    /// The ref that keeps it in the user's repository.
    pub reference: Option<String>,
    /// The commit with the work.
    pub commit: String,
}

/// The reply of `gc --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GcReport {
    /// Whether nothing was removed on purpose.
    pub dry_run: bool,
    /// Bytes that were or would be freed.
    pub bytes: u64,
    /// What was or would be removed.
    pub removed: Vec<WasteReport>,
    /// What could not be removed.
    #[serde(rename = "kept")]
    pub spared: Vec<SparedReport>,
}

/// Something that is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WasteReport {
    /// Its kind, such as `workspace` or `logs`.
    pub kind: String,
    /// The id of the goal that it belonged to.
    pub goal: Option<String>,
    /// Where it is.
    pub path: String,
    /// The goal's branch that goes with its workspace.
    #[serde(default)]
    pub branch: Option<String>,
    pub bytes: u64,
}

/// Something that was not removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SparedReport {
    /// The id of the goal that it belongs to.
    pub goal: Option<String>,
    /// Where it is.
    pub path: String,
    /// Why it stays.
    pub why: String,
}

/// The reply of `init --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InitReport {
    pub path: String,
    /// Whether it was written.
    pub written: bool,
    /// The top of the git repository; null where there is none.
    pub repository: Option<String>,
    /// Agents that are installed.
    pub agents: Vec<InstalledAgent>,
    /// Checks in the file.
    pub checks: Vec<ProposedCheck>,
    /// Checks that are commented out in the file.
    pub suggestions: Vec<ProposedCheck>,
    /// Commands that make a clean checkout ready.
    pub setup: Vec<String>,
    /// Ignored files that a checkout needs.
    pub copy: Vec<String>,
    /// Directories that a verdict leaves for the next one.
    pub warm: Vec<String>,
    /// Patterns of protected paths.
    pub protect: Vec<String>,
    /// What is missing for a goal to be done here.
    pub missing: Vec<MissingPart>,
    /// What to type next.
    pub next: Vec<String>,
    /// The text of the file.
    pub text: String,
}

/// An agent that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstalledAgent {
    /// Its name in the configuration.
    pub name: String,
    /// The file of its program.
    pub path: String,
}

/// A check by a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProposedCheck {
    /// The check's name.
    pub name: String,
    /// The command, run at the top of the checkout.
    pub run: String,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissingPart {
    /// What it is about.
    pub about: String,
    /// What is missing.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}
