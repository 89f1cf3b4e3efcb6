//! What is to be true, and how that is checked.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    AgentName, BaselineMode, Budget, Commit, GoalId, GoalState, Inherited, Sandbox, Scheduling,
    SessionBinding, Usage,
};

/// A goal as it was created. It never changes; what happens to it is in [`crate::GoalState`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub id: GoalId,
    /// One line for people.
    pub title: String,
    /// What is to be done, in the words of whoever wants it.
    pub prompt: String,
    /// How it is checked. Frozen here: later changes of the configuration do not reach it.
    pub checks: Vec<Check>,
    /// What may be spent on it at first; a retry may raise it.
    pub budget: Budget,
    /// The agents that may work on it, in order.
    pub agents: Vec<AgentName>,
    /// The model to use instead of the agent's own setting.
    pub model: Option<String>,
    /// What the goal sets for all of its agents instead of the configuration, by the keys of
    /// `[agents.NAME]`. It holds for every attempt, even if the configuration changes.
    #[serde(default)]
    pub agent_settings: BTreeMap<String, Value>,
    /// Globs of paths that stay as in the base, whatever the agent does to them, and sections of files
    /// (`package.json#scripts`) whose value must be as in the base.
    pub protect: Vec<String>,
    /// Globs of paths that are not protected for this goal, although a pattern of `protect` covers them.
    #[serde(default)]
    pub unprotect: Vec<String>,
    /// Where the work happens.
    pub workspace: WorkspaceSpec,
    /// Whether the first prompt explains unattended work.
    pub briefing: bool,
    /// Whether the checks run on the base first, and whether they must fail there.
    #[serde(default, alias = "red_first", deserialize_with = "BaselineMode::or_flag")]
    pub baseline: BaselineMode,
    /// How long each agent's conversations may continue, as set when the goal was created.
    #[serde(default)]
    pub sessions: BTreeMap<AgentName, SessionLimits>,
    /// Whose quota each agent uses, where it is set: agents of one account are limited together.
    #[serde(default)]
    pub accounts: BTreeMap<AgentName, String>,
    /// The conversation of an earlier goal that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continuation>,
    /// How it takes part in a pool.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Free words to find it by.
    pub labels: Vec<String>,
    /// Free data for programs.
    pub metadata: BTreeMap<String, Value>,
    /// Where it came from.
    pub origin: Origin,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Goal {
    /// The goal that its directory was first made for: itself, unless it continues an earlier one.
    pub fn place(&self) -> GoalId {
        self.continues.as_ref().map_or(self.id, |continued| continued.place)
    }

    /// Replaces what was settled after the goal was created: the checks, and what its prerequisites left to it.
    pub fn bring_into_force(&mut self, state: &GoalState) {
        if let Some(replaced) = &state.replaced_checks {
            self.checks.clone_from(&replaced.checks);
        }
        if let Some(Inherited { prompt, base }) = &state.inherited {
            prompt.iter().for_each(|prompt| self.prompt.clone_from(prompt));
            base.iter().for_each(|base| self.workspace.base.clone_from(base));
        }
    }

    /// Whose quota an agent of the goal uses: the account that is set for it, or its own.
    pub fn account_of<'a>(&'a self, agent: &'a AgentName) -> &'a str {
        self.accounts.get(agent).map_or_else(|| agent.as_str(), String::as_str)
    }

    /// A hash of the check list, so that anyone can see that the list a verdict speaks of is the one the goal was
    /// created with.
    pub fn checks_hash(&self) -> String {
        let mut hasher = Sha256::new();
        // Serialising these plain structs cannot fail; an empty hash would only ever compare unequal.
        hasher.update(serde_json::to_vec(&self.checks).unwrap_or_default());
        crate::hexadecimal(&hasher.finalize())
    }
}

/// A conversation of an earlier goal that another one continues, at the same path: agents find their conversations by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The earlier goal.
    pub goal: GoalId,
    /// The goal that the directory was first made for.
    pub place: GoalId,
    pub session: SessionBinding,
    /// What the agent may report again, because it counts the whole conversation.
    pub used: Usage,
    /// What confined everything that touched the earlier goal. This one continues in its workspace and home. Earlier versions did not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<Confined>,
}

/// What confined all that touched a goal: the weakest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// None where something had no sandbox.
    pub by: Option<Sandbox>,
}

/// How long a conversation may continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// The part of the model's context that may be in use before it is summarised, from 0 to 1.
    pub context_threshold: f64,
    /// How long it may lie unused.
    pub idle: Duration,
    /// How long after its beginning.
    pub age: Duration,
    /// Whether a conversation outlives the agent's process at all.
    #[serde(default = "outlives")]
    pub outlives_process: bool,
    /// What a summary of it is to keep, where that is set.
    #[serde(default)]
    pub compact_focus: Option<String>,
}

const fn outlives() -> bool {
    true
}

impl Default for SessionLimits {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3_600);
        Self { context_threshold: 0.7, idle: day, age: day * 30, outlives_process: true, compact_focus: None }
    }
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, unique within the goal.
    pub name: String,
    /// What is run.
    pub kind: CheckKind,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether agents know more of it than its name.
    #[serde(default, skip_serializing_if = "Visibility::is_shown")]
    pub hidden: Visibility,
    /// Paths outside the repository that it reads, and that no agent may see; `~` is the user's home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether it fails when fewer tests run than on the base. Only commands of known test runners count tests.
    #[serde(default = "counts_tests", skip_serializing_if = "is_counting")]
    pub floor: bool,
    /// What shows that the work is what makes it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// Whether agents know more of a check than its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// They read its command and its output.
    #[default]
    Shown,
    /// They learn its name and whether it passed, and a sandbox keeps the rest from them.
    Hidden,
    /// The same, where there is no sandbox as well: an agent that looks for it as the user may find it.
    BestEffort,
}

impl Visibility {
    /// Whether agents read all of it.
    pub const fn is_shown(&self) -> bool {
        matches!(self, Self::Shown)
    }
}

/// A second run of a check that has passed, which must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// With the candidate's changes to all files but tests taken back.
    Revert,
}

const fn counts_tests() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_counting(floor: &bool) -> bool {
    *floor
}

/// The kinds of checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CheckKind {
    /// A command that must exit with 0, run by `sh -c` in the clean checkout.
    Command {
        /// The command line.
        run: String,
        /// A pattern that its standard output must also match.
        stdout: Option<String>,
    },
    /// A regular file that must be there.
    File {
        /// Its path, relative to the repository's root.
        path: String,
        /// A pattern that its text must also match.
        matches: Option<String>,
    },
    /// Paths that must be as they were in the base.
    Untouched {
        /// Their patterns, relative to the repository's root.
        paths: Vec<String>,
    },
    /// All of the agent's work must be in commits of its own.
    Committed,
    /// A program that judges: what is to be judged as JSON in, a verdict as JSON out.
    Program {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// An agent that judges the work by a rubric, once all other checks are met. It can only reject.
    Judge {
        rubric: String,
        /// Which agent; the goal's first one if none is named.
        agent: Option<AgentName>,
    },
}

impl CheckKind {
    /// Whether an agent judges, which costs money and proves nothing by itself.
    pub const fn is_judge(&self) -> bool {
        matches!(self, Self::Judge { .. })
    }
}

impl Check {
    /// The agent that it names as its judge.
    pub fn judge(&self) -> Option<&AgentName> {
        match &self.kind {
            CheckKind::Judge { agent, .. } => agent.as_ref(),
            _ => None,
        }
    }

    /// A check that agents can read, without further evidence than its own result.
    pub fn new(name: impl Into<String>, kind: CheckKind, timeout: Duration) -> Self {
        let name = name.into();
        Self { name, kind, timeout, hidden: Visibility::Shown, files: Vec::new(), floor: true, probe: None }
    }

    /// The same for agents, which learn nothing about a hidden check.
    pub(crate) fn describe_to_agents(&self) -> String {
        match self.hidden {
            Visibility::Shown => self.describe(),
            Visibility::Hidden | Visibility::BestEffort => "hidden".to_owned(),
        }
    }

    /// What must hold, in words that a person and an agent can act upon.
    pub fn describe(&self) -> String {
        let probe = self.probe.map_or("", |Probe::Revert| ", and it fails without the change");
        let hidden = if self.hidden.is_shown() { "" } else { ", hidden from agents" };
        format!("{}{probe}{hidden}", self.describe_kind())
    }

    fn describe_kind(&self) -> String {
        match &self.kind {
            CheckKind::Command { run, stdout: None } => format!("`{run}`"),
            CheckKind::Command { run, stdout: Some(pattern) } => {
                format!("`{run}`, with a line on standard output that matches `{pattern}`")
            }
            CheckKind::File { path, matches: None } => format!("the file `{path}` exists"),
            CheckKind::File { path, matches: Some(pattern) } => {
                format!("the file `{path}` exists and its text matches `{pattern}`")
            }
            CheckKind::Untouched { paths } => {
                format!("nothing is changed, added or deleted under `{}`", paths.join("`, `"))
            }
            CheckKind::Committed => {
                "all work is committed with git, in at least one new commit; nothing is left modified or untracked"
                    .to_owned()
            }
            CheckKind::Program { argv } => format!("the program `{}` accepts the work", argv.join(" ")),
            CheckKind::Judge { rubric, agent } => {
                let who = agent.as_ref().map(|agent| format!(" `{agent}`")).unwrap_or_default();
                let rubric: Vec<&str> = rubric.split_whitespace().collect();
                format!("the judge{who} accepts the work by this rubric: {}", rubric.join(" "))
            }
        }
    }
}

/// Where the work happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceSpec {
    /// The repository the goal belongs to: its top directory, or the folder that is in none.
    pub repository: String,
    /// Whether the agent has a directory of its own.
    #[serde(default)]
    pub mode: WorkspaceMode,
    /// The commit the work starts from.
    pub base: Commit,
    /// Commands that make a fresh checkout ready.
    pub setup: Vec<String>,
    /// Ignored files that a checkout needs.
    pub copy: Vec<String>,
    /// Globs of tracked files that setup may change.
    #[serde(default)]
    pub generated: Vec<String>,
    /// Variables that checks and setup get although they look secret.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Directories with build output or packages that a verdict leaves for the next one, relative to the top.
    #[serde(default)]
    pub warm: Vec<String>,
    /// How a verdict that passed with warm directories is confirmed.
    #[serde(default)]
    pub confirm: Confirm,
    /// How git reads and writes files here, as it was when the goal was created. None for goals of earlier versions: they
    /// get it before their next attempt.
    #[serde(default)]
    pub git: Option<GitSettings>,
}

/// What decides how git reads and writes files in a repository, apart from the tree itself. Frozen, so that nobody can
/// change afterwards what a candidate or a clean checkout is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSettings {
    /// Settings by their full names: line endings, file modes, symlinks, filters such as LFS, promisor remotes.
    pub config: Vec<(String, String)>,
    /// The user's ignore rules outside the tree: `core.excludesFile`, then `info/exclude`.
    pub excludes: String,
    /// The user's attributes outside the tree: `core.attributesFile`, then `info/attributes`.
    pub attributes: String,
    /// The patterns of a sparse checkout.
    pub sparse: Option<String>,
    /// The author of commits with the goal's work; Towline where git does not know who the user is.
    #[serde(default)]
    pub author: Option<Author>,
}

/// The author of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The full name.
    pub name: String,
    pub email: String,
}

/// How a verdict that passed with warm directories is confirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// All checks run again in a clean checkout.
    #[default]
    Clean,
    /// Not at all.
    Never,
}

/// Whether the agent has a directory of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMode {
    /// It has: a private clone that was made for the goal.
    #[default]
    #[serde(alias = "worktree")]
    Clone,
    /// It works in the user's own checkout, without a branch. There is nothing to merge, and the directory is never
    /// Towline's to remove.
    InPlace,
    /// It works in a folder of the user's that is in no repository. Base and candidates are in a repository that Towline
    /// stores in its state directory.
    InFolder,
}

impl WorkspaceMode {
    /// Whether the agent changes the user's own files.
    pub const fn is_in_place(self) -> bool {
        matches!(self, Self::InPlace | Self::InFolder)
    }
}

/// Where a goal came from and who sent it, so that answers can go back there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The surface: `cli`, `http`.
    pub channel: String,
    /// The conversation on that surface.
    pub thread: Option<String>,
    pub by: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::goal;

    fn check(kind: CheckKind) -> Check {
        Check::new("a", kind, Duration::from_secs(1800))
    }

    fn every_kind() -> Vec<CheckKind> {
        let text = |text: &str| text.to_owned();
        vec![
            CheckKind::Command { run: text("make test"), stdout: None },
            CheckKind::Command { run: text("make test"), stdout: Some(text("^ok$")) },
            CheckKind::File { path: text("CHANGES.md"), matches: None },
            CheckKind::File { path: text("CHANGES.md"), matches: Some(text("^## 2")) },
            CheckKind::Untouched { paths: vec![text("src/**")] },
            CheckKind::Untouched { paths: vec![text("src/**"), text("docs")] },
            CheckKind::Committed,
            CheckKind::Program { argv: vec![text("judge")] },
            CheckKind::Program { argv: vec![text("judge"), text("--strict")] },
            CheckKind::Judge { rubric: text("It fixes the cause.\nNo special case."), agent: None },
            CheckKind::Judge { rubric: text("It fixes the cause."), agent: Some(AgentName::new("claude")) },
        ]
    }

    #[test]
    fn every_kind_describes_what_must_hold() {
        let words: Vec<String> = every_kind().into_iter().map(|kind| check(kind).describe()).collect();
        let expected = [
            "`make test`",
            "`make test`, with a line on standard output that matches `^ok$`",
            "the file `CHANGES.md` exists",
            "the file `CHANGES.md` exists and its text matches `^## 2`",
            "nothing is changed, added or deleted under `src/**`",
            "nothing is changed, added or deleted under `src/**`, `docs`",
            "all work is committed with git, in at least one new commit; nothing is left modified or untracked",
            "the program `judge` accepts the work",
            "the program `judge --strict` accepts the work",
            "the judge accepts the work by this rubric: It fixes the cause. No special case.",
            "the judge `claude` accepts the work by this rubric: It fixes the cause.",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_probe_is_described_and_who_does_not_see_a_check() {
        let command = CheckKind::Command { run: "make test".into(), stdout: None };
        let probed = Check { probe: Some(Probe::Revert), ..check(command.clone()) };
        assert_eq!(probed.describe(), "`make test`, and it fails without the change");
        let hidden = Check { hidden: Visibility::Hidden, ..check(command) };
        assert_eq!(hidden.describe(), "`make test`, hidden from agents");
        assert_eq!(hidden.describe_to_agents(), "hidden");
    }

    #[test]
    fn every_kind_survives_its_stored_form_and_gives_the_list_another_hash() {
        let mut hashes = std::collections::BTreeSet::new();
        for kind in every_kind() {
            let goal = Goal { checks: vec![check(kind)], ..goal() };
            let stored = serde_json::to_string(&goal).unwrap();
            assert_eq!(serde_json::from_str::<Goal>(&stored).unwrap(), goal);
            hashes.insert(goal.checks_hash());
        }
        assert_eq!(hashes.len(), every_kind().len());
    }

    #[test]
    fn a_goal_stored_by_an_earlier_version_reads_as_one_with_a_clone() {
        let goal = goal();
        let mut stored = serde_json::to_value(&goal).unwrap();
        stored.as_object_mut().unwrap().remove("agent_settings").unwrap();
        stored.as_object_mut().unwrap().remove("unprotect").unwrap();
        for field in ["mode", "generated", "pass_env", "warm", "confirm", "git"] {
            stored["workspace"].as_object_mut().unwrap().remove(field).unwrap();
        }
        assert_eq!(serde_json::from_value::<Goal>(stored.clone()).unwrap(), goal);
        stored["workspace"]["mode"] = "worktree".into();
        assert_eq!(serde_json::from_value::<Goal>(stored).unwrap(), goal);
        let stored = serde_json::json!({"path": "/w", "branch": "towline/x", "base": "b"});
        let binding: crate::WorkspaceBinding = serde_json::from_value(stored).unwrap();
        assert_eq!(binding.branch.as_deref(), Some("towline/x"));
        let modes = [WorkspaceMode::Clone, WorkspaceMode::InPlace, WorkspaceMode::InFolder];
        let stored = modes.map(|mode| serde_json::to_value(mode).unwrap());
        assert_eq!(stored, ["clone", "in_place", "in_folder"]);
        assert_eq!(modes.map(WorkspaceMode::is_in_place), [false, true, true]);
    }

    #[test]
    fn a_command_check_stored_before_there_were_other_kinds_still_reads_and_hashes_the_same() {
        let stored = r#"[{"name":"a","kind":{"kind":"command","run":"make test","stdout":null},"timeout":{"secs":1800,"nanos":0}}]"#;
        let checks: Vec<Check> = serde_json::from_str(stored).unwrap();
        assert_eq!(checks, [check(CheckKind::Command { run: "make test".into(), stdout: None })]);
        let hash = crate::hexadecimal(&Sha256::digest(stored));
        assert_eq!(Goal { checks, ..goal() }.checks_hash(), hash);
    }
}
