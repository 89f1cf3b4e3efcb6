//! Where a command's supervisor has its files.
//!
//! Each try has a directory with a name that nothing in the checkout can derive.

use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The place for the files of one command.
pub(crate) struct RunLogs {
    below: PathBuf,
    name: String,
}

impl RunLogs {
    /// Directories below `log_dir` whose names begin with `name`.
    pub(crate) fn new(log_dir: &Path, name: String) -> Self {
        Self { below: log_dir.to_owned(), name }
    }

    /// A directory that nobody has used.
    pub(crate) fn fresh(&self) -> PathBuf {
        self.below.join(unused(&self.name))
    }
}

/// An unused name that begins with this one.
pub(crate) fn unused(name: &str) -> String {
    format!("{name}-{}", Uuid::new_v4().simple())
}

/// What the name of a run's directory begins with.
pub(crate) fn name_of(run_dir: &Path) -> Option<&str> {
    Some(run_dir.file_name()?.to_str()?.rsplit_once('-')?.0)
}

/// Whether a directory of this name was made here.
pub(crate) fn is_run(name: &str) -> bool {
    let random = name.rsplit_once('-').map(|(_, random)| random);
    random.is_some_and(|random| random.len() == 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_runs_share_a_directory_and_each_is_known_by_its_name() {
        let logs = RunLogs::new(Path::new("/logs"), "1-unit-tests".into());
        let (first, second) = (logs.fresh(), logs.fresh());
        assert_ne!(first, second);
        assert!(is_run(first.file_name().unwrap().to_str().unwrap()));
        for name in ["1-unit-tests", "setup-1", "notes", "", "1-tests-0123456789abcdef"] {
            assert!(!is_run(name), "{name}");
        }
    }
}
