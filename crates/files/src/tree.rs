//! Directories in places that others can write to: made and removed without following a symlink.
//!
//! Every step goes through a handle on the directory above, so that nothing that is put in the place of a directory
//! meanwhile leads elsewhere.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::wrong_kind;

/// A directory and nothing else, without following a symlink in the last part.
const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// A handle for what is in a directory, which takes no right to read the directory itself.
pub(crate) const HANDLE: OFlags = OFlags::PATH.union(DIRECTORY);

/// How deep a tree is removed in one go. What is deeper is moved up first: each level takes a handle, of which a process has
/// a limited number.
const DEEPEST: usize = 64;

/// Removes what has this name, a directory with everything in it, read-only directories too. A symlink is removed and not
/// followed; symlinks in the directories above are.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match rustix::fs::open(parent, HANDLE.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Ok(parent) => remove_at(&parent, &c_name(name)?),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes what has the name `inner` below `root`, as [`remove_tree`] does. Anything but a directory on the way from `root`
/// is an error, and nothing is removed then.
pub fn remove_below(root: &Path, inner: &Path) -> io::Result<()> {
    let Some(name) = inner.file_name() else { return Err(io::Error::from(io::ErrorKind::InvalidInput)) };
    let mut directory = match rustix::fs::open(root, HANDLE, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    for part in parts(inner.parent().unwrap_or(Path::new("")))? {
        match rustix::fs::openat(&directory, &part, HANDLE, Mode::empty()) {
            Ok(next) => directory = next,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(on_the_way(&directory, &part, error)),
        }
    }
    remove_at(&directory, &c_name(name)?)
}

/// Makes the directory `inner` below `root`, with those in between, for their owner alone. `root` itself has to be there.
/// Anything but a directory on the way is an error.
pub fn create_dir_below(root: &Path, inner: &Path) -> io::Result<()> {
    let mut directory = open_root(root)?;
    for part in parts(inner)? {
        match rustix::fs::mkdirat(&directory, &part, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        directory = rustix::fs::openat(&directory, &part, OFlags::RDONLY | DIRECTORY, Mode::empty())
            .map_err(|error| on_the_way(&directory, &part, error))?;
    }
    Ok(())
}

/// Fails when something else than a directory is on the way from `root` to `inner`, the last part included. What is
/// missing is no failure.
pub fn must_lead_through_directories(root: &Path, inner: &Path) -> io::Result<()> {
    let mut path = root.to_path_buf();
    for part in inner.components() {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => {}
            Ok(about) => {
                let wrong = wrong_kind(about.file_type(), "a directory");
                return Err(io::Error::other(format!("{}: {wrong}", path.display())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(root, OFlags::RDONLY | DIRECTORY, Mode::empty())?)
}

/// The names in a path. One that leads upwards or elsewhere is an error.
fn parts(path: &Path) -> io::Result<Vec<CString>> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => c_name(name),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    path.components().map(name).collect()
}

fn c_name(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Names what is in the place of a directory.
fn on_the_way(above: &OwnedFd, name: &CStr, error: Errno) -> io::Error {
    let Ok(about) = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW) else { return error.into() };
    let kind = match rustix::fs::FileType::from_raw_mode(about.st_mode) {
        rustix::fs::FileType::Directory => return error.into(),
        rustix::fs::FileType::Symlink => "a symlink",
        _ => "a file",
    };
    io::Error::other(format!(
        "`{}` on the way there is {kind} and not a directory; remove it and try again",
        name.to_string_lossy()
    ))
}

/// Removes what has this name in a directory.
fn remove_at(top: &OwnedFd, name: &CStr) -> io::Result<()> {
    let mut waiting = vec![name.to_owned()];
    let mut moved = Moved { top: top.as_fd(), count: 0, names: Vec::new() };
    while let Some(name) = waiting.pop() {
        remove_level(top.as_fd(), &name, 0, &mut moved)?;
        waiting.append(&mut moved.names);
    }
    Ok(())
}

/// Deep directories that were moved up.
struct Moved<'a> {
    top: BorrowedFd<'a>,
    count: u64,
    names: Vec<CString>,
}

impl Moved<'_> {
    fn take(&mut self, from: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        // A directory that is moved gets another parent, which is a change of the directory itself.
        drop(open_up(from, name)?);
        loop {
            let fresh = c_name(OsStr::new(&format!(".removed-{}-{}", std::process::id(), self.count)))?;
            self.count += 1;
            match rustix::fs::renameat(from, name, self.top, &fresh) {
                Ok(()) => {
                    self.names.push(fresh);
                    return Ok(());
                }
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn remove_level(above: BorrowedFd<'_>, name: &CStr, depth: usize, moved: &mut Moved<'_>) -> io::Result<()> {
    match rustix::fs::unlinkat(above, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // A directory, in the words of Linux and of POSIX.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = open_up(above, name)?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let inner = entry.file_name();
        if inner == c"." || inner == c".." {
            continue;
        }
        if depth + 1 >= DEEPEST && rustix::fs::unlinkat(&directory, inner, AtFlags::empty()).is_err() {
            moved.take(directory.as_fd(), inner)?;
        } else {
            remove_level(directory.as_fd(), inner, depth + 1, moved)?;
        }
    }
    Ok(rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory after giving its owner every right on it: build tools like to leave read-only caches.
fn open_up(above: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(above, name, OFlags::RDONLY | DIRECTORY, Mode::empty());
    let directory = match open() {
        Err(Errno::ACCESS) => {
            let handle = rustix::fs::openat(above, name, HANDLE, Mode::empty())?;
            // A handle of this kind can be changed by this way alone.
            rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU)?;
            open()?
        }
        opened => opened?,
    };
    let about = rustix::fs::fstat(&directory)?;
    if !Mode::from_raw_mode(about.st_mode).contains(Mode::RWXU) {
        rustix::fs::fchmod(&directory, Mode::RWXU)?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use towline_testkit::scratch::become_ordinary_user;

    use super::*;

    /// The user's files, and a root of ours beside them.
    fn scratch() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (root, users) = (dir.path().join("root"), dir.path().join("users"));
        fs::create_dir_all(root.join("attempts/goal/1")).unwrap();
        fs::create_dir_all(users.join("goal")).unwrap();
        fs::write(users.join("goal/precious"), "precious").unwrap();
        (dir, root, users)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_tree_is_removed_with_read_only_directories_and_symlinks_in_it_are_not_followed() {
        let (_dir, root, users) = scratch();
        let goal = root.join("attempts/goal");
        symlink(&users, goal.join("1/symlink")).unwrap();
        for (name, mode) in [("read-only", 0o500), ("closed", 0o000)] {
            fs::create_dir(goal.join(name)).unwrap();
            fs::write(goal.join(name).join("file"), "").unwrap();
            fs::set_permissions(goal.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove_below(&root, Path::new("attempts/goal")).unwrap();
        assert!(!goal.exists());
        assert_eq!(fs::read(users.join("goal/precious")).unwrap(), b"precious");
        remove_below(&root, Path::new("attempts/goal")).unwrap();
        remove_below(&root, Path::new("nothing/goal")).unwrap();
        remove_below(&users.join("missing"), Path::new("goal")).unwrap();
    }

    #[test]
    fn a_symlink_in_the_place_of_the_directory_is_removed_and_not_followed() {
        let (_dir, root, users) = scratch();
        let symlinked = root.join("attempts/symlink");
        symlink(&users, &symlinked).unwrap();
        remove_tree(&symlinked).unwrap();
        assert!(!symlinked.is_symlink());
        symlink(&users, &symlinked).unwrap();
        remove_below(&root, Path::new("attempts/symlink")).unwrap();
        assert!(!symlinked.is_symlink());
        assert_eq!(fs::read(users.join("goal/precious")).unwrap(), b"precious");
    }

    #[test]
    fn a_symlink_on_the_way_is_an_error_that_names_it() {
        let (_dir, root, users) = scratch();
        symlink(&users, root.join("verify")).unwrap();
        let inner = Path::new("verify/goal");
        for refused in [
            remove_below(&root, inner),
            create_dir_below(&root, inner),
            must_lead_through_directories(&root, inner),
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("verify") && refused.contains("a symlink"), "{refused}");
        }
        assert_eq!(fs::read(users.join("goal/precious")).unwrap(), b"precious");
        for outside in ["../users/goal", "/etc", "attempts/../../users/goal"] {
            remove_below(&root, Path::new(outside)).unwrap_err();
            create_dir_below(&root, Path::new(outside)).unwrap_err();
        }
        assert_eq!(fs::read(users.join("goal/precious")).unwrap(), b"precious");
    }

    #[test]
    fn directories_are_made_below_a_root_that_is_there_and_never_with_it() {
        let (_dir, root, users) = scratch();
        create_dir_below(&root, Path::new("attempts/goal/2")).unwrap();
        create_dir_below(&root, Path::new("attempts/goal/2")).unwrap();
        assert_eq!(mode(&root.join("attempts/goal/2")), 0o700);
        must_lead_through_directories(&root, Path::new("attempts/goal/2/nothing")).unwrap();
        let missing = users.join("missing");
        assert_eq!(create_dir_below(&missing, Path::new("a")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!missing.exists());
    }

    #[test]
    fn read_only_directories_of_any_depth_are_removed_from_a_directory_that_cannot_be_read() {
        become_ordinary_user();
        let (_dir, root, _users) = scratch();
        let attempts = root.join("attempts");
        let depth = DEEPEST * 2 + 10;
        let path = |depth: usize| attempts.join(["deep"].repeat(depth).join("/"));
        fs::create_dir_all(path(depth)).unwrap();
        for level in (1..=depth).rev() {
            let mode = if level % 2 == 0 { 0o555 } else { 0o000 };
            fs::set_permissions(path(level), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(&attempts, fs::Permissions::from_mode(0o311)).unwrap();
        remove_tree(&attempts.join("deep")).unwrap();
        remove_below(&root, Path::new("attempts/goal")).unwrap();
        fs::set_permissions(&attempts, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::read_dir(&attempts).unwrap().count(), 0);
    }

    #[test]
    fn a_tree_of_any_depth_is_removed() {
        let (_dir, root, _users) = scratch();
        // By handles: its path is longer than the system takes.
        let mut directory = open_root(&root.join("attempts")).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&directory, c"deep", Mode::RWXU).unwrap();
            directory =
                rustix::fs::openat(&directory, c"deep", OFlags::RDONLY | DIRECTORY, Mode::empty()).unwrap();
        }
        drop(directory);
        remove_below(&root, Path::new("attempts/deep")).unwrap();
        let left: Vec<PathBuf> =
            fs::read_dir(root.join("attempts")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [root.join("attempts/goal")]);
    }
}
