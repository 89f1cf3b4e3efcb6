//! What an agent can do, for people who choose between agents: nothing here changes how one is driven.

use crate::protocol::Resuming;
use crate::settings::{AgentSettings, Permission};

/// What an agent can do with these settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// A later attempt goes on with the conversation of an earlier one.
    pub resume: Ability,
    /// It hears the operator while it works.
    pub steering: Ability,
    /// What it asks to be allowed is answered, by the rules or by a person.
    pub permissions: Ability,
    /// It can ask a person by a tool of its own, and waits for the answer.
    pub questions: Ability,
    /// It can be told to summarise its conversation.
    pub compaction: Ability,
    /// It says how many tokens it used.
    pub tokens: Ability,
    /// It says what that cost.
    pub cost: Ability,
    /// MCP servers are handed to it: Towline's own, and those of its settings.
    pub mcp: Ability,
}

/// How far something can be done, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// It can; the words say how.
    Yes(&'static str),
    /// It can in part, or perhaps; the words say what it depends on.
    Partly(&'static str),
    /// It cannot; the words say what happens instead.
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

    /// How, on what it depends, or what happens instead.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Yes(words) | Self::Partly(words) | Self::No(words) => words,
        }
    }
}

impl Abilities {
    /// All of them with their names, in the order in which people read them.
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

    /// Those of an agent that takes a prompt, works and ends, and of which nothing else is known.
    pub const fn least(resuming: Resuming) -> Self {
        Self {
            resume: resume(resuming),
            steering: Ability::No("it hears what you tell it with its next prompt"),
            permissions: Ability::No("it asks for none: it may do what its own settings let it do"),
            questions: Ability::No("it asks by its last message or by the question file"),
            compaction: Ability::No(
                "a conversation that is full is followed by a new one that is told everything",
            ),
            tokens: Ability::No("the limits `tokens` and `turns` see only what it reports"),
            cost: Ability::No(NO_COST),
            mcp: Ability::No("none are handed to it, Towline's own tools neither"),
        }
    }
}

/// An agent that reports tokens and no cost.
pub(crate) const ESTIMATED_COST: &str =
    "estimated by the prices of its model; where none is known, a limit in dollars does not stop it";

/// An agent that does not say what it cost.
pub(crate) const NO_COST: &str = "a limit in dollars does not stop it: limit `tokens`, `turns` or `wall`";

/// Whether conversations are gone on with.
pub(crate) const fn resume(resuming: Resuming) -> Ability {
    match resuming {
        Resuming::Possible => Ability::Yes("each attempt goes on with the conversation of the one before"),
        Resuming::Never => Ability::No("each attempt is a new conversation, which is told everything again"),
    }
}

/// Of an agent that asks whenever Towline wants it to.
pub(crate) const fn permissions(settings: &AgentSettings) -> Ability {
    match settings.permission {
        Permission::Bypass if settings.deny.is_empty() => {
            Ability::Yes("under `bypass` it asks for none; under `ask` and `deny` it is answered")
        }
        Permission::Bypass => Ability::Yes("`deny` decides what it may not; all else it may"),
        Permission::Ask => Ability::Yes("the rules decide at once; what they leave open, you are asked"),
        Permission::Deny => Ability::Yes("the rules decide at once; what they leave open is refused"),
        Permission::Edits => {
            Ability::Yes("it reads and edits; commands are refused, unless a rule allows them")
        }
        Permission::ReadOnly => Ability::Yes("it reads; all else is refused, unless a rule allows it"),
    }
}
