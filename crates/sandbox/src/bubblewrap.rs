//! The command line that starts a program in a sandbox of bubblewrap.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use towline_core::Network;

use crate::calls;
use crate::inside::{BIND, DURABLE, HIDE, LAYER, PROGRAM, SUBCOMMAND};
use crate::room::{OURS, Room, Rule, Signals, seen_without};

/// bubblewrap must outlive the signals that end a run: it ends when the program does, and reports how. It reads the filter of system
/// calls from a descriptor.
const PATIENT: &str = "trap '' INT TERM HUP QUIT; exec 9<\"$1\"; shift; exec \"$@\"";
/// The same at a person's terminal: an interrupt is for the program, and what ends the session ends the sandbox.
const AT_TERMINAL: &str = "trap '' INT QUIT; exec 9<\"$1\"; shift; exec \"$@\"";
const FILTER: &str = "9";

/// How a sandbox is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tools<'a> {
    /// bubblewrap.
    pub(crate) bubblewrap: &'a Path,
    /// This program, which runs [`crate::enter`].
    pub(crate) towline: &'a Path,
    /// Whether a sandbox can lay what a program writes over a cache.
    pub(crate) can_layer: bool,
}

/// What is started in place of the program: its command line follows.
pub(crate) fn wrapper(tools: Tools<'_>, room: &Room) -> Vec<String> {
    let mut outside = Words::default();
    let start = match room.signals {
        Signals::AreForTheProgram => PATIENT,
        Signals::EndTheSession => AT_TERMINAL,
    };
    outside.add(["/bin/sh", "-c", start, "sh"]);
    outside.path(&room.private.filter());
    outside.path(tools.bubblewrap);
    if !calls::filter().is_empty() {
        outside.add(["--seccomp", FILTER]);
    }
    outside.add([
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    if room.network == Network::Closed {
        outside.add(["--unshare-net"]);
    }
    outside.add(["--die-with-parent", "--cap-drop", "ALL"]);
    if tools.can_layer {
        outside.add(["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_DAC_OVERRIDE"]);
    }
    outside.add(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    if rustix::process::getuid().is_root() {
        // The settings of the kernel are files of root's, and rights that root has lost are not asked for.
        outside.add(["--ro-bind", "/proc/sys", "/proc/sys"]);
    }
    let mut inside = Words::default();
    add_rules(room, tools, &mut outside, &mut inside);
    outside.bind("--ro-bind", tools.towline, tools.towline);
    outside.add(["--chdir"]);
    outside.path(&room.directory);
    outside.add(["--"]);
    outside.path(tools.towline);
    outside.add([SUBCOMMAND]);
    outside.0.append(&mut inside.0);
    outside.add([PROGRAM]);
    outside.0
}

/// Each sandbox has some of its own.
const MADE_ANEW: [&str; 2] = ["/dev", "/proc"];

/// Whether a rule shows what the program sees there anyway. Each mount takes time at every start.
fn is_needless(path: &Path, from: &Path, rules: &BTreeMap<PathBuf, Rule>) -> bool {
    let is_made_anew = MADE_ANEW.iter().any(|place| path.starts_with(place));
    !is_made_anew && seen_without(path, rules).is_some_and(|seen| seen == from)
}

/// The rules in the order of their paths, so that one for a longer path counts below one for a shorter. A layer is mounted in the
/// sandbox and covers what is there, so what holds below it is mounted after it.
fn add_rules(room: &Room, tools: Tools<'_>, outside: &mut Words, inside: &mut Words) {
    let rules = room.rules();
    let (mut layers, mut below) = (BTreeMap::new(), Vec::new());
    for (path, rule) in &rules {
        match rule {
            Rule::Layered(from) if tools.can_layer && must_be_layered(room, path, from) => {
                layers.insert(path.clone(), from.clone());
            }
            // The program has a directory of its own.
            Rule::Layered(from) if *from == room.private.empty() => {}
            rule if is_below(path, &layers) => below.push((path, rule)),
            Rule::Read(from) if is_needless(path, from, &rules) => {}
            Rule::Read(from) | Rule::Layered(from) => outside.bind("--ro-bind", from, path),
            Rule::Write(from) if from.starts_with("/dev") => outside.bind("--dev-bind", from, path),
            Rule::Write(from) => outside.bind("--bind", from, path),
            Rule::Hidden if path.is_dir() => {
                outside.add(["--tmpfs"]);
                outside.path(path);
            }
            Rule::Hidden => outside.bind("--ro-bind", Path::new("/dev/null"), path),
        }
    }
    if layers.is_empty() {
        return;
    }
    outside.bind("--bind", &room.private.layers(), &Path::new(OURS).join("layers"));
    if room.fills_caches {
        inside.add([DURABLE]);
    }
    for (place, from) in &layers {
        let name = name_of(place);
        outside.bind("--ro-bind", from, &Path::new(OURS).join("caches").join(&name));
        if let Some(filled) = filled(room, place) {
            outside.bind("--ro-bind", &filled, &Path::new(OURS).join("filled").join(&name));
        }
        inside.add([LAYER, &name]);
        inside.path(place);
    }
    for (number, (path, rule)) in below.into_iter().enumerate() {
        let (how, from) = match rule {
            Rule::Hidden => {
                inside.add([HIDE]);
                inside.path(path);
                continue;
            }
            // The layer has the same.
            Rule::Read(_) if is_seen(path, &rules) => continue,
            Rule::Read(from) | Rule::Layered(from) => ("--ro-bind", from),
            Rule::Write(from) => ("--bind", from),
        };
        let number = number.to_string();
        outside.bind(how, from, &Path::new(OURS).join("below").join(&number));
        inside.add([BIND, &number]);
        inside.path(path);
    }
}

/// Whether the program sees what is at this path by the rule for a shorter one.
fn is_seen(path: &Path, rules: &BTreeMap<PathBuf, Rule>) -> bool {
    let above = path.ancestors().skip(1).find_map(|above| rules.get(above));
    matches!(above, None | Some(Rule::Read(_) | Rule::Layered(_)))
}

/// Whether a cache needs a layer. Each takes time at every start, so one that nobody has anything in is an ordinary directory of the
/// private home, unless what the program writes there is kept.
fn must_be_layered(room: &Room, place: &Path, from: &Path) -> bool {
    from != room.private.empty() || room.fills_caches || filled(room, place).is_some()
}

/// What setup left in this cache.
fn filled(room: &Room, place: &Path) -> Option<PathBuf> {
    let filled = room.filled.as_ref()?.join(name_of(place)).join("upper");
    // Setup wrote it, which may leave a symlink to anywhere.
    let is_directory = filled.symlink_metadata().is_ok_and(|found| found.is_dir());
    (is_directory && filled.read_dir().is_ok_and(|mut entries| entries.next().is_some())).then_some(filled)
}

/// The name of a layer: the same in each sandbox with these private directories, and another one for each place. The options of a
/// mount are separated by characters that it does not have.
pub(crate) fn name_of(place: &Path) -> String {
    let bytes = place.as_os_str().as_bytes().iter();
    bytes.fold(String::new(), |mut name, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => name.push(char::from(*byte)),
            b'/' => name.push('+'),
            other => name.extend(format!("_{other:02x}").chars()),
        }
        name
    })
}

fn is_below(path: &Path, layers: &BTreeMap<PathBuf, PathBuf>) -> bool {
    layers.keys().any(|layer| path.starts_with(layer))
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(str::to_owned));
    }

    fn path(&mut self, path: &Path) {
        self.0.push(path.display().to_string());
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.add([how]);
        self.path(from);
        self.path(to);
    }
}
