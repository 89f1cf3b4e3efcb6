//! Gemini CLI over the Agent Client Protocol.

use std::path::Path;

use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::Reply;

use super::{is_program, settings_of};
use crate::stage::Line;
use crate::subject::{Conversations, Facts, FailedTurn, Refusal, Subject, Unit, When};

const CLI: AgentCli = AgentCli::Gemini;

struct Gemini;

/// Gemini CLI over the Agent Client Protocol.
pub(crate) fn gemini() -> &'static dyn Subject {
    &Gemini
}

impl Subject for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn settings(&self) -> String {
        settings_of(CLI, "acp", &["--acp"])
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
        "mcp_towline_ask"
    }

    /// It tries again for minutes, but not for the quota of a day.
    fn used_up_quota(&self) -> Reply {
        Reply::rate_limited().code("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
    }

    fn forget_conversations(&self) -> &'static str {
        "rm -rf \"$HOME/.gemini/tmp\""
    }

    fn facts(&self) -> Facts {
        Facts {
            conversations: Conversations::EndWithTheProcess,
            failed_turn: FailedTurn::IsKept,
            tells: Unit::Tokens,
            told: When::AtItsEnd,
            refusal: Refusal::IsTold,
            patience: 3,
        }
    }
}
