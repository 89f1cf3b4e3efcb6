//! Claude Code by its stream of JSON.

use std::path::Path;

use serde_json::{Value, json};
use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::Reply;

use super::{is_program, settings_of};
use crate::stage::Line;
use crate::subject::{Conversations, Facts, FailedTurn, Refusal, Subject, Unit, When};

const CLI: AgentCli = AgentCli::Claude;

struct Claude;

/// Claude Code by its stream of JSON.
pub(crate) fn claude() -> &'static dyn Subject {
    &Claude
}

impl Subject for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn settings(&self) -> String {
        settings_of(CLI, "claude", &[])
    }

    fn prepare(&self, home: &Path, server_url: &str, _lines: &[Line]) -> Vec<(String, String)> {
        let mut variables = CLI.prepare(home, server_url);
        // It tries a request that failed ten times again, for minutes.
        variables.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "2".to_owned()));
        variables
    }

    fn is_it(&self, command: &str) -> bool {
        is_program(CLI, command)
    }

    fn shell_call(&self, command: &str) -> Reply {
        shell_call(CLI, command)
    }

    fn ask_tool(&self) -> &'static str {
        "mcp__towline__ask"
    }

    fn question_call(&self, question: &str, options: &[&str]) -> Option<Reply> {
        let options: Vec<Value> =
            options.iter().map(|label| json!({"label": label, "description": "one of them"})).collect();
        let asked =
            json!({"question": question, "header": "Choice", "multiSelect": false, "options": options});
        Some(Reply::tool("AskUserQuestion", json!({ "questions": [asked] })))
    }

    /// It tries again for minutes unless it is told to wait for longer than that.
    fn used_up_quota(&self) -> Reply {
        Reply::rate_limited().header("retry-after", 3_600)
    }

    fn forget_conversations(&self) -> &'static str {
        "rm -r \"$HOME/.claude/projects\""
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
