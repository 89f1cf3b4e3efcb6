//! MCP configuration files: `{"mcpServers": {"docs": {"command": "docs-mcp"}}}`, as other programs write them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use towline_agent::McpServer;

/// The largest file that is read, in bytes.
pub const MCP_FILE_LIMIT: u64 = 256 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    mcp_servers: Map<String, Value>,
}

#[derive(Deserialize)]
struct Server {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// The servers of a file. A problem names its key.
pub fn read_mcp_file(text: &[u8]) -> Result<BTreeMap<String, McpServer>, String> {
    let File { mcp_servers } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    mcp_servers.into_iter().map(|(name, server)| Ok((name.clone(), read_server(&name, server)?))).collect()
}

fn read_server(name: &str, server: Value) -> Result<McpServer, String> {
    let at = |what: &str| format!("`mcpServers.{name}` {what}");
    let Server { r#type, command, args, env, url, headers } =
        serde_json::from_value(server).map_err(|error| at(&format!("cannot be read: {error}")))?;
    if name == McpServer::TOWLINE {
        return Err(at("has the name of Towline's own server; give it another name"));
    }
    match (r#type.as_deref(), command, url) {
        (None | Some("stdio"), Some(command), None) => {
            let command = [command].into_iter().chain(args).collect();
            Ok(McpServer { command, env, ..McpServer::default() })
        }
        (None | Some("http" | "streamable-http"), None, Some(url)) => {
            check_url(&url).map_err(|why| at(&why))?;
            Ok(McpServer { url: Some(url), headers, ..McpServer::default() })
        }
        (Some(other), ..) if !matches!(other, "stdio" | "http" | "streamable-http") => {
            Err(at(&format!("has the type `{other}`; use `stdio` or `http`")))
        }
        (_, Some(_), Some(_)) => Err(at("has both a `command` and a `url`; leave one out")),
        (_, None, None) => Err(at("has neither a `command` nor a `url`; add one")),
        (_, Some(_), None) => Err(at("is of the type `http` and has a `command`; give its `url` instead")),
        (_, None, Some(_)) => Err(at("is of the type `stdio` and has a `url`; give its `command` instead")),
    }
}

/// Whether a server can be reached there.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    is_http
        .then_some(())
        .ok_or_else(|| "has a `url` that begins with neither `http://` nor `https://`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_addresses_are_read() {
        let text = r#"{"mcpServers": {
            "docs": {"command": "docs-mcp", "args": ["--all"], "env": {"A": "${B}"}},
            "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${T}"}}
        }, "other": 1}"#;
        let servers = read_mcp_file(text.as_bytes()).expect("servers");
        let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let docs = McpServer {
            command: vec!["docs-mcp".into(), "--all".into()],
            env: pair("A", "${B}"),
            ..McpServer::default()
        };
        let web = McpServer {
            url: Some("https://example.org/mcp".into()),
            headers: pair("Authorization", "Bearer ${T}"),
            ..McpServer::default()
        };
        assert_eq!(servers, BTreeMap::from([("docs".to_owned(), docs), ("web".to_owned(), web)]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key() {
        for (server, wanted) in [
            ("{}", "`mcpServers.x` has neither a `command` nor a `url`"),
            (r#"{"command": "a", "url": "http://b"}"#, "`mcpServers.x` has both"),
            (
                r#"{"type": "sse", "url": "http://b"}"#,
                "`mcpServers.x` has the type `sse`; use `stdio` or `http`",
            ),
            (
                r#"{"type": "http", "command": "a"}"#,
                "`mcpServers.x` is of the type `http` and has a `command`",
            ),
            (r#"{"url": "ftp://b"}"#, "`mcpServers.x` has a `url` that begins with neither"),
            (r#"{"command": ["a"]}"#, "`mcpServers.x` cannot be read: invalid type"),
        ] {
            let problem = read_mcp_file(format!("{{\"mcpServers\": {{\"x\": {server}}}}}").as_bytes());
            let problem = problem.expect_err(server);
            assert!(problem.starts_with(wanted), "{server}: {problem}");
        }
        let own =
            read_mcp_file(br#"{"mcpServers": {"towline": {"command": "a"}}}"#).expect_err("its own name");
        assert!(own.starts_with("`mcpServers.towline` has the name of Towline's own server"), "{own}");
        assert!(read_mcp_file(b"{}").expect_err("no servers").contains("mcpServers"));
        assert!(read_mcp_file(b"[").is_err());
    }
}
