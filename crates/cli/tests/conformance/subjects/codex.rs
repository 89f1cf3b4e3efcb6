//! Codex by its app server.

use std::path::Path;

use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::Reply;

use super::{is_program, settings_of};
use crate::stage::Line;
use crate::subject::{Conversations, Facts, FailedTurn, Refusal, Subject, Unit, When};

const CLI: AgentCli = AgentCli::Codex;

struct Codex;

/// Codex by its app server.
pub(crate) fn codex() -> &'static dyn Subject {
    &Codex
}

impl Subject for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn settings(&self) -> String {
        settings_of(CLI, "codex", &[])
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
        "mcp__towline/ask"
    }

    fn used_up_quota(&self) -> Reply {
        Reply::rate_limited()
    }

    fn forget_conversations(&self) -> &'static str {
        "rm -r \"$HOME/.codex/sessions\""
    }

    fn facts(&self) -> Facts {
        Facts {
            conversations: Conversations::AreKept,
            failed_turn: FailedTurn::IsKept,
            tells: Unit::Tokens,
            told: When::WithinTheTurn,
            refusal: Refusal::IsTold,
            patience: 3,
        }
    }
}
