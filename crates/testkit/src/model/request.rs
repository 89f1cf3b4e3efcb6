//! What a client asked: the request log's entries, with the readings tests assert on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Usage;

/// One request as it arrived, and what it was told about its usage.
#[derive(Debug, Clone)]
pub struct Request {
    /// Counts from 1 over all requests.
    pub number: usize,
    /// Counts from 1 over the requests of real turns; none for side requests.
    pub turn: Option<usize>,
    /// The HTTP method.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// What stood after the `?`, or nothing.
    pub query: String,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The parsed body; null when it was not JSON or the log is full.
    pub body: Arc<Value>,
    /// When it arrived, counted from the server's start.
    pub at: Duration,
    /// The usage that was sent back so far.
    pub reported: Usage,
}

/// The result of one tool call, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// Its text.
    pub text: String,
    /// Whether the client marked it as failed.
    pub is_error: bool,
}

impl Request {
    /// All text blocks of the last user message. Agents put reminders of their own around the prompt.
    #[must_use]
    pub fn prompt_text(&self) -> String {
        self.last_user_blocks().iter().filter_map(|block| text_block(block)).collect::<Vec<_>>().join("\n")
    }

    /// All text of all messages, tool results included, the system prompt not.
    #[must_use]
    pub fn all_text(&self) -> String {
        let mut texts = Vec::new();
        for message in self.messages() {
            for block in blocks(&message["content"]) {
                match block["type"].as_str() {
                    Some("tool_result") => texts.push(joined_text(&block["content"])),
                    _ => texts.extend(text_block(&block).map(str::to_owned)),
                }
            }
        }
        texts.join("\n")
    }

    /// Whether the model may call tools: so it is with a real turn, and not with titles and other side requests.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// The tool results in the last user message.
    #[must_use]
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.last_user_blocks()
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| ToolResult {
                tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                text: joined_text(&block["content"]),
                is_error: block["is_error"].as_bool().unwrap_or(false),
            })
            .collect()
    }

    /// The value of a header, whose name is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it asks for a message, rather than for a token count or something unknown.
    pub(super) fn asks_for_message(&self) -> bool {
        self.method == "POST" && self.path == "/v1/messages"
    }

    /// Whether it belongs to a real turn.
    pub(super) fn is_turn(&self) -> bool {
        self.turn.is_some()
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn last_user_blocks(&self) -> Vec<Value> {
        let last = self.messages().iter().rev().find(|message| message["role"] == "user");
        last.map(|message| blocks(&message["content"])).unwrap_or_default()
    }
}

/// Content is a list of blocks, or one string that stands for a text block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

fn text_block(block: &Value) -> Option<&str> {
    if block["type"] == "text" { block["text"].as_str() } else { None }
}

fn joined_text(content: &Value) -> String {
    blocks(content).iter().filter_map(text_block).collect::<Vec<_>>().join("\n")
}
