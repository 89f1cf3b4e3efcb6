//! The part that runs in the sandbox, before the program does: it lays the user's caches under what the program writes there,
//! gives up every right that this took, and becomes the program.
//!
//! bubblewrap of today's distributions cannot do the first itself.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::landlock::{Ruleset, RulesetAttr, Scope};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set, set_capabilities,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::landlock::{self, LANDLOCK};
use crate::room::OURS;

/// The first argument of the program that runs in the sandbox.
pub const SUBCOMMAND: &str = "sandboxed";

/// The layers are on the disk when the sandbox ends.
pub(crate) const DURABLE: &str = "--durable";
/// Before a cache: its name and its place.
pub(crate) const LAYER: &str = "--layer";
/// Before a directory or a file below a cache that is to be empty.
pub(crate) const HIDE: &str = "--hide";
/// Before what takes the place of something below a cache: its name and its place.
pub(crate) const BIND: &str = "--bind";
/// Before the program.
pub(crate) const PROGRAM: &str = "--";

/// What has to be done inside.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orders {
    durability: Durability,
    layers: Vec<(String, PathBuf)>,
    /// In the order of their places: one may be in the directory that another hides.
    below: Vec<Below>,
    program: Vec<OsString>,
}

/// What has another rule than the cache that it is in.
#[derive(Debug, PartialEq, Eq)]
enum Below {
    Hide(PathBuf),
    Bind(String, PathBuf),
}

/// Whether layers survive a crash of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Durability {
    /// The kernel writes them to the disk when it likes, also where a program waits for that.
    #[default]
    Volatile,
    /// When the sandbox ends, the kernel writes all of the file system to the disk that the layers are on, which can take seconds.
    Durable,
}

/// Prepares the sandbox and becomes the program. Returns only if that fails.
pub fn enter(arguments: impl IntoIterator<Item = OsString>) -> io::Error {
    let mut arguments = arguments.into_iter().peekable();
    let prepared = match arguments.next_if(|first| first == LANDLOCK) {
        Some(_) => landlock::prepare(arguments),
        None => prepare(arguments),
    };
    match prepared {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(arguments: impl IntoIterator<Item = OsString>) -> io::Result<Command> {
    let orders = read(arguments)?;
    if !orders.layers.is_empty() && !rustix::process::getuid().is_root() {
        own_mounts()?;
    }
    for (name, place) in &orders.layers {
        layer(name, place, orders.durability).map_err(about(place))?;
    }
    for below in &orders.below {
        match below {
            Below::Hide(place) => hide(place).map_err(about(place))?,
            Below::Bind(name, place) => bind(name, place).map_err(about(place))?,
        }
    }
    if !orders.layers.is_empty() {
        // The caches are there a second time, with all that is hidden at their place.
        hide(Path::new(OURS)).map_err(about(Path::new(OURS)))?;
        // The directory may be in a layer, or be covered by one.
        let directory = std::env::current_dir()?;
        std::env::set_current_dir(&directory).map_err(about(&directory))?;
    }
    close_abstract_sockets();
    give_up_rights()?;
    // A signal that is handled is back to its default after the start of another program; one that is ignored is not.
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    program(&orders.program)
}

/// The command with these words.
pub(crate) fn program(words: &[OsString]) -> io::Result<Command> {
    let (program, rest) = words.split_first().ok_or_else(|| bad("no program"))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this process becomes the program that its supervisor runs"
    )]
    let mut command = Command::new(program);
    command.args(rest);
    Ok(command)
}

fn read(arguments: impl IntoIterator<Item = OsString>) -> io::Result<Orders> {
    let mut orders = Orders::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().ok_or_else(|| bad("an argument is missing"));
        match argument.to_str() {
            Some(DURABLE) => orders.durability = Durability::Durable,
            Some(LAYER) => {
                let name = next()?.into_string().map_err(|_| bad("a layer has no name"))?;
                orders.layers.push((name, next()?.into()));
            }
            Some(HIDE) => orders.below.push(Below::Hide(next()?.into())),
            Some(BIND) => {
                let name = next()?.into_string().map_err(|_| bad("a path has no name"))?;
                orders.below.push(Below::Bind(name, next()?.into()));
            }
            Some(PROGRAM) => {
                orders.program = arguments.collect();
                break;
            }
            _ => return Err(bad("an unknown argument")),
        }
    }
    Ok(orders)
}

/// For a user who is not root, bubblewrap makes a second user namespace, which may not change the mounts of the first.
#[expect(deprecated, reason = "what is unsafe about it is a shared table of files, and mounts are no files")]
fn own_mounts() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNS)?)
}

/// Mounts a cache of the user's with what the program writes above it.
fn layer(name: &str, place: &Path, durability: Durability) -> io::Result<()> {
    let written = Path::new(OURS).join("layers").join(name);
    let (upper, work) = (written.join("upper"), written.join("work"));
    std::fs::create_dir_all(&upper)?;
    std::fs::create_dir_all(&work)?;
    std::fs::create_dir_all(place)?;
    let cache = Path::new(OURS).join("caches").join(name);
    let filled = Path::new(OURS).join("filled").join(name);
    let lower = if filled.is_dir() {
        format!("{}:{}", filled.display(), cache.display())
    } else {
        cache.display().to_string()
    };
    let volatile = match durability {
        Durability::Volatile => ",volatile",
        Durability::Durable => "",
    };
    forget_volatility(&work)?;
    let (upper, work) = (upper.display(), work.display());
    let options = format!("userxattr{volatile},lowerdir={lower},upperdir={upper},workdir={work}\0");
    let options = CStr::from_bytes_with_nul(options.as_bytes()).map_err(|_| bad("a name with a zero"))?;
    let layered = mount("overlay", place, "overlay", MountFlags::NOSUID | MountFlags::NODEV, options);
    // Not every file system can hold what is written. Then the cache can only be read.
    let is_empty = || cache.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    match layered {
        Err(_) if is_empty() && !filled.is_dir() => Ok(()),
        Err(_) => Ok(mount_bind(&cache, place)?),
        Ok(()) => Ok(()),
    }
}

/// Puts nothing in the place of what is there.
fn hide(place: &Path) -> io::Result<()> {
    if place.is_dir() {
        return Ok(mount("tmpfs", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None::<&CStr>)?);
    }
    // It may be in a directory that is hidden by now.
    if place.exists() { Ok(mount_bind("/dev/null", place)?) } else { Ok(()) }
}

/// Mounts what has its own rule over the layer that covers it.
fn bind(name: &str, place: &Path) -> io::Result<()> {
    let from = Path::new(OURS).join("below").join(name);
    if from.is_dir() {
        std::fs::create_dir_all(place)?;
    } else if !place.exists() {
        std::fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(place, "")?;
    }
    Ok(mount_bind(&from, place)?)
}

/// Removes the note that a layer was volatile. With it, the kernel would not mount the layer again: the machine may have crashed
/// meanwhile. What was written last into a cache may be lost or incomplete then, as it may without a sandbox.
fn forget_volatility(work: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(work.join("work/incompat")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Sockets without a file belong to the network, which the program may share. The kernel can keep it from those of others since
/// version 6.12; older ones do nothing here.
fn close_abstract_sockets() {
    let closed = Ruleset::default()
        .scope(Scope::AbstractUnixSocket)
        .and_then(|rules| rules.create())
        .and_then(|rules| rules.restrict_self());
    // A kernel without Landlock keeps nothing out; the documentation says so.
    let _ = closed;
}

/// What is left are the rights of the user. bubblewrap has made sure that no program gives more.
fn give_up_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

fn about(path: &Path) -> impl Fn(io::Error) -> io::Error {
    let path = path.to_owned();
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

pub(crate) fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_owned())
}
