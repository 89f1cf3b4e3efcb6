//! Gemini CLI without ACP: one prompt in, a stream of JSON out, and a conversation that outlives the process.
//!
//! `agent` builds the command, `protocol` reads the stream with `speech` and `tools`, and `classify` interprets its
//! end. `wire` is what the CLI writes. The program's environment and sign-in are the same as over ACP, and are there.
//! This mode never asks anything, so there is nothing about permissions or questions here.

mod agent;
mod classify;
mod protocol;
mod speech;
mod tools;
mod wire;

pub(crate) use agent::Gemini;
