//! Any program that takes a prompt, prints text and exits: the kind `command`.
//!
//! `agent` builds the command line, `protocol` reads the output, and `patterns` finds in it what the settings say is
//! there. Such a program has no words for tools, permissions or questions, so nothing
//! here knows of any.

mod agent;
mod patterns;
mod protocol;
pub(crate) use agent::Command;
