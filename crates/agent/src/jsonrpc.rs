//! JSON-RPC on lines: reads and writes lines, and matches answers with the requests of a client.
//!
//! Neighbours: the clients of agents that speak JSON-RPC (app servers, ACP), the built-in agent, its MCP servers and
//! Towline's own MCP server. A client's request ids follow from the purpose of the request, not from a counter: a
//! conversation that is read again from its log lacks the operator's messages and must still give the same ids to the
//! same requests.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::Text;
use crate::lines::line;

const VERSION: &str = "2.0";

/// A line that is not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// JSON that is no request, or a request that is invalid in this state.
pub const INVALID_REQUEST: i64 = -32_600;
/// An unknown method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// Parameters that cannot be used.
pub const INVALID_PARAMS: i64 = -32_602;
/// A request that failed through no fault of its own.
pub const INTERNAL_ERROR: i64 = -32_603;

/// A parsed line.
#[derive(Debug)]
pub enum Message<'a> {
    /// A request, which must be answered.
    Request(RpcRequest<'a>),
    /// A message without an answer.
    Notification { method: &'a str, params: &'a RawValue },
    /// The answer to a request.
    Answer {
        /// The id of the request.
        id: &'a RawValue,
        /// The result or the error.
        result: Result<&'a RawValue, RpcError>,
    },
}

/// A request from the other side.
#[derive(Debug, Clone)]
pub struct RpcRequest<'a> {
    /// The id to repeat in the answer.
    pub id: &'a RawValue,
    pub method: &'a str,
    pub params: &'a RawValue,
}

/// An error answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl RpcError {
    /// An error without `data`.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// The request is invalid in this state.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// The parameters of a request cannot be read or used.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// An error of the machine or the program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// There is no such method.
    pub fn unknown_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method {method}"))
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    /// Method names have no escapes.
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Parses a line; `None` if it is not JSON-RPC.
pub fn read(text: &str) -> Option<Message<'_>> {
    let line: Line<'_> = serde_json::from_str(text).ok()?;
    let params = line.params.unwrap_or(RawValue::NULL);
    Some(match (line.method, line.id) {
        (Some(method), Some(id)) => Message::Request(RpcRequest { id, method, params }),
        (Some(method), None) => Message::Notification { method, params },
        (None, Some(id)) => {
            // An `error` field of any shape means an error.
            let error = line.error.map(|error| serde_json::from_str(error.get()).unwrap_or_default());
            Message::Answer { id, result: error.map_or(Ok(line.result.unwrap_or(RawValue::NULL)), Err) }
        }
        (None, None) => return None,
    })
}

/// Parses a line for a server. A line that is not understood must be refused under its id, if it has one.
pub fn read_for_server(line: &[u8]) -> Result<Message<'_>, (Value, RpcError)> {
    let refused = |code, words: String| (Value::Null, RpcError::new(code, words));
    let text = str::from_utf8(line).map_err(|error| refused(PARSE_ERROR, error.to_string()))?;
    let is_id = |id: &RawValue| {
        id.get().starts_with(['"', '-']) || id.get().starts_with(|c: char| c.is_ascii_digit())
    };
    match read(text) {
        Some(Message::Request(request)) if !is_id(request.id) => {
            Err(refused(INVALID_REQUEST, "the id of a request is a string or a number".to_owned()))
        }
        Some(message @ (Message::Request(_) | Message::Notification { .. })) => Ok(message),
        other => {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| refused(PARSE_ERROR, format!("this line is no JSON: {error}")))?;
            let is_answer = value.get("result").is_some() || value.get("error").is_some();
            if let Some(answer) = other.filter(|_| is_answer) {
                return Ok(answer);
            }
            let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
            let words =
                "a line holds one JSON-RPC message: an object with a method, or with the answer to a request";
            Err((id.unwrap_or_default(), RpcError::invalid_request(words)))
        }
    }
}

/// A request. No other request of this conversation may have the same id.
pub fn request(id: impl Serialize, method: &str, params: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, I, P> {
        id: I,
        jsonrpc: &'static str,
        method: &'a str,
        params: P,
    }
    line(&Request { id, jsonrpc: VERSION, method, params })
}

/// A notification for the other side.
pub fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: P,
    }
    line(&Notification { jsonrpc: VERSION, method, params })
}

/// The answer to a request of the other side.
pub fn answer(id: impl Serialize, result: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<I, R> {
        id: I,
        jsonrpc: &'static str,
        result: R,
    }
    line(&Answer { id, jsonrpc: VERSION, result })
}

/// An error answer to a request of the other side.
pub fn refusal(id: impl Serialize, error: &RpcError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Refusal<'a, I> {
        error: &'a RpcError,
        id: I,
        jsonrpc: &'static str,
    }
    line(&Refusal { error, id, jsonrpc: VERSION })
}

/// A client's side of a conversation. `Purpose` is what a request was for.
#[derive(Debug)]
pub(crate) struct Peer<Purpose> {
    waiting: HashMap<String, Purpose>,
}

impl<Purpose> Default for Peer<Purpose> {
    fn default() -> Self {
        Self { waiting: HashMap::new() }
    }
}

impl<Purpose> Peer<Purpose> {
    /// A request. No other request of this conversation may have the same id.
    pub(crate) fn request(
        &mut self,
        id: &str,
        purpose: Purpose,
        method: &str,
        params: impl Serialize,
    ) -> Vec<u8> {
        self.waiting.insert(id.to_owned(), purpose);
        request(id, method, params)
    }

    /// What the request with this id was for; `None` if no such request waits for an answer.
    pub(crate) fn answered(&mut self, id: &RawValue) -> Option<Purpose> {
        let id: Text<'_> = serde_json::from_str(id.get()).ok()?;
        self.waiting.remove(id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(line: &[u8]) -> Value {
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(line).expect("JSON")
    }

    #[test]
    fn an_answer_finds_its_purpose_once() {
        let mut peer = Peer::default();
        let sent = peer.request("hello", 7, "initialize", json!({"a": 1}));
        let wanted = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"a": 1}});
        assert_eq!(parsed(&sent), wanted);
        let line = r#"{"id":"hello","result":{"b":2}}"#;
        let Some(Message::Answer { id, result: Ok(result) }) = read(line) else { panic!("no answer") };
        assert_eq!(result.get(), r#"{"b":2}"#);
        assert_eq!((peer.answered(id), peer.answered(id)), (Some(7), None));
    }

    #[test]
    fn an_error_is_an_answer_and_a_result_may_be_missing() {
        let failed = read(r#"{"jsonrpc":"2.0","id":"a","error":{"code":401,"message":"no"}}"#);
        let error = RpcError { code: 401, message: "no".into(), data: Value::Null };
        assert!(matches!(failed, Some(Message::Answer { result: Err(found), .. }) if found == error));
        assert!(matches!(read(r#"{"id":"b"}"#), Some(Message::Answer { result: Ok(_), .. })));
    }

    #[test]
    fn requests_of_the_other_side_are_answered_under_their_own_id() {
        for id in ["3", "\"three\""] {
            let text = format!(r#"{{"id":{id},"method":"fs/read","params":[1]}}"#);
            let Some(Message::Request(request)) = read(&text) else { panic!("no request") };
            assert_eq!((request.method, request.params.get()), ("fs/read", "[1]"));
            assert_eq!(parsed(&answer(request.id, json!({})))["id"].to_string(), id);
            let refused = parsed(&refusal(request.id, &RpcError::new(METHOD_NOT_FOUND, "no")));
            assert_eq!(refused["error"], json!({"code": METHOD_NOT_FOUND, "message": "no"}));
        }
    }

    #[test]
    fn a_notification_has_no_id_and_other_lines_are_not_json_rpc() {
        let news = read(r#"{"method":"turn/completed"}"#);
        assert!(matches!(news, Some(Message::Notification { method: "turn/completed", .. })));
        assert_eq!(
            parsed(&notification("x", json!([1]))),
            json!({"jsonrpc": "2.0", "method": "x", "params": [1]})
        );
        for other in ["", "Error: x", "[]", "{}", "7", r#"{"result":1}"#] {
            assert!(read(other).is_none(), "{other}");
        }
    }

    #[test]
    fn an_error_of_any_shape_is_no_result() {
        for error in ["7", "{}", r#"{"code":"x","message":[]}"#] {
            let line = format!(r#"{{"id":1,"result":{{}},"error":{error}}}"#);
            let Some(Message::Answer { result: Err(found), .. }) = read(&line) else { panic!("{line}") };
            assert_eq!(found, RpcError::default());
        }
    }

    #[test]
    fn an_invalid_message_is_refused_under_its_id() {
        for (line, id, code) in [
            ("{", Value::Null, PARSE_ERROR),
            ("\u{0}", Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            ("7", Value::Null, INVALID_REQUEST),
            ("{}", Value::Null, INVALID_REQUEST),
            (r#"{"id":7}"#, json!(7), INVALID_REQUEST),
            (r#"{"id":7,"method":3}"#, json!(7), INVALID_REQUEST),
            (r#"{"id":{},"method":"a"}"#, Value::Null, INVALID_REQUEST),
        ] {
            let (found, refusal) = read_for_server(line.as_bytes()).expect_err(line);
            assert_eq!((found, refusal.code), (id, code), "{line}");
        }
        assert_eq!(
            read_for_server(b"{\"a\":\"\xff\"}").map_err(|(_, refusal)| refusal.code).err(),
            Some(PARSE_ERROR)
        );
        assert!(matches!(read_for_server(b"{\"id\":1,\"result\":null}"), Ok(Message::Answer { .. })));
        assert!(matches!(read_for_server(b"{\"id\":-1,\"method\":\"a\"}"), Ok(Message::Request(_))));
    }
}
