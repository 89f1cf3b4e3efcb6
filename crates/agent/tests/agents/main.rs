//! What must hold of every conversation with an agent, on recordings of real agents and on damaged ones.
//!
//! `recording` plays what is in `testdata`; `recordings` holds the tests that run for every protocol. What only one protocol
//! does is tested in the module of that name. Adding a protocol is a module here and a line in [`recording::recorded`].

#![expect(clippy::expect_used, reason = "what fails here fails the test")]

mod acp;
mod claude;
mod codex;
mod command;
mod end_kinds;
mod gemini;
mod kinds;
mod recording;
mod recordings;
mod script;
mod support;
