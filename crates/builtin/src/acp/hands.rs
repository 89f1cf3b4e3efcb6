//! The tools of a session: those of the workspace, and those of the MCP servers that the client named.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use towline_provider::{Call, ToolSpec};

use super::AcpSettings;
use super::rpc::Refusal;
use crate::mcp::{Limits, McpServer, McpServers};
use crate::tools::{Described, Outcome, OutputSink, ToolOptions, Toolbox};

/// The tools of a session. Dropping it ends all processes that they started.
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
    /// A server that is started as a program. Others are not supported.
    pub(super) fn server(self) -> Result<McpServer, Refusal> {
        let Self { name, command, args, env } = self;
        let Some(command) = command else {
            return Err(Refusal::invalid_params(format!(
                "the MCP server `{name}` is not a program; only servers with a command are supported"
            )));
        };
        let env = env.into_iter().map(|Variable { name, value }| (name, value)).collect();
        Ok(McpServer { name, command, args, env })
    }
}

impl Hands {
    /// Opens the tools of a session in `directory`. Also returns the servers that cannot be used.
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
        let (servers, problems) =
            McpServers::start(servers, directory, &options.hidden_env, Limits::USUAL).await;
        (Self { toolbox: Toolbox::new(directory, options), servers }, problems)
    }

    /// The descriptions of the tools for models.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.toolbox.specs().into_iter().chain(self.servers.specs()).collect()
    }

    /// What a call is about; `None` for an unknown tool.
    pub(super) fn describe(&self, call: &Call) -> Option<Described> {
        self.toolbox.describe(call).or_else(|| self.servers.describe(call))
    }

    /// Makes a call. `progress` receives what it prints. Dropping the future ends what it started.
    pub(super) async fn run(&self, call: &Call, progress: OutputSink<'_>) -> Outcome {
        match self.toolbox.run(call, progress).await {
            Some(outcome) => outcome,
            None => self.servers.run(call).await,
        }
    }
}
