//! Claude Code, driven over its two-way stream-json protocol.
//!
//! `agent` builds the command and the environment, `protocol` holds the conversation with one module per concern, and
//! `classify` interprets its end. `wire` is what the CLI writes; nothing outside this folder sees it.

mod agent;
mod classify;
mod compaction;
mod control;
mod input;
mod messages;
mod protocol;
mod result;
mod sign_in;
mod stream;
mod system;
mod tools;
mod usage;
mod wire;

pub(crate) use agent::Claude;
