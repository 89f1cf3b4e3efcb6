//! What the scripted model answers to one request.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use super::Usage;

/// One answer: a message, an HTTP error or silence, with the way it is delivered.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) kind: Kind,
    pub(super) headers: HeaderMap,
    /// Headers whose value is worked out as the answer leaves.
    pub(super) late_headers: Vec<(HeaderName, fn() -> String)>,
    pub(super) delay: Duration,
}

/// What the client gets to see.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Message(Message),
    Error(ErrorReply),
    /// A stream that begins well and then reports an error.
    FailedStream(ErrorReply),
    Silence,
}

/// An HTTP error, whose body each API words in its own way.
#[derive(Debug, Clone)]
pub(super) struct ErrorReply {
    pub(super) status: ErrorStatus,
    pub(super) message: String,
    /// The API's word for the error, when it is not the one that goes with the status.
    pub(super) code: Option<String>,
}

/// The status of an error, which for one of them differs between the APIs.
#[derive(Debug, Clone, Copy)]
pub(super) enum ErrorStatus {
    Is(StatusCode),
    Overloaded,
}

/// A message of the assistant, and how much of its stream is sent.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) text: Option<String>,
    pub(super) tools: Vec<ToolCall>,
    pub(super) usage: Usage,
    pub(super) cut: Option<Cut>,
}

/// Where a stream is cut, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// How many events are sent.
    pub(super) after: usize,
    pub(super) how: CutHow,
}

/// What a client sees of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutHow {
    /// The connection breaks off.
    BrokenOff,
    /// The answer ends as if it were whole.
    EndedEarly,
}

/// A tool the model asks its client to run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's name as the client knows it, `Bash` for one. Where `OpenAI` Responses knows it within a namespace, that
    /// goes before it: `mcp__server/tool`.
    pub name: String,
    pub input: Value,
}

impl ToolCall {
    /// A call of the tool `name` with `input`.
    pub fn new(name: impl Into<String>, input: Value) -> Self {
        Self { name: name.into(), input }
    }
}

impl Reply {
    /// A message that ends the turn.
    pub fn text(text: impl Into<String>) -> Self {
        Self::message(Some(text.into()), Vec::new())
    }

    /// One tool call. The rule's next reply answers the request that brings its result.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::tools([ToolCall::new(name, input)])
    }

    /// Several tool calls in one message.
    pub fn tools(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::message(None, calls.into_iter().collect())
    }

    /// An HTTP error with the API's error body.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status)
            .unwrap_or_else(|_| panic!("a scripted reply has the status {status}, which is none of HTTP's"));
        Self::failing(ErrorStatus::Is(status), message)
    }

    /// 401: the key is not accepted.
    pub fn unauthorized() -> Self {
        Self::error(401, "scripted: invalid API key")
    }

    /// 429: a limit is reached. Add `retry-after` and the other headers with [`Reply::header`].
    pub fn rate_limited() -> Self {
        Self::error(429, "scripted: rate limit reached")
    }

    /// 500: the API failed.
    pub fn server_error() -> Self {
        Self::error(500, "scripted: internal server error")
    }

    /// The API is overloaded: 529 with Anthropic, 503 elsewhere.
    pub fn overloaded() -> Self {
        Self::failing(ErrorStatus::Overloaded, "scripted: overloaded")
    }

    /// A stream with status 200 that ends with the API's word of a failure, such as `context_length_exceeded` of
    /// `OpenAI` Responses. To a client that wants no stream it is a 500.
    pub fn failed_stream(code: impl Into<String>, message: impl Into<String>) -> Self {
        let status = ErrorStatus::Is(StatusCode::INTERNAL_SERVER_ERROR);
        let error = ErrorReply { status, message: message.into(), code: Some(code.into()) };
        Self::of(Kind::FailedStream(error))
    }

    /// No byte of an answer, with the connection held open.
    pub fn silence() -> Self {
        Self::of(Kind::Silence)
    }

    /// Sets the error code, in the place where the API has it, such as `insufficient_quota`.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        match &mut self.kind {
            Kind::Error(error) => error.code = Some(code.into()),
            other => panic!("Reply::code is for errors, and this reply is {other:?}"),
        }
        self
    }

    /// Puts a text block before the tool calls.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.expect_message("with_text").text = Some(text.into());
        self
    }

    /// Reports these counts instead of [`Usage::DEFAULT_REPLY`].
    pub fn usage(mut self, usage: Usage) -> Self {
        self.expect_message("usage").usage = usage;
        self
    }

    /// Breaks the connection off after `events` events of the stream; in the middle of the answer when it is none.
    pub fn cut_after(mut self, events: usize) -> Self {
        self.expect_message("cut_after").cut = Some(Cut { after: events, how: CutHow::BrokenOff });
        self
    }

    /// Ends the stream after `events` events, with all that HTTP wants for an end; in the middle of the answer when it is
    /// no stream.
    pub fn ends_after(mut self, events: usize) -> Self {
        self.expect_message("ends_after").cut = Some(Cut { after: events, how: CutHow::EndedEarly });
        self
    }

    /// Waits before each event of the stream; before the whole answer when it is not a stream.
    pub fn slow(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets a response header, such as `retry-after` or `anthropic-ratelimit-unified-status`.
    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        match (HeaderName::try_from(name), HeaderValue::try_from(&value)) {
            (Ok(name), Ok(value)) => self.headers.insert(name, value),
            _ => panic!("a scripted reply has a header that HTTP does not allow: {name:?}: {value:?}"),
        };
        self
    }

    /// Sets a response header to what `value` returns at the moment of the answer: for times that lie ahead, however
    /// long the client took to ask. A value that HTTP does not allow is left out.
    pub fn header_at_delivery(mut self, name: &str, value: fn() -> String) -> Self {
        let name = HeaderName::try_from(name).unwrap_or_else(|_| {
            panic!("a scripted reply has a header whose name HTTP does not allow: {name:?}")
        });
        self.late_headers.push((name, value));
        self
    }

    fn message(text: Option<String>, tools: Vec<ToolCall>) -> Self {
        Self::of(Kind::Message(Message { text, tools, usage: Usage::DEFAULT_REPLY, cut: None }))
    }

    fn failing(status: ErrorStatus, message: impl Into<String>) -> Self {
        Self::of(Kind::Error(ErrorReply { status, message: message.into(), code: None }))
    }

    fn of(kind: Kind) -> Self {
        Self { kind, headers: HeaderMap::new(), late_headers: Vec::new(), delay: Duration::ZERO }
    }

    fn expect_message(&mut self, what: &str) -> &mut Message {
        match &mut self.kind {
            Kind::Message(message) => message,
            other => panic!("Reply::{what} is for messages, and this reply is {other:?}"),
        }
    }
}
