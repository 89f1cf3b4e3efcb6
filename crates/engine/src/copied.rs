//! The secrets in the files that a goal has copied into its workspace and checkouts, such as `.env`.
//!
//! They are read where the user has them. What cannot be read is named, and nothing waits for it: the copy itself reports
//! what is wrong with a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use towline_core::Goal;
use towline_mask::{FileKind, Secrets};

/// A file of settings is not larger.
const LARGEST: u64 = 256 * 1024;
/// So many files and directories are looked at, and so deep: a copied directory may hold a whole tree of packages.
const MOST_FILES: usize = 500;
const DEEPEST: usize = 4;

/// What is secret in files, and what could not be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CopiedSecrets {
    pub secrets: Secrets,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// The secrets in the files that the goal names in `copy`.
pub fn copied_secrets(goal: &Goal) -> CopiedSecrets {
    secrets_in(Path::new(&goal.workspace.repository), &goal.workspace.copy)
}

fn secrets_in(root: &Path, names: &[String]) -> CopiedSecrets {
    let mut found = CopiedSecrets::default();
    let Ok(root) = root.canonicalize() else { return found };
    let named = names.iter().filter_map(|name| root.join(name).canonicalize().ok());
    let inside: Vec<PathBuf> = named.filter(|path| path.starts_with(&root)).collect();
    let mut left = MOST_FILES;
    let mut cut = None;
    for path in inside {
        look(&path, 0, &mut left, &mut cut, &mut found);
    }
    if let Some(path) = cut {
        found.warnings.push(format!(
            "secrets in {} and other files that `copy` names may not be masked: only {MOST_FILES} files and \
             directories are searched, and only {DEEPEST} levels deep",
            path.display()
        ));
    }
    found
}

/// Looks at a file, or at the files in a directory. Symlinks inside of it are not followed: what they lead to is inside too, or
/// is not copied. `cut` is the first path that was not looked at.
fn look(path: &Path, depth: usize, left: &mut usize, cut: &mut Option<PathBuf>, found: &mut CopiedSecrets) {
    let Some(rest) = left.checked_sub(1).filter(|_| depth <= DEEPEST) else {
        cut.get_or_insert_with(|| path.to_path_buf());
        return;
    };
    *left = rest;
    let Ok(about) = fs::symlink_metadata(path) else { return };
    if about.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        return entries.for_each(|entry| look(&entry.path(), depth + 1, left, cut, found));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kind = FileKind::of(&name);
    // In a directory only what holds secrets by its name counts: the rest is packages and caches.
    if depth > 0 && (kind == FileKind::Other || about.is_symlink()) {
        return;
    }
    match towline_files::read(path, LARGEST) {
        Ok(bytes) => found.secrets.file(kind, &name, &String::from_utf8_lossy(&bytes)),
        Err(error) if kind == FileKind::Other && error.kind() == io::ErrorKind::FileTooLarge => {}
        Err(error) => {
            let path = path.display();
            found
                .warnings
                .push(format!("secrets in {path} cannot be masked, because it cannot be read: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use towline_mask::Mask;

    use super::*;

    #[test]
    fn the_secrets_of_copied_files_are_found_and_odd_files_are_named() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let root = dir.path().join("project");
        fs::create_dir_all(root.join("config/deep")).expect("directories");
        for (path, text) in [
            (".env", "API=found-in-env-77f1\n"),
            ("settings.json", "{\"token\": \"found-in-json-77f1\", \"name\": \"left-in-json-77f1\"}"),
            ("config/deep/.env.local", "A=found-in-deep-77f1\n"),
            ("config/readme.txt", "token = left-in-text-77f1\n"),
            ("not-copied.env", "A=left-alone-77f1\n"),
            ("../outside.env", "A=left-outside-77f1\n"),
        ] {
            fs::write(root.join(path), text).expect("a file");
        }
        let fifo = root.join("fifo.env");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        fs::write(root.join("huge.env"), vec![b'x'; 300_000]).expect("a file");
        let names =
            [".env", "settings.json", "config", "fifo.env", "huge.env", "missing.env", "../outside.env"];
        let CopiedSecrets { secrets, warnings } = secrets_in(&root, &names.map(str::to_owned));
        let mask = Mask::new(&secrets);
        for text in ["found-in-env-77f1", "found-in-json-77f1", "found-in-deep-77f1"] {
            assert!(mask.finds(text), "{text}");
        }
        for text in ["left-in-json-77f1", "left-in-text-77f1", "left-alone-77f1", "left-outside-77f1"] {
            assert!(!mask.finds(text), "{text}");
        }
        let named = |name: &str| warnings.iter().any(|warning| warning.contains(name));
        assert_eq!((warnings.len(), named("fifo.env"), named("huge.env")), (2, true, true), "{warnings:?}");
    }

    #[test]
    fn files_beyond_the_limits_are_named() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let warnings = |name: &str| secrets_in(dir.path(), &[name.to_owned()]).warnings;
        fs::create_dir_all(dir.path().join("a/b/c/d/e")).expect("directories");
        assert_eq!(warnings("a"), [] as [String; 0]);
        fs::write(dir.path().join("a/b/c/d/e/.env"), "A=too-deep-77f1\n").expect("a file");
        let deep = warnings("a");
        assert!(deep.len() == 1 && deep[0].contains("a/b/c/d/e/.env"), "{deep:?}");

        fs::create_dir(dir.path().join("many")).expect("a directory");
        for number in 0..MOST_FILES {
            fs::write(dir.path().join(format!("many/{number}")), "").expect("a file");
        }
        assert_eq!(warnings("many").len(), 1);
    }
}
