//! Which files of the user's an agent needs in a home of its own.

use std::path::PathBuf;

use crate::environment::Environment;

/// A directory of the user's in which an agent keeps files, and which of them it needs. All paths in the lists are relative to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFiles {
    /// The directory, as the agent finds it.
    pub directory: PathBuf,
    /// JSON files that sign the agent in. It gets copies, and one that it refreshed goes back to the user.
    pub credentials: &'static [&'static str],
    /// What the user wrote for it: settings, hooks, commands. It can only read them.
    pub settings: &'static [&'static str],
    /// Files that it rewrites all the time. It gets copies, which never go back.
    pub notes: &'static [&'static str],
}

impl OwnFiles {
    /// A directory without anything that the agent needs.
    pub(crate) const fn at(directory: PathBuf) -> Self {
        Self { directory, credentials: &[], settings: &[], notes: &[] }
    }
}

/// The directory that a variable names, or else the one of this name in the home.
pub(crate) fn named_or_below_home(environment: &Environment, variable: &str, below: &str) -> Option<PathBuf> {
    path_in(environment, variable).or_else(|| Some(path_in(environment, "HOME")?.join(below)))
}

/// The absolute path in a variable.
pub(crate) fn path_in(environment: &Environment, variable: &str) -> Option<PathBuf> {
    environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
