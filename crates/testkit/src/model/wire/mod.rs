//! The wire formats of the model APIs: what each reads out of a request, and how each writes a message or an error.
//!
//! [`WireFormat`] knows a format by the path that was asked for; [`Wire`] is what every format can do. One module per
//! format implements it, and knows nothing of scripts, sockets or the other formats.

mod anthropic;
mod gemini;
mod openai;
mod openai_chat;
mod openai_responses;

use axum::http::HeaderMap;
use serde_json::Value;

use super::Usage;
use super::conversation::ConversationMessage;
use super::reply::{ErrorReply, Message};

/// A long text is sent in no more pieces than this.
const MAX_TEXT_DELTAS: usize = 32;

/// The API that a request is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// Anthropic Messages, `/v1/messages`.
    Anthropic,
    /// `OpenAI` Responses, `/v1/responses`.
    OpenAiResponses,
    /// `OpenAI` chat completions, `/v1/chat/completions`.
    OpenAiChat,
    /// Gemini, `/v1beta/models/MODEL:generateContent` and `:streamGenerateContent`.
    Gemini,
}

impl WireFormat {
    /// The format of the requests for a message at `path`, if it is one where messages are to be had.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/responses" => Some(Self::OpenAiResponses),
            "/v1/chat/completions" => Some(Self::OpenAiChat),
            _ => gemini::asks_for_message(path).then_some(Self::Gemini),
        }
    }

    /// The format that a client expects errors in at `path`, which may be unknown.
    pub(super) fn of_errors_at(path: &str) -> Self {
        let gemini = gemini::model_and_method(path).is_some();
        Self::of_path(path).unwrap_or(if gemini { Self::Gemini } else { Self::Anthropic })
    }

    /// What the format can do.
    pub(super) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Anthropic => &anthropic::Anthropic,
            Self::OpenAiResponses => &openai_responses::OpenAiResponses,
            Self::OpenAiChat => &openai_chat::OpenAiChat,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

/// How one API reads and writes.
pub(super) trait Wire: Sync {
    /// The words that begin the ids of a message and of a tool call.
    fn id_prefixes(&self) -> (&'static str, &'static str);

    /// The conversation so far, without the system prompt.
    fn conversation(&self, body: &Value) -> Vec<ConversationMessage>;

    /// Whether the model may call tools of the client.
    fn has_tools(&self, body: &Value) -> bool {
        body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// The model that is asked.
    fn model(&self, _path: &str, body: &Value) -> Option<String> {
        body["model"].as_str().map(str::to_owned)
    }

    /// Whether the answer is to be a stream.
    fn wants_stream(&self, _path: &str, body: &Value) -> bool {
        body["stream"] == true
    }

    /// The events of a streamed message, in order; `asked` is the body of the request.
    fn stream_events(&self, message: &Message, names: &Names, asked: &Value) -> Vec<StreamEvent>;

    /// The events of a stream that fails.
    fn failure_events(&self, _model: &str, error: &ErrorReply) -> Vec<StreamEvent> {
        vec![StreamEvent::unnamed(&self.error_body(500, error, &HeaderMap::new()))]
    }

    /// The message in one piece, for a client that did not ask for a stream.
    fn whole_message(&self, message: &Message, names: &Names) -> Value;

    /// What a client can know of a usage: a format may lack the words for some of it.
    fn reportable(&self, usage: Usage) -> Usage {
        usage
    }

    /// The status of an API that has too much to do.
    fn overloaded(&self) -> u16 {
        503
    }

    /// The body of an HTTP error that goes out with `headers`.
    fn error_body(&self, status: u16, error: &ErrorReply, headers: &HeaderMap) -> Value;
}

/// The answer to a question about tokens. Four bytes to a token is near enough: nothing that is tested depends on it.
pub(super) fn token_count(path: &str, body_bytes: usize) -> Option<Value> {
    let tokens = body_bytes / 4;
    if path == "/v1/messages/count_tokens" {
        return Some(serde_json::json!({"input_tokens": tokens}));
    }
    let (_, method) = gemini::model_and_method(path)?;
    (method == "countTokens").then(|| serde_json::json!({"totalTokens": tokens}))
}

/// The list of models, in a form that the clients of every format understand.
pub(super) fn model_list(path: &str) -> Option<Value> {
    let (id, name) = ("scripted-model", "models/scripted-model");
    match path {
        "/v1/models" => Some(serde_json::json!({
            "object": "list",
            "data": [{
                "id": id, "object": "model", "created": 0, "owned_by": "scripted",
                "type": "model", "display_name": id, "created_at": "1970-01-01T00:00:00Z",
            }],
            "has_more": false, "first_id": id, "last_id": id,
        })),
        "/v1beta/models" => Some(serde_json::json!({
            "models": [{
                "name": name, "displayName": id, "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            }],
        })),
        _ => None,
    }
}

/// The names that one message is known by.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) message_id: String,
    pub(super) tool_ids: Vec<String>,
    pub(super) model: String,
}

impl Names {
    /// Names for the answer to the `number`th request of a server.
    pub(super) fn new(wire: &dyn Wire, number: usize, message: &Message, model: String) -> Self {
        let (message_prefix, call_prefix) = wire.id_prefixes();
        Self {
            message_id: format!("{message_prefix}{number:06}"),
            tool_ids: (1..=message.tools.len())
                .map(|call| format!("{call_prefix}{number:06}_{call}"))
                .collect(),
            model,
        }
    }
}

/// One server-sent event, and the usage that its reader knows of once it has it.
#[derive(Debug, Clone)]
pub(super) struct StreamEvent {
    /// The bytes on the wire.
    pub(super) frame: String,
    pub(super) reports: Option<Usage>,
}

impl StreamEvent {
    /// An event that is named by the `type` of its data.
    fn named(data: &Value) -> Self {
        let name = data["type"].as_str().unwrap_or_default();
        Self { frame: format!("event: {name}\ndata: {data}\n\n"), reports: None }
    }

    /// An event without a name.
    fn unnamed(data: &impl std::fmt::Display) -> Self {
        Self { frame: format!("data: {data}\n\n"), reports: None }
    }

    /// The same event, after which the client knows of `usage`.
    fn reporting(self, usage: Usage) -> Self {
        Self { reports: Some(usage), ..self }
    }
}

/// Cuts a text between words, as a model's tokens would.
fn text_pieces(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    words.chunks(words.len().div_ceil(MAX_TEXT_DELTAS).max(1)).map(<[&str]>::concat).collect()
}

fn halves(text: &str) -> [&str; 2] {
    text.split_at(text.floor_char_boundary(text.len() / 2)).into()
}
