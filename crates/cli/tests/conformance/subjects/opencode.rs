//! opencode over the Agent Client Protocol.

use std::path::Path;

use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::Reply;

use super::{is_program, settings_of};
use crate::stage::Line;
use crate::subject::{Conversations, Facts, FailedTurn, Refusal, Subject, Unit, When};

const CLI: AgentCli = AgentCli::Opencode;

struct Opencode;

/// opencode over the Agent Client Protocol.
pub(crate) fn opencode() -> &'static dyn Subject {
    &Opencode
}

impl Subject for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn settings(&self) -> String {
        settings_of(CLI, "acp", &["acp"])
    }

    fn prepare(&self, home: &Path, server_url: &str, _lines: &[Line]) -> Vec<(String, String)> {
        CLI.prepare(home, server_url)
    }

    fn is_it(&self, command: &str) -> bool {
        is_program(CLI, command)
    }

    fn shell_call(&self, command: &str) -> Reply {
        shell_call(CLI, command)
    }

    fn ask_tool(&self) -> &'static str {
        "towline_ask"
    }

    /// It tries again a few times, and waits as long as it is told in between.
    fn used_up_quota(&self) -> Reply {
        Reply::rate_limited().header("retry-after", 1)
    }

    fn forget_conversations(&self) -> &'static str {
        "rm -r \"${XDG_DATA_HOME:-$HOME/.local/share}/opencode\""
    }

    fn facts(&self) -> Facts {
        Facts {
            conversations: Conversations::AreKept,
            failed_turn: FailedTurn::IsKept,
            // The tokens of a turn's last step alone.
            tells: Unit::Dollars,
            told: When::AtItsEnd,
            refusal: Refusal::EndsTheTurn,
            // It is slow to begin, and says nothing meanwhile.
            patience: 15,
        }
    }
}
