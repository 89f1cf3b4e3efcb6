//! The real agent CLIs, each in a way of driving it: what they have in common is here, and the facts of each are a value.

use std::path::Path;

use serde_json::{Value, json};
use towline_testkit::agents::{AgentCli, shell_call, write_call};
use towline_testkit::model::Reply;

use crate::stage::Line;
use crate::subject::{Conversations, Facts, FailedTurn, Refusal, Subject, Unit, When, is_around};
use crate::support::Desk;

/// A CLI in one way of driving it.
struct Cli {
    cli: AgentCli,
    name: &'static str,
    kind: &'static str,
    args: &'static [&'static str],
    /// What its environment has beside what it needs to talk to the scripted model.
    environment: &'static [(&'static str, &'static str)],
    ask_tool: &'static str,
    question_call: Option<fn(&str, &[&str]) -> Reply>,
    used_up_quota: fn() -> Reply,
    forget_conversations: &'static str,
    facts: Facts,
}

/// Claude Code by its stream of JSON.
const CLAUDE: Cli = Cli {
    cli: AgentCli::Claude,
    name: "claude",
    kind: "claude",
    args: &[],
    // It tries a request that failed ten times again, for minutes.
    environment: &[("CLAUDE_CODE_MAX_RETRIES", "2")],
    ask_tool: "mcp__towline__ask",
    question_call: Some(ask_user_question),
    // It tries again for minutes unless the header asks it to wait for longer than that.
    used_up_quota: || Reply::rate_limited().header("retry-after", 3_600),
    forget_conversations: "rm -rf \"$HOME\"/../towline/homes/*/home/.claude/projects",
    facts: Facts::USUAL,
};

/// The newest Claude Code.
pub(crate) fn claude() -> &'static dyn Subject {
    &CLAUDE
}

/// A Claude Code whose totals are those of its process; newer ones report those of the session.
pub(crate) fn claude_older() -> &'static dyn Subject {
    &Cli { cli: AgentCli::OlderClaude, name: "claude-older", ..CLAUDE }
}

fn ask_user_question(question: &str, options: &[&str]) -> Reply {
    let options: Vec<Value> =
        options.iter().map(|label| json!({"label": label, "description": "one of them"})).collect();
    let asked = json!({"question": question, "header": "Choice", "multiSelect": false, "options": options});
    Reply::tool("AskUserQuestion", json!({ "questions": [asked] }))
}

/// Codex by its app server.
pub(crate) fn codex() -> &'static dyn Subject {
    &Cli {
        cli: AgentCli::Codex,
        name: "codex",
        kind: "codex",
        args: &[],
        environment: &[],
        ask_tool: "mcp__towline/ask",
        question_call: None,
        used_up_quota: Reply::rate_limited,
        forget_conversations: "rm -rf \"$HOME\"/../towline/homes/*/home/.codex/sessions",
        facts: Facts::USUAL,
    }
}

/// Gemini CLI over the Agent Client Protocol.
pub(crate) fn gemini() -> &'static dyn Subject {
    &Cli {
        cli: AgentCli::Gemini,
        name: "gemini",
        kind: "acp",
        args: &["--acp"],
        environment: &[],
        ask_tool: "mcp_towline_ask",
        question_call: None,
        used_up_quota: used_up_day_of_gemini,
        forget_conversations: FORGET_GEMINI,
        facts: Facts {
            conversations: Conversations::EndWithTheProcess,
            reports_usage: When::AtItsEnd,
            ..Facts::USUAL
        },
    }
}

/// Gemini CLI by its stream of JSON.
pub(crate) fn gemini_stream() -> &'static dyn Subject {
    &Cli {
        cli: AgentCli::Gemini,
        name: "gemini-stream",
        kind: "gemini",
        args: &[],
        environment: &[],
        // It is handed no servers.
        ask_tool: "",
        question_call: None,
        used_up_quota: used_up_day_of_gemini,
        forget_conversations: FORGET_GEMINI,
        // It prints nothing before the model answers.
        facts: Facts {
            failed_turn: FailedTurn::IsLost,
            reports_usage: When::AtItsEnd,
            patience: 8,
            ..Facts::USUAL
        },
    }
}

const FORGET_GEMINI: &str = "rm -rf \"$HOME\"/../towline/homes/*/home/.gemini/tmp";

/// It tries again for minutes, but not for the quota of a day.
fn used_up_day_of_gemini() -> Reply {
    Reply::rate_limited().code("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
}

/// opencode over the Agent Client Protocol.
pub(crate) fn opencode() -> &'static dyn Subject {
    &Cli {
        cli: AgentCli::Opencode,
        name: "opencode",
        kind: "acp",
        args: &["acp"],
        environment: &[],
        ask_tool: "towline_ask",
        question_call: None,
        // It tries again a few times, and waits as long as the header asks in between.
        used_up_quota: || Reply::rate_limited().header("retry-after", 1),
        forget_conversations: "rm -rf \"$HOME\"/../towline/homes/*/own/*data*opencode",
        facts: Facts {
            // The tokens of a turn's last step alone.
            reports_usage_in: Unit::Dollars,
            reports_usage: When::AtItsEnd,
            refusal: Refusal::EndsTheTurn,
            // It is slow to begin, and prints nothing meanwhile.
            patience: 15,
            ..Facts::USUAL
        },
    }
}

impl Subject for Cli {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self) -> String {
        let program = self.cli.program().display().to_string();
        let command: Vec<&str> = [program.as_str()].into_iter().chain(self.args.iter().copied()).collect();
        format!("kind = {:?}\ncommand = {command:?}\n", self.kind)
    }

    fn prepare(&self, home: &Path, server_url: &str, _lines: &[Line]) -> Vec<(String, String)> {
        let further = self.environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.cli.prepare(home, server_url).into_iter().chain(further).collect()
    }

    /// Not the supervisor and the sandbox above it.
    fn is_it(&self, command: &str) -> bool {
        command.contains(&*self.cli.program().to_string_lossy()) && !is_around(command)
    }

    fn shell_call(&self, command: &str) -> Reply {
        shell_call(self.cli, command)
    }

    fn write_call(&self, path: &Path, content: &str) -> Reply {
        write_call(self.cli, path, content)
    }

    fn ask_tool(&self) -> &'static str {
        self.ask_tool
    }

    fn question_call(&self, question: &str, options: &[&str]) -> Option<Reply> {
        self.question_call.map(|call| call(question, options))
    }

    fn used_up_quota(&self) -> Reply {
        (self.used_up_quota)()
    }

    fn wait_until_stored(&self, desk: &Desk, text: &str) {
        if matches!(self.cli, AgentCli::Claude | AgentCli::OlderClaude) {
            desk.wait_until_claude_stored(text);
        }
    }

    fn forget_conversations(&self) -> &'static str {
        self.forget_conversations
    }

    fn facts(&self) -> Facts {
        self.facts
    }
}
