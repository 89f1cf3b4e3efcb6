//! Claude Code as a kind of agent. One builder makes the command of fresh and resumed sessions, so that no setting is lost
//! on a resume.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_core::SessionId;

use super::classify::ROOT_FIX;
use super::protocol::ClaudeProtocol;
use super::sign_in;
use crate::abilities::{self, Abilities, Ability};
use crate::environment::{Environment, Extra, environment};
use crate::mcp::McpServer;
use crate::own_files::OwnFiles;
use crate::permission::presets::{EDITING, READING};
use crate::protocol::{Agent, LaunchContext, Protocol};
use crate::settings::{AgentSettings, Permission};
use crate::sign_in::SignIn;
use crate::version::{TestedVersions, Version};

/// The conformance tests run with the oldest and with the newest.
const TESTED: TestedVersions = TestedVersions { oldest: [2, 1, 197], newest: [2, 1, 325] };

/// Tools that take the agent out of our control: into another directory, or into paid turns later on.
const RUNAWAY_TOOLS: [&str; 4] = ["EnterWorktree", "ExitWorktree", "CronCreate", "ScheduleWakeup"];

/// Tools that touch neither files nor commands: questions, its to-do list, and the search for tools of MCP servers.
const HARMLESS_TOOLS: [&str; 6] =
    ["AskUserQuestion", "ToolSearch", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// The beginning of the variables that hold headers and variables of MCP servers.
const SERVER_VALUE: &str = "TOWLINE_MCP_";

/// Variables that a Claude Code sets for its child processes. Towline may be one of them, but the agents that it
/// starts are separate sessions: these variables would make them write no transcript, replace another session, or use
/// sockets and file descriptors that they do not have.
const OUTER_SESSION: [&str; 19] = [
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SESSION_KIND",
    "CLAUDE_CODE_SESSION_NAME",
    "CLAUDE_CODE_SESSION_LOG",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_AGENT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_JOB_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_SESSION_ID",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
    "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
    "CLAUDE_CODE_WEBSOCKET_AUTH_FILE_DESCRIPTOR",
    "CLAUDE_RUNNER_ACTIVITY_FD",
];

const OUTER_SESSION_PREFIXES: [&str; 5] =
    ["CLAUDE_BG_", "CLAUDE_CODE_REMOTE", "CLAUDE_CODE_RESUME_", "CLAUDE_PLUGIN_", "CLAUDE_BRIDGE_"];

const USUAL_PROVIDER: &str = "https://api.anthropic.com";

/// With one of these, the model is reached through a cloud.
pub(super) const CLOUDS: [&str; 3] =
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

const TWO_WAY: [&str; 10] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--replay-user-messages",
    "--permission-prompt-tool",
    "stdio",
];

pub(crate) struct Claude;

impl Agent for Claude {
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
        let mut argv = settings.command.clone();
        argv.extend(TWO_WAY.map(str::to_owned));
        argv.extend(context.session_option("--session-id"));
        argv.extend(options(settings, context.model));
        argv.extend(
            settings.max_turns.iter().flat_map(|turns| ["--max-turns".to_owned(), turns.to_string()]),
        );
        argv.extend(settings.args.iter().cloned());
        argv
    }

    fn interactive_has_mcp(&self) -> bool {
        true
    }

    /// The same settings in the program's own screen.
    fn interactive(
        &self,
        settings: &AgentSettings,
        session: &SessionId,
        model: Option<&str>,
    ) -> Option<Vec<String>> {
        let mut argv = settings.command.clone();
        argv.extend(["--resume".to_owned(), session.to_string()]);
        argv.extend(options(settings, model));
        argv.extend(settings.args.iter().cloned());
        Some(argv)
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(ClaudeProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        format!("run `{}` and then `/login`, or set ANTHROPIC_API_KEY", settings.command.join(" "))
    }

    fn sign_in(&self, _settings: &AgentSettings, environment: &Environment) -> SignIn {
        SignIn::ShownBy(sign_in::clues(environment))
    }

    fn own_files(&self, _settings: &AgentSettings, environment: &Environment) -> Vec<OwnFiles> {
        sign_in::own_files(environment)
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        let is_on = |name: &str| is_on(settings.env.get(name).or_else(|| inherited.get(name)));
        let mut extra = Extra {
            names: vec!["IS_SANDBOX"],
            prefixes: vec!["ANTHROPIC_", "CLAUDE_", "DISABLE_"],
            except: OUTER_SESSION.to_vec(),
            except_prefixes: OUTER_SESSION_PREFIXES.to_vec(),
        };
        // Credentials of a whole cloud account are passed on only when the model is reached through it.
        if is_on("CLAUDE_CODE_USE_BEDROCK") {
            extra.prefixes.push("AWS_");
        }
        if is_on("CLAUDE_CODE_USE_VERTEX") {
            extra.prefixes.extend(["GOOGLE_", "VERTEX_REGION_"]);
            extra.names.push("CLOUD_ML_REGION");
        }
        let mut env = environment(settings, inherited, &extra);
        env.extend(server_values(settings, inherited));
        env
    }

    /// Unknown if a cloud is in between.
    fn provider(&self, settings: &AgentSettings, environment: &Environment) -> Option<String> {
        let env = self.environment(settings, environment);
        if CLOUDS.iter().any(|name| is_on(env.get(*name))) {
            return None;
        }
        env.get("ANTHROPIC_BASE_URL").map_or_else(|| Some(USUAL_PROVIDER.to_owned()), |url| origin(url))
    }

    /// It accepts only 1 as the value of `IS_SANDBOX`.
    fn refuses_root(&self, settings: &AgentSettings, environment: &Environment) -> Option<&'static str> {
        let env = self.environment(settings, environment);
        let is_sandbox = env.get("IS_SANDBOX").is_some_and(|value| value == "1");
        let refuses = settings.permission == Permission::Bypass
            && !is_sandbox
            && !is_on(env.get("CLAUDE_CODE_BUBBLEWRAP"));
        refuses.then_some(ROOT_FIX)
    }

    fn version_command(&self, settings: &AgentSettings) -> Option<Vec<String>> {
        Some(settings.command.iter().cloned().chain(["--version".to_owned()]).collect())
    }

    /// It prints `2.1.197 (Claude Code)`.
    fn version(&self, output: &str) -> Option<Version> {
        output.lines().find(|line| line.contains("(Claude Code)")).and_then(Version::find)
    }

    fn tested(&self, _settings: &AgentSettings) -> Option<TestedVersions> {
        Some(TESTED)
    }

    fn install_hint(&self, _settings: &AgentSettings) -> Option<&'static str> {
        Some("install Claude Code (`npm install -g @anthropic-ai/claude-code`)")
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Abilities {
            resume: abilities::resume(self.resuming(settings)),
            steering: Ability::Yes("it gets your messages during its turn, after the running tool call"),
            permissions: abilities::permissions(settings),
            questions: Ability::Yes("with `AskUserQuestion`, which waits for your answer"),
            compaction: Ability::Yes("with `/compact`, before the prompt"),
            tokens: Ability::Yes("per model, including subagents"),
            cost: Ability::Yes("in dollars, by its own count; estimated until the turn ends"),
            mcp: Ability::Yes("with `--mcp-config`"),
        }
    }
}

fn options(settings: &AgentSettings, model: Option<&str>) -> Vec<String> {
    let mut argv = settings.model_option(model);
    let mode = match settings.permission {
        Permission::Bypass => "bypassPermissions",
        // Its mode for edits runs some commands without asking.
        Permission::Ask | Permission::Deny | Permission::Edits | Permission::ReadOnly => "default",
    };
    argv.extend(["--permission-mode".to_owned(), mode.to_owned()]);
    argv.extend(offered(settings).map(|tools| format!("--tools={}", tools.join(","))));
    // These flags take any number of words. Joined with `=` they take exactly one.
    argv.extend(settings.allow.iter().map(|rule| format!("--allowedTools={rule}")));
    argv.extend(disallowed(settings).map(|rule| format!("--disallowedTools={rule}")));
    argv.extend(settings.dirs.iter().map(|dir| format!("--add-dir={dir}")));
    argv.extend((!settings.mcp.is_empty()).then(|| format!("--mcp-config={}", mcp_config(&settings.mcp))));
    argv.extend(settings.system_append.iter().map(|text| format!("--append-system-prompt={text}")));
    argv
}

/// The only built-in tools that the model gets under a preset, because the CLI runs some commands without asking, and a
/// project's own settings may allow more.
fn offered(settings: &AgentSettings) -> Option<Vec<&str>> {
    let edits: &[&str] = match settings.permission {
        Permission::Bypass | Permission::Ask | Permission::Deny => return None,
        Permission::Edits => &EDITING,
        Permission::ReadOnly => &[],
    };
    let allowed = settings.allow.iter().filter_map(|rule| rule.split('(').next());
    let allowed = allowed.filter(|tool| !tool.starts_with("mcp__"));
    let tools = READING.into_iter().chain(HARMLESS_TOOLS).chain(edits.iter().copied());
    Some(tools.chain(allowed).collect())
}

/// The settings' own list, and the runaway tools unless the settings allow them by name.
fn disallowed(settings: &AgentSettings) -> impl Iterator<Item = &str> {
    let is_allowed = |tool: &&str| settings.allows_some(tool);
    let is_denied = |tool: &&str| settings.deny.iter().any(|rule| rule == tool);
    let runaway = RUNAWAY_TOOLS.into_iter().filter(move |tool| !is_allowed(tool) && !is_denied(tool));
    settings.deny.iter().map(String::as_str).chain(runaway)
}

/// The servers, with a variable of the agent's own in the place of each value that may be secret.
fn mcp_config(servers: &BTreeMap<String, McpServer>) -> Value {
    let mut numbers = 1..;
    let mut hidden = || numbers.next().map(|number: usize| format!("${{{SERVER_VALUE}{number}}}"));
    let servers: serde_json::Map<_, _> = servers
        .iter()
        .map(|(name, server)| {
            let mut all = |values: &Environment| -> Value {
                values.keys().map(|name| (name.clone(), hidden())).collect()
            };
            let (env, headers) = (all(&server.env), all(&server.headers));
            let (program, args) = server.words();
            let mut config = match &server.url {
                // An address may hold a token.
                Some(_) => json!({"type": "http", "url": hidden(), "headers": headers}),
                None => json!({"type": "stdio", "command": program, "args": args}),
            };
            if !server.env.is_empty() {
                config["env"] = env;
            }
            // Newer versions list a server's tools to the model only after a search, in which it may never find them.
            if name == McpServer::TOWLINE {
                config["alwaysLoad"] = true.into();
            }
            (name.clone(), config)
        })
        .collect();
    json!({ "mcpServers": servers })
}

/// What the values of the servers are, in the order in which [`mcp_config`] numbers them.
fn server_values<'s>(
    settings: &'s AgentSettings,
    inherited: &'s Environment,
) -> impl Iterator<Item = (String, String)> {
    let values =
        |server: &'s McpServer| server.env.values().chain(server.headers.values()).chain(&server.url);
    let values = settings.mcp.values().flat_map(values);
    let filled = values.map(|value| settings.filled(value, inherited));
    (1..).map(|number: usize| format!("{SERVER_VALUE}{number}")).zip(filled)
}

/// Scheme, host and port. The rest may hold a key.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(format!("{scheme}://{host}"))
}

/// Whether a variable that is a switch is on.
pub(super) fn is_on(value: Option<&String>) -> bool {
    value.is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_version_is_read_from_its_own_line_alone() {
        let outputs =
            ["2.1.197 (Claude Code)\n", "update 9.9.9 is out\n2.2.0 (Claude Code)\n", "1.2.3\n", ""];
        let versions = outputs.map(|output| Claude.version(output).map(|version| version.to_string()));
        assert_eq!(versions, [Some("2.1.197".to_owned()), Some("2.2.0".to_owned()), None, None]);
    }
}
