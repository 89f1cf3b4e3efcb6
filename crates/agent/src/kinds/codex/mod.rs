//! Codex, driven over the JSON-RPC of its app server.
//!
//! `agent` builds the command and `plan` the request that opens a conversation, `protocol` holds the conversation with one
//! module per concern, and `classify` interprets its end. `wire` is what the app server writes; nothing outside this
//! folder sees it.

mod agent;
mod approvals;
mod classify;
mod input;
mod items;
mod limits;
mod opening;
mod plan;
mod protocol;
mod shell;
mod tools;
mod turn;
mod usage;
mod wire;

pub(crate) use agent::Codex;
