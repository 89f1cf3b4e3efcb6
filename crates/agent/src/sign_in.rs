//! What shows, without asking the provider, that an agent is signed in.

use std::borrow::Cow;
use std::path::PathBuf;

/// One sign that an agent is signed in. Only its existence counts, never its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInClue {
    /// This variable is in the agent's environment, with some value.
    Variable(Cow<'static, str>),
    /// This file exists.
    File(PathBuf),
    /// This JSON file has this key at its top level.
    Setting { file: PathBuf, key: &'static str },
}

/// Whether an agent needs to be signed in, and what would show that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    NotNeeded,
    /// Any one of these shows it.
    ShownBy(Vec<SignInClue>),
}
