//! What the two `OpenAI` APIs have in common.

use serde_json::{Value, json};

use super::super::reply::ErrorReply;

/// The body of an HTTP error.
pub(super) fn error_body(status: u16, error: &ErrorReply) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("not_found")),
        400..=428 => ("invalid_request_error", None),
        429 => ("requests", Some("rate_limit_exceeded")),
        503 => ("service_unavailable_error", None),
        _ => ("server_error", None),
    };
    // Both, since clients look at either.
    let kind = error.code.as_deref().unwrap_or(kind);
    let code = error.code.as_deref().or(code);
    json!({"error": {"message": error.message, "type": kind, "param": null, "code": code}})
}

/// The text of a content: one string, or a list of parts of which some have a text.
pub(super) fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}
