//! What must hold of the conversation with Gemini CLI.

mod classify;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
