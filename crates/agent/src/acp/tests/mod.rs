//! What is expected of conversations with ACP agents.

mod classify;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;
