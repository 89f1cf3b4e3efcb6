//! The MCP servers of an agent that are named in a file.

use std::collections::BTreeMap;
use std::path::Path;

use towline_agent::{AgentSettings, agent};
use towline_config::{LayerName, MCP_FILE_LIMIT, ShownSetting, read_mcp_file};

use crate::error::Error;

/// The setting that names an agent's file.
pub(crate) fn key(agent: &str) -> String {
    format!("agents.{agent}.mcp_file")
}

/// The layer that has set this.
pub(crate) fn source_in<'a>(settings: &'a [ShownSetting], key: &str) -> Option<&'a LayerName> {
    settings.iter().find(|setting| setting.key == key).map(|setting| &setting.layer)
}

/// Adds the servers of an agent's file to those that its settings name. The path is relative to the file that names it. Fails
/// also if the agent cannot be given one of its servers.
pub(crate) fn add_servers(
    name: &str,
    settings: &mut AgentSettings,
    source: Option<&LayerName>,
    directory: &Path,
) -> Result<(), Error> {
    if let Some(path) = settings.mcp_file.clone() {
        let base = match source {
            Some(LayerName::User(file) | LayerName::Repository(file)) => file.parent(),
            _ => None,
        };
        let path = base.unwrap_or(directory).join(path);
        let refused = |why: &str| {
            let path = path.display();
            Error::usage(format!("cannot use {path}, the `mcp_file` of agent `{name}`: {why}"))
        };
        let text = towline_files::read_following(&path, MCP_FILE_LIMIT);
        let text = text.map_err(|error| refused(&error.to_string()))?;
        for (server, given) in read_mcp_file(&text).map_err(|why| refused(&why))? {
            settings.mcp.entry(server).or_insert(given);
        }
        // It is not read again.
        settings.mcp_file = None;
    }
    let over_http = settings.mcp.iter().find(|(_, server)| server.url.is_some());
    let Some((server, _)) = over_http.filter(|_| !agent(settings.kind).takes_http_servers()) else {
        return Ok(());
    };
    Err(Error::usage(format!(
        "agent `{name}`: the MCP server `{server}` is reached over HTTP, and agents of the kind `{}` can only start programs",
        settings.kind.name()
    ))
    .hint("give it as a `command`, or leave it out"))
}

/// Fails if one of an agent's servers needs a variable that is not set.
pub(crate) fn must_have_variables(
    settings: &AgentSettings,
    environment: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let Some((server, name)) = settings.missing_variable(environment) else { return Ok(()) };
    let what = format!("the MCP server `{server}` needs the variable {name}, which is not set");
    Err(Error::usage(what).hint(format!("set {name}, then try again")))
}
