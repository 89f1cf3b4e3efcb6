//! Paths that an agent may not change: patterns and matching. `guard` finds the changed paths that a set protects,
//! `candidate` restores them, `diff` lists them. Sections of files are parsed by `section` and compared by `towline-check`.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use towline_core::Goal;

use crate::section::Section;
use crate::{WorkspaceError, section};

/// Files that decide how work is judged, at any depth: Towline reads the `towline.toml` that is nearest to where it is
/// started, git reads every `.gitattributes`, and git-lfs the `.lfsconfig` at the top.
const ALWAYS: [&str; 3] = ["towline.toml", ".gitattributes", ".lfsconfig"];

/// A set of paths, relative to the repository's root: those that are protected, or that are to stay untouched.
#[derive(Debug, Clone, Default)]
pub struct Protect {
    covered: GlobSet,
    /// Taken out of the set again.
    lifted: GlobSet,
    /// In the set whatever the patterns name.
    always: GlobSet,
    /// Directories that may contain a path of the set.
    above: GlobSet,
    /// The same, without patterns that apply in every directory.
    anchored_above: GlobSet,
    sections: Vec<Section>,
}

impl Protect {
    /// Compiles patterns of paths. `*` does not cross a slash, `**` does. A pattern that names a directory covers everything
    /// below it, and `dir/**` covers `dir` itself: a symlink in its place would replace everything below.
    pub fn new(patterns: &[String]) -> Result<Self, WorkspaceError> {
        patterns.iter().try_for_each(|pattern| section::must_be_path(pattern))?;
        let paths: Vec<Pattern> =
            patterns.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self {
            covered: compiled(paths.iter().flat_map(Pattern::forms))?,
            above: compiled(paths.iter().flat_map(|path| path.above(Reach::Everywhere)))?,
            anchored_above: compiled(paths.iter().flat_map(|path| path.above(Reach::Anchored)))?,
            ..Self::nothing()
        })
    }

    /// What no candidate of a goal may change: what the goal protects, and the files that are copied from the user's
    /// checkout. A file of the agent's by one of their names would take their place.
    pub fn of_candidate(goal: &Goal) -> Result<Self, WorkspaceError> {
        let copies = goal.workspace.copy.iter().map(|path| globset::escape(path));
        let protect: Vec<String> = goal.protect.iter().cloned().chain(copies).collect();
        Self::of(&protect, &goal.unprotect)
    }

    /// What a goal protects.
    pub fn of_goal(goal: &Goal) -> Result<Self, WorkspaceError> {
        Self::of(&goal.protect, &goal.unprotect)
    }

    /// The protection of a goal: its patterns and sections without those that are lifted, and the files that are always
    /// protected.
    pub fn of(protect: &[String], unprotect: &[String]) -> Result<Self, WorkspaceError> {
        if let Some(pattern) = unprotect.iter().find(|pattern| names_always(pattern)) {
            return Err(WorkspaceError::AlwaysProtected { path: pattern.clone() });
        }
        let (sections, paths) = section::split(protect)?;
        let (lifted_sections, lifted_paths) = section::split(unprotect)?;
        let lifted = Self::new(&lifted_paths)?.covered;
        let is_lifted = |section: &Section| {
            lifted_sections.contains(section) || lifted.is_match(Path::new(section.file()))
        };
        let always = ALWAYS.map(|name| format!("**/{name}"));
        let always: Vec<Pattern> =
            always.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self {
            sections: sections.into_iter().filter(|section| !is_lifted(section)).collect(),
            always: compiled(always.iter().flat_map(Pattern::forms))?,
            lifted,
            ..Self::new(&paths)?
        })
    }

    /// Protects nothing, not even what a goal always protects.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Whether a path, relative to the repository's root, is in the set.
    pub fn covers(&self, path: &Path) -> bool {
        self.always.is_match(path) || (self.covered.is_match(path) && !self.lifted.is_match(path))
    }

    /// The sections of files whose values must be as in the base.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Whether a directory at this path could contain a path of the set, so that a symlink there could lead to one.
    pub(crate) fn may_be_below(&self, directory: &Path) -> bool {
        self.above.is_match(directory) && !self.lifted.is_match(directory)
    }

    /// The same, for patterns that name this place. `**/conftest.py` names none.
    pub(crate) fn is_named_below(&self, directory: &Path) -> bool {
        self.anchored_above.is_match(directory) && !self.lifted.is_match(directory)
    }
}

/// Whether a goal with these patterns protects anything besides what is always protected.
pub fn protects_more_than_always(protect: &[String]) -> bool {
    protect.iter().any(|pattern| !names_always(pattern))
}

/// Whether a pattern names nothing but a file that is always protected.
fn names_always(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    ALWAYS.contains(&name)
}

/// Where a pattern's directories are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Everywhere,
    Anchored,
}

/// A pattern without the parts that mean nothing.
struct Pattern<'a> {
    /// As it was written, for errors.
    written: &'a str,
    path: &'a str,
}

impl<'a> Pattern<'a> {
    fn parse(written: &'a str) -> Result<Self, WorkspaceError> {
        let path = written.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
        let bad = |reason: &str| bad_glob(written, reason.to_owned());
        if path.is_empty() {
            return Err(bad("it names nothing"));
        }
        if path.split('/').any(|part| part == "..") {
            return Err(bad("it leads out of the repository with `..`"));
        }
        Ok(Self { written, path })
    }

    /// The globs that together match what the pattern covers, each with the pattern that it is made of.
    fn forms(&self) -> Vec<(&'a str, String)> {
        let mut forms = vec![self.path.to_owned(), format!("{}/**", self.path)];
        // Only a plain name is surely a directory: `packages/*/**` is not about files in `packages`.
        let is_plain = |name: &str| !name.contains(['*', '?', '[', '{', '\\']);
        let itself = self.path.strip_suffix("/**");
        forms.extend(itself.filter(|path| path.rsplit('/').next().is_some_and(is_plain)).map(str::to_owned));
        forms.into_iter().map(|form| (self.written, form)).collect()
    }

    /// Globs of the directories in which something of the pattern may be.
    fn above(&self, reach: Reach) -> Vec<(&'a str, String)> {
        let everywhere = || vec![(self.written, "**".to_owned())];
        if self.path.contains('{') {
            // A slash in braces cannot be split at.
            return everywhere();
        }
        let parts: Vec<&str> = self.path.split('/').collect();
        let fixed = parts.iter().take_while(|part| **part != "**").count();
        if fixed == 0 {
            return if reach == Reach::Everywhere { everywhere() } else { Vec::new() };
        }
        let mut above: Vec<String> =
            (1..=fixed.min(parts.len() - 1)).map(|end| parts[..end].join("/")).collect();
        if fixed < parts.len() {
            above.push(format!("{}/**", parts[..fixed].join("/")));
        }
        above.into_iter().map(|form| (self.written, form)).collect()
    }
}

fn compiled<'a>(forms: impl Iterator<Item = (&'a str, String)>) -> Result<GlobSet, WorkspaceError> {
    let mut globs = GlobSetBuilder::new();
    let mut all = Vec::new();
    for (written, form) in forms {
        let glob = GlobBuilder::new(&form).literal_separator(true).build();
        globs.add(glob.map_err(|error| bad_glob(written, error.kind().to_string()))?);
        all.push(written);
    }
    globs.build().map_err(|error| bad_glob(&all.join(", "), error.kind().to_string()))
}

pub(crate) fn bad_glob(pattern: &str, reason: String) -> WorkspaceError {
    WorkspaceError::BadGlob { pattern: pattern.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn among<'a>(protect: &Protect, paths: &[&'a str]) -> Vec<&'a str> {
        paths.iter().copied().filter(|path| protect.covers(Path::new(path))).collect()
    }

    fn covered<'a>(patterns: &[&str], paths: &[&'a str]) -> Vec<&'a str> {
        among(&Protect::new(&strings(patterns)).unwrap(), paths)
    }

    #[test]
    fn a_pattern_covers_what_it_names_and_all_below() {
        let paths =
            ["tests", "tests/a.rs", "tests/deep/b.rs", "tests2/a.rs", "src/tests/a.rs", "towline.toml"];
        let with_itself = ["tests", "tests/a.rs", "tests/deep/b.rs"];
        for pattern in ["tests/**", "tests", "tests/", "./tests"] {
            assert_eq!(covered(&[pattern], &paths), with_itself, "{pattern}");
        }
        assert_eq!(
            covered(&["**/tests"], &paths),
            ["tests", "tests/a.rs", "tests/deep/b.rs", "src/tests/a.rs"]
        );
        assert_eq!(covered(&["towline.toml"], &paths), ["towline.toml"]);
        assert_eq!(covered(&["*"], &["a", "a/b"]), ["a", "a/b"]);
        assert_eq!(covered(&["*/**"], &["a", "a/b"]), ["a/b"]);
        assert_eq!(covered(&["*.toml"], &["a.toml", "b/a.toml"]), ["a.toml"]);
        assert_eq!(covered(&[], &paths), Vec::<&str>::new());
    }

    #[test]
    fn a_goal_protects_its_patterns_without_the_lifted_ones_and_three_files_always() {
        let paths = [
            "tests/a.rs",
            "tests/b.rs",
            "src/a.rs",
            "towline.toml",
            "web/towline.toml",
            "a/.gitattributes",
            ".lfsconfig",
        ];
        let of = |protect: &[&str], unprotect: &[&str]| {
            among(&Protect::of(&strings(protect), &strings(unprotect)).unwrap(), &paths)
        };
        let always = &paths[3..];
        assert_eq!(of(&[], &[]), always);
        assert_eq!(of(&[], &["**"]), always);
        assert_eq!(of(&["tests/**"], &[]), [&paths[..2], always].concat());
        assert_eq!(of(&["tests/**"], &["tests/a.rs"]), [&paths[1..2], always].concat());
        assert_eq!(of(&["tests/**"], &["tests"]), always);
    }

    #[test]
    fn what_is_always_protected_cannot_be_lifted() {
        for path in [
            "towline.toml",
            "./towline.toml",
            ".gitattributes",
            "web/.gitattributes",
            "**/.gitattributes",
            ".lfsconfig",
        ] {
            match Protect::of(&[], &strings(&["tests", path])) {
                Err(WorkspaceError::AlwaysProtected { path: named }) => assert_eq!(named, path),
                other => panic!("{path:?} gave {other:?}"),
            }
        }
        assert!(!protects_more_than_always(&strings(&["towline.toml", "**/.gitattributes"])));
        assert!(protects_more_than_always(&strings(&["towline.toml", "tests"])));
        assert!(protects_more_than_always(&strings(&["package.json#scripts"])));
    }

    #[test]
    fn sections_are_lifted_by_their_name_or_by_their_file() {
        let protect = strings(&["package.json#scripts", "package.json#jest", "web/package.json#scripts"]);
        let left = |unprotect: &[&str]| {
            let protect = Protect::of(&protect, &strings(unprotect)).unwrap();
            protect.sections().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(left(&[]), protect);
        assert_eq!(left(&["package.json#scripts"]), protect[1..]);
        assert_eq!(left(&["package.json"]), protect[2..]);
        assert_eq!(left(&["**/package.json"]), Vec::<String>::new());
    }

    #[test]
    fn directories_that_may_contain_a_path_are_known() {
        let may_be_below = |pattern: &str, paths: &[&str]| -> Vec<(bool, bool)> {
            let protect = Protect::new(&strings(&[pattern])).unwrap();
            let both = |path: &&str| {
                (protect.may_be_below(Path::new(path)), protect.is_named_below(Path::new(path)))
            };
            paths.iter().map(both).collect()
        };
        let (no, yes) = ((false, false), (true, true));
        assert_eq!(may_be_below("a/b/*.py", &["a", "a/b", "a/c", "a/b/c", "b"]), [yes, yes, no, no, no]);
        assert_eq!(may_be_below("a/**", &["a", "a/b", "b"]), [yes, yes, no]);
        assert_eq!(may_be_below("a/**/b/c", &["a", "a/x", "b"]), [yes, yes, no]);
        assert_eq!(may_be_below("*/b", &["a", "a/b"]), [yes, no]);
        assert_eq!(may_be_below("**/conftest.py", &["a", "a/b"]), [(true, false), (true, false)]);
        assert_eq!(may_be_below("{a,b/c}/d", &["a", "b"]), [yes, yes]);
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused_by_name() {
        let assert_refused = |pattern: &str, made| match made {
            Err(WorkspaceError::BadGlob { pattern: named, .. }) => assert_eq!(named, pattern),
            other => panic!("{pattern:?} gave {other:?}"),
        };
        for pattern in ["", "/", "../other", "a/../../b", "a[", "{a", "a.json#x", "a.yaml#x"] {
            assert_refused(pattern, Protect::new(&strings(&["tests", pattern])));
        }
        for pattern in ["", "a.json#", "a[.json#x", "../a.json#x", "#x", "a.yaml#x", "a.json#x..y"] {
            assert_refused(pattern, Protect::of(&strings(&["tests", pattern]), &[]));
        }
    }
}
