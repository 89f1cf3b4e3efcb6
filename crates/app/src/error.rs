//! Why a use case fails: facts, and hints that name what to do without writing it as a command line.

use std::path::PathBuf;

use towline_api::ErrorKind;
use towline_config::ConfigError;
use towline_core::{Axis, GoalId, Illegal, Phase};
use towline_engine::{EngineError, RemovalError};
use towline_store::StoreError;
use towline_workspace::{Unmerged, WorkKind, WorkspaceError};

/// Why a use case fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The repository or git cannot do it.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The store cannot do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot do it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The goal cannot be removed.
    #[error("goal {} was not removed: {source}", .goal.short())]
    Removal {
        goal: GoalId,
        /// What is in the way.
        source: RemovalError,
    },
    /// The repository's file sets what the user has not accepted.
    #[error("this repository's towline.toml sets {}", need_trust(keys))]
    Untrusted {
        file: PathBuf,
        /// The dotted keys of the settings.
        keys: Vec<String>,
    },
    /// The use case itself refuses.
    #[error("{message}")]
    Refused {
        /// The class of the failure.
        kind: ErrorKind,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<Hint>,
    },
}

impl Error {
    fn refused(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Refused { kind, message: message.into(), hint: None }
    }

    /// Towline or the machine is at fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Internal, message)
    }

    /// The request makes no sense; nothing was created.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Usage, message)
    }

    /// The named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::NotFound, message)
    }

    /// The checks fail.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Failed, message)
    }

    /// A person must do something first; nothing was changed.
    pub fn person(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Person, message)
    }

    /// Adds what to do about a refusal.
    #[must_use]
    pub fn hint(mut self, new: impl Into<Hint>) -> Self {
        if let Self::Refused { hint, .. } = &mut self {
            *hint = Some(new.into());
        }
        self
    }

    /// A goal in this phase that cannot be removed.
    pub fn not_removed(goal: GoalId, phase: Option<&Phase>, source: RemovalError) -> Self {
        match source {
            RemovalError::Engine(error) if !matches!(error, EngineError::Busy { .. }) => error.into(),
            RemovalError::Workspace(error) => error.into(),
            // Whether its work can be merged depends on the phase.
            source @ RemovalError::Unmerged { .. } => {
                let error = Self::Removal { goal, source };
                let hint = Some(unmerged_hint(goal, phase));
                Self::Refused { kind: error.kind(), message: error.message(), hint }
            }
            source => Self::Removal { goal, source },
        }
    }

    /// The class of the failure. A repository is the user's to mend; what is wrong with git or the disk is not their fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { kind, .. } => *kind,
            Self::Config(_) | Self::Untrusted { .. } => ErrorKind::Usage,
            Self::Workspace(
                WorkspaceError::Io { .. }
                | WorkspaceError::Locked { .. }
                | WorkspaceError::TimedOut { .. }
                | WorkspaceError::Git { .. },
            ) => ErrorKind::Internal,
            Self::Workspace(_) => ErrorKind::Usage,
            Self::Store(error) | Self::Engine(EngineError::Store(error)) => match error {
                StoreError::NotFound(_) => ErrorKind::NotFound,
                StoreError::InUse { .. } => ErrorKind::Person,
                _ => ErrorKind::Internal,
            },
            Self::Engine(
                EngineError::Busy { .. }
                | EngineError::Entered { .. }
                | EngineError::Illegal { .. }
                | EngineError::PlaceTaken { .. },
            ) => ErrorKind::Usage,
            Self::Engine(EngineError::NoAnswer { .. }) => ErrorKind::Person,
            Self::Engine(EngineError::StopUnrecorded { request: "pause", .. }) => ErrorKind::Paused,
            Self::Engine(EngineError::StopUnrecorded { .. }) => ErrorKind::Cancelled,
            Self::Engine(_) => ErrorKind::Internal,
            Self::Removal { source, .. } => match source {
                RemovalError::Engine(_) | RemovalError::Alive { .. } => ErrorKind::Usage,
                RemovalError::Files { .. } => ErrorKind::Internal,
                _ => ErrorKind::Person,
            },
        }
    }

    /// What is wrong, in a sentence.
    pub fn message(&self) -> String {
        match self {
            Self::Engine(EngineError::Illegal { goal, illegal }) => match illegal {
                Illegal::StillSpent { axis } => {
                    format!("goal {} has spent its budget `{axis}`", goal.short())
                }
                Illegal::WrongPhase { phase, event: "checks_replaced" } => {
                    format!("goal {} is {phase}: its checks cannot be replaced now", goal.short())
                }
                Illegal::WrongPhase { phase, event } => wrong_phase(*goal, phase, event),
                Illegal::Continued { by } => {
                    format!("goal {} cannot be opened again: goal {} continues it", goal.short(), by.short())
                }
                Illegal::NotAsked { .. } => self.to_string(),
            },
            Self::Removal { goal, source: RemovalError::Engine(_) | RemovalError::Alive { .. } } => {
                format!("goal {} was not removed: something works on it", goal.short())
            }
            Self::Removal { source: RemovalError::Unmerged { work }, .. } => {
                let work: Vec<String> = work.iter().map(described).collect();
                format!("{self}: {}", work.join("; "))
            }
            error => error.to_string(),
        }
    }

    /// Why a goal cannot use its configuration, with the way out where the reason alone does not name it.
    pub(crate) fn why_held(&self) -> String {
        match (self, self.way_out()) {
            (Self::Untrusted { .. }, Some(Hint::Advice(advice))) => format!("{}; {advice}", self.message()),
            _ => self.message(),
        }
    }

    /// What to do about it.
    pub fn way_out(&self) -> Option<Hint> {
        match self {
            Self::Refused { hint, .. } => hint.clone(),
            Self::Config(_) => None,
            Self::Untrusted { file, .. } => {
                Some(format!("read {}, then run `towline trust` there", file.display()).into())
            }
            Self::Workspace(WorkspaceError::TooLarge { .. }) => {
                Some([("to take it all the same", Action::AllowLarge)].into())
            }
            Self::Workspace(WorkspaceError::NotARepository { .. }) => {
                Some([("to work in the directory itself", Action::RunInPlace)].into())
            }
            Self::Workspace(_) => None,
            Self::Store(error) | Self::Engine(EngineError::Store(error)) => store_hint(error),
            Self::Engine(error) => engine_hint(error),
            Self::Removal { goal, source } => removal_hint(*goal, source),
        }
    }
}

/// These keys, and that they need the user's trust.
fn need_trust(keys: &[String]) -> String {
    /// So many are named, each with at most so many characters.
    const NAMED: usize = 4;
    const LONGEST: usize = 80;
    let mut named: Vec<String> = keys
        .iter()
        .take(NAMED)
        .map(|key| match key.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("`{}…`", &key[..end]),
            None => format!("`{key}`"),
        })
        .collect();
    let left = keys.len() - named.len();
    if left > 0 {
        named.push(format!("{left} more"));
    }
    let last = named.pop().unwrap_or_default();
    match named.len() {
        0 => format!("{last}, which needs your trust"),
        _ => format!("{} and {last}, which need your trust", named.join(", ")),
    }
}

/// Why a request makes no sense in this phase.
fn wrong_phase(goal: GoalId, phase: &str, event: &str) -> String {
    let goal = format!("goal {}", goal.short());
    let is = match phase {
        "failed" => "has failed".to_owned(),
        "escalated" => "needs a person".to_owned(),
        phase => format!("is {phase}"),
    };
    match (phase, event) {
        ("paused", "pause") | ("cancelled", "cancel") => format!("{goal} is already {phase}"),
        (_, "tell") => format!("{goal} {is}: no agent will read a message"),
        _ => format!("{goal} {is}: there is nothing to {event}"),
    }
}

fn described(Unmerged { kind, commit }: &Unmerged) -> String {
    match kind {
        WorkKind::Files => format!("files in its workspace (as commit {})", commit.short()),
        WorkKind::Branch => format!("commits on its branch (up to {})", commit.short()),
        WorkKind::Candidate => format!("the candidate {}", commit.short()),
    }
}

fn store_hint(error: &StoreError) -> Option<Hint> {
    match error {
        StoreError::InUse { pids, .. } => {
            let stop = pids.iter().map(|pid| format!("kill {pid}")).collect::<Vec<_>>().join("; ");
            let wait =
                format!("wait until its goals have ended, or pause them ({stop}) and continue them later");
            Some([(wait.as_str(), Action::Resume(None))].into())
        }
        StoreError::Unreadable { goal, .. } => Some(Hint::mend(*goal)),
        _ => None,
    }
}

fn engine_hint(error: &EngineError) -> Option<Hint> {
    Some(match error {
        EngineError::Illegal { goal, illegal: Illegal::StillSpent { axis } } => {
            Action::RaiseBudget(*goal, *axis).into()
        }
        EngineError::Illegal { goal, illegal: Illegal::WrongPhase { phase, event } } => {
            return phase_hint(*goal, phase, event);
        }
        EngineError::Illegal { illegal: Illegal::NotAsked { .. }, .. } => {
            [("see what is asked", Action::Questions)].into()
        }
        EngineError::Illegal { illegal: Illegal::Continued { by }, .. } => {
            [("see that goal", Action::Show(*by))].into()
        }
        EngineError::Busy { goal } => [("follow it", Action::Follow(*goal))].into(),
        EngineError::NoAnswer { .. } => {
            "if it is on a network drive, see whether that is connected; then try again".into()
        }
        EngineError::Entered { .. } => "leave that session first; nothing was changed".into(),
        EngineError::PlaceTaken { goal, .. } => {
            [("wait for it", Action::Follow(*goal)), ("or end it", Action::Cancel(*goal))].into()
        }
        EngineError::StateGone { .. } => {
            "the goals, logs and workspaces in it are lost; your repository is as it was. Find out what removed it (the agent \
             or one of the checks?), then start the goal again"
                .into()
        }
        EngineError::TakenOver => "its goals go on there; nothing was changed here".into(),
        EngineError::LeaseExpired { goal, .. } => {
            let wait = "its agent keeps running; when the store works again, resume the goal";
            [(wait, Action::Continue(*goal))].into()
        }
        EngineError::StopUnrecorded { goal, request: "cancel", .. } => {
            [("when the store works again, end it for good", Action::Cancel(*goal))].into()
        }
        EngineError::StopUnrecorded { goal, .. } => {
            [("when the store works again, continue it", Action::Continue(*goal))].into()
        }
        EngineError::GoalFilesGone { goal, .. } => {
            let find = "find out what removed it (the agent or one of the checks?), then resume the goal";
            [(find, Action::Continue(*goal))].into()
        }
        EngineError::DriverLost { goal } => [("resume it", Action::Continue(*goal))].into(),
        _ => return None,
    })
}

/// What to do instead of a request that makes no sense in this phase.
fn phase_hint(goal: GoalId, phase: &str, event: &str) -> Option<Hint> {
    match phase {
        "done" => Some([("see what was proven", Action::Show(goal))].into()),
        "failed" | "escalated" | "cancelled" | "unproven" => match event {
            "run" | "resume" | "tell" => Some([("reopen it", Action::Retry(goal))].into()),
            // Only a goal whose checks passed before any work is refused.
            "retry" => Some([("give a check that fails today", Action::RetryWithChecks(goal))].into()),
            _ => None,
        },
        "paused" => (event != "pause").then(|| [("continue it", Action::Resume(Some(goal)))].into()),
        _ => Some(Hint::of_unfinished(goal)),
    }
}

fn unmerged_hint(goal: GoalId, phase: Option<&Phase>) -> Hint {
    let merge = match phase {
        Some(Phase::Done) => Some(("merge it", Action::Merge(goal))),
        Some(Phase::Unproven) => Some(("merge it unproven", Action::MergeUnproven(goal))),
        _ => None,
    };
    let keep = "or remove the goal and keep the work under a private ref";
    let others = [("see the changes", Action::Diff(goal)), (keep, Action::RemoveByForce(goal))];
    merge.into_iter().chain(others).collect::<Vec<_>>().into()
}

fn removal_hint(goal: GoalId, error: &RemovalError) -> Option<Hint> {
    let force = Action::RemoveByForce(goal);
    match error {
        RemovalError::Engine(_) | RemovalError::Alive { .. } => {
            Some([("end it first", Action::Cancel(goal))].into())
        }
        RemovalError::Unfinished { .. } => Some([("remove it all the same", force)].into()),
        RemovalError::Submodules { workspace, .. } => {
            let place = workspace.display();
            let leave =
                format!("commit and push it in {place}, or remove the goal and leave the workspace there");
            Some([(leave.as_str(), force)].into())
        }
        RemovalError::NoRepository { .. } => {
            let give_up = "put the repository back, or give the goal up and leave its files where they are";
            Some([(give_up, force)].into())
        }
        _ => None,
    }
}

impl Hint {
    /// What to do about a goal that cannot be read.
    pub fn mend(goal: GoalId) -> Self {
        [("restore towline.db from a backup, or give the goal up", Action::RemoveByForce(goal))].into()
    }

    /// What to do about a goal that has not ended yet.
    pub(crate) fn of_unfinished(goal: GoalId) -> Self {
        [("follow it", Action::Follow(goal)), ("when no engine is running it", Action::Continue(goal))].into()
    }
}

/// What to do about an error or a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// A sentence without a command of Towline's.
    Advice(String),
    /// One of these, each with what it is for.
    Actions(Vec<(String, Action)>),
}

impl From<&str> for Hint {
    fn from(advice: &str) -> Self {
        Self::Advice(advice.to_owned())
    }
}

impl From<String> for Hint {
    fn from(advice: String) -> Self {
        Self::Advice(advice)
    }
}

impl From<Action> for Hint {
    fn from(action: Action) -> Self {
        Self::Actions(vec![(String::new(), action)])
    }
}

impl<const N: usize> From<[(&str, Action); N]> for Hint {
    fn from(actions: [(&str, Action); N]) -> Self {
        Self::Actions(actions.into_iter().map(|(purpose, action)| (purpose.to_owned(), action)).collect())
    }
}

impl From<Vec<(&str, Action)>> for Hint {
    fn from(actions: Vec<(&str, Action)>) -> Self {
        Self::Actions(actions.into_iter().map(|(purpose, action)| (purpose.to_owned(), action)).collect())
    }
}

/// Something that a person can have Towline do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start the server.
    Up,
    /// Queue a goal.
    Add,
    /// Stop the server.
    Down,
    /// List all goals.
    List,
    /// List open questions.
    Questions,
    /// Answer a question of a goal.
    Answer(GoalId, u32),
    /// Start a goal.
    Run,
    /// Start a goal that merges this commit.
    RunMerge(String),
    /// Continue a goal that no engine runs.
    Continue(GoalId),
    /// Resume a paused goal, or one of them.
    Resume(Option<GoalId>),
    /// Open an ended goal again.
    Retry(GoalId),
    /// Open an ended goal again with other checks.
    RetryWithChecks(GoalId),
    /// Open an ended goal again with more of this budget.
    RaiseBudget(GoalId, Axis),
    /// Send the agent a message.
    Tell(GoalId),
    /// Open an ended goal again in a new conversation.
    RetryFresh(GoalId),
    /// End a goal.
    Cancel(GoalId),
    /// Show all about a goal.
    Show(GoalId),
    /// Show a goal's changes.
    Diff(GoalId),
    /// Show a goal's log.
    Log(GoalId),
    /// Show a goal's log while it grows.
    Follow(GoalId),
    /// Show the raw output of an attempt of the goal with this short id.
    RawLog(String, u32),
    /// Put files back as they were before the goal.
    Restore(GoalId),
    /// Merge a goal's work.
    Merge(GoalId),
    /// Merge work that has no checks.
    MergeUnproven(GoalId),
    /// Merge without running the checks on the merge.
    MergeUnverified(GoalId),
    /// Print a signed proof of a goal's verdict.
    Prove(GoalId),
    /// Push a goal's work to a remote.
    Push(GoalId, String),
    /// Push work that has no checks.
    PushUnproven(GoalId),
    /// Remove a goal.
    Remove(GoalId),
    /// Remove a goal and keep its unmerged work under a private ref.
    RemoveByForce(GoalId),
    /// Start a goal in the user's own directory.
    RunInPlace,
    /// List all settings.
    ListSettings,
    /// Remove what goals have left and nothing needs.
    RemoveLeftovers,
    /// Accept what the repository's file sets.
    Trust,
    /// Write the configuration that fits the project.
    Init,
    /// Show the configuration that fits the project.
    PrintInit,
    /// Replace the project's configuration.
    ForceInit,
    /// Name a check.
    GiveCheck,
    /// Allow a snapshot of any size.
    AllowLarge,
    /// Name the branch to merge into.
    GiveBranch,
    /// Name the message of the merge.
    GiveMessage,
    /// Run git with these arguments.
    Git(String),
}
