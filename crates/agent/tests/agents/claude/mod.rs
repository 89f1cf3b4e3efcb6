//! What must hold of the conversation with Claude Code, on recordings of the real thing and on damaged ones.

mod compaction;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;

pub(crate) use support::RECORDED;
