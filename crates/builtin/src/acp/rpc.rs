//! JSON-RPC on lines: what a line from the client is, and how a request is refused.

use serde::Deserialize;
use serde_json::{Value, json};

/// The line is no JSON.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;
/// The protocol's own: nobody has signed in.
const AUTH_REQUIRED: i64 = -32_000;
/// The protocol's own: there is no such thing.
const NOT_FOUND: i64 = -32_002;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    /// A refusal with a code of its own.
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The request makes no sense at this moment.
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// What the request says cannot be read or used.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The machine is at fault.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// A key is missing.
    pub(super) fn auth_required(message: impl Into<String>) -> Self {
        Self::new(AUTH_REQUIRED, message)
    }

    /// There is no such session.
    pub(super) fn no_such_session(id: &str) -> Self {
        Self::new(NOT_FOUND, format!("no such session: {id}"))
    }

    /// There is no such method.
    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method {method}"))
    }

    /// As the protocol writes it.
    pub(super) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// What a line from the client is.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// It wants an answer.
    Request { id: Value, method: String, params: Value },
    /// It wants none.
    Notification { method: String, params: Value },
    /// It is the answer to a request of ours; none when that was refused.
    Answer { id: Value, result: Option<Value> },
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<Value>,
}

/// Tells a null from nothing at all.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a line; what cannot be understood is refused under the id that it has, if it has one.
pub(super) fn read(line: &[u8]) -> Result<Incoming, (Value, Refusal)> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        (Value::Null, Refusal::new(PARSE_ERROR, format!("this line is no JSON: {error}")))
    })?;
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let refused = |words: &str| (id.clone().unwrap_or_default(), Refusal::invalid_request(words));
    if !value.is_object() {
        return Err(refused("a line holds one JSON-RPC message, which is an object"));
    }
    let line: Line =
        serde_json::from_value(value).map_err(|error| refused(&format!("this is no JSON-RPC: {error}")))?;
    match (line.method, line.id) {
        (Some(method), None) => Ok(Incoming::Notification { method, params: line.params }),
        (Some(method), Some(_)) => match id.clone() {
            Some(id) => Ok(Incoming::Request { id, method, params: line.params }),
            None => Err(refused("the id of a request is a string or a number")),
        },
        (None, Some(id)) if line.result.is_some() || line.error.is_some() => {
            Ok(Incoming::Answer { id, result: line.result.filter(|_| line.error.is_none()) })
        }
        (None, _) => Err(refused("a message has a method, or the result or error of a request")),
    }
}

/// Reads the parameters of a request.
pub(super) fn params<T: serde::de::DeserializeOwned>(method: &str, params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params)
        .map_err(|error| Refusal::invalid_params(format!("{method}: the parameters cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_requests_news_or_answers() {
        let request = |id| Incoming::Request { id, method: "a".into(), params: json!([1]) };
        let news = Incoming::Notification { method: "a".into(), params: Value::Null };
        let answer = |result| Incoming::Answer { id: json!("p1"), result };
        for (line, wanted) in [
            (r#"{"id":1,"method":"a","params":[1]}"#, request(json!(1))),
            (r#"{"jsonrpc":"2.0","id":"x","method":"a","params":[1],"more":1}"#, request(json!("x"))),
            (r#"{"method":"a"}"#, news),
            (r#"{"id":"p1","result":null}"#, answer(Some(Value::Null))),
            (r#"{"id":"p1","error":{"code":1}}"#, answer(None)),
        ] {
            assert_eq!(read(line.as_bytes()), Ok(wanted), "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused_under_its_id() {
        for (line, id, code) in [
            ("{", Value::Null, PARSE_ERROR),
            ("\u{0}", Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            ("7", Value::Null, INVALID_REQUEST),
            ("{}", Value::Null, INVALID_REQUEST),
            (r#"{"id":7}"#, json!(7), INVALID_REQUEST),
            (r#"{"id":7,"method":3}"#, json!(7), INVALID_REQUEST),
            (r#"{"id":null,"method":"a"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"id":{},"method":"a"}"#, Value::Null, INVALID_REQUEST),
        ] {
            let (found, refusal) = read(line.as_bytes()).expect_err(line);
            assert_eq!((found, refusal.code), (id, code), "{line}");
        }
        assert_eq!(read(b"{\"a\":\"\xff\"}").map_err(|(_, refusal)| refusal.code), Err(PARSE_ERROR));
    }
}
