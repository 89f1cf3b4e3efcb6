//! What the programs of a goal are confined by: its agent, its setup and its checks.
//!
//! Agents share a home of the goal's own with what setup does in the workspace. Each checkout has one that begins empty, so that
//! nothing an agent or an earlier verdict left there can change what a check finds.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use towline_check::Confinement;
use towline_core::{Goal, Network, Sandbox, SandboxMode, SandboxSettings};
use towline_sandbox::{Machine, NoSandbox, Private, Room};
use towline_workspace::Repository;

use crate::home::Home;
use crate::resolver::Resolved;

/// What this machine offers, by the file of this program. Looking takes some milliseconds, and the answer stays the same.
static MACHINES: Mutex<BTreeMap<PathBuf, Result<Machine, NoSandbox>>> = Mutex::new(BTreeMap::new());

/// The sandbox of this machine, for `program`, the file of this program.
pub fn machine(program: &Path) -> Result<Machine, NoSandbox> {
    let mut machines = MACHINES.lock().unwrap_or_else(PoisonError::into_inner);
    machines.entry(program.to_owned()).or_insert_with(|| Machine::look(program)).clone()
}

/// The sandbox that these settings ask for; none where they do not insist on one. An error says what to do.
pub fn demanded(settings: &SandboxSettings, program: &Path) -> Result<Option<Machine>, String> {
    match (settings.mode, machine(program)) {
        (SandboxMode::Off, _) | (SandboxMode::Auto, Err(_)) => Ok(None),
        (SandboxMode::Auto | SandboxMode::Required, Ok(machine)) => Ok(Some(machine)),
        (SandboxMode::Required, Err(reason)) => Err(format!(
            "`mode = \"required\"` in [sandbox] needs a sandbox: {reason}; `towline doctor` prints the fix"
        )),
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
}

/// What an agent needs besides its workspace.
pub(crate) struct AgentNeeds {
    pub(crate) directory: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
}

impl Confiner<'_> {
    /// What starts the goal's agent in its sandbox; none without one.
    pub(crate) fn agent(&self, needs: AgentNeeds) -> Result<Option<(Sandbox, Vec<String>)>, String> {
        let settings = &self.resolved.sandbox;
        let Some(machine) = demanded(settings, self.program)? else { return Ok(None) };
        let mut room = self.room(Homes::Agents, needs.directory, needs.environment, settings.network)?;
        room.read.push(self.home.engines());
        room.read.extend(needs.read);
        room.write.extend(needs.write);
        Ok(Some((machine.sandbox(), machine.wrapper(&room))))
    }

    /// What confines the commands in a checkout or a workspace; none without a sandbox.
    pub(crate) fn commands(
        &self,
        homes: Homes,
        directory: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Confinement>, String> {
        let settings = &self.resolved.sandbox;
        let Some(machine) = demanded(settings, self.program)? else { return Ok(None) };
        let wrapper = |network| {
            let room = self.room(homes, directory.to_owned(), environment.clone(), network)?;
            Ok::<_, String>(machine.wrapper(&room))
        };
        Ok(Some(Confinement {
            sandbox: machine.sandbox(),
            setup: wrapper(settings.setup_network)?,
            checks: wrapper(settings.checks_network)?,
            checks_network: settings.checks_network,
            own: match homes {
                Homes::Agents => None,
                Homes::Checks | Homes::Base => Some(self.place(homes)),
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
        let mut read = vec![PathBuf::from(&self.goal.workspace.repository), self.home.history(self.goal.id)];
        read.extend(self.repository.iter().flat_map(|repository| repository.lends()));
        let expanded = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().map(|path| below_home(path, environment.get("HOME"))).collect()
        };
        read.extend(expanded(&settings.read));
        let mut write = vec![directory.clone()];
        if self.goal.workspace.mode.is_in_place() && matches!(homes, Homes::Agents) {
            write.extend(self.repository.iter().flat_map(|repository| repository.lends()));
        }
        write.extend(expanded(&settings.write));
        let mut hide = expanded(&settings.hide);
        hide.push(self.home.hidden().to_owned());
        Ok(Room { private, directory, environment, read, write, hide, network })
    }

    fn place(&self, homes: Homes) -> PathBuf {
        let goal = self.goal.id;
        match homes {
            Homes::Agents => self.home.agents_home(self.goal.place()),
            Homes::Checks => self.home.checks_home(goal),
            Homes::Base => self.home.base_home(goal),
        }
    }
}

/// A path as the settings have it, where `~` is the user's home.
pub(crate) fn below_home(path: &Path, home: Option<&String>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(inner), Some(home)) => Path::new(home).join(inner),
        _ => path.to_owned(),
    }
}
