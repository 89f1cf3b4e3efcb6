//! The client against real servers: shell scripts that read lines and print answers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use towline_provider::{Call, ToolSpec};

use super::servers::{Limits, McpServer, McpServers};
use crate::test_waits::{contained, ended, reaped};
use crate::tools::{Described, Outcome, Reach, ToolKind};

/// Limits that no test reaches.
const PATIENT: Limits = Limits { start: Duration::from_secs(60), call: Duration::from_secs(60) };

/// A server whose answers are a shell `case` over the requests; `$id` is the request's id. It writes what it reads to
/// the file `heard`, and its process number to the file `pid`.
fn server(name: &str, cases: &str) -> McpServer {
    let script = format!(
        r#"echo $$ > pid.$0
reply() {{ printf '%s\n' "$1"; }}
answer() {{ reply "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}}"; }}
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard.$0
    id=${{line##*\"id\":}}; id=${{id%%[,\}}]*}}
    case $line in
    {cases}
    *'"initialize"'*) answer '{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}}}}' ;;
    *'"tools/list"'*) answer '{{"tools":[{{"name":"do it","description":"Does it.","inputSchema":{{"type":"object"}}}}]}}' ;;
    esac
done"#
    );
    let args = ["-c".to_owned(), script, name.to_owned()];
    McpServer { name: name.to_owned(), command: "sh".into(), args: args.into(), env: Vec::new() }
}

fn call(name: &str, input: Value) -> Call {
    Call { id: "1".to_owned(), name: name.to_owned(), input }
}

fn names(servers: &McpServers) -> Vec<String> {
    servers.specs().into_iter().map(|spec| spec.name).collect()
}

#[tokio::test]
async fn without_servers_there_are_no_tools_and_no_problems() {
    let (servers, problems) = McpServers::start(Vec::new(), Path::new("/"), &[], Limits::USUAL).await;
    assert_eq!((names(&servers), problems), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn tools_of_all_pages_have_names_that_apis_accept() {
    let folder = tempfile::tempdir().unwrap();
    let files = server(
        "my files",
        r#"*'"cursor":"two"'*) answer '{"tools":[{"name":"b","inputSchema":{"properties":{"x":{}}}},{"no":"name"}]}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"a.b","description":"A."}],"nextCursor":"two"}' ;;
    *'"name":"a.b"'*) answer '{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}' ;;
    *'"name":"b"'*) answer '{"content":[{"type":"text","text":"no"}],"isError":true}' ;;"#,
    );
    let (servers, problems) = McpServers::start(vec![files], folder.path(), &[], PATIENT).await;
    assert_eq!(problems, Vec::<String>::new());
    let spec = |name: &str, description: &str, parameters| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    };
    assert_eq!(
        servers.specs(),
        [
            spec("mcp__my_files__a_b", "A.", json!({"type": "object", "properties": {}})),
            spec("mcp__my_files__b", "b of my files", json!({"type": "object", "properties": {"x": {}}})),
        ]
    );
    assert_eq!(servers.run(&call("mcp__my_files__a_b", json!({"x": 1}))).await, Outcome::ok("one\ntwo"));
    assert_eq!(servers.run(&call("mcp__my_files__b", Value::Null)).await, Outcome::failed("no"));
    assert_eq!(
        servers.run(&call("mcp__my_files__b", json!("{\"x"))).await,
        Outcome::failed("mcp__my_files__b: the arguments are not a JSON object: \"{\\\"x\"")
    );
    assert_eq!(servers.run(&call("b", json!({}))).await, Outcome::failed("there is no tool `b`"));
    let read = fs::read_to_string(folder.path().join("heard.my files")).unwrap();
    let methods: Vec<Value> = read
        .lines()
        .map(|line| {
            let message: Value = serde_json::from_str(line).unwrap();
            json!([message["method"], message["params"]["cursor"], message["params"]["arguments"]])
        })
        .collect();
    assert_eq!(
        methods,
        [
            json!(["initialize", null, null]),
            json!(["notifications/initialized", null, null]),
            json!(["tools/list", null, null]),
            json!(["tools/list", "two", null]),
            json!(["tools/call", null, {"x": 1}]),
            json!(["tools/call", null, {}]),
        ]
    );
}

#[tokio::test]
async fn only_the_tools_of_towline_itself_need_no_permission() {
    let folder = tempfile::tempdir().unwrap();
    let both = vec![server("towline", ""), server("other", "")];
    let (servers, problems) = McpServers::start(both, folder.path(), &[], PATIENT).await;
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(names(&servers), ["mcp__towline__do_it", "mcp__other__do_it"]);
    let described = |name: &str, input| servers.describe(&call(name, input));
    let expected = |title: &str, reach| Described {
        title: title.to_owned(),
        kind: ToolKind::Other,
        paths: Vec::new(),
        reach,
    };
    for (name, input, reach) in [
        ("mcp__towline__do_it", json!({"a": 1}), Reach::Looks),
        ("mcp__other__do_it", json!("x"), Reach::Acts),
    ] {
        assert_eq!(described(name, input), Some(expected(name, reach)));
    }
    assert_eq!(described("none", Value::Null), None);
}

#[tokio::test]
async fn servers_that_do_not_start_are_named_and_the_others_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let missing = McpServer { command: "/nonexistent/server".into(), ..server("missing", "") };
    let dies = server("dies", r#"*'"initialize"'*) echo "no key" >&2; exit 3 ;;"#);
    let mute = server("mute", r#"*'"initialize"'*) echo "still thinking" >&2 ;;"#);
    let refuses = server(
        "refuses",
        r#"*'"initialize"'*) reply "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-1,\"message\":\"not you\"}}" ;;"#,
    );
    let toolless = server(
        "toolless",
        r#"*'"tools/list"'*) reply "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;"#,
    );
    let limits = Limits { start: Duration::from_secs(5), ..PATIENT };
    let all = vec![missing, dies, mute, refuses, toolless, server("good", "")];
    let begun = Instant::now();
    let (servers, problems) = McpServers::start(all, folder.path(), &[], limits).await;
    // All at once, not one after the other.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(
        problems,
        [
            "MCP server `missing` is not used: `/nonexistent/server` cannot be started: \
             No such file or directory (os error 2)",
            "MCP server `dies` is not used: the server has ended (exit status: 3); it last wrote: no key",
            "MCP server `mute` is not used: it did not start within 5 s; it last wrote: still thinking",
            "MCP server `refuses` is not used: not you",
        ]
    );
    assert_eq!(names(&servers), ["mcp__good__do_it"]);
    reaped(&folder.path().join("pid.mute")).await;
    reaped(&folder.path().join("pid.dies")).await;
}

#[tokio::test]
async fn a_server_that_dies_fails_the_call_and_every_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let fragile = server("fragile", r#"*'"tools/call"'*) echo "out of luck" >&2; kill -9 $$ ;;"#);
    let (servers, _) = McpServers::start(vec![fragile], folder.path(), &[], PATIENT).await;
    let expected = Outcome::failed(
        "MCP server `fragile`: the server has ended (signal: 9 (SIGKILL)); it last wrote: out of luck",
    );
    assert_eq!(servers.run(&call("mcp__fragile__do_it", json!({}))).await, expected);
    assert_eq!(servers.run(&call("mcp__fragile__do_it", json!({}))).await, expected);
    reaped(&folder.path().join("pid.fragile")).await;
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_and_the_server_is_notified() {
    let folder = tempfile::tempdir().unwrap();
    let slow = server("slow", r#"*'"tools/call"'*) ;;"#);
    let limits = Limits { call: Duration::from_millis(500), ..PATIENT };
    let (servers, _) = McpServers::start(vec![slow], folder.path(), &[], limits).await;
    let got = servers.run(&call("mcp__slow__do_it", json!({}))).await;
    assert_eq!(got, Outcome::failed("MCP server `slow` did not answer within 0.5 s"));
    contained(&folder.path().join("heard.slow"), "notifications/cancelled").await;
}

#[tokio::test]
async fn garbage_notifications_and_requests_of_a_server_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = server(
        "noisy",
        r#"*'"tools/call"'*)
        mine=$id
        reply 'Listening on port 7'; reply '{"half": '; reply '[1, 2]'; reply '7'; reply ''; printf '\377\376\n'
        reply '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
        reply '{"jsonrpc":"2.0","id":99,"result":{}}'; reply '{"jsonrpc":"2.0","id":"x","result":{}}'
        reply '{"jsonrpc":"2.0","id":"p","method":"ping"}'
        IFS= read -r line; printf '%s\n' "$line" >> heard.noisy
        reply '{"jsonrpc":"2.0","id":8,"method":"roots/list"}'
        IFS= read -r line; printf '%s\n' "$line" >> heard.noisy
        id=$mine; answer '{"content":[{"type":"text","text":"done"}]}' ;;"#,
    );
    let (servers, _) = McpServers::start(vec![noisy], folder.path(), &[], PATIENT).await;
    assert_eq!(servers.run(&call("mcp__noisy__do_it", json!({}))).await, Outcome::ok("done"));
    let read = fs::read_to_string(folder.path().join("heard.noisy")).unwrap();
    let answers: Vec<Value> =
        read.lines().rev().take(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        answers,
        [
            json!({"jsonrpc": "2.0", "id": 8,
                   "error": {"code": -32601, "message": "there is no method roots/list"}}),
            json!({"jsonrpc": "2.0", "id": "p", "result": {}}),
        ]
    );
}

#[tokio::test]
async fn a_line_without_end_fails_the_call_and_the_server_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let endless = server(
        "endless",
        r#"*'"flood":true'*) head -c 17000000 /dev/zero | tr '\0' x; echo ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"fine"}]}' ;;"#,
    );
    let (servers, _) = McpServers::start(vec![endless], folder.path(), &[], PATIENT).await;
    let got = servers.run(&call("mcp__endless__do_it", json!({"flood": true}))).await;
    assert_eq!(
        got,
        Outcome::failed(
            "MCP server `endless`: the server sent a line of more than 16777216 bytes, which was not read"
        )
    );
    assert_eq!(servers.run(&call("mcp__endless__do_it", json!({}))).await, Outcome::ok("fine"));
}

#[tokio::test]
async fn servers_get_their_variables_and_end_with_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let with_child = McpServer {
        env: vec![("MY_TOKEN".to_owned(), "given".to_owned())],
        ..server(
            "parent",
            r#"*'"initialize"'*) sh -c 'trap "" TERM; echo $$ > inner; while :; do sleep 1; done' &
        answer '{}' ;;
    *'"tools/call"'*) answer "{\"content\":[{\"type\":\"text\",\"text\":\"$MY_TOKEN\"}]}" ;;"#,
        )
    };
    let (servers, _) = McpServers::start(vec![with_child], folder.path(), &[], PATIENT).await;
    assert_eq!(servers.run(&call("mcp__parent__do_it", json!({}))).await, Outcome::ok("given"));
    contained(&folder.path().join("inner"), "\n").await;
    drop(servers);
    reaped(&folder.path().join("pid.parent")).await;
    // The server's child ends with it.
    ended(&folder.path().join("inner")).await;
}

#[tokio::test]
async fn a_server_sees_a_hidden_variable_only_by_name() {
    let shows = r#"*'"tools/call"'*) answer "{\"content\":[{\"type\":\"text\",\"text\":\"${CARGO_PKG_NAME-hidden}\"}]}" ;;"#;
    let given = McpServer { env: vec![("CARGO_PKG_NAME".into(), "given".into())], ..server("given", shows) };
    let folder = tempfile::tempdir().unwrap();
    let all = vec![server("other", shows), server("towline", shows), given];
    let hidden = ["CARGO_PKG_NAME".to_owned()];
    let (servers, _) = McpServers::start(all, folder.path(), &hidden, PATIENT).await;
    for (name, seen) in [("other", "hidden"), ("towline", "hidden"), ("given", "given")] {
        let got = servers.run(&call(&format!("mcp__{name}__do_it"), json!({}))).await;
        assert_eq!(got, Outcome::ok(seen), "{name}");
    }
}
