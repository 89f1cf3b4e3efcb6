//! What one program is allowed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use towline_core::Network;

use crate::tools;

/// What a program is allowed to see, to change and to reach. Everything that no rule names can be read.
#[derive(Debug, Clone)]
pub struct Room {
    /// What takes the place of the user's home and of the directories for temporary files.
    pub private: Private,
    /// The directory that the program starts in.
    pub directory: PathBuf,
    /// The program's environment: where its home is, and where tools look for their files.
    pub environment: BTreeMap<String, String>,
    /// Paths that can be read although they are in a hidden place. What is missing is left out.
    pub read: Vec<PathBuf>,
    /// Paths that can be changed. What is missing is left out.
    pub write: Vec<PathBuf>,
    /// Paths that cannot be seen.
    pub hide: Vec<PathBuf>,
    pub network: Network,
}

/// Directories of a goal or a verdict alone, below one directory that nobody else can enter.
#[derive(Debug, Clone)]
pub struct Private {
    root: PathBuf,
}

impl Private {
    /// Makes what is missing of it.
    pub fn make(root: &Path) -> io::Result<Self> {
        towline_files::create_private_dir(root)?;
        for inner in ["home", "tmp", "layers"] {
            towline_files::create_dir_below(root, Path::new(inner))?;
        }
        Ok(Self { root: root.canonicalize()? })
    }

    /// Takes the place of the user's home.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Takes the place of `/tmp`.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// What the program changes in the user's caches.
    pub(crate) fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }
}

/// What a path is to the program. Of two rules for paths one below the other, the one for the longer path counts there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// An empty directory, or an empty file.
    Hidden,
    /// What is at this path.
    Read(PathBuf),
    /// What is at this path, to be changed.
    Write(PathBuf),
    /// A cache of the user's: it can be changed, and the changes are seen by nobody else.
    Layered(PathBuf),
}

/// The directory that holds what Towline itself needs in the sandbox.
pub(crate) const OURS: &str = "/run/towline";

/// Where programs of all users put temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The homes of users, and sockets of what runs on the machine.
const HIDDEN: [&str; 3] = ["/home", "/root", "/run"];

impl Room {
    /// The user's home, if it is a place of its own.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let home = self.environment.get("HOME").map(PathBuf::from)?;
        (home.is_absolute() && home.parent().is_some() && home.is_dir()).then_some(home)
    }

    /// What holds for which path.
    pub(crate) fn rules(&self) -> BTreeMap<PathBuf, Rule> {
        let mut rules = BTreeMap::new();
        let mut set = |path: &Path, rule: Rule| {
            rules.insert(path.to_owned(), rule);
        };
        for place in HIDDEN.map(Path::new) {
            set(place, Rule::Hidden);
        }
        let own = self.environment.get("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
        for place in TEMPORARY.map(PathBuf::from).into_iter().chain(own) {
            set(&place, Rule::Write(self.private.temporary()));
        }
        if let Some(home) = self.home() {
            set(&home, Rule::Write(self.private.home()));
        }
        for (path, rule) in tools::rules(&self.environment, self.home().as_deref()) {
            set(&path, rule);
        }
        // The resolver's files are often below `/run`.
        for file in ["/etc/resolv.conf", "/etc/hosts"].map(Path::new) {
            if let Ok(real) = file.canonicalize() {
                set(&real, Rule::Read(real.clone()));
            }
        }
        for path in &self.hide {
            set(path, Rule::Hidden);
        }
        for path in &self.read {
            set(path, Rule::Read(path.clone()));
        }
        for path in &self.write {
            set(path, Rule::Write(path.clone()));
        }
        rules.retain(|path, rule| match rule {
            Rule::Hidden => path.symlink_metadata().is_ok_and(|found| !found.is_symlink()),
            Rule::Read(from) | Rule::Write(from) | Rule::Layered(from) => from.exists(),
        });
        rules
    }
}
