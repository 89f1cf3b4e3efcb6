//! Model APIs: one question in, one streamed answer out, in any of the wire formats that providers speak.
//!
//! `conversation` is what is said, in words of no provider; `error` is what can go wrong, in the same classes for all.
//! It never runs a tool, keeps a session or knows of a goal.

mod conversation;
mod error;

pub use conversation::{
    Answer, Call, CallResult, Delta, Item, Native, Question, Said, Stop, ToolSpec, Usage, WireFormat,
};
pub use error::{ErrorClass, ProviderError};
