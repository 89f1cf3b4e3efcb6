//! The repositories of submodules of a worktree that becomes a private clone: they are in git's record of the worktree, and
//! move into the clone. Every step can be repeated.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::git::Git;
use crate::paths::{is_directory, remove_tree, settle};
use crate::{WorkspaceError, walk};

/// With git of our own, moves the repositories in `record` to the git directory `dot_git` of the working tree `top`, and has the submodules use
/// them there.
pub(crate) fn move_modules(
    git: &Git,
    record: &Path,
    top: &Path,
    dot_git: &Path,
) -> Result<(), WorkspaceError> {
    let (from, to) = (record.join("modules"), dot_git.join("modules"));
    if is_directory(&from) {
        // One that is there already was cut off.
        remove_tree(&to)?;
        move_tree(&from, &to).map_err(WorkspaceError::io("move", &from))?;
    }
    let from = settle(&from);
    for git_file in walk::git_files(top)? {
        let Some(target) = walk::directories_of(&git_file).into_iter().next() else { continue };
        let target = settle(&target);
        if let Ok(module) = target.strip_prefix(&from) {
            lead_to(git, &git_file, &to.join(module))?;
        }
    }
    Ok(())
}

/// Has a submodule use the repository at `module`.
fn lead_to(git: &Git, git_file: &Path, module: &Path) -> Result<(), WorkspaceError> {
    let place = git_file.parent().unwrap_or(git_file);
    let config = module.join("config");
    if towline_files::open(&config).is_ok() {
        let set = git.command("config").arg("--file").arg(&config);
        set.arg("core.worktree").arg(place).run()?;
    }
    let text = [b"gitdir: ", module.as_os_str().as_bytes(), b"\n"].concat();
    towline_files::replace(git_file, &text).map_err(WorkspaceError::io("write", git_file))
}

/// Moves a directory, to another file system too. What is there is whole, or it is still where it was.
fn move_tree(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_tree(from, to)?;
            towline_files::remove_tree(from)
        }
        other => other,
    }
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
