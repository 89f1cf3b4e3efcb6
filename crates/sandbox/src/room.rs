//! What one program is allowed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use towline_core::{Network, Sandbox};

use crate::private::Private;
use crate::tools;

/// What a program is allowed to see, to change and to reach. Everything that no rule names can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// What takes the place of the user's home and of the directories for temporary files.
    pub private: Private,
    /// The directory that the program starts in.
    pub directory: PathBuf,
    /// The program's environment: where its home is, and where tools look for their files.
    pub environment: BTreeMap<String, String>,
    /// The user's home, which is not always the one in the environment.
    pub users_home: Option<PathBuf>,
    /// Directories in whose place the program has some of its own.
    pub own: Vec<PathBuf>,
    /// What setup left in the user's caches, before any agent: it lies between them and what the program writes.
    pub filled: Option<PathBuf>,
    /// Whether what the program writes into caches is kept, also into those that the user does not have.
    pub fills_caches: bool,
    /// Paths that can be read although they are in a hidden place. What is missing is left out.
    pub read: Vec<PathBuf>,
    /// Paths that can be changed. What is missing is left out.
    pub write: Vec<PathBuf>,
    /// Paths that cannot be seen.
    pub hide: Vec<PathBuf>,
    pub network: Network,
    pub signals: Signals,
}

/// What ends the sandbox besides the end of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signals {
    /// Nothing but a kill: its supervisor sends signals to the program itself.
    AreForTheProgram,
    /// What ends a session at a terminal.
    EndTheSession,
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

/// The homes of users, and sockets of what runs on the machine: most are in `/run`, and those of some managers of containers and
/// virtual machines beside their data.
const HIDDEN: [&str; 8] = [
    "/home",
    "/root",
    "/run",
    "/var/lib/docker",
    "/var/lib/incus",
    "/var/lib/libvirt",
    "/var/lib/lxd",
    "/var/snap/lxd",
];

/// Variables that name directories of the user's outside the home.
const DIRECTORIES: [&str; 5] =
    ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"];

impl Room {
    /// The user's home, if it is a place of its own.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let home = self.environment.get("HOME").map(PathBuf::from)?;
        (home.is_absolute() && home.parent().is_some() && home.is_dir()).then_some(home)
    }

    /// Whether the program sees what is at this path.
    pub fn shows(&self, path: &Path) -> bool {
        let rules = self.rules();
        match self.settled(path).ancestors().find_map(|place| rules.get(place)) {
            None | Some(Rule::Read(_) | Rule::Layered(_)) => true,
            Some(Rule::Write(from)) => !self.private.has(from),
            Some(Rule::Hidden) => false,
        }
    }

    /// What holds for which path.
    pub(crate) fn rules(&self) -> BTreeMap<PathBuf, Rule> {
        let mut rules = BTreeMap::new();
        for place in HIDDEN.iter().map(Path::new).chain(self.users_home.as_deref()) {
            rules.insert(place.canonicalize().unwrap_or_else(|_| place.to_owned()), Rule::Hidden);
        }
        self.add_own(&mut rules);
        for (path, rule) in tools::rules(&self.environment, self.home().as_deref(), &self.private.empty()) {
            rules.insert(self.settled(&path), rule);
        }
        // The resolver's files are often below `/run`.
        for file in ["/etc/resolv.conf", "/etc/hosts"].map(Path::new) {
            if let Ok(real) = file.canonicalize() {
                rules.insert(real.clone(), Rule::Read(real));
            }
        }
        for path in &self.hide {
            let path = self.settled(path);
            let is_of_tools = |rule: &Rule| matches!(rule, Rule::Read(_) | Rule::Layered(_));
            rules.retain(|place, rule| !(place.starts_with(&path) && is_of_tools(rule)));
            // What is hidden has its own directory in its place already.
            if !matches!(rules.get(&path), Some(Rule::Write(_))) {
                rules.insert(path, Rule::Hidden);
            }
        }
        for path in self.read.iter().filter(|path| !self.may_be_planted(path)) {
            rules.insert(self.settled(path), Rule::Read(path.clone()));
        }
        for path in self.write.iter().filter(|path| !self.may_be_planted(path)) {
            rules.insert(self.settled(path), Rule::Write(path.clone()));
        }
        rules.retain(|path, rule| match rule {
            Rule::Hidden => path.symlink_metadata().is_ok_and(|found| !found.is_symlink()),
            // A checkout is made later.
            Rule::Write(from) if *from == self.directory => true,
            Rule::Read(from) | Rule::Write(from) | Rule::Layered(from) => from.exists(),
        });
        let is_read = |rule: &Rule| matches!(rule, Rule::Read(_));
        let read = rules.iter().filter(|(_, rule)| is_read(rule)).map(|(path, _)| path);
        // What is mounted there would end up where the symlink leads.
        let is_symlink = |path: &&PathBuf| seen_without(path, &rules).is_some_and(|seen| seen.is_symlink());
        let symlinks: Vec<PathBuf> = read.filter(is_symlink).cloned().collect();
        rules.retain(|path, _| !symlinks.contains(path));
        rules
    }

    /// Whether a symlink leads there that a program may have made: it would open what is behind it.
    fn may_be_planted(&self, path: &Path) -> bool {
        let inner = |above: &PathBuf| Some((above.clone(), path.strip_prefix(above).ok()?));
        let mut inside = self.write.iter().filter(|above| *above != path).filter_map(inner);
        let is_symlink = || path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let leads = |(above, inner): (PathBuf, &Path)| {
            let parent = inner.parent().unwrap_or(Path::new(""));
            towline_files::must_lead_through_directories(&above, parent).is_err() || is_symlink()
        };
        inside.any(leads)
    }

    /// Makes what has to be there before the program is started.
    pub fn prepare(&self, sandbox: Sandbox) -> io::Result<()> {
        let rules = self.rules();
        match sandbox {
            Sandbox::Bubblewrap => self.private.make_mount_points(&rules),
            // It mounts nothing.
            Sandbox::Landlock => Ok(()),
        }
    }

    /// What takes the place of the user's directories.
    fn add_own(&self, rules: &mut BTreeMap<PathBuf, Rule>) {
        let home = self.home();
        let named = |name: &&str| self.environment.get(*name).map(PathBuf::from);
        if let Some(home) = &home {
            if let Ok(real) = home.canonicalize() {
                rules.insert(real, Rule::Hidden);
            }
            rules.insert(self.settled(home), Rule::Write(self.private.home()));
        }
        let temporary = TEMPORARY.iter().filter_map(|place| Path::new(place).canonicalize().ok());
        for place in temporary.chain(named(&"TMPDIR").filter(|place| is_place(place))) {
            if can_be_made(&place, rules) {
                rules.insert(place, Rule::Write(self.private.temporary()));
            }
        }
        // What is in the home is in the private one, unless a hidden place covers it there.
        let is_elsewhere = |place: &PathBuf| {
            let is_covered = self.hide.iter().any(|hidden| place.starts_with(hidden));
            let is_beside = |home: &PathBuf| !place.starts_with(home) && !home.starts_with(place);
            is_covered || home.as_ref().is_none_or(is_beside)
        };
        let named = DIRECTORIES.iter().filter_map(named).chain(self.own.iter().cloned());
        for place in named.filter(|place| is_place(place) && is_elsewhere(place)) {
            if can_be_made(&place, rules)
                && let Ok(own) = self.private.own(&place)
            {
                rules.insert(place, Rule::Write(own));
            }
        }
    }

    /// Where a rule for this path is put: the same place, reached without a symlink. What is in the home stays there, because the
    /// program has another home, without the user's symlinks.
    fn settled(&self, path: &Path) -> PathBuf {
        let real = |path: &Path| {
            let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
            parent.zip(path.file_name()).map_or_else(|| path.to_owned(), |(parent, name)| parent.join(name))
        };
        let home = self.home();
        match home.as_ref().and_then(|home| Some((home, path.strip_prefix(home).ok()?))) {
            Some((home, inner)) if inner.as_os_str().is_empty() => real(home),
            Some((home, inner)) => real(home).join(inner),
            None => real(path),
        }
    }

    /// Where a file that the program finds at this path is outside its sandbox, if it is one of its own.
    pub fn outside(&self, path: &Path) -> Option<PrivatePath> {
        let rules = self.rules();
        let path = self.settled(path);
        let (place, rule) = path.ancestors().find_map(|above| rules.get_key_value(above))?;
        match rule {
            Rule::Write(from) if self.private.has(from) => {
                Some(PrivatePath { root: from.clone(), inner: path.strip_prefix(place).ok()?.to_owned() })
            }
            _ => None,
        }
    }
}

/// A file in a private directory. What is on the way there was made by programs in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivatePath {
    pub root: PathBuf,
    pub inner: PathBuf,
}

/// What the program sees at this path without a rule for the path itself, if it is something of the user's that it can only read.
pub(crate) fn seen_without(path: &Path, rules: &BTreeMap<PathBuf, Rule>) -> Option<PathBuf> {
    let above = path.ancestors().skip(1).find_map(|above| rules.get_key_value(above));
    match above {
        None => Some(path.to_owned()),
        Some((place, Rule::Read(from))) => path.strip_prefix(place).ok().map(|inner| from.join(inner)),
        Some(_) => None,
    }
}

/// Whether this can be a directory of its own.
fn is_place(path: &Path) -> bool {
    path.is_absolute() && path.parent().is_some()
}

/// Whether there can be a mount point: it is there, or in a place that is the program's own.
fn can_be_made(place: &Path, rules: &BTreeMap<PathBuf, Rule>) -> bool {
    let above = place.ancestors().find_map(|above| rules.get(above));
    place.is_dir() || matches!(above, Some(Rule::Hidden | Rule::Write(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sees_what_no_rule_takes_away_and_what_a_longer_rule_gives_back() {
        let scratch = tempfile::tempdir().expect("a folder");
        let [home, private, state] = ["home", "private", "state"].map(|name| scratch.path().join(name));
        for folder in [&home.join("tests"), &home.join("read"), &state] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let room = Room {
            private: Private::make(&private).expect("private directories"),
            directory: home.join("work"),
            environment: BTreeMap::from([("HOME".to_owned(), home.display().to_string())]),
            users_home: None,
            own: Vec::new(),
            filled: None,
            fills_caches: false,
            read: vec![home.join("read")],
            write: Vec::new(),
            hide: vec![PathBuf::from("/usr/lib")],
            network: Network::Closed,
            signals: Signals::AreForTheProgram,
        };
        for (path, is_shown) in [
            ("/usr/share".into(), true),
            ("/usr/lib/x".into(), false),
            ("/run/x".into(), false),
            (state, false),
            (home.join("tests"), false),
            (home.join("read/inner"), true),
        ] {
            assert_eq!(room.shows(&path), is_shown, "{}", path.display());
        }
    }
}
