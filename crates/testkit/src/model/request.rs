//! What a client asked: the request log's entries, with the readings tests assert on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::conversation::{ConversationMessage, Speaker};
use super::{Usage, WireFormat};

/// One request as it arrived, and the usage that was reported for it.
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
    /// The API that a message was asked of; none for token counts, lists of models and unknown paths.
    pub format: Option<WireFormat>,
    /// The query after the `?`, or nothing.
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
    pub text: String,
    /// Whether the client marked it as failed.
    pub is_error: bool,
}

impl Request {
    /// All text of the last user message: of all user messages since the model last spoke, in formats
    /// that make several messages of it. Agents put reminders of their own around the prompt.
    pub fn prompt_text(&self) -> String {
        self.last_of_user().map(|message| join(message.texts())).unwrap_or_default()
    }

    /// All text of all messages, tool results included, the system prompt not.
    pub fn all_text(&self) -> String {
        join(self.conversation().iter().flat_map(ConversationMessage::all_texts))
    }

    /// Whether the model may call tools: so it is with a real turn, and not with titles and other side requests.
    pub fn has_tools(&self) -> bool {
        self.format.is_some_and(|format| format.wire().has_tools(&self.body))
    }

    /// The names of the tools that the model may call at once, without a search for them. A tool in a namespace has both
    /// names, with a slash between them.
    pub fn tool_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect_names(&self.body["tools"], "", &mut names);
        names
    }

    /// The tool results in the last user message.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.last_of_user().map(|message| message.tool_results().cloned().collect()).unwrap_or_default()
    }

    /// The model that was asked, if the request names one.
    pub fn model(&self) -> Option<String> {
        self.format?.wire().model(&self.path, &self.body)
    }

    /// The value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it belongs to a real turn.
    pub fn is_turn(&self) -> bool {
        self.turn.is_some()
    }

    fn conversation(&self) -> Vec<ConversationMessage> {
        self.format.map(|format| format.wire().conversation(&self.body)).unwrap_or_default()
    }

    fn last_of_user(&self) -> Option<ConversationMessage> {
        self.conversation().into_iter().rev().find(|message| message.by == Speaker::User)
    }
}

/// Adds the names of the tools in a list, in which the formats put them at different depths.
fn collect_names(tools: &Value, namespace: &str, names: &mut Vec<String>) {
    for tool in tools.as_array().into_iter().flatten().filter(|tool| tool["defer_loading"] != true) {
        let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).unwrap_or_default();
        let lists =
            [&tool["tools"], &tool["functionDeclarations"]].into_iter().filter(|list| list.is_array());
        let before = names.len();
        for list in lists {
            let namespace =
                if name.is_empty() { namespace.to_owned() } else { format!("{namespace}{name}/") };
            collect_names(list, &namespace, names);
        }
        if names.len() == before && !name.is_empty() {
            names.push(format!("{namespace}{name}"));
        }
    }
}

fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}
