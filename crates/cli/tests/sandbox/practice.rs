//! What people do in practice.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use serde_json::json;
use towline_testkit::agents::AgentCli;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};

use crate::support::Desk;
use crate::{desk_doing, run, run_to_done};

/// A server of MCP in one file, with one tool.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "words", "version": "1"}},
        "tools/list": {"tools": [{"name": "motto", "description": "The motto.", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "the motto is towline"}]},
    }
    result = answers.get(asked["method"])
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **({"result": result} if result else {"error": {"code": -32601, "message": "no"}})}), flush=True)
"#;

#[test]
fn an_mcp_server_in_the_users_home_serves_an_agent() {
    let command = json!({"command": "echo towline > motto.txt", "description": "write it"});
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("the motto is towline"))
            .reply(Reply::tool("Bash", command))
            .then(Reply::text("Written.")),
        Rule::always().reply(Reply::tool("mcp__words__motto", json!({}))),
    ]);
    let desk = Desk::with_version_of_claude(AgentCli::OlderClaude, &model).in_sandbox();
    let server = desk.home.path().join("servers/words.py");
    std::fs::create_dir(server.parent().expect("a folder")).expect("made");
    std::fs::write(&server, SERVER).expect("written");
    let server = server.display().to_string();
    desk.agent_settings(&format!("mcp.words = {{ command = [\"python3\", {server:?}] }}"));
    run_to_done(&desk, "grep -x towline motto.txt");
}

#[test]
fn an_agent_reaches_the_ssh_agent_only_where_the_settings_name_its_socket() {
    let ask = "import os, socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ[\"SSH_AUTH_SOCK\"])
s.sendall(b\"list\")
print(s.recv(99).decode())";
    for (read, answer) in [("[\"$SSH_AUTH_SOCK\"]", "one key"), ("[]", "")] {
        let mut desk = desk_doing(&format!("python3 -c '{ask}' > answer.txt 2>/dev/null; touch done"));
        let socket = desk.home.path().with_file_name("run").join("ssh-agent");
        let listener = UnixListener::bind(&socket).expect("a socket");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (mut stream, mut asked) = (stream, [0; 4]);
                // Whoever has gone gets no answer.
                let _ = stream.read_exact(&mut asked).and_then(|()| stream.write_all(b"one key"));
            }
        });
        desk.set("SSH_AUTH_SOCK", &socket.display().to_string());
        desk.set("TOWLINE_SET_sandbox__read", read);
        desk.agent_settings("pass_env = [\"SSH_AUTH_SOCK\"]");
        run_to_done(&desk, "test -e done");
        let report = run(&desk, "test -e done").json();
        let candidate = report["candidate"].as_str().expect("a candidate");
        assert_eq!(desk.project.git(["show", &format!("{candidate}:answer.txt")]), answer, "{read}");
    }
}

#[test]
fn a_check_without_network_has_servers_on_loopback_of_its_own() {
    let check = "import http.server, socket, threading, urllib.request
server = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
assert urllib.request.urlopen(f\"http://127.0.0.1:{server.server_port}/done\").status == 200
import sys
other = socket.socket()
assert other.connect_ex((\"127.0.0.1\", int(sys.argv[1]))) != 0";
    let outside = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = outside.local_addr().expect("an address").port();
    run_to_done(&desk_doing("touch done"), &format!("test -e done && python3 -c '{check}' {port}"));
}

#[test]
fn a_check_uses_a_local_database() {
    let check = "test -e done && sqlite3 test.db 'create table t(x); insert into t values(7);' && \
                 test \"$(sqlite3 test.db 'select x from t')\" = 7";
    run_to_done(&desk_doing("touch done"), check);
}

#[test]
fn a_check_runs_chromium_with_a_sandbox_of_its_own() {
    let check = "test -e done && printf '<title>x</title><script>document.title=6*7</script>' > page.html && \
                 chromium --headless --disable-gpu --no-sandbox --user-data-dir=\"$HOME/chromium\" --dump-dom page.html 2>/dev/null \
                 | grep '<title>42</title>' && unshare --user true";
    run_to_done(&desk_doing("touch done"), check);
}
