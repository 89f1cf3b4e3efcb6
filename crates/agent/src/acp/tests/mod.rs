//! What is expected of conversations with ACP agents.

mod builtin;
mod classify;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;
