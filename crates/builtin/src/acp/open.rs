//! Opens sessions: a new one, or an earlier one, replayed or not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::conversation::Conversation;
use super::hands::{Hands, ServerParams};
use super::instructions::instructions;
use super::journal::{Journal, JournalError};
use super::record::{Header, Record, VERSION};
use super::rpc::{Refusal, no_such_session};
use super::server::Shared;
use super::session::Session;
use super::{clock, updates};

/// The result of calls that the agent did not live to see the end of.
const STOPPED: &str = "The agent was stopped in the middle of this call: it may or may not have been carried out. Look \
                       before you repeat it.";

/// How a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    New,
    /// An earlier one, replayed to the client.
    Load(String),
    /// An earlier one, without a replay.
    Resume(String),
}

/// The client's parameters of a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WantedSession {
    #[serde(default)]
    pub(super) session_id: Option<String>,
    cwd: PathBuf,
    #[serde(default)]
    mcp_servers: Vec<ServerParams>,
}

/// Opens a session and sends its details to the client.
pub(super) async fn open(shared: &Shared, way: Way, wanted: WantedSession, request: Box<RawValue>) {
    match opened(shared, &way, wanted).await {
        Ok((session, records)) => {
            let id = session.id.clone();
            if matches!(way, Way::Load(_)) {
                for update in records.iter().flat_map(|record| session.replay(record)) {
                    shared.outbox.update(&id, update);
                }
            }
            let mut answer = updates::choices(session.mode(), &session.model_name());
            if way == Way::New {
                answer["sessionId"] = id.as_str().into();
            }
            let (used, cost) = session.look(|conversation| (conversation.used(), conversation.cost));
            shared.insert(session);
            shared.outbox.answer(request, Ok(answer));
            shared.outbox.update(&id, updates::commands());
            if way != Way::New {
                shared.outbox.update(&id, updates::usage(used, shared.settings.context_window, cost));
            }
        }
        Err(refusal) => shared.outbox.answer(request, Err(refusal)),
    }
}

async fn opened(
    shared: &Shared,
    way: &Way,
    wanted: WantedSession,
) -> Result<(Arc<Session>, Vec<Record>), Refusal> {
    let settings = &shared.settings;
    let directory = existing_directory(&wanted.cwd)?;
    let servers = wanted.mcp_servers.into_iter().map(ServerParams::server).collect::<Result<_, _>>()?;
    let model = (shared.make_model)(settings)?;
    let (id, journal, records) = match way {
        Way::New => {
            let (id, journal) = begun(shared, &directory)?;
            (id, journal, Vec::new())
        }
        Way::Load(id) | Way::Resume(id) => {
            shared.close(id)?;
            let (journal, records) = found(&settings.sessions, id, &directory)?;
            (id.clone(), journal, records)
        }
    };
    let (hands, problems) = Hands::new(&directory, settings, servers).await;
    for problem in problems {
        shared.outbox.notify("_towline/problem", json!({"sessionId": id, "message": problem}));
    }
    let mut conversation = Conversation::default();
    conversation.model.clone_from(&settings.model);
    records.iter().cloned().for_each(|record| conversation.apply(record));
    let system = instructions(&directory, &settings.directories, clock::now());
    let session = Session::new(id, system, model, hands, journal, conversation);
    let closed = session.close_calls(STOPPED).map_err(|error| broken(&error.into()))?;
    let closed = closed.into_iter().map(|result| Record::Result { result });
    let records = records.into_iter().chain(closed).collect();
    Ok((Arc::new(session), records))
}

fn begun(shared: &Shared, directory: &Path) -> Result<(String, Journal), Refusal> {
    let settings = &shared.settings;
    let id = Uuid::now_v7().to_string();
    let header = Header {
        version: VERSION,
        id: id.clone(),
        cwd: directory.to_owned(),
        model: settings.model.clone(),
        format: settings.format,
        created: clock::now(),
    };
    let journal = Journal::create(&settings.sessions, &header).map_err(|error| broken(&error))?;
    Ok((id, journal))
}

/// A session belongs to its directory: in another directory its id is unknown.
fn found(folder: &Path, id: &str, directory: &Path) -> Result<(Journal, Vec<Record>), Refusal> {
    match Journal::open(folder, id) {
        Ok((journal, header, records)) if header.cwd == directory => Ok((journal, records)),
        Ok(_) | Err(JournalError::NotFound) => Err(no_such_session(id)),
        Err(error) => Err(broken(&error)),
    }
}

fn existing_directory(path: &Path) -> Result<PathBuf, Refusal> {
    let refused = |why: &str| Refusal::invalid_params(format!("cwd {}: {why}", path.display()));
    if !path.is_absolute() {
        return Err(refused("it must be an absolute path"));
    }
    let real = path.canonicalize().map_err(|error| refused(&error.to_string()))?;
    if real.is_dir() { Ok(real) } else { Err(refused("it is not a directory")) }
}

fn broken(error: &JournalError) -> Refusal {
    match error {
        JournalError::InUse => Refusal::invalid_request(error.to_string()),
        error => Refusal::internal(error.to_string()),
    }
}
