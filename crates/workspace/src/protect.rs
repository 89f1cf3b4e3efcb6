//! Paths that an agent may not change: patterns and matching. Restoring is `candidate`'s business, looking for
//! changes `diff`'s.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::WorkspaceError;

/// A set of paths, relative to the repository's root: those that are protected, or that are to stay untouched.
#[derive(Debug, Clone)]
pub struct Protect {
    globs: GlobSet,
}

impl Protect {
    /// Compiles patterns. `*` does not cross a slash, `**` does; a pattern that names a directory holds
    /// everything below it.
    pub fn new(patterns: &[String]) -> Result<Self, WorkspaceError> {
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns {
            let bad = |reason: String| WorkspaceError::BadGlob { pattern: pattern.clone(), reason };
            let path = pattern.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
            if path.is_empty() {
                return Err(bad("it names nothing".to_owned()));
            }
            if path.split('/').any(|part| part == "..") {
                return Err(bad("it leads out of the repository with `..`".to_owned()));
            }
            for form in [path.to_owned(), format!("{path}/**")] {
                let glob = GlobBuilder::new(&form).literal_separator(true).build();
                globs.add(glob.map_err(|error| bad(error.kind().to_string()))?);
            }
        }
        let globs = globs.build().map_err(|error| WorkspaceError::BadGlob {
            pattern: patterns.join(", "),
            reason: error.kind().to_string(),
        })?;
        Ok(Self { globs })
    }

    /// Protects nothing.
    pub fn nothing() -> Self {
        Self { globs: GlobSet::empty() }
    }

    /// Whether a path, relative to the repository's root, is in the set.
    pub fn covers(&self, path: &Path) -> bool {
        self.globs.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered<'a>(patterns: &[&str], paths: &[&'a str]) -> Vec<&'a str> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let protect = Protect::new(&patterns).unwrap();
        paths.iter().copied().filter(|path| protect.covers(Path::new(path))).collect()
    }

    #[test]
    fn a_pattern_covers_what_it_names_and_all_below() {
        let paths =
            ["tests", "tests/a.rs", "tests/deep/b.rs", "tests2/a.rs", "src/tests/a.rs", "towline.toml"];
        let below = ["tests/a.rs", "tests/deep/b.rs"];
        let with_itself = ["tests", "tests/a.rs", "tests/deep/b.rs"];
        assert_eq!(covered(&["tests/**"], &paths), below);
        assert_eq!(covered(&["tests"], &paths), with_itself);
        assert_eq!(covered(&["tests/"], &paths), with_itself);
        assert_eq!(covered(&["./tests"], &paths), with_itself);
        assert_eq!(
            covered(&["**/tests"], &paths),
            ["tests", "tests/a.rs", "tests/deep/b.rs", "src/tests/a.rs"]
        );
        assert_eq!(covered(&["towline.toml"], &paths), ["towline.toml"]);
        assert_eq!(covered(&["*"], &["a", "a/b"]), ["a", "a/b"]);
        assert_eq!(covered(&["*.toml"], &["a.toml", "b/a.toml"]), ["a.toml"]);
        assert_eq!(covered(&[], &paths), Vec::<&str>::new());
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused_by_name() {
        for pattern in ["", "/", "../other", "a/../../b", "a[", "{a"] {
            match Protect::new(&["tests".to_owned(), pattern.to_owned()]) {
                Err(WorkspaceError::BadGlob { pattern: named, .. }) => assert_eq!(named, pattern),
                other => panic!("{pattern:?} gave {other:?}"),
            }
        }
    }
}
