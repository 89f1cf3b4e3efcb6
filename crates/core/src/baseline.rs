//! The result of the checks on the base, before any work.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Check, CheckResult};

/// Whether the checks run on the base, and what follows when they pass there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineMode {
    /// They run beside the agent, and a notice reports that they pass.
    #[default]
    Auto,
    /// They run before the agent starts, and must fail.
    Red,
    /// They do not run.
    Off,
}

impl BaselineMode {
    /// Every mode, by the names that people write.
    pub const NAMES: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("red", Self::Red), ("off", Self::Off)];

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find_map(|(known, mode)| (known == name).then_some(mode))
    }

    /// Reads a mode, or what earlier versions stored: whether the checks must fail on the base.
    pub(crate) fn or_flag<'de, D: Deserializer<'de>>(stored: D) -> Result<Self, D::Error> {
        let stored = serde_json::Value::deserialize(stored)?;
        match stored {
            serde_json::Value::Bool(true) => Ok(Self::Red),
            serde_json::Value::Bool(false) => Ok(Self::Auto),
            mode => serde_json::from_value(mode).map_err(serde::de::Error::custom),
        }
    }
}

/// What is known of the checks on the base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "baseline", rename_all = "snake_case")]
pub enum Baseline {
    /// Nothing, and nobody is going to find out.
    #[default]
    Unknown,
    /// Nothing yet: they are to run before the next attempt.
    Pending,
    Running {
        /// Counts from 1: checks that were stopped can run again.
        round: u32,
        /// When they began.
        since: Timestamp,
        /// When the agent starts beside them; none when it must not.
        until: Option<Timestamp>,
    },
    /// They ran to their end.
    Known {
        /// One result per check, in the goal's order.
        checks: Vec<BaselineCheck>,
    },
}

impl Baseline {
    /// Whether the checks pass on the base; none when that is not known.
    pub fn met(&self) -> Option<bool> {
        match self {
            Self::Known { checks } => Some(BaselineCheck::all_met(checks)),
            Self::Unknown | Self::Pending | Self::Running { .. } => None,
        }
    }

    /// What is known of each check.
    pub fn checks(&self) -> &[BaselineCheck] {
        match self {
            Self::Known { checks } => checks,
            Self::Unknown | Self::Pending | Self::Running { .. } => &[],
        }
    }

    /// Whether they run now.
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

/// How one check went on the base, in short: what it printed is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineCheck {
    /// The check's name.
    pub name: String,
    /// Whether it holds.
    pub met: bool,
    /// The command's exit code, when it exited.
    pub exit_code: Option<i32>,
    /// How many tests ran, where a test runner reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
}

impl BaselineCheck {
    /// Whether there is a check, and none failed.
    pub fn all_met(checks: &[Self]) -> bool {
        !checks.is_empty() && checks.iter().all(|check| check.met)
    }
}

impl From<&CheckResult> for BaselineCheck {
    fn from(result: &CheckResult) -> Self {
        let CheckResult { name, met, exit_code, tests, .. } = result;
        Self { name: name.clone(), met: *met, exit_code: *exit_code, tests: *tests }
    }
}

/// A program that a check names and that is not on PATH: no work in the repository makes such a check pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingProgram {
    /// The check's name.
    pub check: String,
    /// The program, as the check names it.
    pub program: String,
}

impl std::fmt::Display for MissingProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { check, program } = self;
        write!(f, "the check `{check}` runs `{program}`, which is not on PATH")
    }
}

/// Checks that the operator put in the place of those that the goal was created with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedChecks {
    /// The checks in force.
    pub checks: Vec<Check>,
    /// When they were put there: earlier verdicts speak of other checks.
    pub since: Timestamp,
}
