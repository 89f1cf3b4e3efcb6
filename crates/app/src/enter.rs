//! Opening the agent's own session of a goal for a person, in the goal's workspace.
//!
//! The goal is paused first, and held while the person works: no other process can resume it. A visit that is cut off leaves
//! the goal as it was, and what the person changed in its workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use towline_agent::{AgentSettings, agent};
use towline_core::{AgentName, Event, GoalId, Phase, Sandbox, SessionId};
use towline_engine::{Engine, GOAL_VARIABLE, GoalCommand, LeaseGuard};
use towline_store::GoalRecord;

use crate::agents::{agents_of, must_be_installed, not_configured};
use crate::context::{Context, EngineInUse};
use crate::error::{Action, Error};
use crate::find::Found;
use crate::mcp_file;
use crate::steer::halt;

/// How a goal's session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCommand {
    /// The agent that holds the conversation.
    pub agent: AgentName,
    /// Its own id of the conversation.
    pub session: SessionId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The same for a person to type: without MCP servers, whose values are in the environment.
    typed: Vec<String>,
    /// The whole environment. It holds credentials, so it is never printed.
    pub environment: BTreeMap<String, String>,
    /// The goal's workspace.
    pub directory: PathBuf,
    /// Whether the conversation is in a sandbox, where no other command finds it.
    pub is_confined: bool,
    /// MCP servers of the settings that the session does not have.
    pub without_mcp: Vec<String>,
}

/// A goal that a person works on.
pub struct Visit {
    /// How its session is opened.
    pub command: SessionCommand,
    engine: EngineInUse,
    held: LeaseGuard,
}

/// The command that opens a goal's session. Changes nothing.
pub fn session_command(context: &Context, record: &GoalRecord) -> Result<SessionCommand, Error> {
    let agents = agents_of(context, &record.goal)?.agents;
    let command = planned(record, &agents, &context.environment)?;
    if let Some(settings) = agents.get(&command.agent) {
        must_be_installed(context, &command.agent, settings)?;
    }
    if !command.directory.is_dir() {
        let (goal, directory) = (record.goal.id, command.directory.display());
        return Err(Error::usage(format!("the workspace of goal {} is gone: {directory}", goal.short()))
            .hint([("see what is left of its work", Action::Diff(goal))]));
    }
    Ok(command)
}

/// The same, as far as the goal and the settings decide it.
fn planned(
    record: &GoalRecord,
    agents: &BTreeMap<AgentName, AgentSettings>,
    environment: &BTreeMap<String, String>,
) -> Result<SessionCommand, Error> {
    let (goal, state) = (&record.goal, &record.state);
    let id = goal.id.short();
    if state.phase == Phase::Done {
        return Err(Error::usage(format!("goal {id} is done, so there is nothing to take over"))
            .hint([("see what was proven", Action::Show(goal.id))]));
    }
    let workspace = state.workspace.as_ref();
    let session = state.session.as_ref().zip(workspace).filter(|(session, at)| session.directory == at.path);
    let Some((session, workspace)) = session else {
        return Err(Error::usage(format!("goal {id} has no conversation that could be opened"))
            .hint([("continue it", Action::Continue(goal.id))]));
    };
    let name = &session.agent;
    let settings = agents.get(name).ok_or_else(|| {
        Error::usage(not_configured(name)).hint(format!("add `[agents.{name}]` to towline.toml"))
    })?;
    let kind = agent(settings.kind);
    let model = state.model.as_deref().or(goal.model.as_deref());
    let interactive = |settings: &AgentSettings| kind.interactive(settings, &session.native_id, model);
    let argv = interactive(settings).ok_or_else(|| {
        let directory = &workspace.path;
        Error::usage(format!("agent `{name}` has no session of its own that a person can open"))
            .hint(format!("pause the goal, work in {directory}, then resume the goal"))
    })?;
    if kind.interactive_has_mcp() {
        mcp_file::must_have_variables(settings, environment)?;
    }
    let without_servers = AgentSettings { mcp: BTreeMap::new(), ..settings.clone() };
    let typed = interactive(&without_servers).unwrap_or_default();
    let mut environment = kind.environment(settings, environment);
    // What is left running is found by it.
    environment.insert(GOAL_VARIABLE.to_owned(), goal.id.to_string());
    let (agent, session) = (name.clone(), session.native_id.clone());
    let directory = PathBuf::from(&workspace.path);
    let without_mcp = settings.mcp.keys().filter(|_| !kind.interactive_has_mcp()).cloned().collect();
    let last = state.attempts.iter().rev().find(|attempt| attempt.started);
    let is_confined = last.is_some_and(|last| last.sandbox == Some(Sandbox::Bubblewrap));
    Ok(SessionCommand { agent, session, argv, typed, environment, directory, is_confined, without_mcp })
}

/// Pauses the goal where it is under way, waits until nothing of it runs, and holds it for a person.
pub async fn enter(context: &Context, found: Found) -> Result<Visit, Error> {
    let goal = found.record.goal.id;
    session_command(context, &found.record)?;
    if !found.record.state.phase.can_be_entered() {
        halt(context, &goal.to_string(), GoalCommand::Pause).await?;
    }
    let engine = context.engine(found.state)?;
    match hold(context, &engine, goal).await {
        Ok((held, command)) => Ok(Visit { command, engine, held }),
        Err(error) => {
            engine.close().await;
            Err(error)
        }
    }
}

async fn hold(
    context: &Context,
    engine: &Engine,
    goal: GoalId,
) -> Result<(LeaseGuard, SessionCommand), Error> {
    let mut held = engine.hold_place(goal).await?;
    match take_over(context, &mut held).await {
        Ok(command) => Ok((held, command)),
        Err(error) => {
            held.give_back().await;
            Err(error)
        }
    }
}

/// Records that a person takes over, once everything in the workspace has ended.
async fn take_over(context: &Context, held: &mut LeaseGuard) -> Result<SessionCommand, Error> {
    // The goal as it is now: it may have got another session until the pause.
    let mut command = session_command(context, &held.record)?;
    held.end_leftovers().await?;
    let agents = agents_of(context, &held.record.goal)?.agents;
    if let Some(settings) = agents.get(&command.agent) {
        let SessionCommand { argv, environment, directory, .. } = &command;
        let confined = held.confine_session(settings, argv, environment, directory).await;
        let wrapper = confined.map_err(Error::usage)?.unwrap_or_default();
        command.argv.splice(0..0, wrapper);
    }
    held.hold_unrenewed().await?;
    let (agent, session) = (command.agent.clone(), command.session.clone());
    held.note(Event::Entered { agent, session }).await?;
    Ok(command)
}

impl Visit {
    /// Ends what the session left running, records that the person left, and lets the goal go. Returns the goal's phase.
    pub async fn end(mut self, code: Option<i32>) -> Result<Phase, Error> {
        let ended = self.held.end_leftovers().await;
        let noted = self.held.note(Event::Left { code }).await;
        let given_back = self.held.end_session().await.map_err(Error::internal);
        let phase = self.held.record.state.phase.clone();
        self.held.give_back().await;
        self.engine.close().await;
        ended.and(noted)?;
        given_back.map(|()| phase)
    }
}

/// The command as a person types it in a shell.
pub fn typed(command: &SessionCommand) -> String {
    let words = command.typed.iter().map(|word| quoted(word));
    let directory = quoted(&command.directory.display().to_string());
    format!("cd {directory} && {}", words.collect::<Vec<_>>().join(" "))
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@,+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use towline_config::{Layer, LayerContent, LayerName};
    use towline_core::{Budget, Commit, Goal, GoalState, SessionBinding, WorkspaceBinding};

    use super::*;

    fn agents() -> BTreeMap<AgentName, AgentSettings> {
        let text = "agents.plain = { kind = \"command\", command = [\"aider\"] }\n\
                    [agents.unset]\nkind = \"claude\"\ncommand = [\"claude\"]\n\
                    mcp.docs = { url = \"http://x\", headers.A = \"${UNSET}\" }\n\
                    [agents.claude.mcp.docs]\nurl = \"http://x\"\nheaders.A = \"${MY_TOKEN}\"\n\
                    [agents.codex.mcp.docs]\ncommand = [\"docs\"]\n";
        let content = LayerContent::Toml(text.to_owned());
        let layer = Layer { name: LayerName::User("config.toml".into()), content };
        let config = towline_config::load(&[layer]).expect("loads").config;
        config.agents.into_iter().map(|(name, settings)| (AgentName::new(name), settings)).collect()
    }

    fn goal() -> Goal {
        serde_json::from_value(json!({
            "id": "01932f6e-7c00-7abc-8def-0123456789ab", "title": "t", "prompt": "p", "checks": [],
            "budget": Budget::default(), "agents": ["claude", "codex"], "model": "m", "protect": [],
            "workspace": {"repository": "/r", "base": "b", "setup": [], "copy": []}, "briefing": false,
            "labels": [], "metadata": {}, "origin": {"channel": "cli", "thread": null, "by": null},
            "created_at": "2030-01-01T00:00:00Z",
        }))
        .expect("a goal")
    }

    /// A goal in this phase, whose conversation is held by this agent in this directory.
    fn record(phase: Phase, session: Option<(&str, &str)>) -> GoalRecord {
        let goal = goal();
        let session = session.map(|(agent, directory)| SessionBinding {
            agent: AgentName::new(agent),
            native_id: SessionId::new("s1"),
            model: None,
            directory: directory.to_owned(),
            since: goal.created_at,
            asked_model: towline_core::ModelChoice::Unknown,
            origin: None,
        });
        let workspace = WorkspaceBinding {
            path: "/w".into(),
            branch: None,
            base: Commit::new("b"),
            setup_changes: BTreeMap::new(),
            base_tree: None,
        };
        let state = GoalState { phase, session, workspace: Some(workspace), ..GoalState::new(&goal) };
        let updated_at = goal.created_at;
        GoalRecord { goal, state, last_seq: towline_core::Seq(0), lease: None, updated_at }
    }

    fn plan(record: &GoalRecord) -> Result<SessionCommand, String> {
        let environment = BTreeMap::from([
            ("HOME".to_owned(), "/users/me".to_owned()),
            ("OPENAI_API_KEY".to_owned(), "secret".to_owned()),
            ("MY_TOKEN".to_owned(), "secret".to_owned()),
        ]);
        planned(record, &agents(), &environment).map_err(|error| error.to_string())
    }

    #[test]
    fn the_agent_that_holds_the_conversation_is_opened_whichever_comes_first_in_the_list() {
        let running = Phase::Running { attempt: towline_core::AttemptNo::FIRST };
        for phase in [running, Phase::Cancelled] {
            let command = plan(&record(phase, Some(("codex", "/w")))).expect("a command");
            assert_eq!(command.agent, AgentName::new("codex"));
            assert_eq!(command.argv[..5], ["codex", "resume", "s1", "--model", "m"]);
            assert_eq!(command.directory, PathBuf::from("/w"));
            let names: Vec<&str> = command.environment.keys().map(String::as_str).collect();
            assert_eq!(names, ["HOME", "OPENAI_API_KEY", GOAL_VARIABLE]);
            assert!(!typed(&command).contains("secret"), "{}", typed(&command));
        }
    }

    #[test]
    fn mcp_servers_that_a_session_does_not_get_are_known() {
        for (agent, without) in [("claude", &[][..]), ("codex", &["docs".to_owned()])] {
            let command = plan(&record(Phase::Queued, Some((agent, "/w")))).expect("a command");
            assert_eq!(command.without_mcp, without, "{agent}");
        }
    }

    #[test]
    fn what_cannot_be_opened_is_refused_with_the_reason() {
        let cases = [
            (Phase::Done, Some(("codex", "/w")), "is done, so there is nothing to take over"),
            (Phase::Queued, None, "has no conversation that could be opened"),
            (Phase::Queued, Some(("codex", "/elsewhere")), "has no conversation that could be opened"),
            (Phase::Queued, Some(("plain", "/w")), "has no session of its own that a person can open"),
            (Phase::Queued, Some(("gone", "/w")), "is no longer in the configuration"),
            (Phase::Queued, Some(("unset", "/w")), "needs the variable UNSET, which is not set"),
        ];
        for (phase, session, reason) in cases {
            let refused = plan(&record(phase, session)).expect_err(reason);
            assert!(refused.ends_with(reason), "{refused}");
        }
    }

    #[test]
    fn a_command_is_typed_without_servers_whose_values_only_towline_has() {
        let command = plan(&record(Phase::Queued, Some(("claude", "/w")))).expect("a command");
        assert!(command.argv.iter().any(|word| word.starts_with("--mcp-config=")), "{command:?}");
        assert!(typed(&command).contains("--resume s1") && !typed(&command).contains("mcp"), "{command:?}");
    }

    #[test]
    fn a_command_is_typed_as_a_shell_reads_it() {
        let mut command = plan(&record(Phase::Queued, Some(("codex", "/w")))).expect("a command");
        command.typed = ["codex", "--flag={\"a\": 1}", "it's", ""].map(str::to_owned).to_vec();
        assert_eq!(typed(&command), r#"cd /w && codex '--flag={"a": 1}' 'it'\''s' ''"#);
    }
}
