//! MCP servers over HTTP, and with variables: how each kind hands them over, and that no value is in a command line.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{AgentSettings, Frame, Kind, LaunchContext, McpServer, agent};
use towline_core::{LaunchProblem, SessionId, SessionPlan};

use crate::support::{plain_launch, plain_settings, written};

fn pair(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

/// An agent with a program and an address, both with a value of a variable.
fn settings(kind: Kind, command: &[&str]) -> AgentSettings {
    let docs = McpServer { env: pair("KEY", "${TOKEN}"), ..McpServer::program(vec!["docs-mcp".into()]) };
    let web = McpServer {
        url: Some("https://example.org/mcp".into()),
        headers: pair("Authorization", "Bearer ${TOKEN}"),
        ..McpServer::default()
    };
    AgentSettings {
        mcp: [("docs".to_owned(), docs), ("web".to_owned(), web)].into(),
        ..plain_settings(kind, command)
    }
}

fn session() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("s"))
}

#[test]
fn claude_is_given_the_values_of_its_servers_by_variables() {
    let (session, environment) = (session(), pair("TOKEN", "planted"));
    let settings = settings(Kind::Claude, &["claude"]);
    let plan = agent(Kind::Claude).plan(&settings, &plain_launch(&session, "do it", &environment));
    let config = plan.argv.iter().find_map(|word| word.strip_prefix("--mcp-config=")).expect("servers");
    let wanted = json!({"mcpServers": {
        "docs": {"type": "stdio", "command": "docs-mcp", "args": [], "env": {"KEY": "${TOWLINE_MCP_1}"}},
        "web": {
            "type": "http",
            "url": "${TOWLINE_MCP_3}",
            "headers": {"Authorization": "${TOWLINE_MCP_2}"},
        },
    }});
    assert_eq!(serde_json::from_str::<Value>(config).expect("JSON"), wanted);
    let values = ["TOWLINE_MCP_1", "TOWLINE_MCP_2", "TOWLINE_MCP_3"].map(|name| plan.env[name].as_str());
    assert_eq!(values, ["planted", "Bearer planted", "https://example.org/mcp"]);
    let argv = plan.argv.join(" ");
    assert!(!argv.contains("planted") && !argv.contains("example.org"), "{argv}");
}

/// What is written to the agent once it has answered these lines.
fn conversation(settings: &AgentSettings, answers: &[&str]) -> Vec<Value> {
    let (session, environment) = (session(), pair("TOKEN", "planted"));
    let none = BTreeMap::new();
    let context = LaunchContext { towline: &none, ..plain_launch(&session, "do it", &environment) };
    let mut protocol = agent(settings.kind).protocol(settings, &context);
    let mut actions = protocol.start();
    for answer in answers {
        actions.extend(protocol.on_frame(Frame::Line(answer.as_bytes())));
    }
    written(&actions)
}

#[test]
fn codex_is_given_its_servers_with_the_conversation() {
    let lines = conversation(&settings(Kind::Codex, &["codex"]), &[r#"{"id":"initialize","result":{}}"#]);
    let servers = &lines.last().expect("a request")["params"]["config"]["mcp_servers"];
    let wanted = json!({
        "docs": {"command": "docs-mcp", "args": [], "env_vars": [], "env": {"KEY": "planted"}},
        "web": {"url": "https://example.org/mcp", "http_headers": {"Authorization": "Bearer planted"}},
    });
    assert_eq!(*servers, wanted);
}

#[test]
fn an_acp_agent_is_given_addresses_only_if_it_takes_them() {
    let settings = settings(Kind::Acp, &["some-agent"]);
    let hello = |http: bool| {
        let capabilities = json!({"mcpCapabilities": {"http": http}});
        let result = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
        json!({"jsonrpc": "2.0", "id": "initialize", "result": result}).to_string()
    };
    let lines = conversation(&settings, &[&hello(true)]);
    let wanted = json!([
        {"name": "docs", "command": "docs-mcp", "args": [], "env": [{"name": "KEY", "value": "planted"}]},
        {
            "type": "http",
            "name": "web",
            "url": "https://example.org/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer planted"}],
        },
    ]);
    assert_eq!(lines.last().expect("a request")["params"]["mcpServers"], wanted);
    assert_eq!(conversation(&settings, &[&hello(false)]).len(), 1, "nothing follows the first request");
}

#[test]
fn a_variable_that_is_not_set_keeps_the_agent_from_starting() {
    let (session, none) = (session(), BTreeMap::new());
    for kind in [Kind::Claude, Kind::Codex, Kind::Acp, Kind::Builtin] {
        let settings = settings(kind, &["program"]);
        let problem = agent(kind).refuses(&settings, &plain_launch(&session, "do it", &none));
        let message = "the MCP server `docs` needs the variable TOKEN, which is not set; set it, and retry";
        assert_eq!(problem, Some(LaunchProblem::Other { message: message.to_owned() }), "{kind:?}");
        let env = pair("TOKEN", "set by the agent's own settings");
        let settings = AgentSettings { env, ..settings };
        assert_eq!(agent(kind).refuses(&settings, &plain_launch(&session, "do it", &none)), None);
    }
}
