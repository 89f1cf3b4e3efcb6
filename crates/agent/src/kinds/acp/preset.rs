//! What is known about programs beyond the protocol, by the program's name. Any other program gets the protocol
//! alone.

use std::path::Path;
use std::time::Duration;

use towline_core::PriceList;

use super::builtin;
use crate::abilities::{self, Abilities, Ability};
use crate::environment::Environment;
use crate::kinds::Kind;
use crate::protocol::{EXIT_PATIENCE, Resuming};
use crate::settings::AgentSettings;
use crate::sign_in::{SignIn, SignInClue};
use crate::version::TestedVersions;

/// A known program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Preset {
    Gemini,
    Opencode,
    Builtin,
    /// Any other program.
    #[default]
    Plain,
}

/// The agent's own permission mode for the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    /// The agent's id of the mode.
    pub(super) id: &'static str,
    /// Whether the settings can hold without it.
    pub(super) need: Need,
}

/// Whether something is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Wanted,
    Required,
}

impl Preset {
    /// Chosen by the kind, or by the first word of the command.
    pub(super) fn of(settings: &AgentSettings) -> Self {
        match settings.kind {
            Kind::Builtin => return Self::Builtin,
            Kind::Gemini => return Self::Gemini,
            _ => {}
        }
        let program = settings.command.first().and_then(|program| Path::new(program).file_stem());
        match program.and_then(|name| name.to_str()) {
            Some("gemini") => Self::Gemini,
            Some("opencode") => Self::Opencode,
            _ => Self::Plain,
        }
    }

    /// Whether its conversations outlive the process. Gemini CLI announces `session/load`, but does not store ACP
    /// conversations under the session's id, so there is nothing to load.
    pub(super) const fn resuming(self) -> Resuming {
        match self {
            Self::Gemini => Resuming::Never,
            Self::Opencode | Self::Builtin | Self::Plain => Resuming::Possible,
        }
    }

    /// Its abilities. The protocol leaves most to the agent, so little is certain for an unknown program.
    pub(super) fn abilities(self, settings: &AgentSettings) -> Abilities {
        let any = Abilities {
            resume: Ability::Partly("if it offers `session/resume` or `session/load`"),
            steering: Ability::Partly("it gets your messages after its turn, in the same process"),
            permissions: Ability::Partly("its requests are answered, but it may not send any"),
            questions: Ability::Partly("if it sends a form of the protocol, which waits for your answer"),
            compaction: Ability::Partly("if it has a command `compact`"),
            tokens: Ability::Partly("if it reports them with the answer to a prompt"),
            cost: Ability::Partly("if it reports the cost; otherwise a limit in dollars does not stop it"),
            mcp: Ability::Yes("with the session"),
        };
        match self {
            Self::Gemini => Abilities {
                resume: abilities::resume(self.resuming()),
                permissions: abilities::permissions(settings),
                compaction: Ability::No("there is never an earlier conversation to summarise"),
                tokens: Ability::Yes("per model, at the end of the turn"),
                cost: Ability::Partly(abilities::ESTIMATED_COST),
                ..any
            },
            Self::Opencode => Abilities {
                resume: abilities::resume(self.resuming()),
                permissions: abilities::permissions(settings),
                compaction: Ability::Yes("with `/compact`, before the prompt"),
                tokens: Ability::Partly("only those of a turn's last step: limit `usd` instead"),
                cost: Ability::Yes("in dollars, by its own count"),
                ..any
            },
            Self::Builtin => Abilities {
                resume: abilities::resume(self.resuming()),
                permissions: abilities::permissions(settings),
                questions: Ability::No("it asks with Towline's tool `ask`"),
                compaction: Ability::Yes(
                    "with `/compact`, and automatically when its context is nearly full",
                ),
                tokens: Ability::Yes("per answer, by its provider's count"),
                cost: priced(settings),
                ..any
            },
            Self::Plain => any,
        }
    }

    /// The mode for the settings. Under bypass without a deny list the agent need not ask; with one, or with a person
    /// who decides, it must ask about every call.
    pub(super) fn mode(self, settings: &AgentSettings) -> Option<Mode> {
        match self {
            Self::Gemini if settings.must_ask() => Some(Mode { id: "default", need: Need::Required }),
            Self::Gemini => Some(Mode { id: "yolo", need: Need::Wanted }),
            Self::Builtin if settings.must_ask() => Some(Mode { id: builtin::ASKS, need: Need::Required }),
            Self::Builtin => Some(Mode { id: builtin::BYPASSES, need: Need::Required }),
            Self::Opencode | Self::Plain => None,
        }
    }

    /// What shows that the program is signed in. Nothing is known about an unknown program.
    pub(super) fn sign_in(self, settings: &AgentSettings, environment: &Environment) -> SignIn {
        let below_home =
            |path: &str| environment.get("HOME").map(|home| SignInClue::File(Path::new(home).join(path)));
        let (variables, file): (&[&'static str], _) = match self {
            Self::Gemini => (&["GEMINI_API_KEY", "GOOGLE_API_KEY"], ".gemini/oauth_creds.json"),
            Self::Opencode => (&["OPENCODE_CONFIG_CONTENT"], ".local/share/opencode/auth.json"),
            // A self-hosted server needs no key.
            Self::Builtin if settings.api.base_url.is_none() => {
                let key = settings.api.key_variable().to_owned();
                return SignIn::ShownBy(vec![SignInClue::Variable(key.into())]);
            }
            Self::Builtin | Self::Plain => return SignIn::NotNeeded,
        };
        let variables = variables.iter().map(|name| SignInClue::Variable((*name).into()));
        SignIn::ShownBy(variables.chain(below_home(file)).collect())
    }

    /// The version of the recordings and of the tests with the real program.
    pub(super) const fn tested(self) -> Option<TestedVersions> {
        match self {
            Self::Gemini => Some(TestedVersions { oldest: [0, 61, 0], newest: [0, 61, 0] }),
            Self::Opencode => Some(TestedVersions { oldest: [1, 18, 33], newest: [1, 18, 34] }),
            Self::Builtin | Self::Plain => None,
        }
    }

    /// Gemini CLI never exits by itself while an MCP server of its own runs, although it has nothing left to do.
    pub(super) const fn exit_patience(self) -> Duration {
        match self {
            Self::Gemini => Duration::from_millis(300),
            Self::Opencode | Self::Builtin | Self::Plain => EXIT_PATIENCE,
        }
    }

    /// How to get the program.
    pub(super) const fn install_hint(self) -> Option<&'static str> {
        match self {
            Self::Gemini => Some("install Gemini CLI (`npm install -g @google/gemini-cli`)"),
            Self::Opencode => Some("install opencode (`npm install -g opencode-ai`)"),
            Self::Builtin | Self::Plain => None,
        }
    }

    /// The command that signs a person in.
    pub(super) fn sign_in_hint(self, settings: &AgentSettings) -> String {
        let program = settings.command.first().map_or("", String::as_str);
        match self {
            Self::Gemini => {
                format!(
                    "run `{program}` and choose how to sign in, or set GEMINI_API_KEY and choose it there once"
                )
            }
            Self::Opencode => format!("run `{program} auth login`, or set the key of its provider"),
            Self::Builtin => format!("set {} to a valid key", settings.api.key_variable()),
            Self::Plain => format!("run `{program}` and sign in there"),
        }
    }
}

fn priced(settings: &AgentSettings) -> Ability {
    let model = settings.model.as_deref().unwrap_or_default();
    if settings.prices.contains_key(model) {
        Ability::Yes("estimated from the prices of the configuration")
    } else if PriceList::with(&settings.prices).knows(model) {
        Ability::Partly("estimated from the table of prices")
    } else {
        Ability::No("no price is set for its model: limit `tokens`, or set `[prices]`")
    }
}
