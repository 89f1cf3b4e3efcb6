//! The built-in agent: serves the Agent Client Protocol on standard input and output, and uses the APIs of models.
//!
//! `server` reads and answers requests, `open` opens sessions, `turn` runs a prompt with `ask`, `calls` and
//! `compact`; `journal` records what happened, and `conversation` is derived from those records. The agent knows
//! nothing of goals, checks or workspaces: Towline drives it like any other agent, and so can an editor.
//!
//! Besides the protocol it sends notifications whose names begin with `_towline/`: `retrying` when the model is asked
//! again, `compacted` when the conversation was replaced by a summary, and `problem` when an MCP server cannot be
//! used or the provider counts no tokens. Of Towline it also requests `_towline/counted` before the model is asked.

mod ask;
mod calls;
mod clock;
mod compact;
mod content;
mod conversation;
mod hands;
mod instructions;
mod journal;
mod model;
mod open;
mod outbox;
mod price;
mod process;
mod progress;
mod record;
mod rpc;
mod server;
mod session;
mod settings;
mod trouble;
mod turn;
mod updates;

#[cfg(test)]
mod tests;

pub use price::{BadPrices, Prices};
pub use process::main;
pub use settings::{AcpSettings, wire_format};

pub use towline_agent::Fetch;
pub use towline_provider::{Key, WireFormat};
