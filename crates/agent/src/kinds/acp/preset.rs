//! Programs that are known beyond the protocol, by their names. Any other program gets the protocol alone.

use std::path::Path;

use super::builtin;
use crate::kinds::Kind;
use crate::protocol::Resuming;
use crate::settings::AgentSettings;

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
    /// Whether the settings do not hold without it.
    pub(super) is_required: bool,
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

    /// The mode for the settings. Under bypass without a deny list the agent need not ask; with one, or with a person
    /// who decides, it must ask about every call.
    pub(super) fn mode(self, settings: &AgentSettings) -> Option<Mode> {
        match self {
            Self::Gemini if settings.must_ask() => Some(Mode { id: "default", is_required: true }),
            Self::Gemini => Some(Mode { id: "yolo", is_required: false }),
            Self::Builtin if settings.must_ask() => Some(Mode { id: builtin::ASKS, is_required: true }),
            Self::Builtin => Some(Mode { id: builtin::BYPASSES, is_required: true }),
            Self::Opencode | Self::Plain => None,
        }
    }
}
