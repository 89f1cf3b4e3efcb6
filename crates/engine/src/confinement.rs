//! What the programs of a goal are confined by: its agent, its setup and its checks.
//!
//! Agents share a home of the goal's own with what setup does in the workspace. Each checkout has one that begins empty, so that
//! nothing an agent or an earlier verdict left there can change what a check finds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use towline_agent::{AgentSettings, OwnFiles, agent};
use towline_check::Confinement;
use towline_core::{Check, Goal, Network, Sandbox, SandboxMode, SandboxSettings, Visibility};
use towline_sandbox::{LAYERS, Machine, NoSandbox, Private, Room, Signals};
use towline_workspace::Repository;

use crate::error::EngineError;
use crate::home::Home;
use crate::lending::{self, Loan, Way, lend};
use crate::place::{LOCK_PATIENCE, lock_for_a_moment};
use crate::resolver::Resolved;

/// What this machine offers, by the file of this program. Looking takes some milliseconds.
static MACHINES: Mutex<BTreeMap<PathBuf, Looked>> = Mutex::new(BTreeMap::new());

/// What was found, and when.
type Looked = (Result<Machine, NoSandbox>, Instant);

/// After how long a machine without bubblewrap is looked at again: it may have been busy, and the person may have followed the advice.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The sandbox of this machine, for `program`, the file of this program.
pub fn machine(program: &Path) -> Result<Machine, NoSandbox> {
    let mut machines = MACHINES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |(found, at): &&Looked| {
        found.as_ref().is_ok_and(|machine| machine.sandbox() == Sandbox::Bubblewrap)
            || at.elapsed() < LOOK_AGAIN
    };
    if let Some((found, _)) = machines.get(program).filter(is_known) {
        return found.clone();
    }
    let found = Machine::look(program);
    machines.insert(program.to_owned(), (found.clone(), Instant::now()));
    found
}

/// The sandbox that these settings ask for; none where they do not insist on one. An error names what to do.
pub fn demanded(settings: &SandboxSettings, program: &Path) -> Result<Option<Machine>, String> {
    match (settings.mode, machine(program)) {
        (SandboxMode::Off, _) | (SandboxMode::Auto, Err(_)) => Ok(None),
        (SandboxMode::Auto | SandboxMode::Required, Ok(machine)) => Ok(Some(machine)),
        (SandboxMode::Required, Err(reason)) => Err(format!(
            "`mode = \"required\"` in [sandbox] needs a sandbox: {reason}; `towline doctor` prints the fix"
        )),
    }
}

/// Fails if a check is to be hidden and this sandbox, or none, does not hide it. An error names what to do.
pub fn must_hide(checks: &[Check], machine: Option<&Machine>) -> Result<(), String> {
    let hides = machine.is_some_and(|machine| machine.sandbox() == Sandbox::Bubblewrap);
    match checks.iter().find(|check| check.hidden == Visibility::Hidden) {
        Some(check) if !hides => Err(format!(
            "the check `{}` is hidden, and without a sandbox agents can read it: set `mode = \"required\"` in [sandbox] \
             with bubblewrap installed, or write `hidden = \"best-effort\"`",
            check.name
        )),
        _ => Ok(()),
    }
}

/// Whose programs are confined, and by what.
pub(crate) struct Confiner<'a> {
    pub(crate) home: &'a Home,
    pub(crate) goal: &'a Goal,
    pub(crate) resolved: &'a Resolved,
    /// The file of this program.
    pub(crate) program: &'a Path,
    /// Towline's own repository of the goal, which knows the user's.
    pub(crate) repository: Option<&'a Repository>,
}

/// The homes of a checkout's programs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Homes {
    /// The goal's own, which its agents use as well.
    Agents,
    /// One for each checkout of a candidate.
    Checks,
    /// One for each checkout of the base.
    Base,
    /// One for each conversation with a judge.
    Judge,
}

/// What an agent needs besides its workspace.
pub(crate) struct AgentNeeds {
    pub(crate) homes: Homes,
    pub(crate) directory: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
    /// Its program and that of its servers, with their arguments.
    pub(crate) programs: Vec<Vec<String>>,
    /// The directories in which it keeps files of its user.
    pub(crate) own: Vec<OwnFiles>,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) signals: Signals,
}

impl AgentNeeds {
    /// What an agent with these settings needs to work in a directory.
    pub(crate) fn of(
        settings: &AgentSettings,
        directory: &str,
        argv: &[String],
        environment: &BTreeMap<String, String>,
    ) -> Self {
        let directory = PathBuf::from(directory);
        let servers = settings.mcp.values().map(|server| server.command.clone());
        Self {
            homes: Homes::Agents,
            programs: servers.chain([argv.to_vec()]).collect(),
            own: agent(settings.kind).own_files(settings, environment),
            read: settings.dirs.iter().map(|dir| directory.join(dir)).collect(),
            write: Vec::new(),
            signals: Signals::AreForTheProgram,
            environment: environment.clone(),
            directory,
        }
    }
}

/// What starts an agent in its sandbox.
pub(crate) struct Confined {
    pub(crate) sandbox: Sandbox,
    pub(crate) wrapper: Vec<String>,
}

impl Confiner<'_> {
    /// What starts the goal's agent in its sandbox, where it has copies of what signs it in; none without a sandbox.
    pub(crate) async fn agent(&self, needs: AgentNeeds) -> Result<Option<Confined>, String> {
        let settings = &self.resolved.sandbox;
        let Some(machine) = self.machine()? else { return Ok(None) };
        let AgentNeeds { homes, directory, environment, programs, own, read, write, signals } = needs;
        let search_path = environment.get("PATH").cloned().unwrap_or_default();
        let mut room = self.room(homes, directory, environment, settings.network)?;
        room.own.extend(own.iter().map(|own| own.directory.clone()));
        room.own.push(self.home.sessions());
        if matches!(homes, Homes::Agents) {
            room.read.push(self.home.engines());
        }
        // What the agent can write may be a symlink to what it cannot read.
        let is_its_own = |path: &PathBuf| room.write.iter().any(|own| path.starts_with(own));
        let programs = programs.iter().flat_map(|words| files_of(words, &search_path));
        let programs: Vec<PathBuf> =
            programs.filter(|path| !is_its_own(path)).flat_map(|file| with_packages(&file)).collect();
        room.read.extend(programs.into_iter().chain(read));
        let users_settings =
            own.iter().flat_map(|own| own.settings.iter().map(|name| own.directory.join(name)));
        room.read.extend(users_settings);
        room.write.extend(write);
        room.signals = signals;
        self.lend(&room, &own).await?;
        let wrapper = wrapper(&machine, &room)?;
        Ok(Some(Confined { sandbox: machine.sandbox(), wrapper }))
    }

    async fn lend(&self, room: &Room, own: &[OwnFiles]) -> Result<(), String> {
        let copies = |own: &OwnFiles, names: &'static [&'static str], way| {
            let paths: Vec<PathBuf> = names.iter().map(|name| own.directory.join(name)).collect();
            let loan = |path: PathBuf| Some(Loan::new(path.clone(), room.outside(&path)?, way));
            paths.into_iter().filter_map(loan).collect::<Vec<_>>()
        };
        let credentials = own.iter().flat_map(|own| copies(own, own.credentials, Way::ThereAndBack));
        let loans: Vec<Loan> =
            credentials.chain(own.iter().flat_map(|own| copies(own, own.notes, Way::There))).collect();
        let record = room.private.note(LENT);
        let _lock = credentials_lock(self.home).await.map_err(|error| error.to_string())?;
        lend(&record, loans).map_err(|error| format!("cannot copy what signs the agent in: {error}"))
    }

    /// What confines the commands in a checkout or a workspace; none without a sandbox.
    pub(crate) fn commands(
        &self,
        homes: Homes,
        directory: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Confinement>, String> {
        let settings = &self.resolved.sandbox;
        let Some(machine) = self.machine()? else { return Ok(None) };
        let room = |network| self.room(homes, directory.to_owned(), environment.clone(), network);
        let (setup, checks) = (room(settings.setup_network)?, room(settings.checks_network)?);
        let has_files =
            self.goal.checks.iter().filter(|check| !check.hidden.is_shown() && !check.files.is_empty());
        let with_files = has_files.map(|check| {
            let mut room = checks.clone();
            room.read.extend(self.files_of_check(check));
            Ok::<_, String>((check.name.clone(), wrapper(&machine, &room)?))
        });
        Ok(Some(Confinement {
            sandbox: machine.sandbox(),
            setup: wrapper(&machine, &setup)?,
            checks: wrapper(&machine, &checks)?,
            with_files: with_files.collect::<Result<_, _>>()?,
            checks_network: settings.checks_network,
            own: match homes {
                Homes::Agents => None,
                Homes::Checks | Homes::Base | Homes::Judge => Some(checks),
            },
        }))
    }

    /// What all programs of the goal are allowed.
    fn room(
        &self,
        homes: Homes,
        directory: PathBuf,
        environment: BTreeMap<String, String>,
        network: Network,
    ) -> Result<Room, String> {
        let place = self.place(homes);
        let private = Private::make(&place)
            .map_err(|error: io::Error| format!("cannot make {}: {error}", place.display()))?;
        let settings = &self.resolved.sandbox;
        let expanded = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().filter_map(|path| expanded(path, &self.resolved.environment)).collect()
        };
        let users = PathBuf::from(&self.goal.workspace.repository);
        let mut lent = self.repository.map(Repository::lends_objects).unwrap_or_default();
        let mut read = vec![self.home.history(self.goal.id)];
        let mut write = vec![directory.clone()];
        let mut hide = expanded(&settings.hide);
        hide.push(self.home.hidden().to_owned());
        if self.goal.workspace.mode.is_in_place() && matches!(homes, Homes::Agents) {
            let own = self.repository.map(Repository::git_dirs).unwrap_or_default();
            let is_own =
                |path: &Path| path.starts_with(&directory) || own.iter().any(|own| path.starts_with(own));
            lent.retain(|path| !is_own(path));
            write.extend(own);
        } else {
            hide.push(users);
        }
        read.extend(lent);
        read.extend(expanded(&settings.read));
        write.extend(expanded(&settings.write));
        let filled = self.home.filled_caches(self.goal.place());
        // Setup fills them once, before any agent.
        let fills_caches = !self.goal.workspace.setup.is_empty() && !filled.exists();
        let (own, signals) = (Vec::new(), Signals::AreForTheProgram);
        let users_home = self.resolved.environment.get("HOME").map(PathBuf::from);
        let mut room = Room {
            private,
            directory,
            environment,
            users_home,
            own,
            filled: Some(filled),
            fills_caches,
            read,
            write,
            hide,
            network,
            signals,
        };
        // A rule for what cannot be seen anyway would show its name.
        let files = self.goal.checks.iter().flat_map(|check| self.files_of_check(check));
        let shown: Vec<PathBuf> = files.filter(|path| room.shows(path)).collect();
        room.hide.extend(shown);
        Ok(room)
    }

    /// The sandbox of the goal's programs; none where nothing insists on one.
    fn machine(&self) -> Result<Option<Machine>, String> {
        let machine = demanded(&self.resolved.sandbox, self.program)?;
        must_hide(&self.goal.checks, machine.as_ref())?;
        Ok(machine)
    }

    /// The files of a check that nobody else may see, by every path that leads to them.
    fn files_of_check(&self, check: &Check) -> Vec<PathBuf> {
        let named = check.files.iter();
        let named = named.filter_map(|file| expanded(Path::new(file), &self.resolved.environment));
        named.flat_map(|path| path.canonicalize().into_iter().chain([path])).collect()
    }

    pub(crate) fn place(&self, homes: Homes) -> PathBuf {
        let goal = self.goal.id;
        match homes {
            Homes::Agents => self.home.agents_home(self.goal.place()),
            Homes::Checks => self.home.checks_home(goal),
            Homes::Base => self.home.base_home(goal),
            Homes::Judge => self.home.judges_home(goal),
        }
    }
}

/// Keeps what setup wrote into the user's caches. Nothing of the goal's agents was in that home before.
pub(crate) fn keep_caches(confiner: &Confiner<'_>, homes: Homes) -> io::Result<()> {
    let filled = confiner.home.filled_caches(confiner.goal.place());
    match std::fs::rename(confiner.place(homes).join(LAYERS), filled) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What was lent to the agents of a goal, in its private directory.
const LENT: &str = "lent.json";

/// Gives the user what the agents of a goal have refreshed of what signs them in.
pub(crate) async fn give_back(home: &Home, goal: &Goal) -> Result<(), String> {
    give_back_of(home, &home.agents_home(goal.place())).await
}

/// The same for a judge of the goal.
pub(crate) async fn give_back_of_judge(home: &Home, goal: &Goal) -> Result<(), String> {
    give_back_of(home, &home.judges_home(goal.id)).await
}

async fn give_back_of(home: &Home, place: &Path) -> Result<(), String> {
    let record = place.join(LENT);
    if !record.exists() {
        return Ok(());
    }
    let _lock = credentials_lock(home).await.map_err(|error| error.to_string())?;
    lending::give_back(&record).map_err(|error| format!("cannot keep a refreshed sign-in: {error}"))
}

/// No two processes copy credentials at the same time.
async fn credentials_lock(home: &Home) -> Result<File, EngineError> {
    lock_for_a_moment(home.credentials_lock(), LOCK_PATIENCE).await
}

fn wrapper(machine: &Machine, room: &Room) -> Result<Vec<String>, String> {
    room.prepare(machine.sandbox()).map_err(|error| format!("cannot prepare the sandbox: {error}"))?;
    Ok(machine.wrapper(room))
}

/// The files of a command line: the program, and arguments that are files.
fn files_of(words: &[String], search_path: &str) -> Vec<PathBuf> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let found = if program.contains('/') {
        Some(PathBuf::from(program))
    } else {
        std::env::split_paths(search_path).map(|folder| folder.join(program)).find(|path| path.is_file())
    };
    let named = arguments.iter().map(PathBuf::from).filter(|path| path.is_file());
    found.into_iter().chain(named).filter(|path| path.is_absolute()).collect()
}

/// A file with what it needs: what it is a symlink to, and where it is a part of packages of Node.js or of a virtual environment of Python, all of them.
fn with_packages(file: &Path) -> Vec<PathBuf> {
    let mut needed = vec![file.to_owned()];
    if let Ok(real) = file.canonicalize() {
        let packages = real.ancestors().filter(|above| above.ends_with("node_modules")).last();
        needed.extend(packages.map(Path::to_owned));
        needed.push(real);
    }
    let environment = file.parent().and_then(Path::parent).filter(|above| above.join("pyvenv.cfg").is_file());
    needed.extend(environment.map(Path::to_owned));
    needed
}

/// A path as the settings have it: `~` is the user's home, and a first part `$NAME` a variable. None if that is not set.
pub(crate) fn expanded(path: &Path, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let mut parts = path.components();
    let first = parts.next()?.as_os_str().to_str()?;
    let name = if first == "~" { Some("HOME") } else { first.strip_prefix('$') };
    match name {
        // Parts, because a path that is joined with nothing ends in a slash, and names no file.
        Some(name) => Some(Path::new(environment.get(name)?).components().chain(parts).collect()),
        None => Some(path.to_owned()),
    }
}
