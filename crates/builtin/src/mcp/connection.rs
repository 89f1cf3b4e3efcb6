//! One MCP server: its process, our requests and its answers.
//!
//! Three tasks serve it: one writes, one reads, and one stores the end of its standard error. They end with the
//! connection, as does the process.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use towline_agent::jsonrpc::{self, Message, RpcError, RpcRequest};
use towline_mask::is_secret_variable;

use super::lines::{ServerLine, next_line};
use super::servers::McpServer;
use crate::child::Group;
use crate::lock::lock;
use crate::tools::one_line;

/// The longest message from a server.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// The most messages that wait to be written.
const WAITING: usize = 64;
/// How much of a server's other output is stored: its end.
const LAST_WORDS: usize = 2 * 1024;
/// How long a server may take to exit after it closed its output, and its last output to arrive.
const ENDING: Duration = Duration::from_millis(500);

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The server's error code, if the server itself refused.
    pub(super) code: Option<i64>,
    /// The reason, for people.
    pub(super) why: String,
}

/// A running server.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) name: String,
    shared: Arc<SharedConnection>,
    outbox: mpsc::Sender<Vec<u8>>,
    next_id: AtomicU64,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct SharedConnection {
    /// `None` once the server was ended.
    group: Mutex<Option<Group>>,
    asked: Mutex<OpenCalls>,
    last_words: Mutex<Vec<u8>>,
}

/// The requests without an answer.
#[derive(Debug)]
enum OpenCalls {
    Open(HashMap<u64, oneshot::Sender<Result<Value, Refusal>>>),
    /// No answer will come any more, for this reason.
    Closed(String),
}

impl Connection {
    /// Starts the process. It receives no request yet.
    pub(super) fn start(server: &McpServer, directory: &Path, hidden: &[String]) -> Result<Self, String> {
        let mut group = Group::start(&mut command(server, directory, hidden))
            .map_err(|error| format!("`{}` cannot be started: {error}", server.command.display()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = group.take_pipes() else {
            return Err("it has no pipes".to_owned());
        };
        let shared = Arc::new(SharedConnection {
            group: Mutex::new(Some(group)),
            asked: Mutex::new(OpenCalls::Open(HashMap::new())),
            last_words: Mutex::default(),
        });
        let (outbox, inbox) = mpsc::channel(WAITING);
        let (silent, silence) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(write(stdin, inbox));
        tasks.spawn(keep_last_words(stderr, Arc::clone(&shared), silent));
        tasks.spawn(listen(stdout, Arc::clone(&shared), outbox.clone(), silence));
        Ok(Self { name: server.name.clone(), shared, outbox, next_id: AtomicU64::new(1), _tasks: tasks })
    }

    /// Sends a request and waits for the answer. Dropping the future cancels the request at the server.
    pub(super) async fn request(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        match &mut *lock(&self.shared.asked) {
            OpenCalls::Open(asked) => asked.insert(id, answer),
            OpenCalls::Closed(why) => return Err(Refusal { code: None, why: why.clone() }),
        };
        let _waiting = Waiting { connection: self, id };
        let message = jsonrpc::request(id, method, params);
        // If the message cannot be written, the reader finds out why.
        let _ = self.outbox.send(message).await;
        answered.await.unwrap_or_else(|_| Err(Refusal { code: None, why: "nobody answers".to_owned() }))
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str) {
        let _ = self.outbox.send(jsonrpc::notification(method, json!({}))).await;
    }

    /// The end of the server's other output, to be appended to a sentence.
    pub(super) fn last_words(&self) -> String {
        self.shared.last_words()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        drop(lock(&self.shared.group).take());
    }
}

/// A pending request, cancelled when it is dropped.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let OpenCalls::Open(asked) = &mut *lock(&self.connection.shared.asked) else { return };
        if asked.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the answer is no longer needed"});
            let message = jsonrpc::notification("notifications/cancelled", params);
            // A server that reads nothing need not know.
            let _ = self.connection.outbox.try_send(message);
        }
    }
}

impl SharedConnection {
    fn last_words(&self) -> String {
        let words = String::from_utf8_lossy(&lock(&self.last_words)).into_owned();
        match words.trim() {
            "" => String::new(),
            words => format!("; it last wrote: {}", one_line(words, LAST_WORDS)),
        }
    }

    fn heard(&self, piece: &[u8]) {
        let mut words = lock(&self.last_words);
        words.extend_from_slice(&piece[piece.len().saturating_sub(LAST_WORDS)..]);
        let too_many = words.len().saturating_sub(LAST_WORDS);
        words.drain(..too_many);
    }

    fn answer(&self, id: u64, answer: Result<Value, Refusal>) {
        let OpenCalls::Open(asked) = &mut *lock(&self.asked) else { return };
        if let Some(waiting) = asked.remove(&id) {
            // The receiver may have been dropped just now.
            let _ = waiting.send(answer);
        }
    }

    /// Answers all pending requests.
    fn refuse_all(&self, why: &str, then: OpenCalls) {
        let before = std::mem::replace(&mut *lock(&self.asked), then);
        if let OpenCalls::Open(asked) = before {
            for waiting in asked.into_values() {
                let _ = waiting.send(Err(Refusal { code: None, why: why.to_owned() }));
            }
        }
    }

    /// Ends a server that has closed its output.
    async fn close(&self, silence: oneshot::Receiver<()>) {
        let group = lock(&self.group).take();
        let mut how = String::new();
        if let Some(mut group) = group {
            let status = timeout(ENDING, group.wait()).await;
            how = match status {
                Err(_) => " (it closed its output)".to_owned(),
                Ok(status) => status.map(|status| format!(" ({status})")).unwrap_or_default(),
            };
            group.end().await;
        }
        let _ = timeout(ENDING, silence).await;
        let why = format!("the server has ended{how}{}", self.last_words());
        self.refuse_all(&why, OpenCalls::Closed(why.clone()));
    }
}

fn command(server: &McpServer, directory: &Path, hidden: &[String]) -> Command {
    // A bare name is looked up in PATH; a relative path is relative to the directory.
    let program = match server.command.components().count() {
        0 | 1 => server.command.clone(),
        _ => directory.join(&server.command),
    };
    let mut command = Command::new(program);
    command.args(&server.args).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Towline's own server authenticates with a token from its environment.
    let hides_secrets = server.name != towline_agent::McpServer::TOWLINE;
    for (name, value) in std::env::vars_os() {
        // A server gets secrets only by name.
        let is_secret = || is_secret_variable(&name.to_string_lossy(), &value.to_string_lossy());
        if hidden.iter().any(|one| name == one.as_str()) || hides_secrets && is_secret() {
            command.env_remove(&name);
        }
    }
    command.envs(server.env.iter().map(|(name, value)| (name, value)));
    command
}

async fn write(mut stdin: ChildStdin, mut inbox: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = inbox.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn keep_last_words(
    mut stderr: ChildStderr,
    shared: Arc<SharedConnection>,
    silent: oneshot::Sender<()>,
) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        shared.heard(&buffer[..length]);
    }
    let _ = silent.send(());
}

/// Reads until the server closes its output.
async fn listen(
    stdout: ChildStdout,
    shared: Arc<SharedConnection>,
    outbox: mpsc::Sender<Vec<u8>>,
    silence: oneshot::Receiver<()>,
) {
    let mut stdout = BufReader::new(stdout);
    while let Ok(Some(line)) = next_line(&mut stdout, LONGEST_LINE).await {
        match line {
            ServerLine::Whole(line) => on_line(&line, &shared, &outbox),
            ServerLine::TooLong => {
                let why =
                    format!("the server sent a line of more than {LONGEST_LINE} bytes, which was not read");
                shared.refuse_all(&why, OpenCalls::Open(HashMap::new()));
            }
        }
    }
    shared.close(silence).await;
}

fn on_line(line: &[u8], shared: &SharedConnection, outbox: &mpsc::Sender<Vec<u8>>) {
    let Some(message) = str::from_utf8(line).ok().and_then(jsonrpc::read) else {
        // A line that is no message may be an error message.
        shared.heard(line);
        shared.heard(b"\n");
        return;
    };
    match message {
        Message::Request(RpcRequest { id, method, .. }) => {
            let answer = match method {
                "ping" => jsonrpc::answer(id, json!({})),
                _ => jsonrpc::refusal(id, &RpcError::unknown_method(method)),
            };
            // A server that sends requests without reading gets no answers.
            let _ = outbox.try_send(answer);
        }
        Message::Answer { id, result } => {
            let Ok(id) = id.get().parse() else { return };
            let read = |result: &RawValue| serde_json::from_str(result.get()).unwrap_or_default();
            shared.answer(id, result.map(read).map_err(refusal));
        }
        // No notification matters here.
        Message::Notification { .. } => {}
    }
}

fn refusal(error: RpcError) -> Refusal {
    let why = match error.message.as_str() {
        "" => "an error without a message",
        words => words,
    };
    Refusal { code: Some(error.code), why: one_line(why, 4_000) }
}
