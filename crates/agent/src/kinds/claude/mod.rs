//! Claude Code: driven over its two-way stream-json protocol.
//!
//! `plan` says what to start, `protocol` holds the conversation with the help of one module per concern, and
//! `classify` says what its end means. `wire` is what the CLI really writes; nothing outside this folder sees it.

mod agent;
mod classify;
mod compaction;
mod control;
mod input;
mod messages;
mod plan;
mod protocol;
mod result;
mod sign_in;
mod stream;
mod system;
mod tools;
mod usage;
mod wire;

pub(crate) use agent::Claude;
