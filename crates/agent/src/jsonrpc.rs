//! JSON-RPC on lines, for one side of it: who waits for which answer, and what a line is.
//!
//! Neighbours: agents that speak JSON-RPC (app servers, ACP). Our requests have ids that follow from what they are for,
//! not from a counter: a conversation that is read again from its log, where the operator's words are missing, must give
//! the same ids to the same requests.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{self, Text};

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

/// An answer whose result is yet to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsualAnswer<'a, Purpose> {
    /// The id of our request.
    pub(crate) id: &'a str,
    /// What it was asked for.
    pub(crate) purpose: Purpose,
    /// The result.
    pub(crate) result: &'a str,
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

    /// The request of ours that a line answers, and the result, which is yet to be read; none when the line does not
    /// begin in the usual way. A result that is no whole JSON means that there is more to the line than this.
    pub(crate) fn usual_answer<'a>(&self, line: &'a str) -> Option<UsualAnswer<'a, Purpose>>
    where
        Purpose: Copy,
    {
        let (id, rest) = json::short_text(after_name("id", after_version(line)?)?)?;
        let result = after_name("result", rest.strip_prefix(',')?)?.strip_suffix('}')?;
        let purpose = *self.waiting.get(id)?;
        Some(UsualAnswer { id, purpose, result })
    }

    /// A request of ours has its answer.
    pub(crate) fn is_answered(&mut self, id: &str) {
        self.waiting.remove(id);
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

/// The parameters of news of this method, which are yet to be read; none when the line does not begin in the usual way.
/// Parameters that are no whole JSON mean that there is more to the line than this.
pub(crate) fn usual_news<'a>(method: &str, line: &'a str) -> Option<&'a str> {
    let (found, rest) = json::short_text(after_name("method", after_version(line)?)?)?;
    if found != method {
        return None;
    }
    after_name("params", rest.strip_prefix(',')?)?.strip_suffix('}')
}

/// The fields of a line but for the version, where that comes first.
fn after_version(line: &str) -> Option<&str> {
    let fields = line.strip_prefix('{')?;
    let version = after_name("jsonrpc", fields);
    Some(version.and_then(|version| version.strip_prefix(r#""2.0","#)).unwrap_or(fields))
}

/// What follows the name of this field. Both usual ways to write JSON are known: without spaces, and with one after each
/// comma and colon.
fn after_name<'a>(name: &str, fields: &'a str) -> Option<&'a str> {
    let field = fields.strip_prefix(' ').unwrap_or(fields);
    let value = field.strip_prefix('"')?.strip_prefix(name)?.strip_prefix("\":")?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

/// The parameters of a line in one go; none when it is no news, or they are of another shape.
pub(crate) fn params_of_news<'a, T: Deserialize<'a>>(line: &'a str) -> Option<T> {
    #[derive(Deserialize)]
    struct News<T> {
        id: Option<IgnoredAny>,
        params: T,
    }
    let news: News<T> = serde_json::from_str(line).ok()?;
    news.id.is_none().then_some(news.params)
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

/// What is given here are plain values, which can always be written.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
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
    fn a_usual_answer_is_known_by_its_beginning() {
        let mut peer = Peer::default();
        peer.request("hello", 7, "initialize", Value::Null);
        let wanted = Some(UsualAnswer { id: "hello", purpose: 7, result: r#"{"b":2}"# });
        for line in [
            r#"{"id":"hello","result":{"b":2}}"#,
            r#"{"jsonrpc":"2.0","id":"hello","result":{"b":2}}"#,
            r#"{"jsonrpc": "2.0", "id": "hello", "result": {"b":2}}"#,
        ] {
            assert_eq!(peer.usual_answer(line), wanted, "{line}");
        }
        for other in [
            r#"{"id":"other","result":{}}"#,
            r#"{"id":7,"result":{}}"#,
            r#"{"id":"hello","error":{}}"#,
            r#"{"id":"hello","result":{}"#,
            r#"{"id":"hello","method":"x","result":{}}"#,
        ] {
            assert!(peer.usual_answer(other).is_none_or(|answer| answer.result == "{"), "{other}");
        }
        peer.is_answered("hello");
        assert_eq!(peer.usual_answer(r#"{"id":"hello","result":{}}"#), None);
    }

    #[test]
    fn usual_news_is_known_by_its_beginning() {
        for line in [
            r#"{"method":"a/b","params":[1]}"#,
            r#"{"jsonrpc":"2.0","method":"a/b","params":[1]}"#,
            r#"{"jsonrpc": "2.0", "method": "a/b", "params": [1]}"#,
        ] {
            assert_eq!(usual_news("a/b", line), Some("[1]"), "{line}");
        }
        for other in [
            "",
            "{}",
            r#"{"method":"a/b"}"#,
            r#"{"method":"a/c","params":[1]}"#,
            r#"{"method":"a\/b","params":[1]}"#,
            r#"{"id":1,"method":"a/b","params":[1]}"#,
            r#"{"method":"a/b","params":[1]"#,
        ] {
            assert_eq!(usual_news("a/b", other), None, "{other}");
        }
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
    fn the_parameters_of_news_are_read_in_one_go() {
        let line = r#"{"method":"a/b","params":[1],"more":2}"#;
        assert_eq!(params_of_news(line), Some([1]));
        for other in
            [r#"{"method":"a","id":1,"params":[1]}"#, r#"{"method":"a"}"#, r#"{"method":"a","params":[1]"#]
        {
            assert_eq!(params_of_news::<[u8; 1]>(other), None, "{other}");
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
