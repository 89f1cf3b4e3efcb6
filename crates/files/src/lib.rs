//! Files in places that others can write to: the state directory, a workspace, git's data.
//!
//! An agent runs as the same user, so it can put a FIFO, a device or a symlink where a file is expected. These functions open
//! regular files only, never follow a symlink in the last part of a path, never wait for a writer, and read no more than the
//! caller allows. They know nothing of what is in the files.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};

/// Opened without waiting and without following a symlink.
const CAREFULLY: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whoever owns the file reads and writes it, nobody else.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Opens a regular file to read.
pub fn open(path: &Path) -> io::Result<File> {
    regular(rustix::fs::open(path, OFlags::RDONLY | CAREFULLY, Mode::empty())?)
}

/// Reads a regular file whole. One with more than `limit` bytes is an error.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("it has more than the {limit} bytes that are expected at most");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The same; `None` when there is no file.
pub fn read_if_present(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    match read(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a regular file to append to. A missing one is created for its owner alone.
pub fn append(path: &Path) -> io::Result<File> {
    regular(rustix::fs::open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | CAREFULLY, PRIVATE)?)
}

/// Creates a file for its owner alone. Anything that has its name already, a symlink included, is an error.
pub fn create_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | CAREFULLY;
    regular(rustix::fs::open(path, flags, PRIVATE)?)
}

/// Writes a file for its owner alone, in the place of whatever has its name: whole or not at all, as others see it. It is not
/// forced to the disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, |file| file.write_all(bytes))
}

/// The same, and it survives a power cut.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, |file| file.write_all(bytes).and_then(|()| file.sync_all()))?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn place(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let draft = draft_of(path);
    let written = create_new(&draft).and_then(|mut file| write(&mut file));
    let placed = written.and_then(|()| fs::rename(&draft, path));
    if placed.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
    }
    placed
}

/// Makes a directory and its parents, for their owner alone.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A name beside `path` that nothing else has.
fn draft_of(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

fn regular(file: impl Into<std::os::fd::OwnedFd>) -> io::Result<File> {
    let file = File::from(file.into());
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(read_if_present(&path, 4).unwrap(), None);
        fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_if_present(&path, u64::MAX).unwrap().as_deref(), Some(&b"four"[..]));
    }

    #[test]
    fn what_is_not_a_regular_file_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "the user's").unwrap();
        let [fifo, socket, directory, link] =
            ["fifo", "socket", "directory", "link"].map(|name| dir.path().join(name));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        fs::create_dir(&directory).unwrap();
        symlink(&target, &link).unwrap();
        for path in [&fifo, &socket, &directory, &link] {
            open(path).unwrap_err();
            read_if_present(path, 10).unwrap_err();
            append(path).unwrap_err();
            create_new(path).unwrap_err();
        }
        for path in [&fifo, &socket, &link] {
            replace(path, b"ours").unwrap();
            assert_eq!(read(path, 10).unwrap(), b"ours");
        }
        assert_eq!(fs::read(&target).unwrap(), b"the user's");
    }

    #[test]
    fn what_is_written_is_for_its_owner_alone_and_leaves_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        create_private_dir(&inner).unwrap();
        replace(&inner.join("replaced"), b"1").unwrap();
        replace_durably(&inner.join("replaced"), b"2").unwrap();
        append(&inner.join("appended")).unwrap().write_all(b"1").unwrap();
        create_new(&inner.join("created")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        let names: Vec<PathBuf> = fs::read_dir(&inner).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names.iter().all(|path| mode(path) == 0o600));
        replace(&dir.path().join("missing/file"), b"1").unwrap_err();
    }
}
