//! Tool calls, for people.
//!
//! A call begins with the model's request for it. Its result shows whether the tool worked, but not a command's exit
//! code.

use serde_json::Value;
use towline_core::{AgentEvent, ToolKind, ToolStatus, ToolUse};

use super::wire;
use crate::text;

/// The fields that describe a call best, in this order.
const SUBJECTS: [&str; 8] =
    ["command", "file_path", "dir_path", "absolute_path", "path", "pattern", "query", "url"];

const PATHS: [&str; 3] = ["file_path", "absolute_path", "path"];

/// A running call.
#[derive(Debug, Clone)]
pub(super) struct GeminiCall {
    id: String,
    name: String,
    title: String,
    kind: ToolKind,
    paths: Vec<String>,
}

impl GeminiCall {
    pub(super) fn new(line: &wire::ToolUse<'_>) -> Self {
        let field = |name: &&str| line.parameters.get(*name).and_then(Value::as_str);
        let subject = SUBJECTS.iter().find_map(field).filter(|subject| !subject.trim().is_empty());
        Self {
            id: line.tool_id.as_str().to_owned(),
            name: line.tool_name.as_str().to_owned(),
            title: subject.map_or_else(|| line.tool_name.as_str().to_owned(), text::one_line),
            kind: kind(&line.tool_name),
            paths: PATHS.iter().filter_map(field).map(str::to_owned).take(1).collect(),
        }
    }

    pub(super) fn is(&self, id: &str) -> bool {
        self.id == id
    }

    pub(super) fn begun(&self, input: Value) -> AgentEvent {
        let input = (!input.is_null()).then(|| text::clipped(input));
        AgentEvent::Tool(ToolUse { input, ..self.clone().event(ToolStatus::Running) })
    }

    pub(super) fn ended(self, result: &wire::ToolResult<'_>) -> AgentEvent {
        let status = if result.status.as_str() == "success" { ToolStatus::Ok } else { ToolStatus::Failed };
        let words = result.error.as_ref().map(|error| error.message.as_str());
        let output = result.output.as_deref().filter(|output| !output.is_empty()).or(words);
        let output = Some(text::tail(output.unwrap_or_default(), text::OUTPUT_TAIL).to_owned());
        AgentEvent::Tool(ToolUse { output, ..self.event(status) })
    }

    /// The answer with this call broke off and was requested again: the call is never made.
    pub(super) fn dropped(self) -> AgentEvent {
        AgentEvent::Tool(self.event(ToolStatus::Cancelled))
    }

    fn event(self, status: ToolStatus) -> ToolUse {
        let Self { id, name, title, kind: tool, paths } = self;
        ToolUse { id, tool, name, title, status, input: None, output: None, exit_code: None, paths }
    }
}

/// The agent's to-do list, when this call writes it.
pub(super) fn plan(line: &wire::ToolUse<'_>) -> Option<AgentEvent> {
    (line.tool_name.as_str() == "write_todos").then(|| text::todos(&line.parameters)).flatten()
}

fn kind(name: &str) -> ToolKind {
    match name {
        "read_file" | "read_many_files" | "list_directory" | "read_background_output" => ToolKind::Read,
        "write_file" | "replace" => ToolKind::Edit,
        "glob" | "grep_search" | "search_file_content" => ToolKind::Search,
        "run_shell_command" => ToolKind::Execute,
        "web_fetch" | "google_web_search" => ToolKind::Fetch,
        "invoke_agent" => ToolKind::Subagent,
        _ if name.starts_with("mcp_") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}
