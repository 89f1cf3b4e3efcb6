//! Tests of conversations with agents, on real and damaged recordings.
//!
//! `recording` plays what is in `testdata`; `recordings` has the tests that run for every protocol. What only one
//! protocol does is tested in the module of that name.

#![expect(clippy::expect_used, reason = "what fails here fails the test")]

mod acp;
mod claude;
mod codex;
mod command;
mod end_kinds;
mod gemini;
mod kinds;
mod mcp;
mod permissions;
mod recording;
mod recordings;
mod script;
mod support;

use towline_agent::Kind;

use crate::recording::Recorded;

/// The recordings of a kind; `None` for text without a protocol, and for our own events.
fn recorded(kind: Kind) -> Option<&'static Recorded> {
    match kind {
        Kind::Claude => Some(&claude::RECORDED),
        Kind::Codex => Some(&codex::RECORDED),
        Kind::Acp | Kind::Builtin => Some(&acp::RECORDED),
        Kind::Gemini => Some(&gemini::RECORDED),
        Kind::Command | Kind::Script => None,
    }
}

/// The tests of all recordings, for each protocol.
mod each {
    crate::recordings::for_each_protocol! { claude codex acp gemini }
}
