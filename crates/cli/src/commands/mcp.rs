//! `towline mcp`: Towline's own tools for the agent of one attempt, as an MCP server on standard input and output.
//!
//! A bridge and nothing more: each call is passed to the engine that drives the goal, with the attempt's token, and
//! answered at once. No call waits for a person: clients cut long calls off, so `ask` gives a ticket and the agent ends
//! its turn.

mod tools;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use towline_agent::jsonrpc::{Message, RpcError, RpcRequest, answer, read_for_server, refusal};
use towline_core::GoalId;
use towline_engine::{Reply, speak_for_agent};

use self::tools::Tool;
use crate::context::Context;
use crate::failure::Failure;

/// Versions of the protocol that are spoken, the newest first. They differ in nothing that is used here.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// For whom the tools speak, and to whom.
struct Bridge {
    engines: PathBuf,
    goal: GoalId,
    token: String,
}

/// Serves until standard input ends.
pub(crate) async fn run(context: &Context) -> Result<ExitCode, Failure> {
    let bridge = Bridge::of(context)?;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(answer) = bridge.answer(&line).await {
            let mut stdout = std::io::stdout().lock();
            if stdout.write_all(&answer).and_then(|()| stdout.flush()).is_err() {
                break;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Bridge {
    fn of(context: &Context) -> Result<Self, Failure> {
        let named = |name: &str| {
            context.variable(name).ok_or_else(|| {
                Failure::usage(format!("{name} is not set"))
                    .hint("agents that Towline starts are given this server; it is of no use without one")
            })
        };
        let engines = named("TOWLINE_API")?.strip_prefix("unix:").map(PathBuf::from);
        let engines =
            engines.ok_or_else(|| Failure::usage("TOWLINE_API is not of the form unix:DIRECTORY"))?;
        let goal = named("TOWLINE_GOAL")?.parse().map_err(|error| Failure::usage(format!("{error}")))?;
        Ok(Self { engines, goal, token: named("TOWLINE_TOKEN")?.to_owned() })
    }

    /// The answer to a line; none to news and answers.
    async fn answer(&self, line: &str) -> Option<Vec<u8>> {
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
            Err(wrong) => return said(&wrong, true),
        };
        match speak_for_agent(&self.engines, self.goal, &self.token, &word).await {
            Ok(Some(Reply::Accepted)) => said(tool.done(), false),
            Ok(Some(Reply::Refused { why })) => said(&format!("refused: {why}"), true),
            Ok(_) => said("nobody drives this goal at the moment; try again in a minute", true),
            Err(error) => said(&format!("Towline cannot be reached: {error}"), true),
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

/// What a tool says; a mistake of the agent's is for the agent to read, not an error of the protocol.
fn said(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}
