//! Tool calls for people, under the names that rules use: `Bash`, `Edit`, `Write`, `mcp__SERVER__TOOL`.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use towline_core::{ToolKind, ToolStatus, ToolUse};

use super::shell;
use super::wire::{CollabItem, CommandItem, FileChange, Item, McpItem, McpPart, McpResult, Text, lenient};
use crate::text;

/// The error of a call to an MCP tool that was not permitted, for which there is no status.
const MCP_REJECTED: &str = "user rejected MCP tool call";

/// The tool call of this item, without its input; `None` if the item is no call.
pub(super) fn tool_use(item: &Item<'_>) -> Option<ToolUse> {
    Some(match item {
        Item::CommandExecution(command) => command_use(command),
        Item::FileChange(item) => file_use(&item.id, status(&item.status), &item.changes),
        Item::McpToolCall(call) => mcp_use(call),
        Item::DynamicToolCall(call) => {
            text::tool_use(&call.id, ToolKind::Other, &call.tool, &call.tool, status(&call.status))
        }
        Item::CollabAgentToolCall(call) => collab_use(call),
        Item::WebSearch(search) => {
            text::tool_use(&search.id, ToolKind::Fetch, "WebSearch", &search.query, ToolStatus::Running)
        }
        Item::ImageView(view) => ToolUse {
            paths: vec![view.path.as_str().to_owned()],
            ..text::tool_use(&view.id, ToolKind::Read, "ViewImage", &view.path, ToolStatus::Running)
        },
        Item::ImageGeneration(image) => ToolUse {
            paths: image.saved_path.iter().map(|path| path.as_str().to_owned()).collect(),
            ..text::tool_use(&image.id, ToolKind::Other, "ImageGeneration", "an image", status(&image.status))
        },
        _ => return None,
    })
}

/// A tool's input, if the item has it.
pub(super) fn input(item: &Item<'_>) -> Option<Value> {
    let arguments = |raw: &RawValue| lenient(raw).unwrap_or_default();
    let input = match item {
        Item::CommandExecution(command) => json!({"command": script(command)}),
        Item::FileChange(item) => {
            json!({"changes": item.changes.iter().map(change_input).collect::<Vec<_>>()})
        }
        Item::McpToolCall(call) => arguments(call.arguments),
        Item::DynamicToolCall(call) => arguments(call.arguments),
        _ => return None,
    };
    Some(text::clipped(input))
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

/// The command line of a command item.
fn script<'a>(command: &'a CommandItem<'_>) -> Cow<'a, str> {
    shell::script(&command.command).map_or_else(|| command.command.as_str().into(), Cow::Owned)
}

fn command_use(command: &CommandItem<'_>) -> ToolUse {
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
    let read = command.command_actions.iter().filter(|action| action.r#type.as_str() == "read");
    let tail = |output: &Text<'_>| text::tail(output, text::OUTPUT_TAIL).to_owned();
    ToolUse {
        output: command.aggregated_output.as_ref().map(tail),
        exit_code: command.exit_code,
        paths: read.filter_map(|action| Some(action.path.as_ref()?.as_str().to_owned())).collect(),
        ..text::tool_use(&command.id, kind, "Bash", &script(command), status(&command.status))
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
    let name = changes.first().map_or("Edit", tool_of);
    ToolUse { paths, ..text::tool_use(id, kind, name, &title, status) }
}

/// The tool name that rules use for this change.
pub(super) fn tool_of(change: &FileChange) -> &'static str {
    if change.kind.r#type == "add" { "Write" } else { "Edit" }
}

/// A change as rules see it.
pub(super) fn change_input(change: &FileChange) -> Value {
    json!({"file_path": change.path, "kind": change.kind.r#type, "diff": change.diff})
}

/// Where a change moves its file, as rules see it.
pub(super) fn move_input(change: &FileChange) -> Option<Value> {
    change.kind.move_path.as_ref().map(|path| json!({"file_path": path, "kind": "move"}))
}

fn mcp_use(call: &McpItem<'_>) -> ToolUse {
    let was_rejected = call.error.as_ref().is_some_and(|error| error.message == MCP_REJECTED);
    let status = if was_rejected { ToolStatus::Denied } else { status(&call.status) };
    let output = match (&call.error, &call.result) {
        (Some(error), _) => Some(error.message.clone()),
        (None, Some(result)) => Some(mcp_output(result)),
        (None, None) => None,
    };
    let (name, title) = (mcp_name(&call.server, &call.tool), format!("{}: {}", &*call.server, &*call.tool));
    ToolUse { output, ..text::tool_use(&call.id, ToolKind::Mcp, &name, &title, status) }
}

fn mcp_output(result: &McpResult<'_>) -> String {
    let texts = result.content.iter().filter_map(|part| lenient::<McpPart<'_>>(part)?.text);
    let texts: Vec<_> = texts.collect();
    let texts: Vec<_> = texts.iter().map(Text::as_str).collect();
    text::tail(&texts.join("\n"), text::OUTPUT_TAIL).to_owned()
}

/// The name that rules use for a tool of an MCP server.
pub(super) fn mcp_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

fn collab_use(call: &CollabItem<'_>) -> ToolUse {
    let prompt = call.prompt.as_deref().unwrap_or_default();
    text::tool_use(&call.id, ToolKind::Subagent, &call.tool, prompt, status(&call.status))
}
