//! `OpenAI` chat completions, which most other providers imitate.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::super::conversation::{ConversationMessage, Part, Speaker};
use super::super::reply::{ErrorReply, Message};
use super::super::{ToolResult, Usage};
use super::{Names, StreamEvent, Wire, halves, openai, text_pieces};

/// The chat completions API.
pub(super) struct OpenAiChat;

impl Wire for OpenAiChat {
    fn id_prefixes(&self) -> (&'static str, &'static str) {
        ("chatcmpl-", "call_")
    }

    fn conversation(&self, body: &Value) -> Vec<ConversationMessage> {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        ConversationMessage::join(messages.iter().filter_map(read_message))
    }

    fn stream_events(&self, message: &Message, names: &Names, asked: &Value) -> Vec<StreamEvent> {
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        let text = message.text.as_deref().unwrap_or_default();
        deltas.extend(text_pieces(text).iter().map(|piece| json!({"content": piece})));
        for (index, (call, id)) in message.tools.iter().zip(&names.tool_ids).enumerate() {
            let function = json!({"name": call.name, "arguments": ""});
            deltas.push(
                json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
            );
            deltas.extend(
                halves(&call.input.to_string())
                    .map(|half| json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]})),
            );
        }
        let choice = |delta, reason| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        let mut events: Vec<_> = deltas
            .into_iter()
            .map(|delta| StreamEvent::unnamed(&chunk(names, choice(delta, Value::Null))))
            .collect();
        events.push(StreamEvent::unnamed(&chunk(names, choice(json!({}), finish_reason(message)))));
        // Only a client that asks for it learns the usage of a stream.
        if asked["stream_options"]["include_usage"] == true {
            let mut last = chunk(names, json!([]));
            last["usage"] = usage_object(message.usage);
            events.push(StreamEvent::unnamed(&last).reporting(self.reportable(message.usage)));
        }
        events.push(StreamEvent::unnamed(&"[DONE]"));
        events
    }

    fn whole_message(&self, message: &Message, names: &Names) -> Value {
        let mut reply = json!({"role": "assistant", "content": message.text});
        if !message.tools.is_empty() {
            let calls = message.tools.iter().zip(&names.tool_ids).map(|(call, id)| {
                let function = json!({"name": call.name, "arguments": call.input.to_string()});
                json!({"id": id, "type": "function", "function": function})
            });
            reply["tool_calls"] = calls.collect();
        }
        json!({
            "id": names.message_id, "object": "chat.completion", "created": 0, "model": names.model,
            "choices": [{"index": 0, "message": reply, "finish_reason": finish_reason(message)}],
            "usage": usage_object(message.usage),
        })
    }

    fn reportable(&self, usage: Usage) -> Usage {
        usage.without_cache_writes()
    }

    fn error_body(&self, status: u16, error: &ErrorReply, _headers: &HeaderMap) -> Value {
        openai::error_body(status, error)
    }
}

/// The system prompt, which newer models call the developer's, is not part of the conversation.
fn read_message(message: &Value) -> Option<ConversationMessage> {
    let texts = openai::texts(&message["content"]);
    let by = match message["role"].as_str()? {
        "tool" => {
            let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
            let result = ToolResult { tool_use_id: id, text: texts.join("\n"), is_error: false };
            return Some(ConversationMessage { by: Speaker::User, parts: vec![Part::ToolResult(result)] });
        }
        "user" => Speaker::User,
        "assistant" => Speaker::Model,
        _ => return None,
    };
    Some(ConversationMessage { by, parts: texts.into_iter().map(Part::Text).collect() })
}

fn chunk(names: &Names, choices: Value) -> Value {
    json!({
        "id": names.message_id, "object": "chat.completion.chunk", "created": 0, "model": names.model,
        "choices": choices,
    })
}

fn finish_reason(message: &Message) -> Value {
    if message.tools.is_empty() { "stop".into() } else { "tool_calls".into() }
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.all_input(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens": usage.output,
        "total_tokens": usage.all_input() + usage.output,
    })
}
