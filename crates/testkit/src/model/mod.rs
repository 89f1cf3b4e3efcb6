//! Scripted model APIs on loopback, so that a real agent CLI can be driven without a network.
//!
//! One server speaks Anthropic Messages, `OpenAI` Responses, `OpenAI` chat completions and Gemini at the same time.
//! [`ModelServer`] serves, a [`Script`] of [`Rule`]s decides what it answers, [`Request`] is what it was asked. It
//! never talks to anything but its clients, and it never understands a prompt: rules only look for text.

mod conversation;
mod reply;
mod request;
mod script;
mod server;
mod usage;
mod wire;

pub use reply::{Reply, ToolCall};
pub use request::{Request, ToolResult};
pub use script::{Matcher, Rule, Script};
pub use server::ModelServer;
pub use usage::Usage;
pub use wire::WireFormat;
