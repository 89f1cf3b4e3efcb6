//! Turns a freshly started process into a supervisor: nothing inherited stays open, the terminal is left, nobody may trace us,
//! orphans come to us.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Instant;

use rustix::fs::{FileType, Mode};
use towline_files::HeldDirectory;

use super::peer::{Peer, PeerId};
use super::signals::Signals;
use crate::clock::RunClock;
use crate::files::{self, Stream};
use crate::identity;
use crate::inspection::refuse_inspection;
use crate::launch::Launch;
use crate::platform::{self, ProcessId};
use crate::wire::Lengths;

/// Everything the supervisor begins with.
pub(super) struct Prepared {
    pub(super) place: HeldDirectory,
    /// Its lock distinguishes us from a process that only claims to be us.
    pub(super) identity: File,
    pub(super) launch: Launch,
    /// The time of the run, which begins here.
    pub(super) clock: RunClock,
    pub(super) signals: Signals,
    pub(super) listener: UnixListener,
    /// The connection of whoever started us, if it gave us one.
    pub(super) starter: Option<Peer>,
    pub(super) stdin_log: File,
    pub(super) stdout_log: File,
    pub(super) stderr_log: File,
    pub(super) index: File,
}

pub(super) fn prepare(dir: &Path) -> io::Result<Prepared> {
    close_inherited_descriptors()?;
    // Fails when we lead a session already, which is what it is for.
    let _ = rustix::process::setsid();
    let starter = take_starter()?;
    // Before anything is written: from here on, a file that reaches the limit for its size does not end this process.
    let signals = Signals::install()?;
    platform::take_supervisors_name().map_err(in_words("take a name"))?;
    refuse_inspection().map_err(in_words("refuse tracers"))?;
    let place = enter(dir).map_err(in_words("enter the run's directory"))?;
    redirect_standard_streams(&place)?;
    let me = ProcessId::current().ok_or_else(|| io::Error::other("cannot find out our own start time"))?;
    // Before anything else is read: whoever looks for a living supervisor finds this file.
    let identity = identity::claim(&place.join(""), me).map_err(in_words("write shim.pid"))?;
    let launch = Launch::read(&place.join("")).map_err(in_words("read launch.json"))?;
    platform::adopt_orphans().map_err(in_words("adopt orphans"))?;
    let listener = listen(&place).map_err(in_words("bind shim.sock"))?;
    let create = |name: &'static str| towline_files::create_new(&place.join(name)).map_err(in_words(name));
    let [stdin_log, index] = [create(files::STDIN)?, create(files::INDEX)?];
    let [stdout_log, stderr_log] = [create(Stream::Stdout.file_name())?, create(Stream::Stderr.file_name())?];
    // Before the program starts, which may be quick to turn against us.
    let clock = RunClock::start();
    let starter = starter.map(|starter| greet(starter, clock)).transpose()?;
    Ok(Prepared {
        place,
        identity,
        launch,
        clock,
        signals,
        listener,
        starter,
        stdin_log,
        stdout_log,
        stderr_log,
        index,
    })
}

/// The run's directory. On Linux it is not the current one: what is supervised could read that. The way through a descriptor is
/// short, too, which paths of sockets must be.
fn enter(dir: &Path) -> io::Result<HeldDirectory> {
    std::env::set_current_dir(dir)?;
    let held = HeldDirectory::open(Path::new("."))?;
    if cfg!(target_os = "linux") {
        std::env::set_current_dir("/")?;
    }
    Ok(held)
}

/// Notifies our starter that the run is under supervision.
fn greet(starter: UnixStream, clock: RunClock) -> io::Result<Peer> {
    let mut starter = Peer::new(PeerId::STARTER, starter, Instant::now())?;
    starter.send_lengths(Lengths::default(), clock);
    Ok(starter)
}

fn in_words(what: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Whatever our starter left open (locks, sockets, pipes of others) must not live as long as we do.
#[expect(unsafe_code, reason = "descriptors that nobody in this process owns can only be closed by number")]
fn close_inherited_descriptors() -> io::Result<()> {
    let numbers: Vec<i32> = std::fs::read_dir("/dev/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    // The listing had a descriptor of its own, which is closed by now.
    let is_open = |number: &i32| Path::new(&format!("/dev/fd/{number}")).symlink_metadata().is_ok();
    for number in numbers.into_iter().filter(is_open) {
        // SAFETY: it is open, and this is the first thing the process does, so no value in it owns a descriptor
        // above 2.
        unsafe { rustix::io::close(number) };
    }
    Ok(())
}

/// Our starter's end of a socket pair arrives as standard input; started by hand, there is none.
fn take_starter() -> io::Result<Option<UnixStream>> {
    let stdin = std::io::stdin();
    let is_socket = rustix::fs::fstat(stdin.as_fd())
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    if is_socket { Ok(Some(UnixStream::from(stdin.as_fd().try_clone_to_owned()?))) } else { Ok(None) }
}

/// The socket is for its owner only from its first moment. The mask is put back, because the program inherits it.
fn listen(place: &HeldDirectory) -> io::Result<UnixListener> {
    let mask = rustix::process::umask(Mode::XUSR | Mode::RWXG | Mode::RWXO);
    let listener = UnixListener::bind(place.join(files::SOCKET));
    rustix::process::umask(mask);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn redirect_standard_streams(place: &HeldDirectory) -> io::Result<()> {
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&towline_files::append(&place.join(files::SUPERVISOR_LOG))?)?;
    Ok(())
}
