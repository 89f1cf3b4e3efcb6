//! Gemini CLI without ACP: one prompt in, a stream of JSON out, and a conversation that outlives the process.
//!
//! `plan` says what to start, `protocol` reads the stream with the help of `speech` and `tools`, and `classify` says
//! what its end means. `wire` is what the CLI really writes. What is known about the program itself, such as its
//! environment and its sign-in, is the same as over ACP and stays there. Nothing is ever asked in this mode, so nothing
//! here knows of permissions or questions.

mod agent;
mod classify;
mod plan;
mod protocol;
mod speech;
mod tools;
mod wire;

pub(crate) use agent::Gemini;
