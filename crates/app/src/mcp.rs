//! Towline's own tools for the agent of one attempt, as an MCP server.
//!
//! A bridge and nothing more: each call is passed to the engine that drives the goal, with the attempt's token, and
//! answered at once. No call waits for a person: clients cut long calls off, so `ask` gives a ticket and the agent ends
//! its turn.

mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use towline_agent::jsonrpc::{Message, RpcError, RpcRequest, answer, read_for_server, refusal};
use towline_core::GoalId;
use towline_engine::{Engine, Reply, speak_for_agent};

use self::tools::Tool;
use crate::context::Context;
use crate::error::Error;

/// Versions of the protocol that are spoken, the newest first. They differ in nothing that is used here.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Passes the calls of one agent to the engine that runs its goal.
pub struct McpBridge {
    engines: Engines,
    goal: GoalId,
    token: String,
}

/// The way to the engines.
enum Engines {
    /// Through the sockets in this directory.
    In(PathBuf),
    /// From the process of this one, which drives most goals.
    Around(Arc<Engine>),
}

impl McpBridge {
    /// The bridge of the agent that this environment was made for.
    pub fn of(context: &Context) -> Result<Self, Error> {
        let named = |name: &str| {
            context.variable(name).ok_or_else(|| {
                Error::usage(format!("{name} is not set"))
                    .hint("agents that Towline starts are given this server; it is of no use without one")
            })
        };
        let engines = named("TOWLINE_API")?.strip_prefix("unix:").map(PathBuf::from);
        let engines = engines.ok_or_else(|| Error::usage("TOWLINE_API is not of the form unix:DIRECTORY"))?;
        let goal = named("TOWLINE_GOAL")?.parse().map_err(|error| Error::usage(format!("{error}")))?;
        Ok(Self { engines: Engines::In(engines), goal, token: named("TOWLINE_TOKEN")?.to_owned() })
    }

    /// The bridge of the agent that has shown the token of this goal's attempt.
    pub fn to(engine: Arc<Engine>, goal: GoalId, token: String) -> Self {
        Self { engines: Engines::Around(engine), goal, token }
    }

    /// The answer to a line; none to news and answers.
    pub async fn answer(&self, line: &str) -> Option<Vec<u8>> {
        let RpcRequest { id, method, params } = match read_for_server(line.as_bytes()) {
            Ok(Message::Request(request)) => request,
            Ok(_) => return None,
            Err((id, error)) => return Some(refusal(id, &error)),
        };
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        let result = match method {
            "initialize" => initialize(&params),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": Tool::ALL.map(Tool::describe) }),
            "tools/call" => match Tool::named(params["name"].as_str().unwrap_or_default()) {
                Some(tool) => self.call(tool, params["arguments"].clone()).await,
                None => {
                    let words = format!("there is no tool {}", params["name"]);
                    return Some(refusal(id, &RpcError::invalid_params(words)));
                }
            },
            method => return Some(refusal(id, &RpcError::unknown_method(method))),
        };
        Some(answer(id, result))
    }

    async fn call(&self, tool: Tool, arguments: Value) -> Value {
        let word = match tool.word(arguments) {
            Ok(word) => word,
            Err(wrong) => return reply(&wrong, true),
        };
        let replied = match &self.engines {
            Engines::In(directory) => speak_for_agent(directory, self.goal, &self.token, &word).await,
            Engines::Around(engine) => engine.speak_for_agent(self.goal, &self.token, &word).await,
        };
        match replied {
            Ok(Some(Reply::Accepted)) => reply(tool.done(), false),
            Ok(Some(Reply::Refused { why })) => reply(&format!("refused: {why}"), true),
            Ok(_) => reply("no engine is running this goal now; try again in a minute", true),
            Err(error) => reply(&format!("Towline cannot be reached: {error}"), true),
        }
    }
}

fn initialize(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "towline", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The result of a tool call. A mistake of the agent is a result that it can read, not an error of the protocol.
fn reply(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}
