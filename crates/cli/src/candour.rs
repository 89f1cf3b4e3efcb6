//! Tells a person, once per project, what an agent without limits may do there.
//!
//! A private clone keeps changes apart; it does not confine the agent. What was told is remembered in the state directory, never in
//! the repository.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use towline_agent::{AgentSettings, Permission, Restriction, agent};
use towline_core::{AgentName, Goal, WorkspaceMode};
use towline_engine::Home;
use uuid::Uuid;

use crate::output;

/// Whether this project has heard it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Before,
    Now,
}

/// Says it on standard error, if the first of these agents may do everything and the goal's project has not heard it yet.
pub(crate) fn about(home: &Home, goal: &Goal, agents: &BTreeMap<AgentName, AgentSettings>) {
    let Some((name, settings)) = goal.agents.first().and_then(|name| agents.get_key_value(name)) else {
        return;
    };
    let restriction = agent(settings.kind).restriction();
    if settings.permission != Permission::Bypass || restriction == Restriction::NotNeeded {
        return;
    }
    // Where it cannot be remembered it is better said twice than not at all.
    if remember(home, Path::new(&goal.workspace.repository)).unwrap_or(Told::Now) == Told::Now {
        output::say(format_args!("{}", words(name.as_str(), restriction, goal.workspace.mode)));
    }
}

fn remember(home: &Home, project: &Path) -> io::Result<Told> {
    let project = project.canonicalize()?;
    let folder = home.root().join("told");
    home.make(&folder)?;
    let key = Uuid::new_v5(&Uuid::NAMESPACE_URL, project.as_os_str().as_bytes());
    let file = folder.join(format!("bypass-{}", key.simple()));
    match towline_files::create_new(&file) {
        Ok(mut file) => file.write_all(project.as_os_str().as_bytes()).map(|()| Told::Now),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Told::Before),
        Err(error) => Err(error),
    }
}

fn words(name: &str, restriction: Restriction, mode: WorkspaceMode) -> String {
    let place = if mode.is_in_place() {
        "It works in your own folder, and nothing holds it there."
    } else {
        "Its private clone keeps the work apart; it is no jail."
    };
    let restrict = match restriction {
        Restriction::Otherwise(words) => format!("      {words}"),
        Restriction::BySettings | Restriction::NotNeeded => format!(
            "      To restrict it, in towline.toml:\n        \
               [agents.{name}]\n        \
               permission = \"ask\"  # or \"deny\": what `allow` does not name is refused\n        \
               allow = [\"Edit\", \"Write\", \"Bash(git *)\"]\n        \
               deny = [\"WebFetch\"]"
        ),
    };
    format!(
        "note: `{name}` runs with permission = \"bypass\": it may do all that you may,\n      \
               without asking: run any command, read your files and keys, use the network.\n      \
               {place}\n\
         {restrict}\n      \
               (said once per project)"
    )
}
