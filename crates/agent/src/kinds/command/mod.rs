//! Any program that takes a prompt, prints text and exits: the kind `command`.
//!
//! `agent` builds the command line, `protocol` reads the output, and `patterns` finds in it what the settings
//! describe. Such a program cannot report tools, permissions or questions, so there is nothing about them here.

mod agent;
mod patterns;
mod protocol;
pub(crate) use agent::Command;
