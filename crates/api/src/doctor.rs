//! `doctor --json`: whether Towline can work here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentFacts, Finding, FrameFacts};

/// All that `doctor` has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoctorReport {
    /// Whether nothing has to be fixed.
    pub ok: bool,
    pub towline: String,
    /// What is worth a person's time.
    pub findings: Vec<Finding>,
    /// Agents that are in use, configured or installed.
    pub agents: Vec<AgentFacts>,
    /// Frames that were not understood, by agent.
    pub frames_not_understood: Vec<FrameFacts>,
    /// Git and the repository.
    pub git: GitFacts,
    /// The state directory.
    pub store: StoreFacts,
    /// The configuration and where each setting comes from.
    pub configuration: ConfigurationFacts,
    /// How processes are supervised.
    pub processes: ProcessesFacts,
    /// What confines agents and checks.
    pub sandbox: SandboxFacts,
}

/// Git, and the repository that the current directory is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitFacts {
    /// The file of the program.
    pub path: Option<String>,
    /// The version that it reports.
    pub version: Option<String>,
    /// The top of the working tree that the current directory is in.
    pub repository: Option<String>,
    /// The commit that is checked out.
    pub head: Option<String>,
}

/// The state directory and what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StoreFacts {
    /// The state directory.
    pub path: Option<String>,
    /// Whether anything is stored yet.
    pub exists: bool,
    /// The size of the database.
    pub bytes: u64,
    /// Room on the disk that the state directory is or would be on.
    pub free_bytes: Option<u64>,
    /// The number of goals in each phase.
    pub goals: BTreeMap<String, usize>,
    /// Goals that could continue and that no engine runs.
    pub left: Vec<LeftGoal>,
    /// Questions that are still open.
    pub questions: Vec<OpenQuestion>,
    /// Ids of goals that cannot be read.
    pub unreadable: Vec<String>,
    /// Checkouts with packages and build output, left for the next verdict of their goals.
    pub checkouts: CheckoutFacts,
    /// Workspaces of all goals.
    pub workspaces: CheckoutFacts,
}

/// The size of some checkouts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckoutFacts {
    /// How many goals have one.
    pub goals: usize,
    /// The size of all.
    pub bytes: u64,
}

/// A goal that no engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftGoal {
    /// The goal's short id.
    pub goal: String,
    /// The goal's title.
    pub title: String,
    /// The phase that it is in.
    pub phase: String,
}

/// A question that is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenQuestion {
    /// The goal's short id.
    pub goal: String,
    /// The number of the question within its goal.
    pub question: u32,
    /// The question in one line.
    pub text: String,
}

/// The state of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigurationFacts {
    /// The layers, the weakest first.
    pub layers: Vec<LayerFacts>,
    /// Every setting in force.
    pub settings: Vec<SettingFacts>,
    /// Settings of the repository's file that have no effect before `towline trust`.
    #[serde(default)]
    pub untrusted: Vec<SettingFacts>,
    /// Settings without effect.
    pub warnings: Vec<String>,
    pub errors: Vec<ProblemFacts>,
}

/// A layer of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LayerFacts {
    /// Its name, such as `user`.
    pub layer: String,
    pub path: Option<String>,
    /// `read`, `absent` or `unreadable`.
    pub state: String,
    /// How many settings in force are its.
    pub settings: usize,
}

/// A setting, in force unless it is listed as not trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingFacts {
    /// The dotted key.
    pub key: String,
    /// The value as TOML; null where it may be a secret.
    pub value: Option<String>,
    /// The layer that it comes from.
    pub layer: String,
    /// The layer's file.
    pub path: Option<String>,
}

/// A mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProblemFacts {
    /// What is wrong.
    pub what: String,
    /// The file and the line.
    pub place: String,
    /// What to do about it.
    pub fix: String,
}

/// How processes are supervised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessesFacts {
    /// `whole_tree` or `process_group`.
    pub supervision: String,
    /// Whether the processes below a supervisor can be seen.
    pub visible: bool,
}

/// The sandbox of the machine, tried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SandboxFacts {
    /// `mode` in `[sandbox]`: `auto`, `required` or `off`.
    pub mode: String,
    /// The level of trust that goals reach with it here.
    pub level: u8,
    /// The sandbox that works: `bubblewrap` or `landlock`.
    pub works: Option<String>,
    /// Why bubblewrap does not work; null if it does.
    pub bubblewrap: Option<String>,
    /// Why Landlock does not work; null if it does or is not needed.
    pub landlock: Option<String>,
    /// Whether programs can change the caches of your tools for themselves alone.
    pub layers_caches: bool,
    /// Why this program cannot be started in the sandbox; null if it can, or there is none.
    pub without_towline: Option<String>,
    /// What programs can do in spite of it, on this kernel.
    pub not_enforced: Vec<String>,
}
