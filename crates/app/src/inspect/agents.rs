//! The agents of the configuration: whether each is there, which version it is, whether it is signed in, what it may
//! do, and which of its frames were not understood.

use std::path::PathBuf;

use towline_agent::{AgentSettings, Permission, Restriction, Tested, agent};
use towline_api::{AgentFacts, FrameFacts, SignedIn, TestedFacts};
use towline_config::{Inspection, LayerName, ShownSetting};

use super::probe;
use super::rows::{Mark, Row, Section};
use super::sign_in;
use crate::context::Context;
use crate::error::{Action, Hint};
use crate::find::{self, MissingProgram};
use crate::mcp_file;

/// How many kinds of frames are named one by one.
const KINDS: usize = 3;

/// The facts about all agents.
pub(crate) struct AgentsFacts {
    pub(crate) agents: Vec<AgentFacts>,
    pub(crate) frames_not_understood: Vec<FrameFacts>,
}

/// Looks at every agent: those in use first, in their order. A built-in one that nobody spoke of and that is not
/// installed is not worth a word.
pub(crate) fn look(
    context: &Context,
    inspection: &Inspection,
    frames: Vec<FrameFacts>,
) -> Section<AgentsFacts> {
    let (mut agents, mut rows) = (Vec::new(), Vec::new());
    for agent in configured(inspection) {
        let standing = agent.standing;
        if standing == Standing::BuiltIn && find::agent_program(context, agent.settings).is_err() {
            continue;
        }
        let found = look_at(context, &agent);
        agents.push(found.facts);
        rows.extend(found.rows.into_iter().map(|row| Row { mark: standing.weigh(row.mark), ..row }));
        rows.extend(frames_of(agent.name, &frames).map(frames_row));
    }
    let gone = frames.iter().filter(|frames| !agents.iter().any(|agent| agent.name == frames.agent));
    rows.extend(gone.map(frames_row));
    if agents.is_empty() {
        rows.push(no_agent_row(inspection));
    }
    Section { facts: AgentsFacts { agents, frames_not_understood: frames }, rows }
}

/// Settings with an error are no agent, but they are not missing either.
fn no_agent_row(inspection: &Inspection) -> Row {
    if inspection.problems.is_empty() && !inspection.withheld.is_empty() {
        let row =
            Row::new(Mark::Problem, "agents", "no agent can be used: the repository's needs your trust");
        return row.fix(Action::Trust);
    }
    if inspection.problems.is_empty() {
        let row = Row::new(Mark::Problem, "agents", "no agent is configured");
        return row.fix("add one to `defaults.agents` in towline.toml");
    }
    let row = Row::new(Mark::Problem, "agents", "no agent can be used: the configuration has errors");
    row.fix("correct the errors that are listed under configuration")
}

/// An agent of the configuration.
pub(crate) struct Configured<'a> {
    pub(crate) name: &'a str,
    pub(crate) settings: &'a AgentSettings,
    /// How much it matters here.
    pub(crate) standing: Standing,
    /// The layer that names its file of MCP servers.
    mcp_source: Option<&'a LayerName>,
}

/// The agents that can be driven: those in use first, in the order of preference.
pub(crate) fn configured(inspection: &Inspection) -> impl Iterator<Item = Configured<'_>> {
    let config = &inspection.config;
    let in_order = config.agents_in_order.iter().map(|name| name.as_str());
    let in_use: Vec<&str> = in_order.filter(|name| config.agents.contains_key(*name)).collect();
    let others = config.agents.keys().map(String::as_str).filter(|name| !in_use.contains(name));
    let names: Vec<&str> = in_use.iter().copied().chain(others).collect();
    names.into_iter().map(move |name| {
        let standing = Standing::of(name, &in_use, inspection);
        let mcp_source = mcp_file::source_in(&inspection.settings, &mcp_file::key(name));
        Configured { name, settings: &config.agents[name], standing, mcp_source }
    })
}

/// Frames of this agent that were not understood.
pub(crate) fn frames_of<'a>(name: &str, frames: &'a [FrameFacts]) -> Option<&'a FrameFacts> {
    frames.iter().find(|frames| frames.agent == name)
}

/// How much an agent matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Goals that name no agent use it.
    InUse,
    /// The user has settings for it.
    Configured,
    /// Only the built-in defaults speak of it.
    BuiltIn,
}

impl Standing {
    fn of(name: &str, in_use: &[&str], inspection: &Inspection) -> Self {
        let prefix = format!("agents.{name}.");
        let by_user =
            |setting: &ShownSetting| setting.layer != LayerName::Defaults && setting.key.starts_with(&prefix);
        if in_use.contains(&name) {
            Self::InUse
        } else if inspection.settings.iter().any(by_user) {
            Self::Configured
        } else {
            Self::BuiltIn
        }
    }

    /// What is wrong with an agent that nothing uses by itself does not have to be fixed, and of one that nobody
    /// spoke of it is not even worth a note.
    const fn weigh(self, mark: Mark) -> Mark {
        match (self, mark) {
            (Self::Configured, Mark::Problem) => Mark::Note,
            (Self::BuiltIn, Mark::Problem | Mark::Note) => Mark::Plain,
            (_, mark) => mark,
        }
    }
}

fn grouped(agent: &str, row: Row) -> Row {
    Row { group: Some(agent.to_owned()), ..row }
}

/// Looks at one agent. How much what is wrong with it matters is for others to weigh.
pub(crate) fn look_at(context: &Context, configured: &Configured<'_>) -> Section<AgentFacts> {
    let Configured { name, settings, standing, mcp_source } = *configured;
    let kind = agent(settings.kind);
    let environment = kind.environment(settings, &context.environment);
    let program = find::agent_program(context, settings);
    let signed_in = sign_in::look(settings, &environment);
    let mut facts = AgentFacts {
        name: name.to_owned(),
        kind: settings.kind.name().to_owned(),
        in_use: standing == Standing::InUse,
        command: settings.command.clone(),
        path: program.as_ref().ok().map(|path| path.display().to_string()),
        problem: program.as_ref().err().map(ToString::to_string),
        version: None,
        tested: None,
        signed_in: signed_in.clone(),
        permission: settings.permission.name().to_owned(),
    };
    let mut rows = vec![program_row(name, settings, &program)];
    if let Ok(path) = program {
        let probed = probed_version(context, settings, path, &environment);
        rows.extend(probed.map(|probed| version_row(settings, probed, &mut facts)));
        rows.extend(sign_in_row(settings, &signed_in));
    }
    if kind.restriction() != Restriction::NotNeeded {
        let refused = if is_root() { kind.refuses_root(settings, &context.environment) } else { None };
        rows.push(refused.map_or_else(|| permission_row(name, settings), refused_row));
    }
    let servers = mcp_file::add_servers(name, &mut settings.clone(), mcp_source, &context.directory);
    let servers = servers.and_then(|()| mcp_file::must_have_variables(settings, &context.environment));
    rows.extend(
        servers
            .err()
            .map(|error| Row { fix: error.way_out(), ..Row::new(Mark::Problem, "mcp", error.message()) }),
    );
    let rows = rows.into_iter().map(|row| grouped(name, row));
    Section { facts, rows: rows.collect() }
}

fn program_row(name: &str, settings: &AgentSettings, program: &Result<PathBuf, MissingProgram>) -> Row {
    let kind = settings.kind.name();
    match program {
        Ok(path) => Row::new(Mark::Good, "program", format!("{} (kind {kind})", path.display())),
        Err(missing) => Row::new(Mark::Problem, "program", format!("{missing} (kind {kind})"))
            .fix(missing.fix(name, settings)),
    }
}

/// What the agent prints when it is asked for its version; none if it has none of its own.
fn probed_version(
    context: &Context,
    settings: &AgentSettings,
    path: PathBuf,
    environment: &std::collections::BTreeMap<String, String>,
) -> Option<Result<String, probe::Silence>> {
    let command = agent(settings.kind).version_command(settings)?;
    Some(probe::words(&path, command.get(1..).unwrap_or_default(), &context.directory, environment))
}

fn version_row(
    settings: &AgentSettings,
    probed: Result<String, probe::Silence>,
    facts: &mut AgentFacts,
) -> Row {
    let kind = agent(settings.kind);
    let tested = kind.tested(settings);
    facts.tested = tested.map(|tested| TestedFacts { versions: tested.to_string(), covers: None });
    let ask = format!("{} --version", settings.command.join(" "));
    let words = match probed {
        Ok(words) => words,
        Err(why) => {
            let text = format!("cannot be asked for its version: {why}");
            return Row::new(Mark::Problem, "version", text).fix(format!("see what is wrong: `{ask}`"));
        }
    };
    let Some(version) = kind.version(&words) else {
        let text = "its version is not understood; it may be another program";
        return Row::new(Mark::Note, "version", text).fix(format!("see what it prints: `{ask}`"));
    };
    facts.version = Some(version.to_string());
    let Some(tested) = tested else { return Row::new(Mark::Good, "version", version.to_string()) };
    let compared = tested.compare(&version);
    if let Some(facts) = &mut facts.tested {
        facts.covers = Some(compared == Tested::Within);
    }
    match compared {
        Tested::Within => Row::new(Mark::Good, "version", format!("{version}, which Towline is tested with")),
        Tested::Older => {
            let text = format!("{version} is older than what Towline is tested with ({tested})");
            Row::new(Mark::Note, "version", text).fix("update it when something is not understood")
        }
        Tested::Newer => {
            let text = format!("{version} is newer than what Towline is tested with ({tested})");
            Row::new(Mark::Note, "version", text).fix("update Towline when something is not understood")
        }
    }
}

fn sign_in_row(settings: &AgentSettings, signed_in: &SignedIn) -> Option<Row> {
    match signed_in {
        SignedIn::NotNeeded => None,
        SignedIn::Yes { by } => Some(Row::new(Mark::Good, "signed in", format!("by {by}"))),
        SignedIn::NotSeen => {
            // There it may be in the keychain, which only the agent itself may open.
            let mark = if cfg!(target_os = "macos") { Mark::Note } else { Mark::Problem };
            let row = Row::new(mark, "signed in", "not signed in, as far as can be seen");
            Some(row.fix(agent(settings.kind).sign_in_hint(settings)))
        }
    }
}

fn permission_row(name: &str, settings: &AgentSettings) -> Row {
    match settings.permission {
        Permission::Bypass => {
            let text = "bypass: it runs any command without asking; a sandbox keeps it from your files";
            let fix = match agent(settings.kind).restriction() {
                Restriction::Otherwise(how) => how.split_whitespace().collect::<Vec<_>>().join(" "),
                Restriction::BySettings | Restriction::NotNeeded => {
                    format!(
                        "if you do not want that: `permission = \"ask\"` or `\"deny\"` in [agents.{name}]"
                    )
                }
            };
            Row::new(Mark::Note, "permission", text).fix(fix)
        }
        Permission::Ask => Row::new(Mark::Good, "permission", "ask: you are asked about what no rule allows"),
        Permission::Deny => Row::new(Mark::Good, "permission", "deny: only what `allow` names"),
        Permission::Edits => Row::new(
            Mark::Good,
            "permission",
            "edits: it reads and edits in its workspace; commands only where `allow` names them",
        ),
        Permission::ReadOnly => {
            Row::new(Mark::Good, "permission", "read-only: it reads; all else only where `allow` names it")
        }
    }
}

/// The agent does not even start with these permissions.
fn refused_row(fix: &'static str) -> Row {
    Row::new(Mark::Problem, "permission", "bypass: it refuses to start as root").fix(fix)
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// That there were such frames, and where to look.
pub(crate) fn frames_row(frames: &FrameFacts) -> Row {
    let FrameFacts { agent, total, kinds, goal, attempt } = frames;
    let mut most: Vec<(&String, &u64)> = kinds.iter().collect();
    most.sort_by_key(|(what, count)| (std::cmp::Reverse(**count), *what));
    let mut named: Vec<String> =
        most.iter().take(KINDS).map(|(what, count)| format!("{what} ({count})")).collect();
    if most.len() > KINDS {
        named.push(format!("and {} more", most.len() - KINDS));
    }
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    let frames = if *total == 1 { "1 frame was".to_owned() } else { format!("{total} frames were") };
    let text = format!("{frames} not understood{named}");
    let purpose = "update Towline, and report them if that does not help; look at them";
    let fix: Hint = [(purpose, Action::RawLog(goal.clone(), *attempt))].into();
    grouped(agent, Row::new(Mark::Note, "frames", text).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_name_the_most_frequent_kinds_and_where_to_look() {
        let kinds = [("a", 1), ("b", 5), ("c", 2), ("d", 2)].map(|(kind, count)| (kind.to_owned(), count));
        let facts = FrameFacts {
            agent: "claude".to_owned(),
            total: 10,
            kinds: kinds.into(),
            goal: "1a2b".to_owned(),
            attempt: 2,
        };
        let row = frames_row(&facts);
        assert_eq!(row.text, "10 frames were not understood: b (5), c (2), d (2), and 1 more");
        let Some(Hint::Actions(fix)) = row.fix else { panic!("a fix") };
        assert_eq!(fix[0].1, Action::RawLog("1a2b".to_owned(), 2));
        let one = frames_row(&FrameFacts { total: 1, kinds: Default::default(), ..facts });
        assert_eq!(one.text, "1 frame was not understood");
    }
}
