//! Tests of conversations with ACP agents.

mod builtin;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;
mod traps;

pub(crate) use support::RECORDED;
