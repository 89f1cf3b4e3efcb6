//! The engine's socket: how a second terminal reaches a goal that is driven in the first.
//!
//! Newline-delimited JSON. A request is one line; the answer is one line, or, for `follow`, one for each append and for each step
//! of the message that the agent is writing.
//!
//! Only the operator may steer or follow a goal: its log has what hidden checks are and print, and it may be another agent's. An agent
//! proves with its token that it speaks for its own goal.

mod passing_on;

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use towline_core::{AgentEvent, Ask, Envelope, GoalId, Seq};
use towline_store::{GoalRecord, Lease, WorkerName};

use self::passing_on::pass_on_all;
use crate::authority;
use crate::driver::Order;
use crate::engine::{Driven, Engine, Shared};
use crate::goal_command::GoalCommand;
use crate::handle::Steerer;
use crate::held::PoolState;
use crate::home::Home;
use crate::live::LiveMessage;
use crate::presence::{is_dead, living_engines, socket_name};
use crate::reading::without_escapes_in;

/// The longest line, in either direction.
const LONGEST_LINE: u64 = 4 * 1024 * 1024;
/// How long a client may take to send its request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// How many clients are served at the same time. What agents start has places of its own, so that it cannot take those of the
/// operator.
const MOST_CLIENTS: usize = 128;
const MOST_CLIENTS_INSIDE: usize = 32;
/// How long an engine may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// The pause after a client could not be let in.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What can be asked of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Carry out a command of the operator.
    #[serde(rename = "wish")]
    Command {
        goal: GoalId,
        #[serde(rename = "wish")]
        command: GoalCommand,
    },
    /// Record a report that the agent of a living attempt makes through a tool.
    Word {
        /// The goal it works on.
        goal: GoalId,
        /// What proves that it is that agent.
        token: String,
        word: AgentWord,
    },
    /// Pass on what is added to a goal's log, and the message that its agent is writing.
    Follow { goal: GoalId },
    /// Report why goals of the queue wait.
    PoolState,
    /// Take note that another process has removed a goal. Its log went with it, so no event shows that.
    Removed { goal: GoalId },
}

/// A report that an agent makes through Towline's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum AgentWord {
    /// Only a person can answer this.
    Ask { ask: Ask },
    /// It wants to wait once its turn has ended.
    Sleep { duration: Duration, reason: String },
    /// How far it is.
    Progress {
        text: String,
        /// Out of a hundred.
        percent: Option<u8>,
    },
    /// It claims that the goal is reached.
    Submit {
        /// What it did.
        summary: String,
    },
}

impl From<AgentWord> for AgentEvent {
    fn from(word: AgentWord) -> Self {
        without_escapes_in(match word {
            // The tool does not wait for the answer, because it would be cut off.
            AgentWord::Ask { ask } => Self::Asked(Ask { request: None, ..ask }),
            AgentWord::Sleep { duration, reason } => Self::SleepAsked { duration, reason },
            AgentWord::Progress { text, percent } => Self::Progress { text, percent },
            AgentWord::Submit { summary } => Self::Submitted { summary },
        })
    }
}

/// What an engine answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// It has happened.
    Accepted,
    /// The request does not fit the phase of the goal.
    Refused { why: String },
    /// This engine does not drive that goal.
    NotDriven,
    /// The request was not understood.
    NotUnderstood,
    /// The goal's log has grown.
    Grown {
        /// Up to here.
        to: Seq,
        /// What was added; nothing where it has to be read from the store.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<Envelope>,
    },
    /// What the engine does about the queue.
    PoolState { state: PoolState },
    /// The agent is writing.
    Live {
        /// The message as far as it is written.
        message: LiveMessage,
    },
}

/// The listening socket; gone with the engine.
pub(crate) struct Control {
    _tasks: JoinSet<()>,
}

impl Control {
    /// Listens beside the engine's lock file.
    pub(crate) fn serve(directory: &Path, worker: &WorkerName, shared: Arc<Shared>) -> io::Result<Self> {
        let name = socket_name(worker);
        let listener = through_directory(directory, &name, |path| UnixListener::bind(path))?;
        std::fs::set_permissions(directory.join(&name), std::fs::Permissions::from_mode(0o600))?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, shared));
        Ok(Self { _tasks: tasks })
    }
}

/// Socket addresses hold about a hundred bytes, state directories may be deeper: the way there goes through a
/// handle on the directory.
fn through_directory<T>(
    directory: &Path,
    name: &str,
    with: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    if !cfg!(target_os = "linux") {
        return with(&directory.join(name));
    }
    let handle = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    with(Path::new(&format!("/proc/self/fd/{}/{name}", handle.as_raw_fd())))
}

/// The places for clients.
struct Places {
    operator: Semaphore,
    inside: Semaphore,
}

async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let places =
        Places { operator: Semaphore::new(MOST_CLIENTS), inside: Semaphore::new(MOST_CLIENTS_INSIDE) };
    let places = Arc::new(places);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    clients.spawn(serve_client(stream, Arc::clone(&shared), Arc::clone(&places)));
                }
                // For example, no file handles are left. The client tries again.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = clients.join_next(), if !clients.is_empty() => {}
        }
    }
}

/// Serves one client until it goes away. One for whom there is no place is sent away.
async fn serve_client(stream: UnixStream, shared: Arc<Shared>, places: Arc<Places>) {
    // At once: the number of a process that has ended may become another's.
    let peer = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
    let refusal = authority::refusal(shared.home.root(), peer);
    let place = if refusal.is_some() { &places.inside } else { &places.operator };
    let Ok(_place) = place.try_acquire() else { return };
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    let Some(line) = request_line(&mut reading, REQUEST_PATIENCE).await else { return };
    let reply = match (serde_json::from_str(&line), refusal) {
        (Err(_), _) => Reply::NotUnderstood,
        (Ok(Request::Word { goal, token, word }), _) => match shared.driven(goal) {
            Some(driven) => hear(&driven, token, word).await,
            None => Reply::NotDriven,
        },
        (Ok(_), Some(why)) => Reply::Refused { why },
        (Ok(Request::Command { goal, command }), None) => {
            let granted = match shared.driven(goal) {
                Some(driven) => Steerer::new(driven.orders).send(command.into()).await,
                None => None,
            };
            match granted {
                Some(Ok(())) => Reply::Accepted,
                Some(Err(illegal)) => Reply::Refused { why: illegal.to_string() },
                None => Reply::NotDriven,
            }
        }
        (Ok(Request::PoolState), None) => {
            let (is_draining, held) = (shared.signals.is_draining(), shared.held.get());
            Reply::PoolState { state: PoolState { is_draining, held } }
        }
        (Ok(Request::Removed { goal }), None) => {
            shared.tail.pass_on_removal(goal);
            Reply::Accepted
        }
        (Ok(Request::Follow { goal }), None) => tokio::select! {
            reply = pass_on_all(&mut writing, &shared, goal) => match reply {
                Ok(Some(reply)) => reply,
                // A follower that is gone needs nothing more.
                _ => return,
            },
            // A follower has no more to ask, so this is its end.
            _ = reading.read_u8() => return,
        },
    };
    // A client that is gone needs no answer.
    let _ = send(&mut writing, &reply).await;
}

async fn request_line(reading: &mut (impl AsyncBufRead + Unpin), patience: Duration) -> Option<String> {
    timeout(patience, read_line(reading)).await.ok()?.ok()?
}

/// The next line; none at the end.
pub(crate) async fn read_line(reading: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = reading.take(LONGEST_LINE).read_line(&mut line).await?;
    Ok((length > 0).then_some(line))
}

async fn hear(driven: &Driven, token: String, word: AgentWord) -> Reply {
    let (done, heard) = oneshot::channel();
    let order = Order::Word { token, event: word.into(), done };
    match (driven.orders.send(order).await, heard.await) {
        (Ok(()), Ok(true)) => Reply::Accepted,
        (Ok(()), Ok(false)) => Reply::Refused { why: "this attempt is over".to_owned() },
        _ => Reply::NotDriven,
    }
}

fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

pub(crate) async fn send(
    writing: &mut (impl AsyncWriteExt + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    writing.write_all(&line(message)?).await
}

impl Engine {
    /// Passes a report of an agent to the engine that drives its goal; none if no engine does. For this engine that takes no place of
    /// its socket, which are the operator's and those of processes.
    pub async fn speak_for_agent(
        &self,
        goal: GoalId,
        token: &str,
        word: &AgentWord,
    ) -> io::Result<Option<Reply>> {
        let shared = self.shared();
        if let Some(driven) = shared.driven(goal) {
            let heard = timeout(ANSWER_PATIENCE, hear(&driven, token.to_owned(), word.clone())).await;
            match heard {
                Ok(Reply::NotDriven) => {}
                Ok(reply) => return Ok(Some(reply)),
                Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the engine does not answer")),
            }
        }
        let own = socket_name(self.worker());
        speak_to_engines(&shared.home.engines(), Some(&own), goal, token, word).await
    }
}

/// Sends a report of an agent to the engine in `directory` that drives its goal; none if no engine does. All engines are
/// asked at once, so a suspended one does not delay the agents of the others.
pub async fn speak_for_agent(
    directory: &Path,
    goal: GoalId,
    token: &str,
    word: &AgentWord,
) -> io::Result<Option<Reply>> {
    speak_to_engines(directory, None, goal, token, word).await
}

/// The same, without the engine behind this socket.
async fn speak_to_engines(
    directory: &Path,
    except: Option<&str>,
    goal: GoalId,
    token: &str,
    word: &AgentWord,
) -> io::Result<Option<Reply>> {
    let request = Arc::new(Request::Word { goal, token: token.to_owned(), word: word.clone() });
    let mut engines = JoinSet::new();
    let mut silent = None;
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let is_asked = |name: &&str| name.ends_with(".sock") && Some(*name) != except;
        let Some(name) = name.to_str().filter(is_asked) else { continue };
        match connect(directory, name) {
            Ok(Some(stream)) => {
                let request = Arc::clone(&request);
                engines.spawn(async move { exchange(stream, &request).await });
            }
            Ok(None) => {}
            Err(error) => silent = Some(error),
        }
    }
    while let Some(answered) = engines.join_next().await {
        match answered.map_err(io::Error::other)? {
            Ok(Some(Reply::NotDriven) | None) => {}
            Ok(reply) => return Ok(reply),
            Err(error) => silent = Some(error),
        }
    }
    silent.map_or(Ok(None), Err)
}

/// Asks the engine that drives this goal; no answer when none does.
pub async fn ask(home: &Home, record: &GoalRecord, request: &Request) -> io::Result<Option<Reply>> {
    let Some(stream) = reach(home, record).await? else { return Ok(None) };
    match exchange(stream, request).await? {
        Some(Reply::NotDriven) => Ok(None),
        other => Ok(other),
    }
}

/// Asks the engine by this name; no answer when it is not running.
pub async fn ask_engine(home: &Home, worker: &WorkerName, request: &Request) -> io::Result<Option<Reply>> {
    match connect(&home.engines(), &socket_name(worker))? {
        Some(stream) => exchange(stream, request).await,
        None => Ok(None),
    }
}

/// Sends a request and waits for the answer; none from an engine that ends meanwhile.
async fn exchange(mut stream: UnixStream, request: &Request) -> io::Result<Option<Reply>> {
    let exchanged = timeout(ANSWER_PATIENCE, async {
        send(&mut stream, request).await?;
        read_line(&mut BufReader::new(stream)).await
    });
    match exchanged.await {
        Ok(Ok(Some(line))) => Ok(Some(serde_json::from_str(&line)?)),
        Ok(Ok(None)) => Ok(None),
        Ok(Err(error)) if is_gone(&error) => Ok(None),
        Ok(Err(error)) => Err(error),
        // It is unknown whether it was done, so it must not be done again.
        Err(_) => {
            let message = "it does not answer; if it was suspended with Ctrl-Z, continue it with `fg`";
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        }
    }
}

/// Whether the engine ended while it was spoken with.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof)
}

/// Whether a living engine holds the goal that has this lease.
pub fn is_driven(home: &Home, lease: Option<&Lease>) -> bool {
    lease.is_some_and(|lease| !is_dead(&home.engines(), &lease.worker))
}

/// A connection to a server that follows the goal, though it has no lease, and the first line that the server sends.
pub(crate) async fn reach_server(
    home: &Home,
    goal: GoalId,
) -> io::Result<Option<(BufReader<UnixStream>, String)>> {
    for (worker, _) in living_engines(&home.engines())? {
        let Some(mut stream) = connect(&home.engines(), &socket_name(&worker))? else { continue };
        let asked = timeout(ANSWER_PATIENCE, async {
            send(&mut stream, &Request::Follow { goal }).await?;
            let mut reading = BufReader::new(stream);
            let line = read_line(&mut reading).await?;
            Ok::<_, io::Error>(line.map(|line| (reading, line)))
        });
        // An engine that ends or does not answer is no server that could be followed.
        let Ok(Ok(Some((reading, line)))) = asked.await else { continue };
        if matches!(serde_json::from_str(&line), Ok(Reply::Grown { .. } | Reply::Live { .. })) {
            return Ok(Some((reading, line)));
        }
    }
    Ok(None)
}

/// A connection to the engine that holds the goal's lease, if it is alive.
pub(crate) async fn reach(home: &Home, record: &GoalRecord) -> io::Result<Option<UnixStream>> {
    let Some(lease) = &record.lease else { return Ok(None) };
    let directory = home.engines();
    if is_dead(&directory, &lease.worker) {
        return Ok(None);
    }
    connect(&directory, &socket_name(&lease.worker))
}

/// A connection to the engine behind this socket, if it listens. One who does not let anybody in is not waited for.
fn connect(directory: &Path, name: &str) -> io::Result<Option<UnixStream>> {
    let socket = through_directory(directory, name, |path| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?).map_err(|error| match error {
            Errno::AGAIN => io::Error::new(io::ErrorKind::TimedOut, "nobody accepts connections there"),
            error => error.into(),
        })?;
        Ok(std::os::unix::net::UnixStream::from(socket))
    });
    match socket {
        Ok(socket) => UnixStream::from_std(socket).map(Some),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_that_does_not_answer_does_not_hold_up_the_agent_of_another() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let listen = |name: &str| UnixListener::bind(dir.path().join(name)).expect("a socket");
        let _suspended = ["a.sock", "c.sock"].map(listen);
        let answering = listen("b.sock");
        let engine = async {
            let (stream, _) = answering.accept().await.expect("a client");
            let (reading, mut writing) = stream.into_split();
            let request = read_line(&mut BufReader::new(reading)).await.expect("a line").expect("a request");
            assert!(request.contains("the-token"), "{request}");
            send(&mut writing, &Reply::Accepted).await.expect("sent");
        };
        let goal = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("an id");
        let word = AgentWord::Submit { summary: "done".to_owned() };
        let request = async {
            timeout(ANSWER_PATIENCE / 2, speak_for_agent(dir.path(), goal, "the-token", &word)).await
        };
        let (answered, ()) = tokio::join!(request, engine);
        assert_eq!(answered.expect("in time").expect("an answer"), Some(Reply::Accepted));
    }

    #[tokio::test]
    async fn a_client_that_does_not_finish_its_request_is_not_waited_for() {
        let (mut client, server) = tokio::io::duplex(64);
        client.write_all(b"{\"half").await.expect("sent");
        assert_eq!(request_line(&mut BufReader::new(server), Duration::from_millis(20)).await, None);
    }
}
