//! Starting a run and talking to its shim.
//!
//! A [`Shim`] is a handle on a run, not its owner: dropping it leaves the run alone, and several may be
//! connected to the same one. What the program says is not passed through here: it is read from the logs.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::error::ProcessError;
use crate::files;
use crate::identity::shim_process;
use crate::launch::{Deadline, Launch};
use crate::link::Link;
use crate::platform::{self, ProcessId, Signal};
use crate::record::ExitRecord;
use crate::wire::{Lengths, Operation, Outcome};

/// How long a shim may take to get ready; generous, for machines under load.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for a shim that is just starting, or just ending, before judging.
const TRANSITION_PATIENCE: Duration = Duration::from_secs(5);
const TRANSITION_PAUSE: Duration = Duration::from_millis(10);
/// How much of the shim's own log goes into an error.
const LOG_EXCERPT: usize = 500;

/// The program that becomes the shim: the arguments are followed by the run's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimProgram {
    /// The executable.
    pub path: PathBuf,
    /// What comes before the directory, such as `shim`.
    pub args: Vec<String>,
}

/// What a run has to say unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Notice {
    /// The logs are now this long. Only the newest lengths are told; the first notice always is one of these.
    Grown {
        /// The length of `stdout.log`.
        stdout: u64,
        /// The length of `stderr.log`.
        stderr: u64,
    },
    /// The run has ended and nothing of it is left.
    Exited(ExitRecord),
}

/// A connection to the shim of a run.
#[derive(Debug)]
pub struct Shim {
    dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Connected(Box<Link>),
    /// The run had ended before we could connect, or has ended since.
    Ended {
        record: Box<ExitRecord>,
        untold: Option<Lengths>,
    },
}

/// Starts a run: creates its directory, writes `launch.json`, starts the shim with exactly the environment
/// `env`, and waits until the shim has the run in hand.
///
/// A program that cannot be started is not an error here: it is the run's end, told by [`Notice::Exited`]. When
/// this future is dropped half way the run may have begun; [`connect`] finds out.
pub async fn spawn(
    program: &ShimProgram,
    dir: &Path,
    launch: &Launch,
    env: &BTreeMap<String, String>,
) -> Result<Shim, ProcessError> {
    let (program, env, launch) = (program.clone(), env.clone(), launch.clone());
    let directory = dir.to_owned();
    let started = tokio::task::spawn_blocking(move || start(&program, &directory, &launch, &env)).await;
    let started =
        started.map_err(io::Error::other).map_err(ProcessError::io("start the supervisor of", dir))??;
    let mut link = into_link(started.socket).map_err(ProcessError::io("use the socket of", dir))?;
    match timeout(READY_PATIENCE, greeting(&mut link, dir)).await {
        Ok(ready) => ready?,
        Err(_) => {
            if let Some(process) = started.process {
                // It has not said that it runs anything; if it does, that dies with it.
                let _ = platform::send(process, Signal::Kill);
            }
            return Err(ProcessError::ShimNotReady { dir: dir.to_owned() });
        }
    }
    Ok(Shim::new(dir, State::Connected(Box::new(link))))
}

/// Connects to a run that was started before, perhaps by another process. A run that has ended in the meantime
/// gives a handle too: its next notices are the lengths and the record. [`ProcessError::Lost`] says that the
/// shim is gone and left no record. The same is said of a run whose shim never got as far as to start.
pub async fn connect(dir: &Path) -> Result<Shim, ProcessError> {
    let give_up = Instant::now() + TRANSITION_PATIENCE;
    loop {
        // Looked at before the record: a shim that is gone by now has written its record before.
        let shim = shim_process(dir).map_err(ProcessError::io("read the process number in", dir))?;
        let runs = shim.is_some_and(ProcessId::is_running);
        if let Some(record) = ExitRecord::read(dir)? {
            return Ok(Shim::new(dir, ended(record)));
        }
        match connect_socket(dir).await {
            Ok(stream) => return Ok(Shim::new(dir, State::Connected(Box::new(Link::new(stream))))),
            Err(error) if !is_absence(&error) => {
                return Err(ProcessError::io("connect to the socket in", dir)(error));
            }
            Err(_) if shim.is_some() && !runs => return Err(ProcessError::Lost { dir: dir.to_owned() }),
            Err(error) if shim.is_none() && !dir.join(files::LAUNCH).exists() => {
                return Err(ProcessError::io("find a run in", dir)(error));
            }
            // Between its start and its socket, or between its socket and its end.
            Err(_) if Instant::now() < give_up => sleep(TRANSITION_PAUSE).await,
            Err(_) if runs => return Err(ProcessError::Disconnected { dir: dir.to_owned() }),
            Err(_) => return Err(ProcessError::Lost { dir: dir.to_owned() }),
        }
    }
}

impl Shim {
    fn new(dir: &Path, state: State) -> Self {
        Self { dir: dir.to_owned(), state: Mutex::new(state) }
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes to the program's standard input. Done when the bytes are in `stdin.log` and on their way; the
    /// program may not have read them. Other clients' writes come before or after, never in between.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), ProcessError> {
        self.request(Operation::Write { length: bytes.len() as u64 }, bytes).await
    }

    /// Closes the program's standard input once it has taken everything written so far.
    pub async fn close_stdin(&self) -> Result<(), ProcessError> {
        self.request(Operation::CloseStdin, &[]).await
    }

    /// Sends SIGINT to the program, and no more than that.
    pub async fn interrupt(&self) -> Result<(), ProcessError> {
        self.signal(Signal::Interrupt).await
    }

    /// Sends a signal to the program alone, not to what it started.
    pub async fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.request(Operation::Signal(signal), &[]).await
    }

    /// Begins to end the whole run: SIGINT, then SIGTERM, then SIGKILL, as the launch says. Returns at once;
    /// [`Notice::Exited`] tells when it is done. A run that has ended is stopped already.
    pub async fn stop(&self) -> Result<(), ProcessError> {
        unless_ended(self.request(Operation::Stop, &[]).await)
    }

    /// Ends the whole run with SIGKILL now, also in the middle of a stop. Returns at once, like
    /// [`Shim::stop`].
    pub async fn kill(&self) -> Result<(), ProcessError> {
        unless_ended(self.request(Operation::Kill, &[]).await)
    }

    /// Moves the deadline further away; an earlier one than the present is ignored. Refused with
    /// [`ProcessError::Stopping`] once the run is being ended.
    pub async fn extend(&self, deadline: Deadline) -> Result<(), ProcessError> {
        self.request(Operation::Extend(deadline), &[]).await
    }

    /// Waits for the next notice. May be dropped and called again without losing one. After
    /// [`Notice::Exited`] it gives the same again.
    pub async fn next(&mut self) -> Result<Notice, ProcessError> {
        let dir = &self.dir;
        let state = self.state.get_mut();
        loop {
            match state {
                State::Ended { record, untold } => {
                    return Ok(untold.take().map_or_else(|| Notice::Exited((**record).clone()), grown));
                }
                State::Connected(link) => {
                    if let Some(lengths) = link.take_grown() {
                        return Ok(grown(lengths));
                    }
                    if let Some(record) = link.exited() {
                        return Ok(Notice::Exited(record.clone()));
                    }
                    if link.is_closed() {
                        *state = ended(record_after_hangup(dir).await?);
                    } else {
                        link.step(dir).await?;
                    }
                }
            }
        }
    }

    async fn request(&self, op: Operation, payload: &[u8]) -> Result<(), ProcessError> {
        let mut state = self.state.lock().await;
        let dir = || self.dir.clone();
        let State::Connected(link) = &mut *state else { return Err(ProcessError::Ended { dir: dir() }) };
        match link.request(op, payload, &self.dir).await? {
            Some(Outcome::Done) => Ok(()),
            Some(Outcome::Ended) => Err(ProcessError::Ended { dir: dir() }),
            Some(Outcome::StdinClosed) => Err(ProcessError::StdinClosed { dir: dir() }),
            Some(Outcome::Stopping) => Err(ProcessError::Stopping { dir: dir() }),
            Some(Outcome::Failed(message)) => Err(ProcessError::Refused { dir: dir(), message }),
            // The record is not taken over here, so that `next` tells everything in its order.
            None => match link.exited() {
                Some(_) => Err(ProcessError::Ended { dir: dir() }),
                None => record_after_hangup(&self.dir).await.and(Err(ProcessError::Ended { dir: dir() })),
            },
        }
    }
}

fn grown(lengths: Lengths) -> Notice {
    Notice::Grown { stdout: lengths.stdout, stderr: lengths.stderr }
}

fn ended(record: ExitRecord) -> State {
    let lengths = Lengths { stdout: record.stdout_bytes, stderr: record.stderr_bytes };
    State::Ended { record: Box::new(record), untold: Some(lengths) }
}

fn unless_ended(result: Result<(), ProcessError>) -> Result<(), ProcessError> {
    match result {
        Err(ProcessError::Ended { .. }) => Ok(()),
        other => other,
    }
}

/// The shim hung up: with a record the run has ended, without one either the shim is lost or only we are.
async fn record_after_hangup(dir: &Path) -> Result<ExitRecord, ProcessError> {
    let give_up = Instant::now() + TRANSITION_PATIENCE;
    loop {
        let shim = shim_process(dir).map_err(ProcessError::io("read the process number in", dir))?;
        let runs = shim.is_some_and(ProcessId::is_running);
        if let Some(record) = ExitRecord::read(dir)? {
            return Ok(record);
        }
        if !runs {
            return Err(ProcessError::Lost { dir: dir.to_owned() });
        }
        // A dying process closes its sockets a moment before it is seen to be dead.
        if Instant::now() >= give_up {
            return Err(ProcessError::Disconnected { dir: dir.to_owned() });
        }
        sleep(TRANSITION_PAUSE).await;
    }
}

struct Started {
    socket: StdUnixStream,
    process: Option<ProcessId>,
}

fn start(
    program: &ShimProgram,
    dir: &Path,
    launch: &Launch,
    env: &BTreeMap<String, String>,
) -> Result<Started, ProcessError> {
    files::create_private_dir(dir).map_err(ProcessError::io("create", dir))?;
    let dir = dir.canonicalize().map_err(ProcessError::io("find", dir))?;
    write_launch(&dir, launch)?;
    let log_path = dir.join(files::SHIM_LOG);
    let log = files::append_private(&log_path).map_err(ProcessError::io("create", &log_path))?;
    let not_started = |source| ProcessError::ShimNotStarted { program: program.path.clone(), source };
    let (ours, theirs) = StdUnixStream::pair().map_err(not_started)?;
    let child = shim_command(program, &dir)
        .env_clear()
        .envs(env)
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        .spawn()
        .map_err(|source| {
            // Nothing ran, so the directory is free again.
            let _ = std::fs::remove_file(dir.join(files::LAUNCH));
            not_started(source)
        })?;
    let process = ProcessId::of(child.id());
    reap_in_background(child);
    Ok(Started { socket: ours, process })
}

#[expect(clippy::disallowed_methods, reason = "this crate starts the shims")]
fn shim_command(program: &ShimProgram, dir: &Path) -> Command {
    let mut command = Command::new(&program.path);
    command.args(&program.args).arg(dir);
    command
}

fn write_launch(dir: &Path, launch: &Launch) -> Result<(), ProcessError> {
    let path = dir.join(files::LAUNCH);
    let json = launch.to_json().map_err(|source| ProcessError::UnwritableLaunch { source })?;
    let mut file = files::create_private(&path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ProcessError::DirectoryInUse { dir: dir.to_owned() },
        _ => ProcessError::io("create", &path)(error),
    })?;
    io::Write::write_all(&mut file, &json).map_err(ProcessError::io("write", &path))
}

/// Waits for the shim's end in a thread of its own, so that it does not stay behind as a zombie. A task would
/// not do: the shim may outlive the runtime, which waits for its blocking tasks before it shuts down.
fn reap_in_background(mut child: Child) {
    let _ =
        std::thread::Builder::new().name("shim-reaper".to_owned()).stack_size(64 * 1024).spawn(move || {
            let _ = child.wait();
        });
}

fn into_link(socket: StdUnixStream) -> io::Result<Link> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket).map(Link::new)
}

/// The first lengths are the sign that the shim has the run in hand.
async fn greeting(link: &mut Link, dir: &Path) -> Result<(), ProcessError> {
    while !link.has_grown() {
        if link.is_closed() {
            if ExitRecord::read(dir)?.is_some() {
                return Ok(());
            }
            return Err(ProcessError::ShimFailed { dir: dir.to_owned(), log: log_excerpt(dir) });
        }
        link.step(dir).await?;
    }
    Ok(())
}

fn log_excerpt(dir: &Path) -> String {
    let log = std::fs::read(dir.join(files::SHIM_LOG)).unwrap_or_default();
    let text = String::from_utf8_lossy(log.get(log.len().saturating_sub(LOG_EXCERPT)..).unwrap_or_default());
    let text = text.trim();
    if text.is_empty() { "it said nothing".to_owned() } else { text.to_owned() }
}

/// The path of a socket is limited to about a hundred bytes, directories are not: the way through a descriptor
/// of the directory is always short.
#[cfg(target_os = "linux")]
async fn connect_socket(dir: &Path) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(dir, flags, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}/{}", directory.as_raw_fd(), files::SOCKET)).await
}

#[cfg(not(target_os = "linux"))]
async fn connect_socket(dir: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(dir.join(files::SOCKET)).await
}

/// Whether the error says that nobody listens, as against that we may not ask.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
