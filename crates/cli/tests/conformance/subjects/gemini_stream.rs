//! Gemini CLI by its stream of JSON.

use std::path::Path;

use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::Reply;

use super::{gemini, is_program, settings_of};
use crate::stage::Line;
use crate::subject::{Conversations, Facts, FailedTurn, Refusal, Subject, Unit, When};

const CLI: AgentCli = AgentCli::Gemini;

struct GeminiStream;

/// Gemini CLI by its stream of JSON.
pub(crate) fn gemini_stream() -> &'static dyn Subject {
    &GeminiStream
}

impl Subject for GeminiStream {
    fn name(&self) -> &'static str {
        "gemini-stream"
    }

    fn settings(&self) -> String {
        settings_of(CLI, "gemini", &[])
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

    /// It is handed no servers.
    fn ask_tool(&self) -> &'static str {
        ""
    }

    fn used_up_quota(&self) -> Reply {
        gemini().used_up_quota()
    }

    fn forget_conversations(&self) -> &'static str {
        gemini().forget_conversations()
    }

    fn facts(&self) -> Facts {
        Facts {
            conversations: Conversations::AreKept,
            failed_turn: FailedTurn::IsLost,
            tells: Unit::Tokens,
            told: When::AtItsEnd,
            refusal: Refusal::IsTold,
            // It says nothing before the model has.
            patience: 8,
        }
    }
}
