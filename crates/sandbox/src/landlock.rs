//! The fallback where user namespaces are forbidden: rules of the kernel's Landlock, which a program can give itself.
//!
//! They are an allow-list of files. They hide neither processes nor sockets, and cannot put another directory in the place of one.
//! So `/tmp` and the user's home are out of reach, and the environment names the private directories instead.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use rustix::fs::{Mode, OFlags};
use towline_core::Network;

use crate::inside::{PROGRAM, SUBCOMMAND, bad, program};
use crate::room::{Room, Rule};

/// The first argument of [`crate::enter`] for a sandbox of Landlock.
pub(crate) const LANDLOCK: &str = "--landlock";

/// Before a path that cannot be reached.
const HIDE: &str = "--hide";
/// Before a path that can be read.
const READ: &str = "--read";
/// Before a path that can be changed.
const WRITE: &str = "--write";
/// Before the place of a symlink and what it leads to.
const LINK: &str = "--link";
/// Before a variable and its value.
const SET: &str = "--set";
/// Without TCP.
const CLOSED: &str = "--no-network";

/// What the newest kernel that is known here can restrict. Older ones restrict less: see [`gaps`].
const NEWEST: ABI = ABI::V9;

/// How many files are looked at to hide some of them.
const MOST_ENTRIES: usize = 20_000;

/// Devices that every program may use. The others are the machine's.
const DEVICES: [&str; 9] = [
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/shm",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Where variables name directories for temporary files.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Variables that name the directory that a program is in.
const IN_USE: [&str; 2] = ["PWD", "OLDPWD"];

/// What rooms ask for and a kernel does not enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Before Linux 6.2.
    Truncating,
    /// Before Linux 6.7.
    Network,
    /// Before Linux 6.10.
    Devices,
    /// Before Linux 6.12.
    Signals,
    /// Before Linux 7.1.
    Sockets,
}

impl Gap {
    /// What a program can do in spite of its room.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Truncating => "empty files that it can only read (Linux 6.2 stops that)",
            Self::Network => "use the network where it is closed (Linux 6.7 stops that)",
            Self::Devices => "control devices (Linux 6.10 stops that)",
            Self::Signals => {
                "signal other processes of yours, and use abstract sockets (Linux 6.12 stops that)"
            }
            Self::Sockets => {
                "connect to sockets in hidden places, such as docker.sock (Linux 7.1 stops that)"
            }
        }
    }
}

/// What this kernel's Landlock lacks; none without one that can be used: files must be movable between directories.
pub(crate) fn gaps() -> Option<Vec<Gap>> {
    let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let restricts = |access: AccessFs| hard().handle_access(access).is_ok();
    if !restricts(AccessFs::Refer) {
        return None;
    }
    let enforced = [
        (Gap::Truncating, restricts(AccessFs::Truncate)),
        (Gap::Network, hard().handle_access(AccessNet::ConnectTcp).is_ok()),
        (Gap::Devices, restricts(AccessFs::IoctlDev)),
        (Gap::Signals, hard().scope(Scope::Signal).is_ok()),
        (Gap::Sockets, restricts(AccessFs::ResolveUnix)),
    ];
    Some(enforced.into_iter().filter(|(_, is)| !is).map(|(gap, _)| gap).collect())
}

/// The arguments of a room where everything can be read and nothing changed.
pub(crate) fn trial() -> [&'static str; 2] {
    [LANDLOCK, CLOSED]
}

/// What is started in place of the program: its command line follows.
pub(crate) fn wrapper(towline: &Path, room: &Room) -> Vec<String> {
    let mut words = vec![shown(towline), SUBCOMMAND.to_owned(), LANDLOCK.to_owned()];
    if room.network == Network::Closed {
        words.push(CLOSED.to_owned());
    }
    let mut add = |how: &str, path: &Path| words.extend([how.to_owned(), shown(path)]);
    add(HIDE, Path::new("/dev"));
    DEVICES.iter().for_each(|device| add(WRITE, Path::new(device)));
    add(READ, towline);
    let (home, rules) = (room.home(), room.rules());
    let mut links = Vec::new();
    for (path, rule) in &rules {
        let (how, from) = match rule {
            // The program has a directory of its own there.
            Rule::Layered(from) if *from == room.private.empty() => continue,
            Rule::Hidden => (HIDE, path),
            Rule::Read(from) | Rule::Layered(from) => (READ, from),
            Rule::Write(from) => (WRITE, from),
        };
        if how == WRITE && from != path {
            add(HIDE, path);
        }
        add(how, from);
        let inner = home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        if let Some(inner) = inner.filter(|inner| how != HIDE && !inner.as_os_str().is_empty()) {
            links.push([shown(&room.private.home().join(inner)), shown(from)]);
        }
    }
    words.extend(links.into_iter().flat_map(|[place, target]| [LINK.to_owned(), place, target]));
    let set = |(name, value): (String, PathBuf)| [SET.to_owned(), name, shown(&value)];
    words.extend(environment(room, &rules).into_iter().flat_map(set));
    words.push(PROGRAM.to_owned());
    words
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The variables that have to name other places: those in the private directories that a better sandbox would put there.
fn environment(room: &Room, rules: &BTreeMap<PathBuf, Rule>) -> BTreeMap<String, PathBuf> {
    let home = room.home();
    let real_home = home.as_ref().and_then(|home| home.canonicalize().ok());
    let private = |value: &String| {
        let place = Path::new(value);
        let in_home = home.as_ref().and_then(|home| place.strip_prefix(home).ok());
        let real = in_home.zip(real_home.as_ref()).map(|(inner, home)| home.join(inner));
        let nearest = |place: &Path| {
            let (above, rule) = place.ancestors().find_map(|above| rules.get_key_value(above))?;
            match rule {
                Rule::Write(from) if from != above => {
                    Some((from.clone(), place.strip_prefix(above).ok()?.to_owned()))
                }
                _ => None,
            }
        };
        let (from, inner) = nearest(place).or_else(|| nearest(&real?))?;
        // Not a path that ends in a slash, and no list of paths.
        let private = if inner.as_os_str().is_empty() { from } else { from.join(inner) };
        (place.is_absolute() && !value.contains(':')).then_some(private)
    };
    let named = room.environment.iter().filter(|(name, _)| !IN_USE.contains(&name.as_str()));
    let mut variables: BTreeMap<String, PathBuf> =
        named.filter_map(|(name, value)| Some((name.clone(), private(value)?))).collect();
    for name in TEMPORARY {
        variables.insert(name.to_owned(), room.private.temporary());
    }
    variables
}

/// What a path is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Hidden,
    Read,
    Write,
}

/// What the program is restricted to, and what it finds.
#[derive(Debug, Default)]
struct Restrictions {
    paths: BTreeMap<PathBuf, Reach>,
    links: Vec<(PathBuf, PathBuf)>,
    variables: Vec<(OsString, OsString)>,
    is_closed: bool,
    program: Vec<OsString>,
}

/// Restricts this process for good. What is returned becomes the program.
pub(crate) fn prepare(arguments: impl Iterator<Item = OsString>) -> io::Result<Command> {
    let restrictions = read(arguments)?;
    restrict(&grants(&restrictions.paths)?, restrictions.is_closed)?;
    // From here on the rules hold: the program's own home, where earlier programs may have put anything, leads nowhere else.
    restrictions.links.iter().for_each(|(place, target)| link(place, target));
    let mut command = program(&restrictions.program)?;
    command.envs(restrictions.variables);
    Ok(command)
}

/// Makes a symlink, unless the program has something of its own there.
fn link(place: &Path, target: &Path) {
    let made = place.parent().map_or(Ok(()), std::fs::create_dir_all);
    // An empty directory is nothing; one that is not empty stays, and so does the program's.
    let cleared = made.and_then(|()| std::fs::remove_dir(place));
    if cleared.is_ok() || place.symlink_metadata().is_err() {
        // Without it the tool that it leads to is missing, as if it was not installed.
        let _ = std::os::unix::fs::symlink(target, place);
    }
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> io::Result<Restrictions> {
    let mut restrictions = Restrictions::default();
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().ok_or_else(|| bad("an argument is missing"));
        match argument.to_str() {
            Some(HIDE) => restrictions.set(next()?, Reach::Hidden),
            Some(READ) => restrictions.set(next()?, Reach::Read),
            Some(WRITE) => restrictions.set(next()?, Reach::Write),
            Some(LINK) => restrictions.links.push((next()?.into(), next()?.into())),
            Some(SET) => restrictions.variables.push((next()?, next()?)),
            Some(CLOSED) => restrictions.is_closed = true,
            Some(PROGRAM) => {
                restrictions.program = arguments.collect();
                break;
            }
            _ => return Err(bad("an unknown argument")),
        }
    }
    Ok(restrictions)
}

impl Restrictions {
    /// By its real path, because rules hold for what is there. Of two for one place, the one that allows more counts.
    fn set(&mut self, path: OsString, reach: Reach) {
        if let Ok(path) = Path::new(&path).canonicalize() {
            let known = self.paths.entry(path).or_insert(reach);
            *known = reach.max(*known);
        }
    }
}

/// What has to be allowed so that exactly this is in reach. What is hidden below something that is not cannot be taken away from it,
/// so what is beside it is allowed instead.
fn grants(paths: &BTreeMap<PathBuf, Reach>) -> io::Result<Vec<(PathBuf, Reach)>> {
    let mut paths = paths.clone();
    paths.entry(PathBuf::from("/")).or_insert(Reach::Read);
    let mut left: Vec<(PathBuf, Reach)> = paths
        .iter()
        .filter(|(_, reach)| **reach > Reach::Hidden)
        .map(|(path, reach)| (path.clone(), *reach))
        .collect();
    let (mut granted, mut looked_at) = (Vec::new(), 0);
    while let Some((path, reach)) = left.pop() {
        let mut below = paths.range(path.clone()..).take_while(|(other, _)| other.starts_with(&path));
        let is_whole = below.all(|(other, least)| *other == path || *least >= reach);
        if is_whole || !path.is_dir() {
            granted.push((path, reach));
            continue;
        }
        // What cannot be listed cannot be read either.
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MOST_ENTRIES {
                let what = format!(
                    "{} has too many files to hide one below it; hide a whole directory",
                    path.display()
                );
                return Err(bad(&what));
            }
            // A symlink leads to what has a place of its own; those that have a rule come by themselves.
            let is_symlink = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if !is_symlink && !paths.contains_key(&entry.path()) {
                left.push((entry.path(), reach));
            }
        }
    }
    Ok(granted)
}

fn restrict(granted: &[(PathBuf, Reach)], is_closed: bool) -> io::Result<()> {
    // Devices that a program makes for itself would lead to what is hidden.
    let devices = make_bitflags!(AccessFs::{MakeChar | MakeBlock});
    let write = AccessFs::from_all(NEWEST) & !devices;
    let read: BitFlags<AccessFs> = AccessFs::from_read(NEWEST) | AccessFs::ResolveUnix;
    let failed = |error: landlock::RulesetError| io::Error::other(error);
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST)).map_err(failed)?;
    ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(failed)?;
    if is_closed {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(failed)?;
    }
    let mut ruleset = ruleset.create().map_err(failed)?;
    for (path, reach) in granted {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What is gone by now, or never could be opened, needs no rule.
        let Ok(file): Result<OwnedFd, _> = rustix::fs::open(path, flags, Mode::empty()) else { continue };
        let access = if *reach == Reach::Write { write } else { read };
        ruleset = ruleset.add_rule(PathBeneath::new(file, access)).map_err(failed)?;
    }
    match ruleset.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel enforces no rule of Landlock")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::Private;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[&str]) -> Self {
            let scratch = tempfile::tempdir().expect("a scratch directory");
            let tree = Self(scratch);
            for file in files {
                let path = tree.at(file);
                std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
                std::fs::write(path, "").expect("written");
            }
            tree
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().expect("it is there").join(path)
        }

        /// What is granted below it, where these are the rules.
        fn grants(&self, rules: &[(&str, Reach)]) -> Vec<(String, Reach)> {
            let mut restrictions = Restrictions::default();
            for (path, reach) in rules {
                restrictions.set(self.at(path).into(), *reach);
            }
            let granted = grants(&restrictions.paths).expect("few files").into_iter();
            let inner = granted.filter_map(|(path, reach)| {
                Some((path.strip_prefix(self.at("")).ok()?.display().to_string(), reach))
            });
            let mut inner: Vec<_> = inner.collect();
            inner.sort();
            inner
        }
    }

    fn read(path: &str) -> (String, Reach) {
        (path.to_owned(), Reach::Read)
    }

    #[test]
    fn what_is_hidden_is_left_out_by_allowing_what_is_beside_it() {
        let tree = Tree::new(&["a/secret/key", "a/open", "a/other/x", "b/x", "c"]);
        std::os::unix::fs::symlink("a/secret", tree.at("way")).expect("a symlink");
        let granted = tree.grants(&[("a/secret", Reach::Hidden)]);
        assert_eq!(granted, [read("a/open"), read("a/other"), read("b"), read("c")]);
    }

    #[test]
    fn of_two_rules_the_one_for_the_longer_path_counts() {
        let tree = Tree::new(&["home/u/project/src/x", "home/u/project/.env", "home/u/.ssh/key", "home/w/x"]);
        let granted = tree.grants(&[
            ("home", Reach::Hidden),
            ("home/u/project", Reach::Write),
            ("home/u/project/.env", Reach::Hidden),
        ]);
        assert_eq!(granted, [("home/u/project/src".to_owned(), Reach::Write)]);
        let granted = tree.grants(&[
            ("home", Reach::Hidden),
            ("home/u/project", Reach::Read),
            ("home/u/project/src", Reach::Write),
        ]);
        assert_eq!(granted, [read("home/u/project"), ("home/u/project/src".to_owned(), Reach::Write)]);
    }

    #[test]
    fn hiding_a_file_among_too_many_is_refused() {
        let tree = Tree::new(&["many/secret"]);
        for number in 0..=MOST_ENTRIES {
            std::fs::hard_link(tree.at("many/secret"), tree.at(&format!("many/{number}"))).expect("a link");
        }
        let paths = BTreeMap::from([(tree.at("many/secret"), Reach::Hidden)]);
        let refused = grants(&paths).expect_err("too many").to_string();
        assert!(refused.contains("many has too many files"), "{refused}");
    }

    #[test]
    fn variables_name_the_private_directories_instead_of_hidden_ones() {
        let tree = Tree::new(&["home/.npmrc", "home/project/x", "private/x"]);
        let environment = [
            ("HOME", tree.at("home")),
            ("CODEX_HOME", tree.at("home/.codex")),
            ("PROJECT", tree.at("home/project/x")),
            ("PWD", tree.at("home/elsewhere")),
            ("PATH", PathBuf::from(format!("{0}:{0}", tree.at("home/bin").display()))),
            ("OTHER", PathBuf::from("relative")),
        ];
        let environment = environment.map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let private = Private::make(&tree.at("private")).expect("private directories");
        let room = Room {
            private: private.clone(),
            directory: tree.at("home/project"),
            environment: environment.into(),
            read: Vec::new(),
            write: vec![tree.at("home/project")],
            hide: Vec::new(),
            network: Network::Open,
            users_home: None,
            own: Vec::new(),
            filled: None,
            fills_caches: false,
            signals: crate::room::Signals::AreForTheProgram,
        };
        let set = super::environment(&room, &room.rules());
        let [home, temporary] = [private.home(), private.temporary()];
        let wanted = [
            ("HOME", home.clone()),
            ("CODEX_HOME", home.join(".codex")),
            ("TMPDIR", temporary.clone()),
            ("TMP", temporary.clone()),
            ("TEMP", temporary),
        ];
        assert_eq!(set, wanted.map(|(name, path)| (name.to_owned(), path)).into());
    }
}
