//! The settings that open or resume a conversation: one builder for both, so that no setting is lost on a resume.
//!
//! Almost all settings go over the protocol, not on the command line, where others could read them.

use serde_json::{Map, Value, json};
use towline_core::SessionPlan;

use crate::environment::Environment;
use crate::mcp::McpServer;
use crate::permission::{Rules, Verdict};
use crate::protocol::LaunchContext;
use crate::settings::AgentSettings;

/// What a summary must contain; the requested focus follows. It replaces the agent's own instructions, which cannot
/// be extended.
const SUMMARY: &str = "Write a summary of this conversation for someone who continues the work and knows nothing \
                       else of it: what the goal is, what was decided and why, what is done, what is left, and \
                       every name, path, command and number that is needed for that. Be brief and exact.";

/// The request that opens or resumes the conversation: its method and parameters.
pub(super) fn thread(settings: &AgentSettings, context: &LaunchContext<'_>) -> (&'static str, Value) {
    let mut params = json!({
        "cwd": context.directory,
        "approvalPolicy": approval_policy(settings),
        // Otherwise a reviewer of the agent's own would decide.
        "approvalsReviewer": "user",
        "sandbox": sandbox(settings),
        "config": config(settings, context),
    });
    if let Some(model) = context.model.or(settings.model.as_deref()) {
        params["model"] = model.into();
    }
    if let Some(text) = instructions(settings) {
        params["developerInstructions"] = text.into();
    }
    match context.session {
        SessionPlan::Fresh(_) => ("thread/start", params),
        SessionPlan::Resume(id) => {
            params["threadId"] = id.to_string().into();
            // Earlier turns are not needed again.
            params["excludeTurns"] = true.into();
            ("thread/resume", params)
        }
    }
}

/// If anything may be forbidden, the agent asks about everything, because it does not know our rules.
pub(super) fn approval_policy(settings: &AgentSettings) -> &'static str {
    if settings.must_ask() { "untrusted" } else { "never" }
}

/// The workspace isolates and the rules forbid, so the sandbox is usually off. The agent reads files with commands that it
/// runs without asking; where commands are forbidden, those can write nothing.
pub(super) fn sandbox(settings: &AgentSettings) -> &'static str {
    let is_read_only = settings.permission.forbids_commands() && !settings.allows_some("Bash");
    if is_read_only { "read-only" } else { "danger-full-access" }
}

fn config(settings: &AgentSettings, context: &LaunchContext<'_>) -> Value {
    let mut config = Map::new();
    // A goal of the agent's own would make it begin unrequested turns.
    config.insert("features".to_owned(), json!({"goals": false}));
    // The provider searches without asking, so the search is on only if the rules allow it.
    let search = Rules::of(settings, &[]).ruling("WebSearch", &Value::Null, None);
    if search.verdict != Verdict::Allow {
        config.insert("web_search".to_owned(), "disabled".into());
    }
    if !settings.mcp.is_empty() {
        let names = passed_on(settings, context);
        let filled = |value: &String| settings.filled(value, context.environment);
        let servers: Map<_, _> = settings
            .mcp
            .iter()
            .map(|(name, server)| (name.clone(), mcp_server(server, &names, &filled)))
            .collect();
        config.insert("mcp_servers".to_owned(), servers.into());
    }
    if let Some(focus) = context.compact {
        config.insert("compact_prompt".to_owned(), format!("{SUMMARY}\n\n{focus}").trim_end().into());
    }
    config.into()
}

/// Names of the variables to pass on to MCP servers. The agent itself passes on almost none.
fn passed_on<'a>(settings: &'a AgentSettings, context: &'a LaunchContext<'_>) -> Vec<&'a str> {
    let names = context.towline.keys().chain(settings.env.keys()).chain(&settings.pass_env);
    let mut names: Vec<_> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn mcp_server(server: &McpServer, variables: &[&str], filled: &dyn Fn(&String) -> String) -> Value {
    let all = |values: &Environment| -> Value {
        values.iter().map(|(name, value)| (name.clone(), filled(value))).collect()
    };
    if let Some(url) = &server.url {
        return json!({"url": url, "http_headers": all(&server.headers)});
    }
    let (program, args) = server.words();
    let mut given = json!({"command": program, "args": args, "env_vars": variables});
    if !server.env.is_empty() {
        given["env"] = all(&server.env);
    }
    given
}

fn instructions(settings: &AgentSettings) -> Option<String> {
    let dirs = (!settings.dirs.is_empty())
        .then(|| format!("You may also read what is in these directories: {}.", settings.dirs.join(", ")));
    let parts: Vec<_> = settings.system_append.clone().into_iter().chain(dirs).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
