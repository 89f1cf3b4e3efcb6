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

/// A call that begins, without its input.
pub(super) fn begun(line: &wire::ToolUse<'_>) -> ToolUse {
    let field = |name: &&str| line.parameters.get(*name).and_then(Value::as_str);
    let title = SUBJECTS.iter().find_map(field).unwrap_or_default();
    let name = line.tool_name.as_str();
    let paths = PATHS.iter().filter_map(field).map(str::to_owned).take(1).collect();
    ToolUse { paths, ..text::tool_use(&line.tool_id, kind(name), name, title, ToolStatus::Running) }
}

/// A call that has ended.
pub(super) fn ended(call: ToolUse, result: &wire::ToolResult<'_>) -> ToolUse {
    let status = if result.status.as_str() == "success" { ToolStatus::Ok } else { ToolStatus::Failed };
    let words = result.error.as_ref().map(|error| error.message.as_str());
    let output = result.output.as_deref().filter(|output| !output.is_empty()).or(words);
    let output = Some(text::tail(output.unwrap_or_default(), text::OUTPUT_TAIL).to_owned());
    ToolUse { status, output, ..call }
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
