//! The kinds of agents: a module and a line for each. All that a kind does and refuses is in its [`Agent`].

mod acp;
mod claude;
mod codex;
mod command;
#[cfg(test)]
mod ends;
mod gemini;
mod script;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::acp::Acp;
use crate::protocol::Agent;

macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident $name:literal => $agent:expr,)+) => {
        /// The kinds of agents this version can drive.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            $($(#[$about])* $kind,)+
        }

        impl Kind {
            /// The names used in the configuration.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];
            /// All kinds, in the order of `NAMES`.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$kind),+];

            /// The name used in the configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }

        /// The agent of this kind.
        pub fn agent(kind: Kind) -> &'static dyn Agent {
            match kind {
                $(Kind::$kind => &$agent,)+
            }
        }
    };
}

kinds! {
    Claude "claude" => claude::Claude,
    /// Codex, by its app server.
    Codex "codex" => codex::Codex,
    /// Any agent that speaks the Agent Client Protocol.
    Acp "acp" => Acp::Any,
    /// The agent inside the binary that uses model APIs.
    Builtin "builtin" => Acp::Builtin,
    /// Gemini CLI with its JSON stream.
    Gemini "gemini" => gemini::Gemini,
    /// Any program that takes a prompt, prints text and exits.
    Command "command" => command::Command,
    /// The scripted agent inside the binary.
    Script "script" => script::Script,
}

impl FromStr for Kind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(())
    }
}
