//! MCP servers that real agents reach over HTTP, named in the settings or in a file.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use support::Desk;
use towline_testkit::agents::AgentCli;
use towline_testkit::model::{ModelServer, Reply, Rule};

/// A server with one tool, on a port of its own. It takes only requests with its header.
struct DocsServer {
    url: String,
    calls: Arc<Mutex<Vec<String>>>,
}

const HEADER: &str = "authorization: bearer planted-token-value";

impl DocsServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("its address"));
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&calls);
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Self { url, calls }
    }

    fn methods(&self) -> Vec<String> {
        self.calls.lock().expect("calls").clone()
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, calls: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let lower: Vec<String> = head.iter().map(|line| line.to_ascii_lowercase()).collect();
        let length = lower.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let answer = match serde_json::from_slice::<Value>(&body) {
            _ if !lower.iter().any(|line| line == HEADER) => (401, Value::Null),
            Ok(request) if request["id"].is_null() => (202, Value::Null),
            Ok(request) => (200, answer(&request, calls)),
            Err(_) => (405, Value::Null),
        };
        let text = if answer.1.is_null() { String::new() } else { answer.1.to_string() };
        let status = answer.0;
        let kind = "content-type: application/json";
        let reply = format!("HTTP/1.1 {status} x\r\n{kind}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        stream.write_all(reply.as_bytes()).ok()?;
    }
}

fn answer(request: &Value, calls: &Mutex<Vec<String>>) -> Value {
    let method = request["method"].as_str().unwrap_or_default();
    calls.lock().expect("calls").push(method.to_owned());
    let result = match method {
        "initialize" => json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "docs", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "find",
            "description": "Finds a word.",
            "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
        }]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "found it"}]}),
        _ => json!({}),
    };
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// Runs a goal in which the model calls the tool, and returns what the agent asked the server for.
fn calls_of(cli: AgentCli, tool: &str, settings: impl FnOnce(&Desk, &str) -> String) -> Vec<String> {
    let server = DocsServer::start();
    let calls =
        Rule::always().reply(Reply::tool(tool, json!({"word": "towline"}))).then(Reply::text("Found."));
    let model = ModelServer::start([calls]);
    let mut desk = Desk::with_agents(&[cli], &model);
    desk.set("DOCS_TOKEN", "planted-token-value");
    let lines = settings(&desk, &server.url);
    let name = if cli == AgentCli::Codex { "codex" } else { "claude" };
    let program = cli.program().display().to_string();
    desk.configure(&format!(
        "defaults.agents = [{name:?}]\n[agents.{name}]\ncommand = [{program:?}]\n{lines}"
    ));
    let ran = desk.towline(["run", "find the word", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let log = desk.towline(["logs", &goal, "--json"]).stdout;
    assert!(!log.contains("planted-token-value"), "{log}");
    let results: Vec<_> = model.turns().iter().flat_map(|turn| turn.tool_results()).collect();
    assert!(results.iter().any(|result| result.text.contains("found it")), "{results:?}");
    server.methods()
}

fn inline(_desk: &Desk, url: &str) -> String {
    format!("mcp.docs.url = {url:?}\nmcp.docs.headers.Authorization = \"Bearer ${{DOCS_TOKEN}}\"\n")
}

fn by_file(desk: &Desk, url: &str) -> String {
    let headers = json!({"Authorization": "Bearer ${DOCS_TOKEN}"});
    let servers = json!({"mcpServers": {"docs": {"type": "http", "url": url, "headers": headers}}});
    let file = desk.home.path().join("mcp.json");
    std::fs::write(&file, servers.to_string()).expect("a file");
    format!("mcp_file = {:?}\n", file.display().to_string())
}

#[test]
fn claude_calls_a_tool_over_http_with_a_header_from_a_variable() {
    let calls = calls_of(AgentCli::Claude, "mcp__docs__find", by_file);
    assert!(calls.contains(&"tools/call".to_owned()), "{calls:?}");
}

#[test]
fn codex_calls_a_tool_over_http_with_a_header_from_a_variable() {
    let calls = calls_of(AgentCli::Codex, "mcp__docs/find", inline);
    assert!(calls.contains(&"tools/call".to_owned()), "{calls:?}");
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_key() {
    let desk = Desk::new();
    let file = desk.home.path().join("mcp.json");
    let shown = file.display().to_string();
    let configure = |kind: &str| {
        desk.configure(&format!(
            "defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"{kind}\"\nprovider = \"openai\"\nmodel = \"m\"\nmcp_file = {shown:?}\n"
        ));
        desk.towline(["run", "work", "--check", "true"])
    };
    std::fs::write(&file, r#"{"mcpServers": {"docs": {"type": "sse", "url": "http://x"}}}"#).expect("a file");
    let ran = configure("builtin");
    let wanted = format!(
        "cannot use {shown}, the `mcp_file` of agent `mine`: `mcpServers.docs` has the type `sse`; use `stdio` or `http`"
    );
    assert!(ran.code == Some(2) && ran.stderr.contains(&wanted), "{ran:?}");

    std::fs::write(&file, r#"{"mcpServers": {"docs": {"url": "http://127.0.0.1:9"}}}"#).expect("a file");
    let ran = configure("builtin");
    let wanted = "agent `mine`: the MCP server `docs` is reached over HTTP, and agents of the kind `builtin`";
    assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{ran:?}");

    std::fs::write(&file, " ".repeat(256 * 1024 + 1)).expect("a file");
    let ran = configure("builtin");
    assert!(ran.code == Some(2) && ran.stderr.contains("it is larger than 262144 bytes"), "{ran:?}");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(configure("builtin").code, Some(2));
}
