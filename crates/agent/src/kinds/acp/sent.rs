//! What agents are sent most: the same bytes each time, whatever wrote them, because a line that is in the log of what was
//! sent is not sent again. So fields are in the order of their names.

use serde::Serialize;
use serde_json::Value;

/// `session/new`, `session/load` and `session/resume`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSession<'a> {
    pub(super) cwd: &'a str,
    pub(super) mcp_servers: &'a Value,
    /// Of a session that is gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<&'a str>,
}

/// `session/set_mode`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetMode<'a> {
    pub(super) mode_id: &'a str,
    pub(super) session_id: &'a str,
}

/// `session/prompt`.
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
