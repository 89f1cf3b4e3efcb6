//! What a goal's programs are confined by: what the user asks for, and what they got.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether agents and checks run in a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Where the machine has one.
    Auto,
    /// Nothing starts without one.
    Required,
    #[default]
    Off,
}

impl SandboxMode {
    /// As the configuration names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::Off => "off",
        }
    }
}

/// Whether a program reaches the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Open,
    /// Nothing but a loopback interface of its own.
    Closed,
}

/// The section `[sandbox]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    pub mode: SandboxMode,
    /// The network of agents.
    pub network: Network,
    pub setup_network: Network,
    pub checks_network: Network,
    /// Further paths that programs can read.
    pub read: Vec<PathBuf>,
    /// Further paths that programs can change.
    pub write: Vec<PathBuf>,
    /// Paths that no program can see.
    pub hide: Vec<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            mode: SandboxMode::default(),
            network: Network::Open,
            setup_network: Network::Open,
            checks_network: Network::Closed,
            read: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
        }
    }
}

/// What confines a program, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Rules of the kernel about files. They do not hide processes and sockets.
    Landlock,
    /// Namespaces, made by bubblewrap.
    Bubblewrap,
}

impl Sandbox {
    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
        }
    }

    /// Whether processes of its own are above the program. Otherwise it becomes the program.
    pub const fn stays_above(self) -> bool {
        matches!(self, Self::Bubblewrap)
    }
}
