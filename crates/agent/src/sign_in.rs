//! What shows, without asking the provider, that somebody has signed an agent in.

use std::borrow::Cow;
use std::path::PathBuf;

/// One thing that would show that an agent is signed in. Only that it is there counts, never what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInClue {
    /// This variable is in the agent's environment, with some value.
    Variable(Cow<'static, str>),
    /// This file exists.
    File(PathBuf),
    /// This JSON file has this key at its top.
    Setting {
        /// The file.
        file: PathBuf,
        /// The key.
        key: &'static str,
    },
}

/// Whether an agent needs to be signed in, and what would show that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// It needs none.
    NotNeeded,
    /// Any one of these shows it.
    ShownBy(Vec<SignInClue>),
}
