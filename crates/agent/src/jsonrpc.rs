//! JSON-RPC on lines, for one side of it: who waits for which answer, and what a line is.
//!
//! Neighbours: agents that speak JSON-RPC (app servers, ACP). Our requests have ids that follow from what they are for,
//! not from a counter: a conversation that is read again from its log, where the operator's words are missing, must give
//! the same ids to the same requests.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::Text;
use crate::lines::line;

/// The version of JSON-RPC.
const VERSION: &str = "2.0";

/// The code for a method that is not known.
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;

/// Our side of a conversation; `Purpose` says what an answer is for.
#[derive(Debug)]
pub(crate) struct Peer<Purpose> {
    waiting: HashMap<String, Purpose>,
}

/// What a line from the other side is.
#[derive(Debug)]
pub(crate) enum Incoming<'a, Purpose> {
    /// The answer to a request of ours.
    Answer {
        /// What it was asked for.
        purpose: Purpose,
        /// The result, or what went wrong.
        result: Result<&'a RawValue, RpcError>,
    },
    /// An answer to nothing that we wait for.
    StrayAnswer,
    /// A request, which must be answered.
    Request(RpcRequest<'a>),
    /// News.
    Notification {
        /// What about.
        method: &'a str,
        /// The news.
        params: &'a RawValue,
    },
}

/// A request of the other side.
#[derive(Debug, Clone)]
pub(crate) struct RpcRequest<'a> {
    /// Its id, as it is to be repeated in the answer.
    pub(crate) id: &'a RawValue,
    /// What is asked.
    pub(crate) method: &'a str,
    /// With what.
    pub(crate) params: &'a RawValue,
}

/// What went wrong with a request of ours.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct RpcError {
    /// The code.
    #[serde(default)]
    pub(crate) code: i64,
    /// The words.
    #[serde(default)]
    pub(crate) message: String,
    /// More about it.
    #[serde(default)]
    pub(crate) data: Value,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    /// Method names have no escapes.
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

impl<Purpose> Default for Peer<Purpose> {
    fn default() -> Self {
        Self { waiting: HashMap::new() }
    }
}

impl<Purpose> Peer<Purpose> {
    /// A request under an id that no other request of this conversation has.
    pub(crate) fn request(
        &mut self,
        id: &str,
        purpose: Purpose,
        method: &str,
        params: impl Serialize,
    ) -> Vec<u8> {
        #[derive(Serialize)]
        struct Request<'a, P> {
            id: &'a str,
            jsonrpc: &'static str,
            method: &'a str,
            params: P,
        }
        self.waiting.insert(id.to_owned(), purpose);
        line(&Request { id, jsonrpc: VERSION, method, params })
    }

    /// Reads a line; none when it is no JSON-RPC.
    pub(crate) fn read<'a>(&mut self, text: &'a str) -> Option<Incoming<'a, Purpose>> {
        let line: Line<'a> = serde_json::from_str(text).ok()?;
        let params = line.params.unwrap_or(RawValue::NULL);
        match (line.method, line.id) {
            (Some(method), Some(id)) => Some(Incoming::Request(RpcRequest { id, method, params })),
            (Some(method), None) => Some(Incoming::Notification { method, params }),
            (None, Some(id)) => {
                let result = match (line.error, line.result) {
                    (Some(error), _) => Err(error),
                    (None, result) => Ok(result.unwrap_or(RawValue::NULL)),
                };
                let id: Option<Text<'_>> = serde_json::from_str(id.get()).ok();
                match id.and_then(|id| self.waiting.remove(id.as_str())) {
                    Some(purpose) => Some(Incoming::Answer { purpose, result }),
                    None => Some(Incoming::StrayAnswer),
                }
            }
            (None, None) => None,
        }
    }
}

/// News for the other side.
pub(crate) fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: P,
    }
    line(&Notification { jsonrpc: VERSION, method, params })
}

/// The answer to a request of the other side.
pub(crate) fn answer(id: &RawValue, result: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a, R> {
        id: &'a RawValue,
        jsonrpc: &'static str,
        result: R,
    }
    line(&Answer { id, jsonrpc: VERSION, result })
}

/// The refusal of a request of the other side.
pub(crate) fn refusal(id: &RawValue, code: i64, message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Refusal<'a> {
        error: Problem<'a>,
        id: &'a RawValue,
        jsonrpc: &'static str,
    }
    #[derive(Serialize)]
    struct Problem<'a> {
        code: i64,
        message: &'a str,
    }
    line(&Refusal { error: Problem { code, message }, id, jsonrpc: VERSION })
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
    fn an_answer_finds_what_it_was_asked_for_once() {
        let mut peer = Peer::default();
        let sent = peer.request("hello", 7, "initialize", json!({"a": 1}));
        let wanted = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"a": 1}});
        assert_eq!(parsed(&sent), wanted);
        let line = r#"{"id":"hello","result":{"b":2}}"#;
        let Some(Incoming::Answer { purpose: 7, result: Ok(result) }) = peer.read(line) else {
            panic!("no answer")
        };
        assert_eq!(result.get(), r#"{"b":2}"#);
        assert!(matches!(peer.read(line), Some(Incoming::StrayAnswer)));
    }

    #[test]
    fn an_error_is_an_answer_and_a_result_may_be_missing() {
        let mut peer = Peer::default();
        peer.request("a", (), "x", Value::Null);
        let failed = peer.read(r#"{"jsonrpc":"2.0","id":"a","error":{"code":401,"message":"no"}}"#);
        let error = RpcError { code: 401, message: "no".into(), data: Value::Null };
        assert!(matches!(failed, Some(Incoming::Answer { result: Err(found), .. }) if found == error));
        peer.request("b", (), "x", Value::Null);
        assert!(matches!(peer.read(r#"{"id":"b"}"#), Some(Incoming::Answer { result: Ok(_), .. })));
    }

    #[test]
    fn requests_of_the_other_side_are_answered_under_their_own_id() {
        let mut peer = Peer::<()>::default();
        for id in ["3", "\"three\""] {
            let text = format!(r#"{{"id":{id},"method":"fs/read","params":[1]}}"#);
            let Some(Incoming::Request(request)) = peer.read(&text) else { panic!("no request") };
            assert_eq!((request.method, request.params.get()), ("fs/read", "[1]"));
            assert_eq!(parsed(&answer(request.id, json!({})))["id"].to_string(), id);
            assert_eq!(
                parsed(&refusal(request.id, METHOD_NOT_FOUND, "no"))["error"]["code"],
                METHOD_NOT_FOUND
            );
        }
    }

    #[test]
    fn news_has_no_id_and_other_lines_are_not_json_rpc() {
        let mut peer = Peer::<()>::default();
        let news = peer.read(r#"{"method":"turn/completed"}"#);
        assert!(matches!(news, Some(Incoming::Notification { method: "turn/completed", .. })));
        assert_eq!(
            parsed(&notification("x", json!([1]))),
            json!({"jsonrpc": "2.0", "method": "x", "params": [1]})
        );
        for other in ["", "Error: x", "[]", "{}", "7", r#"{"result":1}"#] {
            assert!(peer.read(other).is_none(), "{other}");
        }
    }
}
