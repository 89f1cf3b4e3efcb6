//! Tests of conversations with Claude Code, on real and damaged recordings.

mod compaction;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;

pub(crate) use support::RECORDED;
