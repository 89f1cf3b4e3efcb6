//! What a use case works with: environment, directory, configuration layers, state.
//!
//! All of it arrives as values; nothing here looks at the process.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use towline_api::KnownSecrets;
use towline_config::{Config, Inspection, Layer, LayerContent, LayerName, Loaded};
use towline_core::Goal;
use towline_engine::{
    Dispatching, Engine, EngineSettings, Home, NoAnswer, PoolRules, Reads, SystemClock, copied_secrets,
    known_secrets, supervisor_arguments,
};
use towline_process::SupervisorProgram;
use towline_store::{SqliteStore, Store, UpgradeGuard};

use crate::error::Error;
use crate::mcp_file;
use crate::projects::Projects;
use crate::steady::Steady;
use crate::trust::{self, WideningFile};
use crate::upgrade::{ShowUpgrade, Upgrade};

/// The longest configuration file.
const LONGEST_LAYER: u64 = 1 << 20;

/// The configuration file of a project.
pub(crate) const PROJECT_FILE: &str = "towline.toml";

/// What Towline stores.
#[derive(Clone)]
pub struct State {
    /// The state directory.
    pub home: Home,
    pub store: Arc<dyn Store>,
}

/// A configuration file that was looked for.
pub struct LayerFile {
    /// The layer, with the path of the file.
    pub name: LayerName,
    /// Its text; none if there is no such file.
    pub text: std::io::Result<Option<String>>,
}

/// The store and the engine that all use cases of a server share.
pub struct Host {
    pub state: State,
    pub engine: Arc<Engine>,
}

/// An engine that a use case works with for a moment.
pub enum EngineInUse {
    Own(Engine),
    /// That of the server.
    Shared(Arc<Engine>),
}

impl EngineInUse {
    /// Waits until everything is over that an engine of our own has begun. A shared one stays.
    pub async fn close(self) {
        if let Self::Own(engine) = self {
            engine.close().await;
        }
    }
}

impl Deref for EngineInUse {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Self::Own(engine) => engine,
            Self::Shared(engine) => engine,
        }
    }
}

/// What a use case works with.
#[derive(Clone)]
pub struct Context {
    /// The environment. Variables that are not text cannot be passed on and are left out.
    pub environment: BTreeMap<String, String>,
    /// The directory that it is about.
    pub directory: PathBuf,
    /// The file of this program.
    pub program: PathBuf,
    /// The secrets that were come across.
    pub secrets: KnownSecrets,
    /// Shows the upgrade of a state directory of an earlier version.
    pub show_upgrade: ShowUpgrade,
    /// What is open already, in a server.
    pub host: Option<Arc<Host>>,
    /// What counts while the operator's files are broken, in a process that lives on while they are edited.
    pub steady: Option<Arc<Steady>>,
    /// The reads of projects' directories, which may not answer.
    pub reads: Reads,
}

impl Context {
    /// A context that knows no secrets yet and shows no upgrade.
    pub fn new(environment: BTreeMap<String, String>, directory: PathBuf, program: PathBuf) -> Self {
        Self {
            environment,
            directory,
            program,
            secrets: KnownSecrets::default(),
            show_upgrade: |_| {},
            host: None,
            steady: None,
            reads: Reads::default(),
        }
    }

    /// An environment variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Reads the configuration that holds in `directory`.
    pub fn configuration(&self, directory: &Path) -> Result<Loaded, Error> {
        self.configuration_under(directory, None)
    }

    /// Reads the configuration that holds in `directory`, with one more layer over all others. Fails where the repository's file
    /// sets something that the user has not accepted.
    pub fn configuration_under(&self, directory: &Path, above: Option<Layer>) -> Result<Loaded, Error> {
        let (mut loaded, file) = self.read_configuration(directory, above)?;
        if let Some(file) =
            file.and_then(|file| WideningFile::of(self, &file, &loaded.widening).transpose()).transpose()?
            && !file.is_trusted()
        {
            return Err(file.refusal());
        }
        loaded.config.set_own_program(&self.program.display().to_string());
        self.know_secrets(&mut loaded.config, directory, |key| loaded.sources.get(key));
        Ok(loaded)
    }

    /// Reads the configuration that holds in `directory`, whether or not the user has accepted what the repository's file sets, and
    /// where that file is. Nothing may be started by it.
    pub fn read_configuration(
        &self,
        directory: &Path,
        above: Option<Layer>,
    ) -> Result<(Loaded, Option<PathBuf>), Error> {
        let mut layers = Vec::new();
        for file in self.layer_files(directory) {
            layers.extend(self.layer_in_force(file)?);
        }
        let file = layers.iter().find_map(|layer| trust::file_of(&layer.name)).map(Path::to_owned);
        layers.push(Layer::environment(self.environment.clone()));
        layers.extend(above);
        Ok((towline_config::load(&layers)?, file))
    }

    /// Reads the configuration of the operator alone, without any repository's.
    pub fn operators_configuration(&self) -> Result<Config, Error> {
        Ok(self.operators()?.config)
    }

    /// The same, with where each setting comes from.
    pub(crate) fn operators(&self) -> Result<Loaded, Error> {
        let user = self.users_file().map(|file| self.layer_in_force(file)).transpose()?;
        let mut layers: Vec<Layer> = user.flatten().into_iter().collect();
        layers.push(Layer::environment(self.environment.clone()));
        Ok(towline_config::load(&layers)?)
    }

    /// Masks the secrets of a goal's project from now on: those that its configuration names, as far as it can be understood, and
    /// those in files that the goal copies. Whoever shows what an agent has left may show them.
    pub async fn know_secrets_of(&self, goal: &Goal) -> Result<(), NoAnswer> {
        let (context, goal) = (self.clone(), goal.clone());
        let repository = goal.workspace.repository.clone();
        let look = move || {
            let directory = Path::new(&goal.workspace.repository);
            context.inspection(directory, &context.layer_files(directory));
            context.secrets.add(&copied_secrets(&goal).secrets);
        };
        self.reads.read(&repository, look).await
    }

    /// Has the secrets hidden that agents are given, also by a file of MCP servers. One that cannot be used is an error where
    /// its agent is used.
    fn know_secrets<'a>(
        &self,
        config: &mut Config,
        directory: &Path,
        source: impl Fn(&str) -> Option<&'a LayerName>,
    ) {
        for (name, settings) in &mut config.agents {
            let _ = mcp_file::add_servers(name, settings, source(&mcp_file::key(name)), directory);
        }
        self.secrets.add(&known_secrets(&self.environment, config.agents.values()));
    }

    /// The settings in these files and the environment, where they can be understood. Those of a repository's file that the user
    /// would have to accept first have no effect.
    pub fn inspection(&self, directory: &Path, files: &[LayerFile]) -> Inspection {
        let read = |file: &LayerFile| {
            let text = file.text.as_ref().ok()?.as_ref()?;
            Some(Layer { name: file.name.clone(), content: LayerContent::Toml(text.clone()) })
        };
        let environment = Layer::environment(self.environment.clone());
        let layers: Vec<Layer> = files.iter().filter_map(read).chain([environment]).collect();
        let understood = |mut inspection: Inspection| {
            inspection.config.set_own_program(&self.program.display().to_string());
            let source = |key: &str| mcp_file::source_in(&inspection.settings, key);
            self.know_secrets(&mut inspection.config, directory, source);
            inspection
        };
        // What is secret in the file is secret whether or not it counts.
        let inspection = understood(towline_config::inspect(&layers));
        let file = layers.iter().find_map(|layer| trust::file_of(&layer.name));
        let is_trusted = match file.map(|file| WideningFile::of(self, file, &inspection.widening)) {
            None | Some(Ok(None)) => true,
            Some(Ok(Some(file))) => file.is_trusted(),
            Some(Err(_)) => false,
        };
        if is_trusted { inspection } else { understood(towline_config::inspect_without_trust(&layers)) }
    }

    /// The operator's own configuration file, if there is a place for it.
    pub(crate) fn users_file(&self) -> Option<LayerFile> {
        let path = self.users_file_path()?;
        Some(LayerFile { text: read_if_there(&path), name: LayerName::User(path) })
    }

    pub(crate) fn users_file_path(&self) -> Option<PathBuf> {
        Some(self.user_directory("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
    }

    /// The configuration files that are looked for from `directory`, in the order of their layers.
    pub fn layer_files(&self, directory: &Path) -> Vec<LayerFile> {
        let user = self.users_file();
        let upward = project_folders(directory).map(|folder| {
            let path = folder.join(PROJECT_FILE);
            LayerFile { text: read_if_there(&path), name: LayerName::Repository(path) }
        });
        let repository =
            upward.into_iter().find(|file| !matches!(file.text, Ok(None))).unwrap_or_else(|| LayerFile {
                name: LayerName::Repository(directory.join(PROJECT_FILE)),
                text: Ok(None),
            });
        user.into_iter().chain([repository]).collect()
    }

    /// The state directory, made when it is missing.
    pub fn home(&self) -> Result<Home, Error> {
        let root = self.home_path()?;
        Home::create(root.clone()).map_err(|error| unusable(&root, &error))
    }

    /// The state, unless there is none yet: reading creates nothing.
    pub fn existing_state(&self) -> Result<Option<State>, Error> {
        if let Some(host) = &self.host {
            return Ok(Some(host.state.clone()));
        }
        let root = self.home_path()?;
        if root.join("towline.db").symlink_metadata().is_err() {
            return Ok(None);
        }
        let home = Home::open(&root).map_err(|error| unusable(&root, &error))?;
        self.open(home).map(Some)
    }

    /// The state, made when it is missing.
    pub fn state(&self) -> Result<State, Error> {
        match &self.host {
            Some(host) => Ok(host.state.clone()),
            None => self.open(self.home()?),
        }
    }

    /// The engine of the server, or one of our own. It reads the configuration of each goal in the goal's repository.
    pub fn engine(&self, state: State) -> Result<EngineInUse, Error> {
        match &self.host {
            Some(host) => Ok(EngineInUse::Shared(Arc::clone(&host.engine))),
            None => self.engine_with(state, None, Dispatching::Given { slots: 1 }).map(EngineInUse::Own),
        }
    }

    /// An engine that runs the goals of the whole state directory.
    pub fn pool_engine(&self, state: State, rules: Arc<dyn PoolRules>) -> Result<Engine, Error> {
        // It is watched from the beginning: above it is what changes all the time.
        let home = &state.home;
        home.make(&home.trusted()).map_err(|error| unusable(home.root(), &error))?;
        self.engine_with(state, None, Dispatching::Pool(rules))
    }

    /// An engine of our own for another state than the usual one, also where there is a server.
    pub(crate) fn engine_apart(&self, state: State) -> Result<Engine, Error> {
        self.engine_with(state, Some(self.directory.clone()), Dispatching::Given { slots: 1 })
    }

    /// An engine for a goal that was drafted in the context's directory, whose configuration holds for it.
    pub fn engine_for_draft(&self, state: State) -> Result<EngineInUse, Error> {
        let drafted_in = Some(self.directory.clone());
        self.engine_with(state, drafted_in, Dispatching::Given { slots: 1 }).map(EngineInUse::Own)
    }

    fn engine_with(
        &self,
        state: State,
        drafted_in: Option<PathBuf>,
        dispatch: Dispatching,
    ) -> Result<Engine, Error> {
        let projects = Projects::new(self.clone(), drafted_in);
        let State { home, store } = state;
        let args = supervisor_arguments(home.root()).map_err(|error| unusable(home.root(), &error))?;
        let supervisor = SupervisorProgram::running(&self.program, args);
        let (clock, resolver) = (Arc::new(SystemClock), Arc::new(projects));
        Ok(Engine::open(EngineSettings { home, store, clock, supervisor, resolver, dispatch })?)
    }

    fn open(&self, home: Home) -> Result<State, Error> {
        let guard: Arc<dyn UpgradeGuard> = Arc::new(Upgrade { home: home.clone(), show: self.show_upgrade });
        let store = Arc::new(SqliteStore::open_guarded(&home.database(), &guard)?);
        Ok(State { home, store })
    }

    /// Where the state directory is or would be.
    pub fn home_path(&self) -> Result<PathBuf, Error> {
        let named = self.variable("TOWLINE_HOME").map(|home| self.directory.join(home));
        named.or_else(|| self.user_directory("XDG_STATE_HOME", ".local/state")).ok_or_else(|| {
            Error::usage(
                "there is no place for state: neither TOWLINE_HOME nor XDG_STATE_HOME nor HOME is set",
            )
            .hint("set TOWLINE_HOME to a directory of yours")
        })
    }

    /// `towline` below the user's directory of this kind.
    pub(crate) fn user_directory(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let directory = match self.variable(variable) {
            Some(directory) => PathBuf::from(directory),
            None => Path::new(self.variable("HOME")?).join(below_home),
        };
        Some(directory.join("towline"))
    }
}

/// The folders whose `towline.toml` may hold in `directory`: it and those above, up to the top of the repository. What is above that, or
/// above a directory in no repository, is not the project's and may be anybody's.
pub(crate) fn project_folders(directory: &Path) -> impl Iterator<Item = &Path> {
    let is_top = |folder: &Path| folder.join(".git").symlink_metadata().is_ok();
    let above = directory.ancestors().position(is_top).unwrap_or(0);
    directory.ancestors().take(above + 1)
}

fn unusable(root: &Path, error: &std::io::Error) -> Error {
    Error::internal(format!("cannot use the state directory {}: {error}", root.display()))
        .hint("set TOWLINE_HOME to a directory that you may write to")
}

fn read_if_there(path: &Path) -> std::io::Result<Option<String>> {
    match towline_files::read_following(path, LONGEST_LAYER) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(std::io::Error::other),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_file_above_the_repository_does_not_hold_in_it() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let [above, top, below] = ["", "project", "project/src/deep"].map(|name| dir.path().join(name));
        std::fs::create_dir_all(&below).expect("directories");
        let write = |folder: &Path| std::fs::write(folder.join(PROJECT_FILE), "").expect("written");
        let found = |directory: &Path| {
            let context = Context::new(BTreeMap::new(), directory.to_owned(), PathBuf::new());
            let files = context.layer_files(directory);
            let found = files.into_iter().find(|file| matches!(file.text, Ok(Some(_))));
            found.and_then(|file| Some(trust::file_of(&file.name)?.to_owned()))
        };
        write(&above);
        assert_eq!(found(&below), None, "in no repository, that of the directory itself holds");
        std::fs::write(top.join(".git"), "gitdir: elsewhere").expect("written");
        assert_eq!(found(&below), None);
        write(&top);
        assert_eq!(found(&below), Some(top.join(PROJECT_FILE)));
        assert_eq!(found(&above), Some(above.join(PROJECT_FILE)));
    }
}
