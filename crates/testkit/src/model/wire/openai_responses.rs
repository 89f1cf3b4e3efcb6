//! The Responses API of `OpenAI`.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::super::conversation::{ConversationMessage, Part, Speaker};
use super::super::reply::{ErrorReply, Message};
use super::super::{ToolResult, Usage};
use super::{Names, StreamEvent, Wire, halves, openai, text_pieces};

/// The Responses API.
pub(super) struct OpenAiResponses;

impl Wire for OpenAiResponses {
    fn id_prefixes(&self) -> (&'static str, &'static str) {
        ("resp_", "call_")
    }

    fn conversation(&self, body: &Value) -> Vec<ConversationMessage> {
        match &body["input"] {
            Value::String(text) => {
                vec![ConversationMessage { by: Speaker::User, parts: vec![Part::Text(text.clone())] }]
            }
            Value::Array(items) => ConversationMessage::join(items.iter().filter_map(read_message)),
            _ => Vec::new(),
        }
    }

    fn stream_events(&self, message: &Message, names: &Names, _asked: &Value) -> Vec<StreamEvent> {
        let opened = response(names, "in_progress", &[]);
        let items = items(message, names);
        let mut bodies = vec![
            json!({"type": "response.created", "response": opened}),
            json!({"type": "response.in_progress", "response": opened}),
        ];
        for (index, item) in items.iter().enumerate() {
            let events = if item["type"] == "message" { message_events(item) } else { call_events(item) };
            bodies.extend(events.into_iter().map(|mut event| {
                event["output_index"] = json!(index);
                event
            }));
        }
        let mut completed = response(names, "completed", &items);
        completed["usage"] = usage_object(message.usage);
        bodies.push(json!({"type": "response.completed", "response": completed}));

        let last = bodies.len() - 1;
        let numbered = bodies.into_iter().enumerate().map(|(number, mut body)| {
            body["sequence_number"] = json!(number);
            let event = StreamEvent::named(&body);
            if number == last { event.reporting(self.reportable(message.usage)) } else { event }
        });
        numbered.collect()
    }

    fn failure_events(&self, model: &str, error: &ErrorReply) -> Vec<StreamEvent> {
        let names = Names { message_id: "resp_failed".into(), tool_ids: Vec::new(), model: model.to_owned() };
        let mut failed = response(&names, "failed", &[]);
        failed["error"] = json!({"code": error.code, "message": error.message});
        [("response.created", response(&names, "in_progress", &[])), ("response.failed", failed)]
            .into_iter()
            .enumerate()
            .map(|(number, (kind, response))| {
                StreamEvent::named(&json!({"type": kind, "response": response, "sequence_number": number}))
            })
            .collect()
    }

    fn whole_message(&self, message: &Message, names: &Names) -> Value {
        let mut whole = response(names, "completed", &items(message, names));
        whole["usage"] = usage_object(message.usage);
        whole
    }

    fn error_body(&self, status: u16, error: &ErrorReply, _headers: &HeaderMap) -> Value {
        openai::error_body(status, error)
    }
}

/// Reasoning belongs to the model's message; the developer's messages are the system prompt.
fn read_message(item: &Value) -> Option<ConversationMessage> {
    let texts = || openai::texts(&item["content"]).into_iter().map(Part::Text).collect();
    match item["type"].as_str().unwrap_or("message") {
        "message" => match item["role"].as_str()? {
            "user" => Some(ConversationMessage { by: Speaker::User, parts: texts() }),
            "assistant" => Some(ConversationMessage { by: Speaker::Model, parts: texts() }),
            _ => None,
        },
        kind if kind.ends_with("_call_output") => {
            let result = ToolResult {
                tool_use_id: item["call_id"].as_str().unwrap_or_default().to_owned(),
                text: openai::texts(&item["output"]).join("\n"),
                is_error: false,
            };
            Some(ConversationMessage { by: Speaker::User, parts: vec![Part::ToolResult(result)] })
        }
        _ => Some(ConversationMessage { by: Speaker::Model, parts: Vec::new() }),
    }
}

fn response(names: &Names, status: &str, output: &[Value]) -> Value {
    json!({
        "id": names.message_id, "object": "response", "created_at": 0, "status": status, "error": null,
        "incomplete_details": null, "model": names.model, "output": output, "usage": null,
    })
}

/// What the model puts out, in its finished form.
fn items(message: &Message, names: &Names) -> Vec<Value> {
    let text = message.text.iter().map(|text| {
        json!({
            "type": "message", "id": format!("msg_{}", names.message_id), "status": "completed",
            "role": "assistant", "content": [text_part(text)],
        })
    });
    let calls = message.tools.iter().zip(&names.tool_ids).map(|(call, id)| {
        let mut item = json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "status": "completed",
            "name": call.name, "arguments": call.input.to_string(),
        });
        if let Some((namespace, tool)) = call.name.split_once('/') {
            item["namespace"] = json!(namespace);
            item["name"] = json!(tool);
        }
        item
    });
    text.chain(calls).collect()
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn message_events(item: &Value) -> Vec<Value> {
    let id = &item["id"];
    let text = item["content"][0]["text"].as_str().unwrap_or_default();
    let mut opened = item.clone();
    opened["status"] = json!("in_progress");
    opened["content"] = json!([]);
    let mut events = vec![
        json!({"type": "response.output_item.added", "item": opened}),
        json!({"type": "response.content_part.added", "item_id": id, "content_index": 0, "part": text_part("")}),
    ];
    events.extend(text_pieces(text).iter().map(
        |piece| json!({"type": "response.output_text.delta", "item_id": id, "content_index": 0, "delta": piece}),
    ));
    events.extend([
        json!({"type": "response.output_text.done", "item_id": id, "content_index": 0, "text": text}),
        json!({"type": "response.content_part.done", "item_id": id, "content_index": 0, "part": text_part(text)}),
        json!({"type": "response.output_item.done", "item": item}),
    ]);
    events
}

fn call_events(item: &Value) -> Vec<Value> {
    let id = &item["id"];
    let arguments = item["arguments"].as_str().unwrap_or_default();
    let mut opened = item.clone();
    opened["status"] = json!("in_progress");
    opened["arguments"] = json!("");
    let mut events = vec![json!({"type": "response.output_item.added", "item": opened})];
    events.extend(
        halves(arguments).map(
            |half| json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": half}),
        ),
    );
    events.extend([
        json!({"type": "response.function_call_arguments.done", "item_id": id, "arguments": arguments}),
        json!({"type": "response.output_item.done", "item": item}),
    ]);
    events
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.all_input(),
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_creation},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.all_input() + usage.output,
    })
}
