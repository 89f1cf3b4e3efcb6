//! The Messages API of Anthropic.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::super::conversation::{ConversationMessage, Part, Speaker};
use super::super::reply::{ErrorReply, Message};
use super::super::{ToolResult, Usage};
use super::{Names, StreamEvent, Wire, halves, text_pieces};

/// The Messages API.
pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn id_prefixes(&self) -> (&'static str, &'static str) {
        ("msg_", "toolu_")
    }

    fn conversation(&self, body: &Value) -> Vec<ConversationMessage> {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        messages.iter().map(read_message).collect()
    }

    fn stream_events(&self, message: &Message, names: &Names, _asked: &Value) -> Vec<StreamEvent> {
        let start = Usage { output: message.usage.output.min(1), ..message.usage };
        let mut opened = skeleton(names);
        opened["usage"] = usage_object(start);
        let mut events =
            vec![StreamEvent::named(&json!({"type": "message_start", "message": opened})).reporting(start)];
        for (index, block) in content(message, names).iter().enumerate() {
            events.extend(block_events(index, block).iter().map(StreamEvent::named));
        }
        let delta = json!({"stop_reason": stop_reason(message), "stop_sequence": null});
        let usage = json!({"output_tokens": message.usage.output});
        events.push(
            StreamEvent::named(&json!({"type": "message_delta", "delta": delta, "usage": usage}))
                .reporting(message.usage),
        );
        events.push(StreamEvent::named(&json!({"type": "message_stop"})));
        events
    }

    fn failure_events(&self, _model: &str, error: &ErrorReply) -> Vec<StreamEvent> {
        vec![StreamEvent::named(&self.error_body(500, error, &HeaderMap::new()))]
    }

    fn whole_message(&self, message: &Message, names: &Names) -> Value {
        let mut whole = skeleton(names);
        whole["content"] = Value::Array(content(message, names));
        whole["stop_reason"] = json!(stop_reason(message));
        whole["usage"] = usage_object(message.usage);
        whole
    }

    fn overloaded(&self) -> u16 {
        529
    }

    fn error_body(&self, status: u16, error: &ErrorReply, _headers: &HeaderMap) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let kind = error.code.as_deref().unwrap_or(kind);
        json!({"type": "error", "error": {"type": kind, "message": error.message}})
    }
}

fn read_message(message: &Value) -> ConversationMessage {
    let by = if message["role"] == "user" { Speaker::User } else { Speaker::Model };
    ConversationMessage { by, parts: blocks(&message["content"]).iter().filter_map(part).collect() }
}

fn part(block: &Value) -> Option<Part> {
    if block["type"] != "tool_result" {
        return text_block(block).map(|text| Part::Text(text.to_owned()));
    }
    Some(Part::ToolResult(ToolResult {
        tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
        text: blocks(&block["content"]).iter().filter_map(text_block).collect::<Vec<_>>().join("\n"),
        is_error: block["is_error"].as_bool().unwrap_or(false),
    }))
}

/// Content is a list of blocks, or one string for a text block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

fn text_block(block: &Value) -> Option<&str> {
    if block["type"] == "text" { block["text"].as_str() } else { None }
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_creation,
    })
}

fn skeleton(names: &Names) -> Value {
    json!({
        "id": names.message_id,
        "type": "message",
        "role": "assistant",
        "model": names.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    })
}

fn content(message: &Message, names: &Names) -> Vec<Value> {
    let text = message.text.iter().map(|text| json!({"type": "text", "text": text}));
    let calls = message.tools.iter().zip(&names.tool_ids);
    text.chain(
        calls.map(|(call, id)| json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input})),
    )
    .collect()
}

fn stop_reason(message: &Message) -> &'static str {
    if message.tools.is_empty() { "end_turn" } else { "tool_use" }
}

fn block_events(index: usize, block: &Value) -> Vec<Value> {
    let mut opened = block.clone();
    let deltas: Vec<Value> = if block["type"] == "text" {
        opened["text"] = json!("");
        let text = block["text"].as_str().unwrap_or_default();
        text_pieces(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect()
    } else {
        opened["input"] = json!({});
        let input = block["input"].to_string();
        halves(&input).map(|half| json!({"type": "input_json_delta", "partial_json": half})).into()
    };
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": opened})];
    events.extend(
        deltas
            .into_iter()
            .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
    );
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}
