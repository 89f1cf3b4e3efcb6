//! Tests of conversations with Codex, on real and damaged recordings.

mod conversation;
mod damage;
mod plan;
mod recordings;
mod schema;
mod support;
mod talk;

pub(crate) use support::RECORDED;
