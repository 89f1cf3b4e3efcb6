//! What a provider reports when it does not answer, and which class of trouble that is.
//!
//! The bodies of errors differ between providers, and between the servers that copy them, so all shapes are read alike.

use serde_json::Value;

use crate::ErrorClass;

/// The longest message that is passed on.
const MAX_MESSAGE_CHARS: usize = 2000;

/// Codes of a conversation that is too long.
const OVERFLOW_CODES: [&str; 4] =
    ["context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length"];

/// Codes of an account that has to be paid for, whatever the status.
const BILLING_CODES: [&str; 5] = [
    "insufficient_quota",
    "billing_not_active",
    "billing_hard_limit_reached",
    "billing_error",
    "account_deactivated",
];

/// Codes of credentials that are refused.
const AUTH_CODES: [&str; 9] = [
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "api_key_invalid",
    "api_key_expired",
    "api_key_service_blocked",
    "service_disabled",
];

/// Codes of a quota that is used up.
const LIMIT_CODES: [&str; 5] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "resource_exhausted",
    "too_many_requests",
    "usage_limit_reached",
];

/// Codes of a provider that failed.
const SERVER_CODES: [&str; 9] = [
    "server_error",
    "api_error",
    "overloaded_error",
    "timeout_error",
    "internal",
    "unavailable",
    "deadline_exceeded",
    "server_is_overloaded",
    "service_unavailable_error",
];

/// Words of a conversation that is too long, for servers without a code for it.
const OVERFLOW_WORDS: [&str; 11] = [
    "context length",
    "context window",
    "context size",
    "context limit",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
    "reduce the length",
    "request too large for",
];

/// Words of credentials or an account that are refused with a status that reports something else.
const AUTH_WORDS: [&str; 5] = [
    "api key not valid",
    "api key expired",
    "invalid api key",
    "credit balance is too low",
    "insufficient balance",
];

/// What went wrong, as the provider reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Complaint {
    /// Every word that names the kind of trouble, in lower case.
    codes: Vec<String>,
    /// A status of HTTP that the body repeats, for errors within a stream.
    status: Option<u16>,
    /// The provider's words, empty where it reported none.
    pub(crate) message: String,
    /// How long to wait, as the provider wrote it.
    pub(crate) wait: Option<String>,
}

impl Complaint {
    /// Reads what is known to be an error.
    pub(crate) fn of_body(body: &Value) -> Self {
        // Gemini wraps the error of a stream into a list.
        let body = body.get(0).unwrap_or(body);
        let error = if body["error"].is_null() { body } else { &body["error"] };
        let candidates = [&error["message"], error, &error["detail"], &body["message"], &error["error"]];
        let message = candidates.into_iter().find_map(Value::as_str).unwrap_or_default();
        let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
        let codes = [&error["code"], &error["type"], &error["status"]];
        let codes = codes.into_iter().chain(details.iter().map(|detail| &detail["reason"]));
        Self {
            codes: codes.filter_map(Value::as_str).map(str::to_ascii_lowercase).collect(),
            status: error["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok())
                .filter(|code| *code >= 400),
            message: shortened(message),
            wait: details.iter().find_map(|detail| detail["retryDelay"].as_str().map(str::to_owned)),
        }
    }

    /// Reads a body that may be an answer as well.
    pub(crate) fn in_body(body: &Value) -> Option<Self> {
        let error = &body.get(0).unwrap_or(body)["error"];
        let is_error = error.is_object() || error.as_str().is_some_and(|text| !text.is_empty());
        is_error.then(|| Self::of_body(body))
    }

    /// Reads the body of an answer with a status of trouble.
    pub(crate) fn of_text(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(body @ (Value::Object(_) | Value::Array(_))) => Self::of_body(&body),
            // A page for people helps nobody here.
            _ if text.trim_start().starts_with('<') => Self::default(),
            _ => Self { message: shortened(text.trim()), ..Self::default() },
        }
    }

    /// The class of the trouble: codes that are plain whatever the status, then the status, then all that is left.
    pub(crate) fn class(&self, status: Option<u16>) -> ErrorClass {
        let status = status.or(self.status);
        if self.has_code(&OVERFLOW_CODES) {
            return ErrorClass::Overflow;
        }
        if self.has_code(&BILLING_CODES) {
            return ErrorClass::Auth;
        }
        match status {
            // It is elsewhere, and will be so the next time.
            Some(300..=399) => ErrorClass::Invalid,
            Some(401..=403) => ErrorClass::Auth,
            Some(413) => ErrorClass::Overflow,
            // The question alone is more than the quota of a minute: to wait would not help.
            Some(429) if self.message.to_ascii_lowercase().contains("request too large for") => {
                ErrorClass::Overflow
            }
            Some(429) => ErrorClass::Limited,
            Some(408 | 409 | 425) => ErrorClass::Server,
            Some(500..) if self.contains(&OVERFLOW_WORDS) => ErrorClass::Overflow,
            Some(500..) => ErrorClass::Server,
            Some(400 | 422) => self.class_by_words().unwrap_or(ErrorClass::Refused),
            Some(_) => self.class_by_words().unwrap_or(ErrorClass::Invalid),
            None => {
                let is_invalid = self.codes.iter().any(|code| code.contains("invalid"));
                let usual = if is_invalid { ErrorClass::Refused } else { ErrorClass::Server };
                self.class_by_words().unwrap_or(usual)
            }
        }
    }

    fn class_by_words(&self) -> Option<ErrorClass> {
        let known = [
            (self.has_code(&AUTH_CODES) || self.contains(&AUTH_WORDS), ErrorClass::Auth),
            (self.has_code(&LIMIT_CODES), ErrorClass::Limited),
            (self.has_code(&SERVER_CODES), ErrorClass::Server),
            (self.contains(&OVERFLOW_WORDS), ErrorClass::Overflow),
        ];
        known.into_iter().find_map(|(holds, class)| holds.then_some(class))
    }

    fn has_code(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| known.contains(&code.as_str()))
    }

    fn contains(&self, words: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        words.iter().any(|word| message.contains(word))
    }
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use ErrorClass::{Auth, Invalid, Limited, Overflow, Refused, Server};

    fn openai(code: &str, message: &str) -> Value {
        json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}})
    }

    fn anthropic(kind: &str, message: &str) -> Value {
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }

    fn gemini(code: u16, status: &str, message: &str) -> Value {
        json!({"error": {"code": code, "status": status, "message": message}})
    }

    #[test]
    fn errors_over_http_have_the_class_of_what_they_mean() {
        let quota = "You exceeded your current quota, please check your plan and billing details.";
        let table = [
            (401, openai("invalid_api_key", "Incorrect API key provided"), Auth),
            (403, openai("unsupported_country_region_territory", "Country not supported"), Auth),
            (429, openai("insufficient_quota", quota), Auth),
            (429, openai("rate_limit_exceeded", "Rate limit reached"), Limited),
            (429, openai("rate_limit_exceeded", "Request too large for gpt-5 on tokens per min"), Overflow),
            (400, openai("context_length_exceeded", "Your input exceeds the limit"), Overflow),
            (404, openai("model_not_found", "The model `x` does not exist"), Invalid),
            (400, openai("unsupported_parameter", "Unsupported parameter"), Refused),
            (500, openai("server_error", "The server had an error"), Server),
            (400, anthropic("invalid_request_error", "Your credit balance is too low to access"), Auth),
            (402, anthropic("billing_error", "pay"), Auth),
            (
                400,
                anthropic("invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum"),
                Overflow,
            ),
            (413, anthropic("request_too_large", "Request exceeds the maximum size"), Overflow),
            (
                400,
                anthropic("invalid_request_error", "messages: text content blocks must be non-empty"),
                Refused,
            ),
            (529, anthropic("overloaded_error", "Overloaded"), Server),
            (408, json!({}), Server),
            (400, gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), Auth),
            (400, gemini(400, "INVALID_ARGUMENT", "The input token count (2) exceeds the maximum"), Overflow),
            (400, gemini(400, "INVALID_ARGUMENT", "Invalid JSON payload"), Refused),
            (429, gemini(429, "RESOURCE_EXHAUSTED", quota), Limited),
            (503, gemini(503, "UNAVAILABLE", "The model is overloaded."), Server),
            (400, json!({"error": "the request exceeds the available context size"}), Overflow),
            (422, json!({"detail": "no such field"}), Refused),
            (302, json!(null), Invalid),
        ];
        for (status, body, class) in table {
            assert_eq!(Complaint::of_body(&body).class(Some(status)), class, "{status} {body}");
        }
    }

    #[test]
    fn errors_within_a_stream_have_the_class_of_their_code() {
        let table = [
            (anthropic("overloaded_error", "Overloaded"), Server),
            (anthropic("rate_limit_error", "slow down"), Limited),
            (anthropic("authentication_error", "no"), Auth),
            (anthropic("invalid_request_error", "tools.0: no"), Refused),
            (gemini(429, "RESOURCE_EXHAUSTED", "quota"), Limited),
            (gemini(500, "context_length_exceeded", "too long"), Overflow),
            (json!([gemini(503, "UNAVAILABLE", "busy")]), Server),
            (json!({"code": "rate_limit_exceeded", "message": "slow down"}), Limited),
            (json!({"type": "error", "code": "server_error", "message": "no"}), Server),
            (json!({"error": {"code": "invalid_prompt", "message": "no"}}), Refused),
            (json!({"error": {"message": "something else"}}), Server),
            (json!({"error": {"message": "CUDA error", "code": 500}}), Server),
        ];
        for (body, class) in table {
            assert_eq!(Complaint::of_body(&body).class(None), class, "{body}");
        }
    }

    #[test]
    fn the_providers_words_are_found_at_every_place() {
        let table = [
            (r#"{"error": {"message": "a"}}"#, "a"),
            (r#"[{"error": {"message": "a"}}]"#, "a"),
            (r#"{"error": "a"}"#, "a"),
            (r#"{"detail": "a"}"#, "a"),
            (r#"{"message": "a"}"#, "a"),
            (" plain words\n", "plain words"),
            ("<html><body>Bad gateway</body></html>", ""),
            ("", ""),
            ("{}", ""),
        ];
        for (text, message) in table {
            assert_eq!(Complaint::of_text(text).message, message, "{text}");
        }
        assert_eq!(Complaint::of_text(&"ä".repeat(5000)).message.chars().count(), MAX_MESSAGE_CHARS + 1);
        assert_eq!(Complaint::in_body(&json!({"error": null, "choices": []})), None);
    }
}
