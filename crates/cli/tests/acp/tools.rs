//! Calls, permissions, MCP servers and cancellation.

use rustix::process::test_kill_process;
use serde_json::json;
use towline_testkit::model::{ModelServer, Reply, Rule, ToolCall};

use crate::agent::*;

/// A command of two processes that write down their numbers and do not end by themselves.
const LASTING: &str = "sh -c 'echo $$ > inner; sleep 600' & echo $$ > outer; wait";

#[test]
fn a_call_is_carried_out_and_its_result_read_in_every_format() {
    for format in FORMATS {
        let edit = json!({"path": "a.txt", "old": "one", "new": "two"});
        let rule = Rule::always()
            .reply(Reply::tools([
                ToolCall::new("read", json!({"path": "a.txt"})),
                ToolCall::new("list", json!({})),
            ]))
            .then(Reply::tool("edit", edit).with_text("I change it."))
            .then(Reply::tool("run", json!({"command": "cat a.txt; echo $SCRIPTED_KEY"})))
            .then(Reply::text("Done."));
        let server = ModelServer::start(rule);
        let place = Place::new();
        place.write("a.txt", "one\n");
        let (mut agent, session) = place.session(format, &server, &[]);
        let (news, answer) = agent.prompt(&session, "Make it two");
        assert_eq!(
            (message_text(&news).as_str(), stop_reason(&answer)),
            ("I change it.Done.", "end_turn"),
            "{format:?}"
        );
        assert_eq!(place.read("a.txt").as_deref(), Some("two\n"), "{format:?}");
        let statuses: Vec<_> = ends(&news).into_iter().map(|(status, _)| status).collect();
        assert_eq!(statuses, ["completed"; 4], "{format:?}");
        let asked = news.iter().filter(|message| message["method"] == "session/request_permission");
        let asked: Vec<_> = asked.map(|message| message["params"]["toolCall"]["kind"].clone()).collect();
        assert_eq!(asked, ["edit", "execute"], "{format:?}");
        let turns = server.turns();
        assert_eq!(turns.len(), 4, "{format:?}");
        assert_eq!(turns[1].tool_results().len(), 2, "{format:?}");
        assert!(turns[1].tool_results()[0].text.contains("one"), "{format:?}");
        // Commands do not get to see the key.
        let printed = &turns[3].tool_results()[0].text;
        assert!(printed.starts_with("two\n") && !printed.contains(KEY.1), "{format:?}: {printed}");
        let reported = server.reported_usage();
        let usage = &answer["result"]["usage"];
        let counted = ["inputTokens", "outputTokens", "cachedReadTokens"].map(|kind| usage[kind].as_u64());
        assert_eq!(
            counted,
            [Some(reported.input), Some(reported.output), Some(reported.cache_read)],
            "{format:?}"
        );
    }
}

#[test]
fn a_rejected_call_is_not_carried_out_and_the_model_learns_of_it() {
    for format in FORMATS {
        let rule = Rule::always()
            .reply(Reply::tool("write", json!({"path": "a.txt", "content": "x"})))
            .then(Reply::text("Then not."));
        let server = ModelServer::start(rule);
        let place = Place::new();
        let (mut agent, session) = place.session(format, &server, &[]);
        agent.permit = "reject_once";
        let (news, answer) = agent.prompt(&session, "Write");
        assert_eq!((stop_reason(&answer), ends(&news)[0].0.as_str()), ("end_turn", "failed"), "{format:?}");
        assert_eq!(place.read("a.txt"), None, "{format:?}");
        assert!(server.turns()[1].tool_results()[0].text.contains("not permitted"), "{format:?}");
    }
}

#[test]
fn a_cancelled_turn_leaves_nothing_running_and_the_next_one_goes_on() {
    let rule =
        Rule::always().reply(Reply::tool("run", json!({"command": LASTING}))).then(Reply::text("Going on."));
    let server = ModelServer::start(rule);
    let place = Place::new();
    let (mut agent, session) = place.session(ANY, &server, &[]);
    agent.bypass(&session);
    let id = agent.ask(&session, "Wait");
    let tree = [place.pid("outer"), place.pid("inner")];
    agent.cancel(&session);
    let (_, answer) = agent.until(id);
    assert_eq!(stop_reason(&answer), "cancelled");
    tree.into_iter().for_each(wait_gone);
    let (news, answer) = agent.prompt(&session, "Go on");
    assert_eq!((message_text(&news).as_str(), stop_reason(&answer)), ("Going on.", "end_turn"));
}

#[test]
fn a_silent_model_can_be_cancelled() {
    let server = ModelServer::start(Rule::always().reply(Reply::silence()));
    let place = Place::new();
    let (mut agent, session) = place.session(ANY, &server, &[]);
    let id = agent.ask(&session, "Speak");
    server.wait_for_turns(1, DEADLINE);
    agent.cancel(&session);
    assert_eq!(stop_reason(&agent.until(id).1), "cancelled");
}

#[test]
fn the_end_of_its_input_ends_it_and_all_that_it_started() {
    let server = ModelServer::start(Rule::always().reply(Reply::tool("run", json!({"command": LASTING}))));
    let place = Place::new();
    let (mut agent, session) = place.session(ANY, &server, &[]);
    agent.bypass(&session);
    agent.ask(&session, "Wait");
    let tree = [place.pid("outer"), place.pid("inner")];
    assert!(tree.iter().all(|pid| test_kill_process(*pid).is_ok()));
    assert_eq!(agent.end().code(), Some(0));
    tree.into_iter().for_each(wait_gone);
}

/// An MCP server with one tool, `number`.
const MCP_SERVER: &str = r#"
echo $$ > server
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"number","description":"Returns a number","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"seventeen"}]}' ;;
  esac
done
"#;

#[test]
fn tools_of_an_mcp_server_are_offered_and_called_and_it_ends_with_the_agent() {
    let rule = Rule::always()
        .reply(Reply::tool("mcp__numbers__number", json!({})))
        .then(Reply::text("It is seventeen."));
    let server = ModelServer::start(rule);
    let place = Place::new();
    let mut agent = place.agent(ANY, &server, &[]);
    let servers = json!([
        {"name": "numbers", "command": "sh", "args": ["-c", MCP_SERVER], "env": []},
        {"name": "broken", "command": "/no/such/program", "args": [], "env": []},
    ]);
    let id = agent.request("session/new", &json!({"cwd": place.work(), "mcpServers": servers}));
    let (news, answer) = agent.until(id);
    let session = answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let problems = notified(&news, "_towline/problem");
    assert!(problems[0]["message"].as_str().is_some_and(|words| words.contains("`broken`")), "{problems:?}");
    let (news, _) = agent.prompt(&session, "Which number?");
    assert_eq!(ends(&news), [("completed".to_owned(), "seventeen".to_owned())]);
    let call = &updates(&news, "tool_call")[0];
    assert_eq!((&call["title"], &call["kind"]), (&json!("mcp__numbers__number"), &json!("other")));
    let running = place.pid("server");
    assert_eq!(agent.end().code(), Some(0));
    wait_gone(running);
}
