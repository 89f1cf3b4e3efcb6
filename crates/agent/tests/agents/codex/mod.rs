//! What must hold of the conversation with Codex, on recordings of the real thing and on damaged ones.

mod conversation;
mod damage;
mod plan;
mod recordings;
mod schema;
mod support;
mod talk;

pub(crate) use support::RECORDED;
