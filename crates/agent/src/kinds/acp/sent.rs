//! The most frequent messages to agents. Their bytes must always be the same, because a line in the log of sent lines
//! is not sent again. So fields are in the order of their names.

use serde::Serialize;
use serde_json::Value;

/// `session/new`, `session/load` and `session/resume`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSession<'a> {
    pub(super) cwd: &'a str,
    pub(super) mcp_servers: &'a Value,
    /// The id of a session to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<&'a str>,
}

/// The parameters of `session/set_mode`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetMode<'a> {
    pub(super) mode_id: &'a str,
    pub(super) session_id: &'a str,
}

/// The parameters of `session/prompt`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt<'a> {
    pub(super) prompt: &'a [Block<'a>],
    pub(super) session_id: &'a str,
}

/// A piece of a prompt.
#[derive(Serialize)]
pub(super) struct Block<'a> {
    text: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> Block<'a> {
    pub(super) const fn text(text: &'a str) -> Self {
        Self { text, kind: "text" }
    }
}
