//! Gemini's `generateContent`. Its streams are the server-sent events of `alt=sse`.

use axum::http::{HeaderMap, header};
use serde_json::{Value, json};

use super::super::conversation::{ConversationMessage, Part, Speaker};
use super::super::reply::{ErrorReply, Message};
use super::super::{ToolResult, Usage};
use super::{Names, StreamEvent, Wire, text_pieces};

/// The Gemini API.
pub(super) struct Gemini;

/// The two ends of `/v1beta/models/MODEL:METHOD`.
pub(super) fn model_and_method(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?.split_once(':')
}

/// Whether a message is to be had at `path`.
pub(super) fn asks_for_message(path: &str) -> bool {
    model_and_method(path)
        .is_some_and(|(_, method)| ["generateContent", "streamGenerateContent"].contains(&method))
}

impl Wire for Gemini {
    fn id_prefixes(&self) -> (&'static str, &'static str) {
        ("response-", "call-")
    }

    fn conversation(&self, body: &Value) -> Vec<ConversationMessage> {
        let contents = body["contents"].as_array().map_or(&[][..], Vec::as_slice);
        ConversationMessage::join(contents.iter().map(read_message))
    }

    /// The API's own tools, such as its search, are not run by the client.
    fn has_tools(&self, body: &Value) -> bool {
        let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().any(|tool| tool["functionDeclarations"].as_array().is_some_and(|list| !list.is_empty()))
    }

    fn model(&self, path: &str, _body: &Value) -> Option<String> {
        model_and_method(path).map(|(model, _)| model.to_owned())
    }

    fn wants_stream(&self, path: &str, _body: &Value) -> bool {
        model_and_method(path).is_some_and(|(_, method)| method == "streamGenerateContent")
    }

    fn stream_events(&self, message: &Message, names: &Names, _asked: &Value) -> Vec<StreamEvent> {
        let full = self.reportable(message.usage);
        // Every chunk counts the prompt; only the last one knows of the output.
        let so_far = Usage { output: 0, ..full };
        let text = message.text.as_deref().unwrap_or_default();
        let texts = text_pieces(text).into_iter().map(|piece| json!({"text": piece}));
        let chunks = texts
            .chain(call_parts(message, names))
            .map(|part| StreamEvent::unnamed(&chunk(names, &[part], None, so_far)).reporting(so_far));
        let last = chunk(names, &[json!({"text": ""})], Some("STOP"), full);
        chunks.chain([StreamEvent::unnamed(&last).reporting(full)]).collect()
    }

    fn whole_message(&self, message: &Message, names: &Names) -> Value {
        let text = message.text.iter().map(|text| json!({"text": text}));
        let parts: Vec<_> = text.chain(call_parts(message, names)).collect();
        chunk(names, &parts, Some("STOP"), self.reportable(message.usage))
    }

    fn reportable(&self, usage: Usage) -> Usage {
        usage.without_cache_writes()
    }

    fn error_body(&self, status: u16, error: &ErrorReply, headers: &HeaderMap) -> Value {
        let name = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            _ => "INTERNAL",
        };
        let mut body = json!({"error": {"code": status, "message": error.message, "status": name}});
        match &error.code {
            // A limit is known by its quota, everything else by its status.
            Some(quota) if status == 429 => add_detail(&mut body, quota_failure(quota)),
            Some(name) => body["error"]["status"] = json!(name),
            None => {}
        }
        if let Some(seconds) = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()) {
            add_detail(
                &mut body,
                json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}),
            );
        }
        body
    }
}

fn read_message(content: &Value) -> ConversationMessage {
    let by = if content["role"] == "model" { Speaker::Model } else { Speaker::User };
    let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
    ConversationMessage { by, parts: parts.iter().filter_map(part).collect() }
}

fn part(part: &Value) -> Option<Part> {
    let Some(result) = part.get("functionResponse") else {
        return part["text"].as_str().map(|text| Part::Text(text.to_owned()));
    };
    // A client that gives no id means the only call of that name.
    let id = result["id"].as_str().or(result["name"].as_str()).unwrap_or_default();
    let error = result["response"].get("error");
    let text = error.or_else(|| result["response"].get("output")).unwrap_or(&result["response"]);
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    Some(Part::ToolResult(ToolResult { tool_use_id: id.to_owned(), text, is_error: error.is_some() }))
}

fn call_parts<'a>(message: &'a Message, names: &'a Names) -> impl Iterator<Item = Value> + 'a {
    let calls = message.tools.iter().zip(&names.tool_ids);
    calls.map(|(call, id)| json!({"functionCall": {"id": id, "name": call.name, "args": call.input}}))
}

fn chunk(names: &Names, parts: &[Value], finish: Option<&str>, usage: Usage) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage.all_input(),
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.all_input() + usage.output,
        },
        "modelVersion": names.model,
        "responseId": names.message_id,
    })
}

fn quota_failure(quota: &str) -> Value {
    json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]})
}

fn add_detail(body: &mut Value, detail: Value) {
    match &mut body["error"]["details"] {
        Value::Array(details) => details.push(detail),
        none => *none = json!([detail]),
    }
}
