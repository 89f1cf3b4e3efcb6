//! A hash of the files that `copy` names, so that a result that depends on them is known by it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::WorkspaceError;
use crate::copy::CopyPlan;

/// So much is read, of so many files and directories.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
const MOST_FILES: usize = 2_000;

/// What is still to be read.
struct Left {
    bytes: u64,
    files: usize,
}

/// A hash of names, modes and contents of what would be copied from here. None when it is too much to read each time, or
/// cannot be read.
pub fn digest_of_copies(from: &Path, names: &[String]) -> Result<Option<String>, WorkspaceError> {
    let mut hasher = Sha256::new();
    let mut left = Left { bytes: MOST_BYTES, files: MOST_FILES };
    for (name, source) in CopyPlan::new(from, names)?.items {
        hasher.update(name.as_os_str().as_bytes());
        hasher.update([0]);
        if add(&mut hasher, &source, &mut left).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(towline_core::hexadecimal(&hasher.finalize())))
}

/// Adds a file, a symlink or a directory with all that is in it.
fn add(hasher: &mut Sha256, path: &Path, left: &mut Left) -> Option<()> {
    left.files = left.files.checked_sub(1)?;
    let about = fs::symlink_metadata(path).ok()?;
    hasher.update(about.permissions().mode().to_le_bytes());
    if about.is_dir() {
        let entries = fs::read_dir(path).ok()?.map(|entry| Some(entry.ok()?.file_name()));
        let mut names = entries.take(left.files + 1).collect::<Option<Vec<_>>>()?;
        names.sort();
        for name in names {
            hasher.update(name.as_bytes());
            hasher.update([0]);
            add(hasher, &path.join(name), left)?;
        }
        hasher.update([0]);
        return Some(());
    }
    let content = if about.is_symlink() {
        fs::read_link(path).ok()?.as_os_str().as_bytes().to_vec()
    } else if about.is_file() {
        towline_files::read(path, left.bytes).ok()?
    } else {
        // It is not copied.
        Vec::new()
    };
    let length = u64::try_from(content.len()).ok()?;
    left.bytes = left.bytes.checked_sub(length)?;
    hasher.update(length.to_le_bytes());
    hasher.update(content);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_changes_with_everything_that_is_copied_and_with_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("config/deep")).unwrap();
        fs::write(root.join(".env"), "A=1\n").unwrap();
        fs::write(root.join("config/deep/settings"), "x").unwrap();
        fs::write(root.join("README.md"), "x").unwrap();
        let names = [".env".to_owned(), "config".to_owned(), "missing".to_owned()];
        let digest = || digest_of_copies(root, &names).unwrap().unwrap();
        let first = digest();
        fs::write(root.join("README.md"), "y").unwrap();
        assert_eq!(digest(), first);
        fs::write(root.join(".env"), "A=2\n").unwrap();
        let second = digest();
        fs::write(root.join("config/deep/more"), "").unwrap();
        let third = digest();
        fs::write(root.join("missing"), "").unwrap();
        let all = std::collections::BTreeSet::from([first, second, third, digest()]);
        assert_eq!(all.len(), 4);
        assert_ne!(digest_of_copies(root, &[]).unwrap(), digest_of_copies(root, &names[..1]).unwrap());
    }

    #[test]
    fn more_than_can_be_read_each_time_has_no_digest() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("many")).unwrap();
        for number in 0..MOST_FILES {
            fs::write(dir.path().join(format!("many/{number}")), "").unwrap();
        }
        assert_eq!(digest_of_copies(dir.path(), &["many".to_owned()]).unwrap(), None);
        let large = fs::File::create(dir.path().join("large")).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        assert_eq!(digest_of_copies(dir.path(), &["large".to_owned()]).unwrap(), None);
    }
}
