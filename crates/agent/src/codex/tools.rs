//! Tool calls in words for people, under the names that rules use: `Bash`, `Edit`, `Write`, `mcp__SERVER__TOOL`.

use serde_json::{Value, json};
use towline_core::{ToolKind, ToolStatus, ToolUse};

use super::shell;
use super::wire::{CollabItem, CommandItem, FileChange, Item, McpItem};
use crate::text;

/// How much of one text in a tool's input an event keeps: a change may carry a whole file.
const INPUT_TEXT: usize = 4 * 1024;

/// How a call to an MCP tool that was not permitted ends: it has no status of its own for that.
const MCP_REJECTED: &str = "user rejected MCP tool call";

/// The tool call that this item is, when it is one.
pub(super) fn tool_use(item: &Item) -> Option<ToolUse> {
    Some(match item {
        Item::CommandExecution(command) => command_use(command),
        Item::FileChange { id, status: state, changes } => file_use(id, status(state), changes),
        Item::McpToolCall(call) => mcp_use(call),
        Item::DynamicToolCall { id, tool, status: state, arguments } => ToolUse {
            input: Some(clipped(arguments)),
            ..plain(id, ToolKind::Other, tool, tool, status(state))
        },
        Item::CollabAgentToolCall(call) => collab_use(call),
        Item::WebSearch { id, query } => plain(id, ToolKind::Fetch, "WebSearch", query, ToolStatus::Running),
        Item::ImageView { id, path } => ToolUse {
            paths: vec![path.clone()],
            ..plain(id, ToolKind::Read, "ViewImage", path, ToolStatus::Running)
        },
        Item::ImageGeneration { id, status: state, saved_path } => ToolUse {
            paths: saved_path.iter().cloned().collect(),
            ..plain(id, ToolKind::Other, "ImageGeneration", "an image", status(state))
        },
        _ => return None,
    })
}

fn plain(id: &str, tool: ToolKind, name: &str, title: &str, status: ToolStatus) -> ToolUse {
    let title = if title.trim().is_empty() { name } else { title };
    ToolUse {
        id: id.to_owned(),
        tool,
        name: name.to_owned(),
        title: text::one_line(title),
        status,
        input: None,
        output: None,
        exit_code: None,
        paths: Vec::new(),
    }
}

fn status(word: &str) -> ToolStatus {
    match word {
        "completed" => ToolStatus::Ok,
        "failed" => ToolStatus::Failed,
        "declined" => ToolStatus::Denied,
        "interrupted" => ToolStatus::Cancelled,
        _ => ToolStatus::Running,
    }
}

fn command_use(command: &CommandItem) -> ToolUse {
    let script = shell::script(&command.command).unwrap_or_else(|| command.command.clone());
    let all = |kinds: &[&str]| {
        !command.command_actions.is_empty()
            && command.command_actions.iter().all(|action| kinds.contains(&action.r#type.as_str()))
    };
    let kind = if all(&["read"]) {
        ToolKind::Read
    } else if all(&["search", "listFiles"]) {
        ToolKind::Search
    } else {
        ToolKind::Execute
    };
    let read = command.command_actions.iter().filter(|action| action.r#type == "read");
    let tail = |output: &String| text::tail(output, text::OUTPUT_TAIL).to_owned();
    ToolUse {
        input: Some(json!({"command": clip(&script)})),
        output: command.aggregated_output.as_ref().map(tail),
        exit_code: command.exit_code,
        paths: read.filter_map(|action| action.path.clone()).collect(),
        ..plain(&command.id, kind, "Bash", &script, status(&command.status))
    }
}

fn file_use(id: &str, status: ToolStatus, changes: &[FileChange]) -> ToolUse {
    let kind = match changes {
        [only] if only.kind.move_path.is_some() => ToolKind::Move,
        [_, ..] if changes.iter().all(|change| change.kind.r#type == "delete") => ToolKind::Delete,
        _ => ToolKind::Edit,
    };
    let paths = changes.iter().flat_map(|change| [Some(&change.path), change.kind.move_path.as_ref()]);
    let paths: Vec<String> = paths.flatten().cloned().collect();
    let title = paths.join(", ");
    let input: Vec<_> = changes.iter().map(|change| change_input(change, clip(&change.diff))).collect();
    let name = changes.first().map_or("Edit", tool_of);
    ToolUse { input: Some(json!({ "changes": input })), paths, ..plain(id, kind, name, &title, status) }
}

/// The tool that rules know this change by.
pub(super) fn tool_of(change: &FileChange) -> &'static str {
    if change.kind.r#type == "add" { "Write" } else { "Edit" }
}

/// A change as rules see it.
pub(super) fn change_input(change: &FileChange, diff: String) -> Value {
    json!({"file_path": change.path, "kind": change.kind.r#type, "diff": diff})
}

fn mcp_use(call: &McpItem) -> ToolUse {
    let was_rejected = call.error.as_ref().is_some_and(|error| error.message == MCP_REJECTED);
    let status = if was_rejected { ToolStatus::Denied } else { status(&call.status) };
    let texts = call.result.iter().flat_map(|result| &result.content);
    let texts: Vec<_> = texts.filter_map(|part| part.get("text")?.as_str()).collect();
    let output = call.error.as_ref().map(|error| error.message.clone()).or_else(|| {
        call.result.as_ref().map(|_| text::tail(&texts.join("\n"), text::OUTPUT_TAIL).to_owned())
    });
    ToolUse {
        input: Some(clipped(&call.arguments)),
        output,
        ..plain(
            &call.id,
            ToolKind::Mcp,
            &mcp_name(&call.server, &call.tool),
            &format!("{}: {}", call.server, call.tool),
            status,
        )
    }
}

/// The name that rules know a tool of an MCP server by.
pub(super) fn mcp_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

fn collab_use(call: &CollabItem) -> ToolUse {
    let prompt = call.prompt.as_deref().unwrap_or_default();
    plain(&call.id, ToolKind::Subagent, &call.tool, prompt, status(&call.status))
}

fn clip(text: &str) -> String {
    let kept = text::head(text, INPUT_TEXT);
    if kept.len() == text.len() {
        text.to_owned()
    } else {
        format!("{kept} … ({} bytes in all)", text.len())
    }
}

fn clipped(input: &Value) -> Value {
    match input {
        Value::String(text) => clip(text).into(),
        Value::Array(items) => items.iter().map(clipped).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), clipped(value))).collect(),
        other => other.clone(),
    }
}
