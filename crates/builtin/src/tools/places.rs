//! Where the tools may read and write: inside the session's directory; reading also in further directories.
//!
//! Every path is resolved through its symlinks first, and the result counts. Commands are not bound by this: they run
//! as the agent itself.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The directories of a session.
#[derive(Debug)]
pub(super) struct Places {
    root: PathBuf,
    readable: Vec<PathBuf>,
}

impl Places {
    /// `root` may be read and written, `readable` only read.
    pub(super) fn new(root: &Path, readable: &[PathBuf]) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { root: real(root), readable: readable.iter().map(|path| real(path)).collect() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path for a description. It need not exist or be allowed.
    pub(super) fn named(&self, text: &str) -> PathBuf {
        self.resolve(text).unwrap_or_else(|_| self.root.join(text))
    }

    /// The path for answers: relative to the root if it is below.
    pub(super) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(inner) if inner.as_os_str().is_empty() => ".".to_owned(),
            Ok(inner) => inner.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// The resolved path, if it may be read and exists.
    pub(super) fn to_read(&self, text: &str) -> Result<PathBuf, String> {
        let place = self.resolve(text)?;
        if !place.starts_with(&self.root) && !self.readable.iter().any(|folder| place.starts_with(folder)) {
            return Err(self.outside(text, &place));
        }
        match place.symlink_metadata() {
            Ok(_) => Ok(place),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("`{text}` does not exist below {}; `list` shows what does", self.root.display()))
            }
            Err(error) => Err(format!("`{text}` cannot be read: {error}")),
        }
    }

    /// The resolved path, if it may be written. It need not exist.
    pub(super) fn to_write(&self, text: &str) -> Result<PathBuf, String> {
        let place = self.resolve(text)?;
        let Ok(inner) = place.strip_prefix(&self.root) else {
            return Err(self.outside(text, &place));
        };
        // The given path counts, too: `.git` may itself be a symlink.
        if has_git(inner) || has_git(Path::new(text).strip_prefix(&self.root).unwrap_or(Path::new(text))) {
            return Err(format!("`{text}` belongs to git and is not written by this tool; use git for that"));
        }
        match place.metadata() {
            Ok(data) if data.is_dir() => Err(format!("`{text}` is a folder; name a file in it")),
            Ok(data) if !data.is_file() => Err(format!("`{text}` is no ordinary file and is not written")),
            _ => Ok(place),
        }
    }

    /// Resolves symlinks in the part of the path that exists, and appends the rest.
    fn resolve(&self, text: &str) -> Result<PathBuf, String> {
        if text.is_empty() || text.contains('\0') {
            return Err(
                "the path is empty or has a zero byte; write one relative to the workspace".to_owned()
            );
        }
        let wanted = self.root.join(text);
        let there = wanted.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(&self.root);
        let rest = wanted.strip_prefix(there).unwrap_or(Path::new(""));
        if rest.components().any(|part| part == Component::ParentDir) {
            return Err(format!(
                "`{text}` goes back out of a folder that does not exist; write it without `..`"
            ));
        }
        let real = there.canonicalize().map_err(|error| {
            format!("`{text}` contains a symlink that cannot be followed ({error}); remove or repair it")
        })?;
        // Joining an empty path would add a slash.
        Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    }

    fn outside(&self, text: &str, place: &Path) -> String {
        let mut words = format!("`{text}`");
        if place != self.root.join(text) {
            words.push_str(&format!(" leads to {}, which", place.display()));
        }
        words.push_str(&format!(" is outside the workspace {}", self.root.display()));
        for folder in &self.readable {
            words.push_str(&format!(" (and {}, which may be read)", folder.display()));
        }
        words + "; only files inside may be used"
    }
}

fn has_git(path: &Path) -> bool {
    // On some file systems `.GIT` is the same as `.git`.
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scene {
        root: tempfile::TempDir,
        outside: tempfile::TempDir,
        readable: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let [root, outside, readable] = [(); 3].map(|()| tempfile::tempdir().unwrap());
            fs::create_dir_all(root.path().join("src/deep")).unwrap();
            fs::create_dir_all(root.path().join(".git/hooks")).unwrap();
            fs::write(root.path().join("src/a.txt"), "a").unwrap();
            fs::write(outside.path().join("secret"), "s").unwrap();
            fs::write(readable.path().join("notes"), "n").unwrap();
            symlink(outside.path(), root.path().join("out")).unwrap();
            symlink(outside.path().join("secret"), root.path().join("file")).unwrap();
            symlink(outside.path().join("new"), root.path().join("dangling")).unwrap();
            symlink("src", root.path().join("in")).unwrap();
            symlink(".git/hooks", root.path().join("hooks")).unwrap();
            symlink("loop", root.path().join("loop")).unwrap();
            Self { root, outside, readable }
        }

        fn places(&self) -> Places {
            Places::new(self.root.path(), &[self.readable.path().to_owned()])
        }
    }

    #[test]
    fn files_inside_are_read_by_any_of_their_names() {
        let scene = Scene::new();
        let places = scene.places();
        let file = places.root().join("src/a.txt");
        let absolute = file.to_str().unwrap().to_owned();
        for text in ["src/a.txt", "./src/../src/a.txt", "in/a.txt", "src//deep/../a.txt", &absolute] {
            assert_eq!(places.to_read(text).as_ref(), Ok(&file), "{text}");
        }
        let notes = scene.readable.path().join("notes").canonicalize().unwrap();
        assert_eq!(places.to_read(notes.to_str().unwrap()).as_ref(), Ok(&notes));
        assert_eq!(places.to_read("."), Ok(places.root().to_owned()));
        assert!(places.to_read("src/none").unwrap_err().contains("does not exist"));
    }

    #[test]
    fn paths_that_lead_outside_are_neither_read_nor_written() {
        let scene = Scene::new();
        let places = scene.places();
        let secret = scene.outside.path().join("secret").to_str().unwrap().to_owned();
        for text in [
            "/etc/passwd",
            "..",
            "../x",
            "src/../../x",
            "out/secret",
            "out/new",
            "file",
            "dangling",
            "loop",
            &secret,
        ] {
            places.to_read(text).expect_err(text);
            places.to_write(text).expect_err(text);
        }
        let words = places.to_write("out/secret").unwrap_err();
        assert!(words.contains(&secret) && words.contains("outside the workspace"), "{words}");
        // A readable directory may not be written.
        places.to_write(scene.readable.path().join("notes").to_str().unwrap()).expect_err("readable only");
        for text in ["", "a\0b", "none/../x", "none/../../x"] {
            places.to_write(text).expect_err(text);
        }
    }

    #[test]
    fn new_files_may_be_inside_but_not_in_git() {
        let scene = Scene::new();
        let places = scene.places();
        assert_eq!(places.to_write("new/deep/b.txt"), Ok(places.root().join("new/deep/b.txt")));
        assert_eq!(places.to_write("in/new.txt"), Ok(places.root().join("src/new.txt")));
        assert_eq!(places.to_write(".gitignore"), Ok(places.root().join(".gitignore")));
        let absolute = places.root().join(".git/config").to_str().unwrap().to_owned();
        for text in [".git", ".git/config", ".GIT/config", "sub/.git/config", "hooks/pre-commit", &absolute] {
            let words = places.to_write(text).expect_err(text);
            assert!(words.contains("belongs to git"), "{words}");
        }
        assert!(places.to_write("src").unwrap_err().contains("is a folder"));
    }
}
