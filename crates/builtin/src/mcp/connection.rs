//! One server: the child, what is asked of it, and what it answers.
//!
//! Three tasks serve it: one writes, one reads, one keeps the end of what it says on standard error. They end with the
//! connection, as does the child.

use std::collections::HashMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lines::{Line, next_line};
use super::servers::{McpServer, TOWLINE};
use crate::child::Group;
use crate::lock::lock;
use crate::tools::one_line;

/// The longest message of a server.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// How many messages may wait to be written.
const WAITING: usize = 64;
/// How much of what a server says besides is kept: its end.
const LAST_WORDS: usize = 2 * 1024;
/// How long a server that says no more may take to end by itself, and its last words to arrive.
const ENDING: Duration = Duration::from_millis(500);
/// The code of JSON-RPC for a method that one does not know.
pub(super) const NO_SUCH_METHOD: i64 = -32_601;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The server's code, if it was the server that refused.
    pub(super) code: Option<i64>,
    /// Why, in words.
    pub(super) why: String,
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) name: String,
    shared: Arc<Shared>,
    outbox: mpsc::Sender<Value>,
    next_id: AtomicU64,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    /// None once it was ended.
    group: Mutex<Option<Group>>,
    asked: Mutex<Asked>,
    last_words: Mutex<Vec<u8>>,
}

/// The requests without an answer.
#[derive(Debug)]
enum Asked {
    Open(HashMap<u64, oneshot::Sender<Result<Value, Refusal>>>),
    /// No answer will come any more, and this is why.
    Closed(String),
}

impl Connection {
    /// Starts the child; it was not yet asked for anything.
    pub(super) fn start(server: &McpServer, directory: &Path, hidden: &[String]) -> Result<Self, String> {
        let mut group = Group::start(&mut command(server, directory, hidden))
            .map_err(|error| format!("`{}` cannot be started: {error}", server.command.display()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = group.take_pipes() else {
            return Err("it has no pipes".to_owned());
        };
        let shared = Arc::new(Shared {
            group: Mutex::new(Some(group)),
            asked: Mutex::new(Asked::Open(HashMap::new())),
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

    /// Asks and waits for the answer. Dropping this tells the server that nobody waits any more.
    pub(super) async fn request(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        match &mut *lock(&self.shared.asked) {
            Asked::Open(asked) => asked.insert(id, answer),
            Asked::Closed(why) => return Err(Refusal { code: None, why: why.clone() }),
        };
        let _waiting = Waiting { connection: self, id };
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // When the message cannot be written, the reader finds out why.
        let _ = self.outbox.send(message).await;
        answered.await.unwrap_or_else(|_| Err(Refusal { code: None, why: "nobody answers".to_owned() }))
    }

    /// Tells the server something.
    pub(super) async fn notify(&self, method: &str) {
        let _ = self.outbox.send(json!({"jsonrpc": "2.0", "method": method})).await;
    }

    /// What the server said last besides its answers, ready to be put after a sentence.
    pub(super) fn last_words(&self) -> String {
        self.shared.last_words()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        drop(lock(&self.shared.group).take());
    }
}

/// A request that is waited for.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Asked::Open(asked) = &mut *lock(&self.connection.shared.asked) else { return };
        if asked.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "nobody waits for it any more"});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            // A server that reads nothing does not need to know.
            let _ = self.connection.outbox.try_send(message);
        }
    }
}

impl Shared {
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
        let Asked::Open(asked) = &mut *lock(&self.asked) else { return };
        if let Some(waiting) = asked.remove(&id) {
            // Whoever gave up waiting in this moment needs no answer.
            let _ = waiting.send(answer);
        }
    }

    /// Answers all that wait.
    fn refuse_all(&self, why: &str, then: Asked) {
        let before = std::mem::replace(&mut *lock(&self.asked), then);
        if let Asked::Open(asked) = before {
            for waiting in asked.into_values() {
                let _ = waiting.send(Err(Refusal { code: None, why: why.to_owned() }));
            }
        }
    }

    /// Ends what is left of a server that says no more.
    async fn close(&self, silence: oneshot::Receiver<()>) {
        let group = lock(&self.group).take();
        let mut how = String::new();
        if let Some(mut group) = group {
            let status = timeout(ENDING, group.wait()).await;
            how = status.map_or_else(|_| " (it closed its output)".to_owned(), |status| ended(status.ok()));
            group.end().await;
        }
        let _ = timeout(ENDING, silence).await;
        let why = format!("the server has ended{how}{}", self.last_words());
        self.refuse_all(&why, Asked::Closed(why.clone()));
    }
}

fn ended(status: Option<ExitStatus>) -> String {
    status.map(|status| format!(" ({status})")).unwrap_or_default()
}

fn command(server: &McpServer, directory: &Path, hidden: &[String]) -> Command {
    // A name is looked up in PATH; a relative path is one of the directory.
    let program = match server.command.components().count() {
        0 | 1 => server.command.clone(),
        _ => directory.join(&server.command),
    };
    let mut command = Command::new(program);
    command.args(&server.args).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Towline's own server speaks with a token from its environment.
    let hides_secrets = server.name != TOWLINE;
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| hidden.iter().any(|one| one == name) || hides_secrets && is_secret(name))
        {
            command.env_remove(name);
        }
    }
    command.envs(server.env.iter().map(|(name, value)| (name, value)));
    command
}

/// Whether a variable of ours is no business of a server: what it needs of that kind, it is given by name.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_API_KEY", "_ACCESS_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|end| name.ends_with(end))
}

async fn write(mut stdin: ChildStdin, mut inbox: mpsc::Receiver<Value>) {
    while let Some(message) = inbox.recv().await {
        let line = format!("{message}\n");
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn keep_last_words(mut stderr: ChildStderr, shared: Arc<Shared>, silent: oneshot::Sender<()>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        shared.heard(&buffer[..length]);
    }
    let _ = silent.send(());
}

/// Reads until the server says no more.
async fn listen(
    stdout: ChildStdout,
    shared: Arc<Shared>,
    outbox: mpsc::Sender<Value>,
    silence: oneshot::Receiver<()>,
) {
    let mut stdout = BufReader::new(stdout);
    while let Ok(Some(line)) = next_line(&mut stdout, LONGEST_LINE).await {
        match line {
            Line::Whole(line) => on_line(&line, &shared, &outbox),
            Line::TooLong => {
                let why =
                    format!("the server sent a line of more than {LONGEST_LINE} bytes, which was not read");
                shared.refuse_all(&why, Asked::Open(HashMap::new()));
            }
        }
    }
    shared.close(silence).await;
}

fn on_line(line: &[u8], shared: &Shared, outbox: &mpsc::Sender<Value>) {
    let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
        // What is no message may be a complaint.
        shared.heard(line);
        shared.heard(b"\n");
        return;
    };
    let id = message.remove("id").filter(|id| !id.is_null());
    match (message.get("method").and_then(Value::as_str), id) {
        (Some(method), Some(id)) => {
            let answer = match method {
                "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                _ => {
                    let error =
                        json!({"code": NO_SUCH_METHOD, "message": format!("there is no method {method}")});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                }
            };
            // A server that asks without reading gets no answers.
            let _ = outbox.try_send(answer);
        }
        (None, Some(id)) => {
            let Some(id) = id.as_u64() else { return };
            let answer = match message.remove("error") {
                Some(error) => Err(refusal(&error)),
                None => Ok(message.remove("result").unwrap_or_default()),
            };
            shared.answer(id, answer);
        }
        // News: nothing that is used here depends on it.
        (_, None) => {}
    }
}

fn refusal(error: &Value) -> Refusal {
    let why = error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    let code = error.get("code").and_then(Value::as_i64);
    Refusal { code, why: one_line(why, 4_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_names() {
        for name in
            ["OPENAI_API_KEY", "TOWLINE_TOKEN", "aws_secret_access_key", "CLIENT_SECRET", "DB_PASSWORD"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "TOKENIZERS_PARALLELISM", "LANG", "HTTPS_PROXY"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
