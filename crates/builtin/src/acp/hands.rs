//! What the model can do: the workspace's tools, and those of the MCP servers that the client named.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use towline_provider::{Call, ToolSpec};

use super::AcpSettings;
use super::rpc::Refusal;
use crate::mcp::{McpServer, McpServers};
use crate::tools::{Described, Outcome, ToolOptions, Toolbox};

/// The tools of a session. Dropping it ends what they started.
pub(super) struct Hands {
    toolbox: Toolbox,
    servers: McpServers,
}

/// An MCP server, as the client names it.
#[derive(Debug, Deserialize)]
pub(super) struct ServerParams {
    name: String,
    command: Option<PathBuf>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Variable>,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

impl ServerParams {
    /// A server that is a program: others are not offered.
    pub(super) fn server(self) -> Result<McpServer, Refusal> {
        let Self { name, command, args, env } = self;
        let Some(command) = command else {
            return Err(Refusal::invalid_params(format!(
                "the MCP server `{name}` is no program; only servers with a command can be used"
            )));
        };
        let env = env.into_iter().map(|Variable { name, value }| (name, value)).collect();
        Ok(McpServer { name, command, args, env })
    }
}

impl Hands {
    /// The tools of a session in `directory`, and which servers cannot be used.
    pub(super) async fn new(
        directory: &Path,
        settings: &AcpSettings,
        servers: Vec<McpServer>,
    ) -> (Self, Vec<String>) {
        let options = ToolOptions {
            fetch: settings.fetch,
            hidden_env: vec![settings.key_variable.clone()],
            dirs: settings.directories.clone(),
        };
        let (servers, problems) = McpServers::start(servers, directory, &options.hidden_env).await;
        (Self { toolbox: Toolbox::new(directory, options), servers }, problems)
    }

    /// The tools as models are told of them.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.toolbox.specs().into_iter().chain(self.servers.specs()).collect()
    }

    /// What a call is about; nothing for a tool that there is not.
    pub(super) fn describe(&self, call: &Call) -> Option<Described> {
        if self.toolbox.knows(&call.name) {
            return Some(self.toolbox.describe(call));
        }
        // Clients have rules about a server's tools, and know them by the title: the whole name stands there alone.
        self.servers
            .knows(&call.name)
            .then(|| Described { title: call.name.clone(), ..self.servers.describe(call) })
    }

    /// Makes a call; `progress` hears what it prints. Dropping this ends what it started.
    pub(super) async fn run(&self, call: &Call, progress: &mut (dyn FnMut(&str) + Send)) -> Outcome {
        if self.toolbox.knows(&call.name) {
            self.toolbox.run(call, progress).await
        } else {
            self.servers.run(call).await
        }
    }
}
