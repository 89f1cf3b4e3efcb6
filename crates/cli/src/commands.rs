//! One module per command.

pub(crate) mod accounts;
pub(crate) mod acp;
pub(crate) mod add;
pub(crate) mod agents;
pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod cost;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod enter;
pub(crate) mod foreground;
pub(crate) mod gc;
pub(crate) mod init;
mod journal;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod merge;
pub(crate) mod open;
pub(crate) mod proof;
pub(crate) mod push;
pub(crate) mod questions;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod retry;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod service;
pub(crate) mod show;
pub(crate) mod steer;
pub(crate) mod trust;
mod typing;
pub(crate) mod up;
pub(crate) mod verify;
pub(crate) mod watch;
mod watching;

/// The code of a process that a person stopped.
const STOPPED: u8 = 130;
