//! What the user has accepted of the files that repositories bring along.
//!
//! A repository's `towline.toml` may be anybody's. Settings in it that give agents more (`towline_config` knows which) count only while
//! they are exactly those that the user has accepted for that directory. What was accepted is in the state directory, one file per
//! repository. A record that cannot be read counts as none, so the user is asked again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use towline_api::{RepositoryTrust, RevokedTrust, TrustedRepository, WideningSetting};
use towline_config::{LayerName, MCP_FILE_LIMIT};
use towline_core::{EscalationReason, GoalId, NextSession, Phase, hexadecimal};
use towline_engine::{GoalCommand, Home};
use towline_store::{Listing, Order, load_all};
use uuid::Uuid;

use crate::agents::agents_of;
use crate::context::{Context, PROJECT_FILE, State, project_folders};
use crate::error::{Action, Error};
use crate::find::Found;
use crate::next_steps::way_to_continue;
use crate::server::server_of;
use crate::steer::steer;

/// The longest record.
const LONGEST_RECORD: u64 = 4 << 20;
/// How many records are listed.
const MOST_RECORDS: usize = 10_000;

/// Settings by dotted key.
type Settings = BTreeMap<String, Value>;

/// What the file of a repository sets that needs the user's trust.
#[derive(Debug, Clone)]
pub struct WideningFile {
    file: PathBuf,
    /// The directory of the file, without symlinks.
    directory: PathBuf,
    settings: Settings,
    /// What the user has accepted for this directory, now or earlier.
    accepted: Option<Record>,
}

/// What the user has accepted for a directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// In bytes that need not be text.
    directory: Vec<u8>,
    accepted_at: Timestamp,
    sha256: String,
    settings: Settings,
}

impl WideningFile {
    /// The one of these settings; none where none of them needs trust.
    pub(crate) fn of(context: &Context, file: &Path, widening: &Settings) -> Result<Option<Self>, Error> {
        if widening.is_empty() {
            return Ok(None);
        }
        let directory = directory_of(file)?;
        let accepted = read_record(&record_path(&context.trusted_directory()?, &directory), &directory);
        let settings = with_contents(widening.clone(), &directory);
        Ok(Some(Self { file: file.to_owned(), directory, settings, accepted }))
    }

    /// Whether the user has accepted exactly these settings.
    pub fn is_trusted(&self) -> bool {
        self.accepted.as_ref().is_some_and(|record| record.sha256 == hash(&self.settings))
    }

    /// The refusal to use them.
    pub fn refusal(&self) -> Error {
        Error::Untrusted { file: self.file.clone(), keys: self.settings.keys().cloned().collect() }
    }

    /// The path of the file, as it was found.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// All of them, with what has changed since the user accepted the file.
    pub fn report(&self) -> RepositoryTrust {
        let earlier = self.accepted.as_ref().map(|record| &record.settings);
        let state = |key: &String, value: &Value| match earlier.and_then(|earlier| earlier.get(key)) {
            Some(accepted) if accepted == value => "accepted",
            Some(_) => "changed",
            None => "new",
        };
        let settings = self.settings.iter().map(|(key, value)| WideningSetting {
            state: state(key, value).to_owned(),
            key: key.clone(),
            value: value.clone(),
        });
        let gone =
            earlier.into_iter().flat_map(BTreeMap::keys).filter(|key| !self.settings.contains_key(*key));
        RepositoryTrust {
            file: Some(self.file.display().to_string()),
            state: if self.is_trusted() { "trusted" } else { "untrusted" }.to_owned(),
            settings: settings.collect(),
            gone: gone.cloned().collect(),
            accepted_at: self.accepted.as_ref().map(|record| record.accepted_at),
        }
    }
}

/// What the file that holds in `directory` sets that needs trust; none where nothing does.
pub fn widening_file(context: &Context, directory: &Path) -> Result<Option<WideningFile>, Error> {
    let (loaded, file) = context.read_configuration(directory, None)?;
    file.map_or(Ok(None), |file| WideningFile::of(context, &file, &loaded.widening))
}

/// Records that the user accepts these settings.
pub fn accept(context: &Context, file: &WideningFile, now: Timestamp) -> Result<WideningFile, Error> {
    let home = context.home()?;
    let record = Record {
        directory: file.directory.as_os_str().as_bytes().to_vec(),
        accepted_at: now,
        sha256: hash(&file.settings),
        settings: file.settings.clone(),
    };
    let path = record_path(&home.trusted(), &file.directory);
    let written = || -> io::Result<()> {
        home.make(&home.trusted())?;
        towline_files::replace_durably(&path, &serde_json::to_vec_pretty(&record)?)
    };
    written().map_err(|error| Error::internal(format!("cannot write {}: {error}", path.display())))?;
    Ok(WideningFile { accepted: Some(record), ..file.clone() })
}

/// A goal that needed a person because its configuration could not be used.
#[derive(Debug)]
pub struct HeldGoal {
    pub id: GoalId,
    /// How it continues; none where the server continues it.
    pub next: Option<Action>,
}

/// Has the server continue the goals of this file's repository that were held because the configuration could not be used. Without a
/// server none continues by itself.
pub async fn continue_held(context: &Context, file: &WideningFile) -> Result<Vec<HeldGoal>, Error> {
    let Some(state) = context.existing_state()? else { return Ok(Vec::new()) };
    let has_server = server_of(&state.home)?.is_some();
    let listing = Listing { phases: vec!["escalated"], order: Order::OldestFirst, ..Listing::all() };
    let mut held = Vec::new();
    for record in load_all(state.store.as_ref(), listing).await?.records {
        let Phase::Escalated { reason: EscalationReason::Configuration { .. } } = record.state.phase else {
            continue;
        };
        let repository = Path::new(&record.goal.workspace.repository);
        if !file.holds_in(context, repository) || agents_of(context, &record.goal).is_err() {
            continue;
        }
        let id = record.goal.id;
        let next = way_to_continue(id, &record.state.phase);
        let state = State { home: state.home.clone(), store: state.store.clone() };
        let retry = GoalCommand::Retry { budget: Vec::new(), session: NextSession::Resumed, model: None };
        // One that refuses, for example because its budget is spent, still waits for its user.
        let continues = has_server && steer(context, Found { state, record }, retry).await.is_ok();
        held.push(HeldGoal { id, next: (!continues).then_some(next) });
    }
    Ok(held)
}

impl WideningFile {
    /// Whether it is the file that holds in this directory.
    fn holds_in(&self, context: &Context, directory: &Path) -> bool {
        let found = widening_file(context, directory);
        matches!(found, Ok(Some(found)) if found.directory == self.directory)
    }
}

/// Forgets what the user has accepted for the file that holds here; where that file is gone, for the nearest directory above.
pub fn revoke_trust(context: &Context) -> Result<RevokedTrust, Error> {
    let Some(home) = existing_home(context)? else { return Ok(RevokedTrust { directory: None }) };
    let found = project_folders(&context.directory).find(|folder| folder.join(PROJECT_FILE).exists());
    let from = found.unwrap_or(&context.directory);
    let from = from.canonicalize().unwrap_or_else(|_| from.to_owned());
    let has_record = |directory: &&Path| record_path(&home.trusted(), directory).symlink_metadata().is_ok();
    let above = if found.is_some() { 1 } else { usize::MAX };
    let Some(directory) = from.ancestors().take(above).find(has_record) else {
        return Ok(RevokedTrust { directory: None });
    };
    let path = record_path(&home.trusted(), directory);
    home.remove(&path)
        .map_err(|error| Error::internal(format!("cannot remove {}: {error}", path.display())))?;
    Ok(RevokedTrust { directory: Some(directory.display().to_string()) })
}

/// What the user has accepted, by directory.
pub fn trusted_repositories(context: &Context) -> Result<Vec<TrustedRepository>, Error> {
    let Some(home) = existing_home(context)? else { return Ok(Vec::new()) };
    let folder = home.trusted();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::internal(format!("cannot read {}: {error}", folder.display()))),
    };
    let mut all = Vec::new();
    for entry in entries.flatten().take(MOST_RECORDS) {
        let Some(record) = read(&entry.path()) else { continue };
        let directory = PathBuf::from(std::ffi::OsStr::from_bytes(&record.directory));
        if record_path(&folder, &directory) == entry.path() {
            all.push(TrustedRepository {
                state: state_now(context, &directory, &record).to_owned(),
                directory: directory.display().to_string(),
                accepted_at: record.accepted_at,
                keys: record.settings.into_keys().collect(),
            });
        }
    }
    all.sort_by(|one, other| one.directory.cmp(&other.directory));
    Ok(all)
}

/// How the settings that were accepted compare with those of the file now.
fn state_now(context: &Context, directory: &Path, record: &Record) -> &'static str {
    if !directory.exists() {
        return "gone";
    }
    match widening_file(context, directory) {
        Ok(Some(file)) if file.directory == directory && hash(&file.settings) == record.sha256 => "current",
        Ok(Some(file)) if file.directory == directory => "changed",
        Ok(_) => "not_needed",
        // It is unknown until the file can be read again.
        Err(_) => "changed",
    }
}

fn existing_home(context: &Context) -> Result<Option<Home>, Error> {
    let root = context.home_path()?;
    if root.symlink_metadata().is_err() {
        return Ok(None);
    }
    context.home().map(Some)
}

/// The file that shows what was accepted for the nearest `towline.toml` at or above a directory.
pub(crate) fn record_for(context: &Context, project_file: &Path) -> Option<PathBuf> {
    let folder = context.trusted_directory().ok()?;
    Some(record_path(&folder, &directory_of(project_file).ok()?))
}

impl Context {
    /// Where what the user trusts is or would be.
    fn trusted_directory(&self) -> Result<PathBuf, Error> {
        let root = self.home_path()?;
        Ok(root.join("trusted"))
    }
}

/// The directory of a file, as it is called whichever symlinks lead there.
fn directory_of(file: &Path) -> Result<PathBuf, Error> {
    let folder = file.parent().unwrap_or(file);
    folder.canonicalize().map_err(|error| Error::usage(format!("cannot find {}: {error}", folder.display())))
}

fn record_path(folder: &Path, directory: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, directory.as_os_str().as_bytes());
    folder.join(format!("{}.json", name.simple()))
}

/// The record of this directory; none that is of another one.
fn read_record(path: &Path, directory: &Path) -> Option<Record> {
    read(path).filter(|record| record.directory == directory.as_os_str().as_bytes())
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&towline_files::read(path, LONGEST_RECORD).ok()?).ok()
}

/// The settings, where those that name a file have its hash as well: its content names programs, too.
fn with_contents(mut settings: Settings, directory: &Path) -> Settings {
    for (key, value) in &mut settings {
        if let (true, Value::String(path)) = (key.ends_with(".mcp_file"), &*value) {
            let content = towline_files::read_following(&directory.join(path), MCP_FILE_LIMIT).ok();
            let content = content.map(|content| hexadecimal(&Sha256::digest(content)));
            *value = json!({"file": path, "sha256": content});
        }
    }
    settings
}

/// The hash of the settings as canonical JSON: sorted by key.
fn hash(settings: &Settings) -> String {
    let text = serde_json::to_string(settings).unwrap_or_default();
    hexadecimal(&Sha256::digest(text))
}

/// The layer of a repository's file.
pub(crate) fn file_of(name: &LayerName) -> Option<&Path> {
    match name {
        LayerName::Repository(file) => Some(file),
        _ => None,
    }
}
