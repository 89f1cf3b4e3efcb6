//! The servers of a session and their tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;
use towline_agent::jsonrpc::METHOD_NOT_FOUND;
use towline_provider::{Call, ToolSpec};

use super::connection::{Connection, Refusal};
use super::content;
use super::names::Names;
use crate::tools::{Described, HeadAndTail, Outcome, Reach, ToolKind, one_line};

/// The protocol version that we ask for. The parts used here are the same in all versions.
const VERSION: &str = "2025-06-18";
/// The most tools of one server.
const MOST_TOOLS: usize = 500;
/// The longest description of a tool.
const LONGEST_ABOUT: usize = 8 * 1024;

/// A server as the session names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpServer {
    /// Its name, for people and in the names of its tools.
    pub(crate) name: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
    /// Variables besides our own. Of our own it gets neither those that look like secrets nor the hidden ones.
    pub(crate) env: Vec<(String, String)>,
}

/// How long servers may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// To start and list their tools.
    pub(super) start: Duration,
    /// To answer a call.
    pub(super) call: Duration,
}

impl Limits {
    pub(crate) const USUAL: Self = Self { start: Duration::from_secs(15), call: Duration::from_secs(300) };
}

/// The servers that started. Dropping this ends them.
#[derive(Debug)]
pub(crate) struct McpServers {
    connections: Vec<Connection>,
    tools: Vec<ServerTool>,
    limits: Limits,
}

#[derive(Debug)]
struct ServerTool {
    spec: ToolSpec,
    /// The tool's name at its server.
    name: String,
    /// The index of its server.
    server: usize,
}

impl McpServers {
    /// Starts all servers at once in `directory`, without our `hidden` variables. Those that do not start are
    /// returned, with the reason.
    pub(crate) async fn start(
        servers: Vec<McpServer>,
        directory: &Path,
        hidden: &[String],
        limits: Limits,
    ) -> (Self, Vec<String>) {
        let opened =
            join_all(servers.iter().map(|server| open(server, directory, hidden, limits.start))).await;
        let mut up = Self { connections: Vec::new(), tools: Vec::new(), limits };
        let (mut problems, mut names) = (Vec::new(), Names::default());
        for (server, opened) in servers.iter().zip(opened) {
            match opened {
                Ok((connection, tools)) => up.add(connection, &tools, &mut names),
                Err(why) => problems.push(format!("MCP server `{}` is not used: {why}", server.name)),
            }
        }
        (up, problems)
    }

    /// The descriptions of the tools for models.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// What a call is about to do; `None` for an unknown tool. Any arguments are accepted. Clients match their permission
    /// rules against the title, so it is the tool's full name and nothing else.
    pub(crate) fn describe(&self, call: &Call) -> Option<Described> {
        let (connection, tool) = self.tool(&call.name)?;
        // Towline's own tools reach nothing but Towline.
        let reach =
            if connection.name == towline_agent::McpServer::TOWLINE { Reach::Looks } else { Reach::Acts };
        Some(Described { title: tool.spec.name.clone(), kind: ToolKind::Other, paths: Vec::new(), reach })
    }

    /// Makes a call.
    pub(crate) async fn run(&self, call: &Call) -> Outcome {
        let Some((connection, tool)) = self.tool(&call.name) else {
            return Outcome::failed(format!("there is no tool `{}`", one_line(&call.name, 100)));
        };
        let arguments = match &call.input {
            Value::Object(_) => call.input.clone(),
            Value::Null => json!({}),
            other => {
                let shown = one_line(&other.to_string(), 200);
                return Outcome::failed(format!(
                    "{}: the arguments are not a JSON object: {shown}",
                    call.name
                ));
            }
        };
        let request = connection.request("tools/call", json!({"name": tool.name, "arguments": arguments}));
        match timeout(self.limits.call, request).await {
            Ok(Ok(result)) => content::outcome(&result),
            Ok(Err(Refusal { why, .. })) => {
                Outcome::failed(format!("MCP server `{}`: {why}", connection.name))
            }
            Err(_) => Outcome::failed(format!(
                "MCP server `{}` did not answer within {} s{}",
                connection.name,
                self.limits.call.as_secs_f32(),
                connection.last_words()
            )),
        }
    }

    fn add(&mut self, connection: Connection, tools: &[Value], names: &mut Names) {
        let server = self.connections.len();
        for tool in tools {
            let text = |name: &str| tool.get(name).and_then(Value::as_str);
            let Some(name) = text("name") else { continue };
            let about = text("description").or(text("title"));
            let about = about.map_or_else(|| format!("{name} of {}", connection.name), str::to_owned);
            let spec = ToolSpec {
                name: names.give(&connection.name, name),
                description: HeadAndTail::of(&about, LONGEST_ABOUT),
                parameters: schema(tool.get("inputSchema")),
            };
            self.tools.push(ServerTool { spec, name: name.to_owned(), server });
        }
        self.connections.push(connection);
    }

    fn tool(&self, name: &str) -> Option<(&Connection, &ServerTool)> {
        let tool = self.tools.iter().find(|tool| tool.spec.name == name)?;
        Some((self.connections.get(tool.server)?, tool))
    }
}

/// Starts a server and asks for its tools.
async fn open(
    server: &McpServer,
    directory: &Path,
    hidden: &[String],
    limit: Duration,
) -> Result<(Connection, Vec<Value>), String> {
    let connection = Connection::start(server, directory, hidden)?;
    match timeout(limit, greet(&connection)).await {
        Ok(Ok(tools)) => Ok((connection, tools)),
        Ok(Err(refusal)) => Err(refusal.why),
        Err(_) => {
            Err(format!("it did not start within {} s{}", limit.as_secs_f32(), connection.last_words()))
        }
    }
}

async fn greet(connection: &Connection) -> Result<Vec<Value>, Refusal> {
    let hello = json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "towline", "title": "Towline", "version": env!("CARGO_PKG_VERSION")},
    });
    connection.request("initialize", hello).await?;
    connection.notify("notifications/initialized").await;
    let mut tools = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let mut page = match connection.request("tools/list", params).await {
            Ok(page) => page,
            // A server without tools need not know the method.
            Err(refusal) if refusal.code == Some(METHOD_NOT_FOUND) => return Ok(tools),
            Err(refusal) => return Err(refusal),
        };
        let before = tools.len();
        if let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) {
            tools.extend(listed);
        }
        tools.truncate(MOST_TOOLS);
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        // A page without new tools would come again for ever.
        if cursor.is_none() || tools.len() == before {
            return Ok(tools);
        }
    }
}

/// A schema of an object, as APIs require.
fn schema(given: Option<&Value>) -> Value {
    let mut schema = match given {
        Some(Value::Object(schema)) => schema.clone(),
        _ => serde_json::Map::new(),
    };
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}
