//! Messages about a session, as the protocol defines them.

use serde_json::{Value, json};
use towline_core::MicroUsd;
use towline_provider::{Call, Delta, Usage};

use super::record::{Mode, Record};
use crate::tools::{Described, Reach, Status, ToolKind};

/// A piece of an answer that is being written.
pub(super) fn delta(message: &str, delta: Delta) -> Value {
    match delta {
        Delta::Text(text) => chunk("agent_message_chunk", Some(message), &text),
        Delta::Thought(text) => chunk("agent_thought_chunk", Some(message), &text),
    }
}

/// A message or a piece of it. Pieces of one message have the same id.
pub(super) fn chunk(kind: &str, message: Option<&str>, text: &str) -> Value {
    let mut update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    if let Some(message) = message {
        update["messageId"] = message.into();
    }
    update
}

/// A call that the model wants to make.
pub(super) fn tool_call(call: &Call, described: &Described) -> Value {
    let mut update = call_details(call, described);
    update["sessionUpdate"] = "tool_call".into();
    update
}

/// A call's details, also used to ask for permission.
pub(super) fn call_details(call: &Call, described: &Described) -> Value {
    let locations: Vec<_> = described.paths.iter().map(|path| json!({"path": path})).collect();
    json!({
        "toolCallId": call.id,
        "title": described.title,
        "kind": described.kind,
        "status": "pending",
        "locations": locations,
        "rawInput": call.input,
    })
}

/// The description of a call to an unknown tool.
pub(super) fn unknown_tool(call: &Call) -> Described {
    Described { title: call.name.clone(), kind: ToolKind::Other, paths: Vec::new(), reach: Reach::Looks }
}

/// The call is running; the text is the end of its output.
pub(super) fn tool_runs(id: &str, printed: Option<&str>) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"});
    if let Some(printed) = printed {
        update["content"] = json!([text_content(printed)]);
    }
    update
}

/// The call has ended.
pub(super) fn tool_ended(id: &str, status: Status, output: &str, changes: Vec<Value>) -> Value {
    let status = match status {
        Status::Ok => "completed",
        Status::Failed => "failed",
    };
    let content: Vec<_> = changes.into_iter().chain([text_content(output)]).collect();
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": id,
        "status": status,
        "content": content,
        "rawOutput": {"output": output},
    })
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// How full the context is, and what the session has cost.
pub(super) fn usage(used: u64, size: u64, cost: Option<MicroUsd>) -> Value {
    let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
    if let Some(cost) = cost {
        update["cost"] = json!({"amount": cost.dollars(), "currency": "USD"});
    }
    update
}

/// Adds the usage of one answer.
pub(super) fn with_answer(mut update: Value, model: &str, usage: Usage) -> Value {
    let Usage { input, output, cache_read, cache_write } = usage;
    update["_meta"] = json!({"towline": {
        "model": model,
        "input": input,
        "output": output,
        "cache_read": cache_read,
        "cache_write": cache_write,
    }});
    update
}

/// The tokens of a whole turn, for the answer to its prompt.
pub(super) fn turn_usage(usage: Usage) -> Value {
    json!({
        "totalTokens": usage.context(),
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.cache_write,
    })
}

/// The commands that a prompt can be.
pub(super) fn commands() -> Value {
    let compact = json!({
        "name": "compact",
        "description": "Replace the conversation by a summary of it",
        "input": {"hint": "the focus of the summary"},
    });
    json!({"sessionUpdate": "available_commands_update", "availableCommands": [compact]})
}

/// The modes and models of a session.
pub(super) fn choices(mode: Mode, model: &str) -> Value {
    let modes = Mode::ALL.map(|mode| match mode {
        Mode::Ask => {
            json!({"id": mode, "name": "Ask", "description": "Asks before it changes anything"})
        }
        Mode::Bypass => json!({"id": mode, "name": "Bypass", "description": "Asks for nothing"}),
    });
    json!({
        "modes": {"currentModeId": mode, "availableModes": modes},
        "models": {"currentModelId": model, "availableModels": [{"modelId": model, "name": model}]},
    })
}

/// A record as it is replayed. `describe` returns what a call was about.
pub(super) fn replay(record: &Record, describe: impl Fn(&Call) -> Described) -> Vec<Value> {
    use towline_provider::Item;
    match record {
        Record::Item { item: Item::User { text } } => vec![chunk("user_message_chunk", None, text)],
        Record::Item { item: Item::Model(message) } => {
            let words = (!message.text.is_empty()).then(|| chunk("agent_message_chunk", None, &message.text));
            words
                .into_iter()
                .chain(message.calls.iter().map(|call| tool_call(call, &describe(call))))
                .collect()
        }
        Record::Result { result } => {
            let status = if result.failed { Status::Failed } else { Status::Ok };
            vec![tool_ended(&result.id, status, &result.output, Vec::new())]
        }
        _ => Vec::new(),
    }
}
