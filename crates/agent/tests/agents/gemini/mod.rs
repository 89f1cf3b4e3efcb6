//! Tests of conversations with Gemini CLI.

mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;

pub(crate) use support::RECORDED;
