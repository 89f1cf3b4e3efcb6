//! Agents that speak the Agent Client Protocol: JSON-RPC on lines, one process per attempt.
//!
//! `agent` builds the command and the environment, `protocol` holds the conversation with one module per concern, and
//! `classify` interprets its end. All of it follows the protocol, except for what a known program does differently
//! (`preset`). We offer neither files nor terminals and refuse requests for them: agents have their own.

mod agent;
mod builtin;
mod classify;
mod elicitation;
mod input;
mod opening;
mod preset;
mod protocol;
mod requests;
mod speech;
mod tools;
mod turn;
mod updates;
mod usage;
mod wire;

pub(crate) use agent::Acp;
pub(crate) use classify::{Meaning, meaning_of};
