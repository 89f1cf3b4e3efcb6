//! What an agent can do, for people who choose between agents. Nothing here changes how one is driven.

use crate::protocol::Resuming;
use crate::settings::{AgentSettings, Permission};

/// The abilities of an agent with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// A later attempt resumes the conversation of an earlier one.
    pub resume: Ability,
    /// It receives messages of the operator while it works.
    pub steering: Ability,
    /// Its permission requests are answered, by the rules or by a person.
    pub permissions: Ability,
    /// It can ask a person with a tool of its own, and waits for the answer.
    pub questions: Ability,
    /// It can summarise its conversation on request.
    pub compaction: Ability,
    /// It reports how many tokens it used.
    pub tokens: Ability,
    /// It reports the cost.
    pub cost: Ability,
    /// It gets MCP servers: Towline's own, and those of its settings.
    pub mcp: Ability,
}

/// Whether an agent can do something, with an explanation for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// It can; the text explains how.
    Yes(&'static str),
    /// It can in part, or perhaps; the text explains what it depends on.
    Partly(&'static str),
    /// It cannot; the text explains what happens instead.
    No(&'static str),
}

impl Ability {
    /// `yes`, `partly` or `no`.
    pub const fn extent(self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::Partly(_) => "partly",
            Self::No(_) => "no",
        }
    }

    /// The explanation for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Yes(words) | Self::Partly(words) | Self::No(words) => words,
        }
    }
}

impl Abilities {
    /// All abilities with their names, in the order in which they are shown.
    pub const fn all(&self) -> [(&'static str, Ability); 8] {
        [
            ("resume", self.resume),
            ("steering", self.steering),
            ("permissions", self.permissions),
            ("questions", self.questions),
            ("compaction", self.compaction),
            ("tokens", self.tokens),
            ("cost", self.cost),
            ("mcp", self.mcp),
        ]
    }

    /// The abilities of an agent that takes a prompt, works and exits.
    pub const fn least(resuming: Resuming) -> Self {
        Self {
            resume: resume(resuming),
            steering: Ability::No("it gets your messages with its next prompt"),
            permissions: Ability::No("it asks for none: its own settings decide what it may do"),
            questions: Ability::No("it asks by its last message or by the question file"),
            compaction: Ability::No(
                "a full conversation is followed by a new one, which gets the whole task again",
            ),
            tokens: Ability::No("the limits `tokens` and `turns` count only what it reports"),
            cost: Ability::No(NO_COST),
            mcp: Ability::No("it gets none, not even Towline's own tools"),
        }
    }
}

/// The explanation for an agent that reports tokens but no cost.
pub(crate) const ESTIMATED_COST: &str =
    "estimated from the prices of its model; if they are unknown, a limit in dollars does not stop it";

/// The explanation for an agent that reports no cost.
pub(crate) const NO_COST: &str = "a limit in dollars does not stop it: limit `tokens`, `turns` or `wall`";

/// Whether conversations can be resumed.
pub(crate) const fn resume(resuming: Resuming) -> Ability {
    match resuming {
        Resuming::Possible => Ability::Yes("each attempt resumes the conversation of the one before"),
        Resuming::Never => Ability::No("each attempt is a new conversation, which gets the whole task again"),
    }
}

/// The permissions of an agent that asks for them whenever the settings require it.
pub(crate) const fn permissions(settings: &AgentSettings) -> Ability {
    match settings.permission {
        Permission::Bypass if settings.deny.is_empty() => {
            Ability::Yes("it asks for none under `bypass`; under `ask` and `deny` its requests are answered")
        }
        Permission::Bypass => Ability::Yes("`deny` lists what it may not do; it may do everything else"),
        Permission::Ask => Ability::Yes("the rules decide; you are asked about the rest"),
        Permission::Deny => Ability::Yes("the rules decide; the rest is refused"),
        Permission::Edits => {
            Ability::Yes("it reads and edits; commands are refused, unless a rule allows them")
        }
        Permission::ReadOnly => Ability::Yes("it reads; everything else is refused unless a rule allows it"),
    }
}
