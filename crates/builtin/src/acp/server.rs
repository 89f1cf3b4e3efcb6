//! The agent's side of the protocol: one reader, one writer, and one task per turn. Requests are answered while turns
//! run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinSet;
use towline_agent::jsonrpc::{Message, RpcRequest, read_for_server};

use super::AcpSettings;
use super::content::{self, Block};
use super::model::MakeModel;
use super::open::{self, WantedSession, Way};
use super::outbox::{Outbox, write_out};
use super::record::{Mode, Record};
use super::rpc::{self, Refusal};
use super::session::Session;
use super::turn::Turn;
use crate::lock::lock;

/// The supported version of the protocol.
const VERSION: u64 = 1;

/// How long cancelled turns may take to end before they are abandoned.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// State that all tasks share.
pub(super) struct Shared {
    pub(super) settings: AcpSettings,
    pub(super) make_model: MakeModel,
    pub(super) outbox: Outbox,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

impl Shared {
    /// Adds an open session.
    pub(super) fn insert(&self, session: Arc<Session>) {
        lock(&self.sessions).insert(session.id.clone(), session);
    }

    /// Closes a session that is about to be opened again.
    pub(super) fn close(&self, id: &str) -> Result<(), Refusal> {
        let mut sessions = lock(&self.sessions);
        if sessions.get(id).is_some_and(|session| session.is_busy()) {
            return Err(Refusal::invalid_request("the session is in the middle of a turn; cancel it first"));
        }
        sessions.remove(id);
        Ok(())
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, Refusal> {
        lock(&self.sessions).get(id).cloned().ok_or_else(|| rpc::no_such_session(id))
    }

    fn cancel_all(&self) {
        lock(&self.sessions).values().for_each(|session| session.cancel());
    }
}

/// Serves until the input ends or the output is closed.
pub(super) async fn serve(
    settings: AcpSettings,
    make_model: MakeModel,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (outbox, pieces) = Outbox::new();
    let shared = Arc::new(Shared { settings, make_model, outbox, sessions: Mutex::default() });
    let mut server = Server { shared: Arc::clone(&shared), openings: JoinSet::new(), turns: JoinSet::new() };
    let mut writer = JoinSet::new();
    writer.spawn(write_out(pieces, output));
    let mut lines = BufReader::new(input).split(b'\n');
    loop {
        tokio::select! {
            line = lines.next_segment() => match line {
                Ok(Some(line)) => server.on_line(&line),
                Ok(None) | Err(_) => break,
            },
            Some(_) = server.openings.join_next() => {}
            Some(_) = server.turns.join_next() => {}
            // The client has stopped reading.
            _ = writer.join_next() => break,
        }
    }
    server.end().await;
    shared.outbox.flushed().await;
}

struct Server {
    shared: Arc<Shared>,
    openings: JoinSet<()>,
    turns: JoinSet<()>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: String,
    prompt: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetMode {
    session_id: String,
    mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModel {
    session_id: String,
    model_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancel {
    session_id: String,
}

impl Server {
    fn on_line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match read_for_server(line) {
            Ok(Message::Request(RpcRequest { id, method, params })) => self.on_request(id, method, params),
            Ok(Message::Notification { method, params }) => self.on_notification(method, params),
            Ok(Message::Answer { id, result }) => self.shared.outbox.answered(id, result.ok()),
            Err((id, refusal)) => self.shared.outbox.answer(id, Err(refusal)),
        }
    }

    fn on_request(&mut self, id: &RawValue, method: &str, params: &RawValue) {
        let answer = match method {
            "initialize" => {
                let client: Value = serde_json::from_str(params.get()).unwrap_or_default();
                if client.pointer("/clientInfo/name").is_some_and(|name| name == "towline") {
                    self.shared.outbox.set_towline();
                }
                Ok(Some(hello()))
            }
            "session/new" | "session/load" | "session/resume" => self.on_open(id, method, params),
            "session/prompt" => self.on_prompt(id, params),
            "session/set_mode" => self.on_set_mode(params),
            "session/set_model" => self.on_set_model(params),
            unknown => Err(Refusal::unknown_method(unknown)),
        };
        // A task that was begun answers for itself.
        if let Some(answer) = answer.transpose() {
            self.shared.outbox.answer(id, answer);
        }
    }

    fn on_notification(&self, method: &str, params: &RawValue) {
        if method == "session/cancel"
            && let Ok(Cancel { session_id }) = rpc::params(method, params)
            && let Ok(session) = self.shared.session(&session_id)
        {
            session.cancel();
        }
    }

    fn on_open(&mut self, id: &RawValue, method: &str, params: &RawValue) -> Result<Option<Value>, Refusal> {
        let wanted: WantedSession = rpc::params(method, params)?;
        let named = || {
            let missing = || Refusal::invalid_params(format!("{method}: the sessionId is missing"));
            wanted.session_id.clone().ok_or_else(missing)
        };
        let way = match method {
            "session/load" => Way::Load(named()?),
            "session/resume" => Way::Resume(named()?),
            _ => Way::New,
        };
        let (shared, id) = (Arc::clone(&self.shared), id.to_owned());
        self.openings.spawn(async move { open::open(&shared, way, wanted, id).await });
        Ok(None)
    }

    fn on_prompt(&mut self, id: &RawValue, params: &RawValue) -> Result<Option<Value>, Refusal> {
        let Prompt { session_id, prompt } = rpc::params("session/prompt", params)?;
        let session = self.shared.session(&session_id)?;
        let prompt = content::words(prompt)?;
        let cancelled = session.begin_turn()?;
        let (shared, id) = (Arc::clone(&self.shared), id.to_owned());
        self.turns.spawn(async move {
            let turn = Turn::new(&session, &shared.outbox, &shared.settings);
            let answer = turn.run(prompt, cancelled).await;
            session.end_turn();
            shared.outbox.answer(id, answer);
        });
        Ok(None)
    }

    fn on_set_mode(&self, params: &RawValue) -> Result<Option<Value>, Refusal> {
        let SetMode { session_id, mode_id } = rpc::params("session/set_mode", params)?;
        let mode: Mode = serde_json::from_value(json!(mode_id)).map_err(|_| {
            Refusal::invalid_params(format!("there is no mode `{mode_id}`; there are `ask` and `bypass`"))
        })?;
        self.record(&session_id, Record::Mode { mode })
    }

    fn on_set_model(&self, params: &RawValue) -> Result<Option<Value>, Refusal> {
        let SetModel { session_id, model_id: model } = rpc::params("session/set_model", params)?;
        if model.trim().is_empty() {
            return Err(Refusal::invalid_params("the model has no name"));
        }
        self.record(&session_id, Record::Model { model })
    }

    fn record(&self, session: &str, record: Record) -> Result<Option<Value>, Refusal> {
        let written = self.shared.session(session)?.record(record);
        written.map_err(|error| Refusal::internal(format!("the session file cannot be written: {error}")))?;
        Ok(Some(json!({})))
    }

    /// Cancels all turns and waits for them.
    async fn end(&mut self) {
        self.openings.shutdown().await;
        self.shared.cancel_all();
        let all = async { while self.turns.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_WAIT, all).await.is_err() {
            self.turns.shutdown().await;
        }
        lock(&self.shared.sessions).clear();
    }
}

fn hello() -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentInfo": {"name": "towline", "title": "Towline", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "sessionCapabilities": {"resume": {}},
            "promptCapabilities": {"embeddedContext": true},
            "mcpCapabilities": {},
        },
        "authMethods": [],
    })
}
