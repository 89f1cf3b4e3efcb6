//! The pinned agent CLIs: where they are, how they are made to talk to a scripted model and to nothing else, and the
//! tool calls that each of them understands.
//!
//! `cargo xtask setup` installs them; how they are driven is the business of the agent crate.

mod environment;
mod programs;
mod tools;

pub use programs::{clients_folder, jest_folder, page_folder, pytest_folder};
pub use tools::{shell_call, write_call};

/// An agent CLI that the tests can drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentCli {
    /// Claude Code, over Anthropic Messages.
    Claude,
    /// A Claude Code whose totals are those of its process; newer ones report those of the session.
    OlderClaude,
    /// Codex, over `OpenAI` Responses.
    Codex,
    /// Gemini CLI, over Gemini.
    Gemini,
    /// opencode, over `OpenAI` chat completions.
    Opencode,
}

impl AgentCli {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Claude, Self::OlderClaude, Self::Codex, Self::Gemini, Self::Opencode];

    /// The name of its program, as its users type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude | Self::OlderClaude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// The model to name where the agent wants one named; what [`AgentCli::prepare`] sets up uses it too.
    pub fn model(self) -> &'static str {
        match self {
            Self::Claude | Self::OlderClaude => "claude-sonnet-4-5",
            Self::Codex => "scripted-model",
            // With names it does not know, it asks other models which one to take.
            Self::Gemini => "gemini-2.5-pro",
            Self::Opencode => "scripted/scripted-model",
        }
    }
}
