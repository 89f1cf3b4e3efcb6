//! The Messages API's wire format: the events of a streamed answer, the whole message, the error body.

use serde_json::{Value, json};

use super::Usage;
use super::reply::Message;

/// A long text is sent in no more pieces than this.
const MAX_TEXT_DELTAS: usize = 32;

/// The names that one message is known by.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) message_id: String,
    pub(super) tool_ids: Vec<String>,
    pub(super) model: String,
}

impl Names {
    /// Names for the `number`th message of a server.
    pub(super) fn new(number: usize, message: &Message, model: &str) -> Self {
        Self {
            message_id: format!("msg_{number:06}"),
            tool_ids: (1..=message.tools.len()).map(|call| format!("toolu_{number:06}_{call}")).collect(),
            model: model.to_owned(),
        }
    }
}

/// One server-sent event, and the usage that its reader knows of once it has it.
#[derive(Debug, Clone)]
pub(super) struct StreamEvent {
    pub(super) data: Value,
    pub(super) reports: Option<Usage>,
}

impl StreamEvent {
    /// The bytes on the wire.
    pub(super) fn frame(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.data["type"].as_str().unwrap_or_default(), self.data)
    }
}

/// The events of a streamed message, in order.
pub(super) fn stream_events(message: &Message, names: &Names) -> Vec<StreamEvent> {
    let start = Usage { output: message.usage.output.min(1), ..message.usage };
    let mut opened = skeleton(names);
    opened["usage"] = start.to_json();
    let mut events =
        vec![StreamEvent { data: json!({"type": "message_start", "message": opened}), reports: Some(start) }];
    for (index, block) in content(message, names).iter().enumerate() {
        events.extend(block_events(index, block).into_iter().map(|data| StreamEvent { data, reports: None }));
    }
    let delta = json!({"stop_reason": stop_reason(message), "stop_sequence": null});
    events.push(StreamEvent {
        data: json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": message.usage.output}}),
        reports: Some(message.usage),
    });
    events.push(StreamEvent { data: json!({"type": "message_stop"}), reports: None });
    events
}

/// The message in one piece, for a client that did not ask for a stream.
pub(super) fn whole_message(message: &Message, names: &Names) -> Value {
    let mut whole = skeleton(names);
    whole["content"] = Value::Array(content(message, names));
    whole["stop_reason"] = json!(stop_reason(message));
    whole["usage"] = message.usage.to_json();
    whole
}

/// The body of an HTTP error.
pub(super) fn error_body(status: u16, message: &str) -> Value {
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
    json!({"type": "error", "error": {"type": kind, "message": message}})
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
        let (head, tail) = halves(&input);
        [head, tail].map(|half| json!({"type": "input_json_delta", "partial_json": half})).into()
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

/// Cuts a text between words, as a model's tokens would.
fn text_pieces(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    words.chunks(words.len().div_ceil(MAX_TEXT_DELTAS).max(1)).map(<[&str]>::concat).collect()
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
