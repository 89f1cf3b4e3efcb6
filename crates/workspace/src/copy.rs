//! Copying ignored files that a checkout needs, like `.env`, from the user's checkout.
//!
//! Everything is looked at before anything is written. Paths stay inside their roots on both sides, symlinks
//! included; what is already at the target is never replaced.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use crate::WorkspaceError;
use crate::paths::remove_tree;

/// Copies are made under this prefix and then renamed, so that a crash leaves no half file under a real name.
const DRAFT_PREFIX: &str = ".towline-copy-";

/// Which files are copied from where; the target comes later.
#[derive(Debug)]
pub(crate) struct CopyPlan {
    root: PathBuf,
    /// Names relative to both roots, each with the file or directory itself, symlinks resolved.
    pub(crate) items: Vec<(PathBuf, PathBuf)>,
    warnings: Vec<String>,
}

impl CopyPlan {
    /// Looks at what is named, below `from`. Missing ones become warnings; ones outside are refused.
    pub(crate) fn new(from: &Path, names: &[String]) -> Result<Self, WorkspaceError> {
        let root = from.canonicalize().map_err(WorkspaceError::io("find", from))?;
        let mut plan = Self { root, items: Vec::new(), warnings: Vec::new() };
        for given in names {
            let name = plain_relative(given, &plan.root)?;
            match plan.root.join(&name).canonicalize() {
                Ok(source) if source.starts_with(&plan.root) => plan.items.push((name, source)),
                Ok(source) => {
                    return Err(outside(
                        Path::new(given),
                        &plan.root,
                        format!("a symlink to {}", source.display()),
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => plan
                    .warnings
                    .push(format!("{given} was to be copied, but is not in {}", plan.root.display())),
                Err(error) => return Err(WorkspaceError::io("read", &plan.root.join(&name))(error)),
            }
        }
        Ok(plan)
    }

    /// The names that would be written below `to`, directories with a slash at their end, as git has it.
    pub(crate) fn names_absent_in(&self, to: &Path) -> Vec<Vec<u8>> {
        let absent = self.items.iter().filter(|(name, _)| fs::symlink_metadata(to.join(name)).is_err());
        let slash = |source: &Path| if source.is_dir() { &b"/"[..] } else { b"" };
        absent.map(|(name, source)| [name.as_os_str().as_bytes(), slash(source)].concat()).collect()
    }

    /// Copies. Returns what a person should know.
    pub(crate) fn carry_out(&self, to: &Path) -> Result<Vec<String>, WorkspaceError> {
        let to = to.canonicalize().map_err(WorkspaceError::io("find", to))?;
        let mut warnings = self.warnings.clone();
        for (path, source) in &self.items {
            let parent = parent_inside(&to, path)?;
            let Some(name) = path.file_name() else { continue };
            let target = parent.join(name);
            if fs::symlink_metadata(&target).is_ok() {
                warnings.push(format!("{} is already in the checkout and was not replaced", path.display()));
                continue;
            }
            let mut draft_name = std::ffi::OsString::from(DRAFT_PREFIX);
            draft_name.push(name);
            let draft = parent.join(draft_name);
            remove_tree(&draft)?;
            self.copy(source, &draft, &mut warnings)?;
            // What is no file, directory or symlink was not copied.
            if fs::symlink_metadata(&draft).is_ok() {
                fs::rename(&draft, &target).map_err(WorkspaceError::io("create", &target))?;
            }
        }
        Ok(warnings)
    }

    fn copy(&self, source: &Path, target: &Path, warnings: &mut Vec<String>) -> Result<(), WorkspaceError> {
        let about = fs::symlink_metadata(source).map_err(WorkspaceError::io("read", source))?;
        if about.is_dir() {
            fs::create_dir(target).map_err(WorkspaceError::io("create", target))?;
            for entry in fs::read_dir(source).map_err(WorkspaceError::io("read", source))? {
                let name = entry.map_err(WorkspaceError::io("read", source))?.file_name();
                self.copy(&source.join(&name), &target.join(&name), warnings)?;
            }
            // Last, because a read-only directory takes no files.
            fs::set_permissions(target, about.permissions())
                .map_err(WorkspaceError::io("set permissions of", target))
        } else if about.is_symlink() {
            self.copy_symlink(source, target, warnings)
        } else if about.is_file() {
            fs::copy(source, target).map(drop).map_err(WorkspaceError::io("copy", source))
        } else {
            warnings.push(format!("{} is {} and was not copied", source.display(), kind(about.file_type())));
            Ok(())
        }
    }

    /// Symlinks inside a copied directory are made again; they must mean something inside the new root too.
    fn copy_symlink(
        &self,
        source: &Path,
        target: &Path,
        warnings: &mut Vec<String>,
    ) -> Result<(), WorkspaceError> {
        let points_to = fs::read_link(source).map_err(WorkspaceError::io("read", source))?;
        let name = source.strip_prefix(&self.root).unwrap_or(source);
        let Ok(real) = source.canonicalize() else {
            warnings.push(format!("{} is a symlink to nothing and was not copied", name.display()));
            return Ok(());
        };
        let stays = stays_inside(name.parent().unwrap_or(Path::new("")), &points_to);
        if !stays || !real.starts_with(&self.root) {
            return Err(outside(name, &self.root, format!("a symlink to {}", points_to.display())));
        }
        symlink(&points_to, target).map_err(WorkspaceError::io("create", target))
    }
}

/// A name without `.`, that goes nowhere but down.
fn plain_relative(given: &str, root: &Path) -> Result<PathBuf, WorkspaceError> {
    let refused = |reason: &str| outside(Path::new(given), root, reason.to_owned());
    let mut name = PathBuf::new();
    for component in Path::new(given).components() {
        match component {
            Component::Normal(part) => name.push(part),
            Component::CurDir => {}
            Component::ParentDir => return Err(refused("it has `..` in it")),
            Component::RootDir | Component::Prefix(_) => return Err(refused("it is an absolute path")),
        }
    }
    if name.as_os_str().is_empty() {
        return Err(refused("it names the whole directory"));
    }
    if name.starts_with(".git") {
        return Err(refused("it is git's own directory"));
    }
    Ok(name)
}

/// Whether a symlink target, seen from a directory below a root, never climbs above that root.
fn stays_inside(directory: &Path, target: &Path) -> bool {
    let mut depth = directory.components().count();
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

/// Makes the directories above a target, refusing symlinks in the checkout that lead out of it.
fn parent_inside(root: &Path, name: &Path) -> Result<PathBuf, WorkspaceError> {
    let mut directory = root.to_path_buf();
    for component in name.parent().unwrap_or(Path::new("")).components() {
        directory.push(component);
        match fs::symlink_metadata(&directory) {
            Err(_) => fs::create_dir(&directory).map_err(WorkspaceError::io("create", &directory))?,
            Ok(about) if about.is_symlink() => {
                let real = directory.canonicalize().map_err(WorkspaceError::io("follow", &directory))?;
                if !real.starts_with(root) {
                    return Err(outside(name, root, format!("a symlink to {}", real.display())));
                }
                directory = real;
            }
            Ok(_) => {}
        }
    }
    Ok(directory)
}

fn outside(path: &Path, root: &Path, reason: String) -> WorkspaceError {
    WorkspaceError::OutsideRoot { path: path.display().to_string(), root: root.to_path_buf(), reason }
}

fn kind(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if file_type.is_fifo() {
        "a pipe"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
