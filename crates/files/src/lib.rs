//! Files in places that others can write to: the state directory, a workspace, git's data.
//!
//! An agent runs as the same user, so it can put a FIFO, a device, a symlink or a hard link to another file where a file is
//! expected. These functions open regular files only, never follow a symlink in the last part of a path, never wait for a writer,
//! write to no file that has another name as well, and read no more than the caller allows. They know nothing of what is in the
//! files.

mod held;
mod lock;
mod tree;
mod watch;

use std::fs::{self, DirBuilder, File, FileType, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};

pub use held::HeldDirectory;
pub use lock::lock_holder;
pub use tree::{create_dir_below, must_lead_through_directories, remove_below, remove_tree};
pub use watch::{Changes, Watch, Watched};

/// Opened without waiting and without following a symlink.
const CAREFULLY: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whoever owns the file reads and writes it, nobody else.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Opens a regular file to read.
pub fn open(path: &Path) -> io::Result<File> {
    regular(path, rustix::fs::open(path, OFlags::RDONLY | CAREFULLY, Mode::empty()))
}

/// Opens a regular file to read, following symlinks: for files that people keep, who may have their reasons.
pub fn open_following(path: &Path) -> io::Result<File> {
    let flags = (OFlags::RDONLY | CAREFULLY).difference(OFlags::NOFOLLOW);
    regular(path, rustix::fs::open(path, flags, Mode::empty()))
}

/// Reads a regular file whole. One with more than `limit` bytes is an error.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_whole(open(path)?, limit)
}

/// Reads a regular file whole, following symlinks. One with more than `limit` bytes is an error.
pub fn read_following(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_whole(open_following(path)?, limit)
}

fn read_whole(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        let message = format!("it is larger than {limit} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if file.metadata()?.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may have grown since.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// Reads the last bytes of a regular file, at most so many.
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file whole; `None` when there is no file.
pub fn read_if_present(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    match read(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a regular file to append to, or to lock. A missing one is created for its owner alone.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | CAREFULLY;
    with_one_name(regular(path, rustix::fs::open(path, flags, PRIVATE))?)
}

/// Opens a regular file that is there, to read and to append to.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | CAREFULLY;
    with_one_name(regular(path, rustix::fs::open(path, flags, Mode::empty()))?)
}

/// Creates a file for its owner alone. Anything that has its name already, a symlink included, is an error.
pub fn create_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | CAREFULLY;
    Ok(File::from(rustix::fs::open(path, flags, PRIVATE)?))
}

/// Fails when something else than a regular file has this name, or when the file has another name as well. Opens nothing.
pub fn must_be_regular_or_absent(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => must_have_one_name(&about),
        Ok(about) => Err(wrong_kind(about.file_type(), "a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
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

/// Only regular files pass; for everything else the error names what it is.
fn regular(path: &Path, opened: rustix::io::Result<std::os::fd::OwnedFd>) -> io::Result<File> {
    match opened {
        Ok(opened) => {
            let file = File::from(opened);
            let kind = file.metadata()?.file_type();
            if kind.is_file() { Ok(file) } else { Err(wrong_kind(kind, "a regular file")) }
        }
        // The system's words for a symlink or a socket are those of other problems.
        Err(error) => match fs::symlink_metadata(path) {
            Ok(about) if is_named(error) && !about.is_file() => {
                Err(wrong_kind(about.file_type(), "a regular file"))
            }
            _ => Err(error.into()),
        },
    }
}

fn with_one_name(file: File) -> io::Result<File> {
    must_have_one_name(&file.metadata()?)?;
    Ok(file)
}

/// What is written to a file with two names is written to both.
fn must_have_one_name(about: &Metadata) -> io::Result<()> {
    match about.nlink() {
        0 | 1 => Ok(()),
        names => Err(io::Error::other(format!(
            "it is a file with {names} names (hard links), so writing to it would change another file as well; remove the name that should not be there and try again"
        ))),
    }
}

/// Whether the kind of the file is what the system complains about.
fn is_named(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    [Errno::LOOP, Errno::NXIO, Errno::NODEV, Errno::ISDIR, Errno::OPNOTSUPP].contains(&error)
}

/// What is wrong with the kind of a file, and what to do about it.
fn wrong_kind(kind: FileType, expected: &str) -> io::Error {
    let name = match kind {
        kind if kind.is_symlink() => "a symlink",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_file() => "a file",
        _ => "a device",
    };
    io::Error::other(format!("it is {name} and not {expected}; remove it and try again"))
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
        assert_eq!([2, 9].map(|most| read_end(&path, most).unwrap()), [&b"ur"[..], b"four"]);
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        File::options().write(true).open(&path).unwrap().set_len(10 << 30).unwrap();
        assert_eq!(read(&path, 9 << 30).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, "four").unwrap();
        assert_eq!(read_if_present(&path, u64::MAX).unwrap().as_deref(), Some(&b"four"[..]));
    }

    #[test]
    fn what_is_not_a_regular_file_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "the user's").unwrap();
        let [fifo, socket, directory, symlink_path] =
            ["fifo", "socket", "directory", "symlink"].map(|name| dir.path().join(name));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        fs::create_dir(&directory).unwrap();
        symlink(&target, &symlink_path).unwrap();
        for path in [&fifo, &socket, &directory, &symlink_path] {
            open(path).unwrap_err();
            read_if_present(path, 10).unwrap_err();
            append(path).unwrap_err();
            open_to_append(path).unwrap_err();
            create_new(path).unwrap_err();
            must_be_regular_or_absent(path).unwrap_err();
        }
        for (path, name) in [(&fifo, "a FIFO"), (&socket, "a socket"), (&symlink_path, "a symlink")] {
            let refused = open(path).unwrap_err().to_string();
            assert_eq!(refused, format!("it is {name} and not a regular file; remove it and try again"));
        }
        assert_eq!(read_following(&symlink_path, 10).unwrap(), b"the user's");
        read_following(&fifo, 10).unwrap_err();
        must_be_regular_or_absent(&target).unwrap();
        must_be_regular_or_absent(&dir.path().join("nothing")).unwrap();
        for path in [&fifo, &socket, &symlink_path] {
            replace(path, b"ours").unwrap();
            assert_eq!(read(path, 10).unwrap(), b"ours");
        }
        assert_eq!(fs::read(&target).unwrap(), b"the user's");
    }

    #[test]
    fn a_file_with_another_name_is_read_and_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let [users, ours] = ["users", "ours"].map(|name| dir.path().join(name));
        fs::write(&users, "the user's").unwrap();
        fs::hard_link(&users, &ours).unwrap();
        for refused in
            [append(&ours).map(drop), open_to_append(&ours).map(drop), must_be_regular_or_absent(&ours)]
        {
            let expected = "it is a file with 2 names (hard links), so writing to it would change another file as well; remove the name that should not be there and try again";
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
        assert_eq!(read(&ours, 10).unwrap(), b"the user's");
        replace(&ours, b"ours").unwrap();
        append(&ours).unwrap();
        assert_eq!(fs::read(&users).unwrap(), b"the user's");
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
