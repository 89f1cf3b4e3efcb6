//! Model APIs: one question in, one streamed answer out, in any of the wire formats that providers speak.
//!
//! `conversation` has the messages, independent of the provider; `error` is what can go wrong, in the same classes for all.
//! `client` talks HTTP to an `endpoint`; `wire` has one module per format, which never sees a socket; `sse` and `reader`
//! are between the two. `complaint` and `retry` read what a provider reports when it refuses.
//! It never runs a tool, keeps a session, tries again or knows of a goal.

mod client;
mod complaint;
mod conversation;
mod endpoint;
mod error;
mod reader;
mod retry;
mod sse;
mod wire;

pub use client::{Client, Timeouts};
pub use conversation::{
    Answer, Call, CallResult, Delta, Item, ModelMessage, Native, Question, Stop, ToolSpec, Usage, WireFormat,
};
pub use endpoint::{Endpoint, Key};
pub use error::{ErrorClass, ProviderError};
