//! Starting a run and talking to its supervisor.
//!
//! A [`SupervisorHandle`] is a handle on a run, not its owner: dropping it leaves the run alone, and several may be
//! connected to the same one. The program's output does not pass through here: it is read from the logs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use towline_files::HeldDirectory;

use crate::connection::Connection;
use crate::error::ProcessError;
use crate::files;
use crate::guard::Guard;
use crate::identity::{self, Identity};
use crate::launch::Launch;
use crate::platform::ProcessId;
use crate::record::ExitRecord;
use crate::starting::{self, SupervisorProgram, log_excerpt};
use crate::wire::{Deadline, Lengths, Operation, Outcome};

/// How long a supervisor may take to get ready; generous, for machines under load.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for a supervisor that is just starting, or just ending, before judging.
const TRANSITION_PATIENCE: Duration = Duration::from_secs(5);
const TRANSITION_PAUSE: Duration = Duration::from_millis(10);
/// How long a request may wait for its reply before the supervisor is looked at, and once more after that.
const REPLY_PATIENCE: Duration = Duration::from_secs(5);
/// The same for a write, which may wait for other clients and for the disk.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// What a run reports unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Notice {
    /// The logs are now this long. Only the newest lengths are reported; the first notice always is one of these.
    Grown {
        /// The length of `stdout.log`.
        stdout: u64,
        /// The length of `stderr.log`.
        stderr: u64,
    },
    /// The run has ended and nothing of it is left.
    Exited(ExitRecord),
}

/// A connection to the supervisor of a run.
#[derive(Debug)]
pub struct SupervisorHandle {
    dir: PathBuf,
    guard: Guard,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Connected(Box<Connection>),
    /// The run had ended before we could connect, or has ended since.
    Ended {
        record: Box<ExitRecord>,
        untold: Option<Lengths>,
    },
}

/// Starts a run: creates its directory, writes `launch.json`, starts the supervisor with exactly the environment
/// `env`, and waits until the supervisor has the run in hand.
///
/// A program that cannot be started is not an error here: it is the run's end, reported by [`Notice::Exited`]. When
/// this future is dropped half way the run may have begun; [`connect`] finds out.
pub async fn spawn(
    program: &SupervisorProgram,
    dir: &Path,
    launch: &Launch,
    env: &BTreeMap<String, String>,
) -> Result<SupervisorHandle, ProcessError> {
    let (program, env, launch) = (program.clone(), env.clone(), launch.clone());
    let directory = dir.to_owned();
    let started = tokio::task::spawn_blocking(move || starting::start(&program, &directory, &launch, &env));
    let started = started.await.map_err(io::Error::other);
    let started = started.map_err(ProcessError::io("start the supervisor of", dir))??;
    let guard = Guard::started(started.supervised);
    let mut connection =
        into_connection(started.socket).map_err(ProcessError::io("use the socket of", dir))?;
    let greeted = timeout(READY_PATIENCE, greeting(&mut connection, dir)).await;
    if matches!(greeted, Ok(Ok(()))) && connection.grown.is_some() {
        return Ok(SupervisorHandle::new(dir, guard, State::Connected(Box::new(connection))));
    }
    // It has not reported that it runs anything; if it does, that dies with it. By then its log is complete.
    guard.end().await.map_err(not_ended(dir))?;
    greeted.map_err(|_| ProcessError::SupervisorNotReady { dir: dir.to_owned() })??;
    Err(ProcessError::SupervisorFailed { dir: dir.to_owned(), log: log_excerpt(dir) })
}

/// Connects to a run that was started before, perhaps by another process. A run that has ended in the meantime
/// gives a handle too: its next notices are the lengths and the record on disk, which may be forged.
/// [`ProcessError::Lost`] means that the supervisor is gone and left no record. The same error is returned for a run whose
/// supervisor never got as far as to start.
pub async fn connect(dir: &Path) -> Result<SupervisorHandle, ProcessError> {
    let give_up = Instant::now() + TRANSITION_PATIENCE;
    let lost = || ProcessError::Lost { dir: dir.to_owned() };
    loop {
        let is_late = Instant::now() >= give_up;
        match identity::look_up(dir).map_err(ProcessError::io("read the process number in", dir))? {
            Identity::Running(process) => match dial(dir, process).await {
                Ok(stream) => {
                    let state = State::Connected(Box::new(Connection::new(stream)));
                    return Ok(SupervisorHandle::new(dir, Guard::found(process), state));
                }
                Err(error) if !is_absence(&error) => {
                    return Err(ProcessError::io("connect to the socket in", dir)(error));
                }
                // Between its start and its socket, or between its socket and its end.
                Err(_) if !is_late => sleep(TRANSITION_PAUSE).await,
                Err(_) => return Err(ProcessError::Disconnected { dir: dir.to_owned() }),
            },
            Identity::Gone => return on_disk(dir)?.ok_or_else(lost),
            Identity::Unknown => {
                if let Some(ended) = on_disk(dir)? {
                    return Ok(ended);
                }
                if !dir.join(files::LAUNCH).exists() {
                    let nothing = io::Error::from(io::ErrorKind::NotFound);
                    return Err(ProcessError::io("find a run in", dir)(nothing));
                }
                if is_late {
                    return Err(lost());
                }
                sleep(TRANSITION_PAUSE).await;
            }
        }
    }
}

/// Adopts a run whose `supervisor` was started by a process that is gone. Only what that supervisor reports counts: one
/// that is killed before that makes the run [`ProcessError::Lost`], whatever is on disk. None if it does not live any more.
pub async fn adopt(dir: &Path, supervisor: ProcessId) -> Result<Option<SupervisorHandle>, ProcessError> {
    let living =
        identity::supervisor_process(dir).map_err(ProcessError::io("read the process number in", dir))?;
    if living != Some(supervisor) {
        return Ok(None);
    }
    match dial(dir, supervisor).await {
        Ok(stream) => {
            let state = State::Connected(Box::new(Connection::new(stream)));
            Ok(Some(SupervisorHandle::new(dir, Guard::adopted(supervisor), state)))
        }
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(ProcessError::io("connect to the socket in", dir)(error)),
    }
}

/// A handle on a run that has ended, by its record on disk.
fn on_disk(dir: &Path) -> Result<Option<SupervisorHandle>, ProcessError> {
    let record = ExitRecord::read(dir)?;
    Ok(record.map(|record| SupervisorHandle::new(dir, Guard::none(), ended(record))))
}

impl SupervisorHandle {
    fn new(dir: &Path, guard: Guard, state: State) -> Self {
        Self { dir: dir.to_owned(), guard, state: Mutex::new(state) }
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its supervisor; none of a run that had ended before.
    pub fn supervisor(&self) -> Option<ProcessId> {
        self.guard.process
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

    /// Begins to end the whole run: SIGINT, then SIGTERM, then SIGKILL, as the launch defines. Returns at once;
    /// [`Notice::Exited`] reports when it is done. A run that has ended is stopped already.
    pub async fn stop(&self) -> Result<(), ProcessError> {
        unless_ended(self.request(Operation::Stop, &[]).await)
    }

    /// Ends the whole run with SIGKILL now, also in the middle of a stop. Returns at once, like
    /// [`SupervisorHandle::stop`].
    pub async fn kill(&self) -> Result<(), ProcessError> {
        unless_ended(self.request(Operation::Kill, &[]).await)
    }

    /// Ends the supervisor and everything below it from outside, for one that does not come to an end. What it reported before that
    /// still counts.
    pub async fn end(&self) -> Result<(), ProcessError> {
        self.guard.end().await.map_err(not_ended(&self.dir))
    }

    /// Lets the run last for so long from now; less than it has left is ignored. Refused with
    /// [`ProcessError::Stopping`] once the run is being ended.
    pub async fn extend(&self, remaining: Duration) -> Result<(), ProcessError> {
        self.request(Operation::Extend(Deadline::after(remaining)), &[]).await
    }

    /// The run's own time in milliseconds since the Unix epoch: wall time at its start, moved on by the time that has passed. The
    /// times of its `index` are of this kind. None before the first notice.
    pub fn run_time_ms(&mut self) -> Option<u64> {
        match self.state.get_mut() {
            State::Connected(connection) => connection.run_time_ms(),
            State::Ended { .. } => None,
        }
    }

    /// Waits for the next notice. May be dropped and called again without losing one. After
    /// [`Notice::Exited`] it gives the same again.
    ///
    /// Of a run that [`spawn`] started, the end is what its supervisor reported on this connection. If it was killed before that,
    /// its tree is ended, and the run is [`ProcessError::Lost`], whatever is on disk.
    pub async fn next(&mut self) -> Result<Notice, ProcessError> {
        let Self { dir, guard, state } = self;
        let state = state.get_mut();
        loop {
            let connection = match state {
                State::Ended { record, untold } => {
                    return Ok(untold.take().map_or_else(|| Notice::Exited((**record).clone()), grown));
                }
                State::Connected(connection) => connection,
            };
            if let Some(lengths) = connection.grown.take() {
                return Ok(grown(lengths));
            }
            if let Some(record) = &connection.exited {
                return Ok(Notice::Exited((**record).clone()));
            }
            if connection.is_closed {
                *state = ended(record_after_hangup(dir, guard).await?);
            } else {
                match timeout_at(guard.next_look(), connection.step(dir)).await {
                    Ok(step) => step?,
                    Err(_) => guard.look().await,
                }
            }
        }
    }

    async fn request(&self, op: Operation, payload: &[u8]) -> Result<(), ProcessError> {
        let mut state = self.state.lock().await;
        let dir = || self.dir.clone();
        let State::Connected(connection) = &mut *state else {
            return Err(ProcessError::Ended { dir: dir() });
        };
        match self.ask(connection, op, payload).await? {
            Some(Outcome::Done) => Ok(()),
            Some(Outcome::Ended) => Err(ProcessError::Ended { dir: dir() }),
            Some(Outcome::StdinClosed) => Err(ProcessError::StdinClosed { dir: dir() }),
            Some(Outcome::Stopping) => Err(ProcessError::Stopping { dir: dir() }),
            Some(Outcome::Failed(message)) => Err(ProcessError::Refused { dir: dir(), message }),
            // The record is not taken over here, so that `next` reports everything in its order.
            None => {
                if connection.exited.is_none() {
                    record_after_hangup(&self.dir, &self.guard).await?;
                }
                Err(ProcessError::Ended { dir: dir() })
            }
        }
    }

    /// Sends a request and waits for its reply, for a bounded time; `None` if the supervisor hangs up. One that was suspended is
    /// woken. If it still does not answer to a request that ends the run, or is suspended again, it is ended with its tree.
    async fn ask(
        &self,
        connection: &mut Connection,
        op: Operation,
        payload: &[u8],
    ) -> Result<Option<Outcome>, ProcessError> {
        let patience = if matches!(op, Operation::Write { .. }) { WRITE_PATIENCE } else { REPLY_PATIENCE };
        let id = connection.send_later(op, payload);
        if let Ok(reply) = timeout(patience, connection.reply(id, &self.dir)).await {
            return reply;
        }
        self.guard.wake();
        if let Ok(reply) = timeout(REPLY_PATIENCE, connection.reply(id, &self.dir)).await {
            return reply;
        }
        if matches!(op, Operation::Stop | Operation::Kill) || self.guard.is_suspended() {
            self.guard.end().await.map_err(not_ended(&self.dir))?;
            // What it reported before that still counts.
            if let Ok(reply) = timeout(REPLY_PATIENCE, connection.reply(id, &self.dir)).await {
                return reply;
            }
        }
        Err(ProcessError::Unresponsive { dir: self.dir.clone() })
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

/// The supervisor hung up without a word about the end. Of a run that we started or adopted, nothing else counts. Otherwise the
/// record on disk does, once the supervisor is gone.
async fn record_after_hangup(dir: &Path, guard: &Guard) -> Result<ExitRecord, ProcessError> {
    let lost = || ProcessError::Lost { dir: dir.to_owned() };
    if !guard.believes_disk {
        guard.end().await.map_err(not_ended(dir))?;
        identity::remove_dead_socket(dir);
        return Err(lost());
    }
    let give_up = Instant::now() + TRANSITION_PATIENCE;
    while guard.is_running() {
        // A dying process closes its sockets a moment before it is seen to be dead.
        if Instant::now() >= give_up {
            return Err(ProcessError::Disconnected { dir: dir.to_owned() });
        }
        sleep(TRANSITION_PAUSE).await;
    }
    ExitRecord::read(dir)?.ok_or_else(lost)
}

/// For `map_err`: the run's directory, and why something of it may be left.
fn not_ended(dir: &Path) -> impl FnOnce(String) -> ProcessError {
    move |message| ProcessError::NotEnded { dir: dir.to_owned(), message }
}

fn into_connection(socket: std::os::unix::net::UnixStream) -> io::Result<Connection> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket).map(Connection::new)
}

/// Waits for the first lengths, the sign that the supervisor has the run in hand, or until it hangs up.
async fn greeting(connection: &mut Connection, dir: &Path) -> Result<(), ProcessError> {
    while connection.grown.is_none() && !connection.is_closed {
        connection.step(dir).await?;
    }
    Ok(())
}

/// Connects to the socket in a run's directory, if it is this process that listens there.
async fn dial(dir: &Path, supervisor: ProcessId) -> io::Result<UnixStream> {
    // The path of a socket is limited to about a hundred bytes, those of directories are not.
    let held = HeldDirectory::open(&dir.join("."))?;
    let stream = UnixStream::connect(held.join(files::SOCKET)).await?;
    let listener = stream.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok());
    // The number and the start time belong together as long as it runs.
    if listener == Some(supervisor.pid) && supervisor.is_running() {
        Ok(stream)
    } else {
        Err(io::Error::other("another process than the supervisor listens there"))
    }
}

/// Whether nobody listens, or not now, as against that we may not ask.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::WouldBlock)
}
