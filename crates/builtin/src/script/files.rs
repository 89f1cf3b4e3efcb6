//! Files that a script changes, always inside its working directory.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

/// A relative path without `..`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct InnerPath(String);

impl TryFrom<String> for InnerPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let inner = Path::new(&text)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        match inner && !text.is_empty() {
            true => Ok(Self(text)),
            false => {
                Err(format!("`{text}` leads outside the script's working directory; write a relative path"))
            }
        }
    }
}

impl InnerPath {
    /// The path as the script has it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Writes the whole file and creates missing folders.
    pub(super) fn write(&self, root: &Path, text: &str) -> io::Result<()> {
        let place = self.place(root)?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(place, text)
    }

    /// Replaces the first `from` by `to`. A missing `from` is an error.
    pub(super) fn replace(&self, root: &Path, from: &str, to: &str) -> io::Result<()> {
        let place = self.place(root)?;
        let text = fs::read_to_string(&place)?;
        if !text.contains(from) {
            return Err(io::Error::other(format!("the text to replace is not in {}: {from}", self.0)));
        }
        fs::write(place, text.replacen(from, to, 1))
    }

    /// The real path after following symlinks, which may not lead outside.
    fn place(&self, root: &Path) -> io::Result<PathBuf> {
        let root = root.canonicalize()?;
        let place = root.join(&self.0);
        let existing = place.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(&root);
        if existing.canonicalize()?.starts_with(&root) {
            return Ok(place);
        }
        Err(io::Error::other(format!("{} leads outside {}", self.0, root.display())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn path(text: &str) -> InnerPath {
        InnerPath::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn paths_that_lead_outside_are_refused() {
        for text in ["", "/etc/passwd", "..", "../a", "a/../../b", "a/.."] {
            assert!(InnerPath::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn symlinks_that_lead_outside_are_not_followed() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("safe"), "safe").unwrap();
        symlink(outside.path(), inside.path().join("folder")).unwrap();
        symlink(outside.path().join("safe"), inside.path().join("file")).unwrap();
        symlink(outside.path().join("new"), inside.path().join("dangling")).unwrap();
        for text in ["folder/new", "folder/deep/new", "folder/safe", "file", "dangling"] {
            path(text).write(inside.path(), "changed").expect_err(text);
        }
        path("file").replace(inside.path(), "safe", "changed").expect_err("replace through a symlink");
        let left: Vec<_> =
            fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["safe"]);
        assert_eq!(fs::read_to_string(outside.path().join("safe")).unwrap(), "safe");
    }

    #[test]
    fn only_the_first_occurrence_is_replaced_and_a_missing_one_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        path("deep/a.txt").write(root.path(), "one one").unwrap();
        path("deep/a.txt").replace(root.path(), "one", "two").unwrap();
        path("deep/a.txt").replace(root.path(), "three", "four").expect_err("the text is not there");
        assert_eq!(fs::read_to_string(root.path().join("deep/a.txt")).unwrap(), "two one");
    }
}
