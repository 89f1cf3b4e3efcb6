//! Agents that speak the Agent Client Protocol: JSON-RPC on lines, one process per attempt.
//!
//! `plan` says what to start, `protocol` holds the conversation with the help of one module per concern, and
//! `classify` says what its end means. All of it is the protocol's; what a known program does in its own way is in
//! `preset` alone. Files and terminals are the agent's own business: we offer neither, and refuse when asked.

mod agent;
mod builtin;
mod classify;
mod elicitation;
mod input;
mod opening;
mod plan;
mod preset;
mod protocol;
mod requests;
mod sent;
mod speech;
mod tools;
mod turn;
mod updates;
mod usage;
mod wire;

pub(crate) use agent::Acp;
pub(crate) use classify::{Meaning, meaning_of};
