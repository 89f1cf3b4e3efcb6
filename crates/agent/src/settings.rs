//! An agent's settings, `[agents.NAME]`, parsed and validated.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use towline_core::{Price, SessionLimits, Timeouts};

use crate::api_settings::ApiSettings;
use crate::environment::Environment;
use crate::kinds::{Kind, agent};
use crate::mcp::{self, McpServer};
use crate::protocol::{Restriction, WindowSize};

/// What happens when the agent wants to use a tool that no rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// It may do what the user may.
    Bypass,
    /// A person is asked.
    Ask,
    /// Only what `allow` names.
    #[default]
    Deny,
    /// It may read, and edit files of its workspace, and run no commands.
    Edits,
    /// It may read.
    ReadOnly,
}

impl Permission {
    /// The names used in the configuration.
    pub const NAMES: [&'static str; 5] = ["bypass", "ask", "deny", "edits", "read-only"];

    /// The name used in the configuration.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether the agent's kind has to make sure that it runs no commands.
    pub(crate) const fn forbids_commands(self) -> bool {
        matches!(self, Self::Edits | Self::ReadOnly)
    }
}

impl FromStr for Permission {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let all = [Self::Bypass, Self::Ask, Self::Deny, Self::Edits, Self::ReadOnly];
        all.into_iter().find(|permission| permission.name() == name).ok_or(())
    }
}

/// An agent's settings. Serialised settings never contain the values of its environment, because they may be secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSettings {
    pub kind: Kind,
    /// Program and first arguments.
    pub command: Vec<String>,
    pub model: Option<String>,
    /// What it may do beyond the lists.
    pub permission: Permission,
    /// Tools it may use: `Edit`, `Bash(git *)`.
    pub allow: Vec<String>,
    /// Tools it may not use; stronger than `allow`.
    pub deny: Vec<String>,
    /// Added to its system prompt.
    pub system_append: Option<String>,
    /// Further directories it may read.
    pub dirs: Vec<String>,
    /// Its own limit of turns.
    pub max_turns: Option<u32>,
    /// MCP servers it is given.
    pub mcp: BTreeMap<String, McpServer>,
    /// The path of a file with further ones.
    #[serde(default)]
    pub mcp_file: Option<String>,
    /// Further arguments, after all of ours.
    pub args: Vec<String>,
    /// Variables set for it.
    #[serde(skip)]
    pub env: Environment,
    /// Variables passed on to it, by name.
    pub pass_env: Vec<String>,
    /// Whose quota it uses: agents of one account are limited together.
    pub account: Option<String>,
    /// How long its conversations are resumed.
    pub sessions: SessionLimits,
    /// How long things may take.
    #[serde(rename = "clocks")]
    pub timeouts: Timeouts,
    /// The time between asking it to end and killing it.
    pub stop_grace: Duration,
    /// Settings of the kind [`Kind::Command`] alone.
    pub cli: CliSettings,
    /// Settings of the kind [`Kind::Builtin`] alone.
    pub api: ApiSettings,
    /// Prices by model, which override the built-in table.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
}

impl AgentSettings {
    /// The settings with which it judges work: it may read, and nothing else. The error is why it cannot be held to that.
    pub fn as_judge(&self) -> Result<Self, &'static str> {
        let kind = agent(self.kind);
        let mut settings = Self {
            allow: Vec::new(),
            mcp: BTreeMap::new(),
            mcp_file: None,
            dirs: Vec::new(),
            system_append: None,
            ..self.clone()
        };
        // What follows its script can be held to nothing, and needs not.
        if kind.restriction() != Restriction::NotNeeded {
            if kind.refuses_permission(Permission::ReadOnly).is_some() {
                return Err("agents of its kind cannot be restricted to reading; name another agent");
            }
            settings.permission = Permission::ReadOnly;
        }
        Ok(settings)
    }

    /// The variable that holds the key of its model API.
    pub fn key_variable(&self) -> Option<&str> {
        (self.kind == Kind::Builtin).then(|| self.api.key_variable())
    }

    /// `--model` with the goal's model, or else with its own.
    pub(crate) fn model_option(&self, goals_model: Option<&str>) -> Vec<String> {
        let model = goals_model.or(self.model.as_deref());
        model.into_iter().flat_map(|model| ["--model".to_owned(), model.to_owned()]).collect()
    }

    /// Whether it must ask before it uses tools: because a person decides, or because something is forbidden.
    pub fn must_ask(&self) -> bool {
        self.permission != Permission::Bypass || !self.deny.is_empty()
    }

    /// A value of an MCP server with what its variables hold.
    pub(crate) fn filled(&self, value: &str, inherited: &BTreeMap<String, String>) -> String {
        mcp::filled(value, |name| self.env.get(name).or_else(|| inherited.get(name)))
    }

    /// The first variable that an MCP server names and that is not set, with the server.
    pub fn missing_variable(&self, inherited: &BTreeMap<String, String>) -> Option<(&str, &str)> {
        let is_set = |name: &str| self.env.contains_key(name) || inherited.contains_key(name);
        self.mcp.iter().find_map(|(server, given)| {
            given.variables().into_iter().find(|name| !is_set(name)).map(|name| (server.as_str(), name))
        })
    }

    /// Whether `allow` has a rule for this tool.
    pub(crate) fn allows_some(&self, tool: &str) -> bool {
        self.allow.iter().any(|rule| rule.split('(').next() == Some(tool))
    }
}

/// How to drive a plain program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CliSettings {
    pub prompt: PromptBy,
    /// The arguments that make it resume a conversation; empty if it cannot.
    pub resume: Vec<String>,
    /// A regular expression whose group is its own id of the conversation.
    pub session_pattern: Option<String>,
    /// A regular expression whose group is the cost of a piece of the work, in dollars.
    pub cost_pattern: Option<String>,
    /// A regular expression that matches when the quota is used up.
    pub limit_pattern: Option<String>,
    /// The size of its terminal; `None` if it has no terminal.
    pub terminal: Option<WindowSize>,
}

/// How a program gets its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptBy {
    /// On its standard input.
    #[default]
    Stdin,
    /// In a file that only its owner can read, whose path replaces [`Self::FILE_WORD`].
    File,
    /// In its arguments, visible to everybody, in place of [`Self::ARGUMENT_WORD`].
    Argument,
}

impl PromptBy {
    /// The placeholder for the path of the prompt's file in a command.
    pub const FILE_WORD: &str = "{prompt_file}";
    /// The placeholder for the prompt in a command.
    pub const ARGUMENT_WORD: &str = "{prompt}";
    /// The placeholder for the id of the conversation in the arguments that resume it.
    pub const SESSION_WORD: &str = "{session}";
}
