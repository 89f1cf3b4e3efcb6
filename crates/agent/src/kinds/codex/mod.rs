//! Codex: driven over the JSON-RPC of its app server.
//!
//! `plan` says what to start and how a conversation is asked for, `protocol` holds the conversation with the help of one
//! module per concern, and `classify` says what its end means. `wire` is what the app server really writes; nothing
//! outside this folder sees it.

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
