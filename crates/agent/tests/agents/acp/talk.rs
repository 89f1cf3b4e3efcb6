//! Permissions, forms, and the operator's messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{
    Action, AgentSettings, Kind, LaunchContext, McpServer, Permission, Protocol, Steer, agent,
    tool_call as call,
};
use towline_core::{
    About, AgentEvent, Ask, Choice, Decision, End, MessageNo, Outcome, Part, Reply, ToolCall, ToolStatus,
};

use super::support::{
    HELLO, SESSION, answered, end, events, feed, fresh, give, in_turn, launch, prompt, settings, text_chunk,
    update, written,
};

fn asking(program: &str) -> AgentSettings {
    AgentSettings { permission: Permission::Ask, ..settings(program) }
}

fn options() -> Value {
    json!([{"optionId": "always", "kind": "allow_always", "name": "Always"},
           {"optionId": "once", "kind": "allow_once", "name": "Once"},
           {"optionId": "no", "kind": "reject_once", "name": "No"}])
}

fn request(id: u32, call: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission",
           "params": {"sessionId": "s", "toolCall": call, "options": options()}})
}

fn command(call: &str, command: &str) -> Value {
    json!({"toolCallId": call, "kind": "execute", "title": command, "rawInput": {"command": command}})
}

fn selected(id: u32, option: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}})
}

fn answer(protocol: &mut dyn Protocol, request: &str, reply: Reply) -> Vec<Action> {
    protocol.on_steer(Steer::Answer { request: request.into(), reply })
}

fn denied(message: &str) -> Reply {
    Reply::Denied { message: message.into() }
}

fn decisions(actions: &[Action]) -> Vec<(String, Outcome, Option<String>)> {
    let decision = |event: AgentEvent| match event {
        AgentEvent::Decided(Decision { tool, outcome, rule, .. }) => Some((tool, outcome, rule)),
        _ => None,
    };
    events(actions).into_iter().filter_map(decision).collect()
}

fn asked(actions: &[Action]) -> Vec<Ask> {
    let ask = |event: AgentEvent| match event {
        AgentEvent::Asked(ask) => Some(ask),
        _ => None,
    };
    events(actions).into_iter().filter_map(ask).collect()
}

#[test]
fn a_call_without_a_rule_waits_for_a_person_and_is_allowed_once() {
    let chosen = Reply::Chosen { answers: vec!["yes".into()] };
    for (reply, option) in [(Reply::Allowed, "once"), (denied("use cargo"), "no"), (chosen, "no")] {
        let mut protocol = in_turn(&asking("agent"));
        let actions = give(&mut *protocol, &request(7, command("t", "make all")));
        let call = call("Bash", &json!({"command": "make all"}));
        let about = About::Permission { call, title: "make all".into(), rule: "Bash(make *)".into() };
        let wanted = Ask { request: Some("7".into()), about, default: None, patience: None };
        assert_eq!((asked(&actions), written(&actions)), (vec![wanted], vec![]));
        let actions = answer(&mut *protocol, "7", reply.clone());
        assert_eq!(written(&actions), [selected(7, option)], "{reply:?}");
        assert_eq!(answer(&mut *protocol, "7", Reply::Allowed), [], "answered twice");
    }
}

#[test]
fn whoever_is_asked_sees_the_whole_command() {
    let script = "cat > x.sh <<'E'\nrm -rf /srv/me\nE\nsh x.sh";
    let mut prose = command("t", script);
    prose["title"] = "write a file".into();
    for wanted in [command("t", script), prose] {
        let mut protocol = in_turn(&asking("agent"));
        let actions = give(&mut *protocol, &request(7, wanted));
        let [Ask { about: About::Permission { title, .. }, .. }] = &asked(&actions)[..] else { panic!() };
        assert_eq!(title, script);
    }
}

#[test]
fn rules_go_before_asking_and_the_deny_list_before_all() {
    let settings = AgentSettings {
        allow: vec!["Bash(git *)".into(), "Edit(src/*)".into(), "mcp__docs".into()],
        deny: vec!["Bash(rm *)".into(), "Write(secret/*)".into()],
        mcp: [("docs".to_owned(), McpServer::program(vec!["x".into()]))].into(),
        ..asking("agent")
    };
    let edit = |paths: &[&str]| {
        let locations: Vec<_> = paths.iter().map(|path| json!({"path": path})).collect();
        json!({"toolCallId": "t", "kind": "edit", "title": "an edit", "locations": locations})
    };
    let other = |title: &str| json!({"toolCallId": "t", "kind": "other", "title": title});
    let cases = [
        (command("t", "git status"), Some(("Bash", Outcome::Allow, "Bash(git *)"))),
        (command("t", "git status; rm -r x"), Some(("Bash", Outcome::Deny, "Bash(rm *)"))),
        (command("t", "make"), None),
        // Prose in a title is no command, so a deny rule may cover it, and no pattern allows it.
        (
            json!({"toolCallId": "t", "kind": "execute", "title": "git status"}),
            Some(("Bash", Outcome::Deny, "Bash(rm *)")),
        ),
        (edit(&["/workspace/src/a.rs"]), Some(("Edit", Outcome::Allow, "Edit(src/*)"))),
        (edit(&["/workspace/src/a.rs", "/workspace/b.rs"]), None),
        (
            edit(&["/workspace/src/a.rs", "/workspace/secret/b"]),
            Some(("Edit", Outcome::Deny, "Write(secret/*)")),
        ),
        (edit(&[]), Some(("Edit", Outcome::Deny, "Write(secret/*)"))),
        (other("docs_find"), Some(("mcp__docs__find", Outcome::Allow, "mcp__docs"))),
        (other("mcp_docs_find"), Some(("mcp__docs__find", Outcome::Allow, "mcp__docs"))),
        (other("docsy"), None),
    ];
    for (call, wanted) in cases {
        let mut protocol = in_turn(&settings);
        let actions = give(&mut *protocol, &request(0, call.clone()));
        match wanted {
            Some((tool, outcome, rule)) => {
                assert_eq!(
                    decisions(&actions),
                    [(tool.to_owned(), outcome, Some(rule.to_owned()))],
                    "{call}"
                );
                let option = if outcome == Outcome::Allow { "once" } else { "no" };
                assert_eq!(written(&actions), [selected(0, option)], "{call}");
            }
            None => assert_eq!((asked(&actions).len(), written(&actions)), (1, vec![]), "{call}"),
        }
    }
}

#[test]
fn geminis_commands_are_their_titles_and_its_tools_are_in_its_ids() {
    let settings = AgentSettings {
        allow: vec!["Bash(git *)".into(), "Write".into()],
        permission: Permission::Deny,
        ..settings("gemini")
    };
    let mut protocol = super::support::protocol(&settings, &fresh());
    protocol.start();
    feed(&mut *protocol, HELLO);
    feed(
        &mut *protocol,
        &SESSION.replace(r#""sessionId":"s""#, r#""sessionId":"s","modes":{"currentModeId":"default"}"#),
    );
    let shell = json!({"toolCallId": "run_shell_command__1", "kind": "execute", "title": "git status"});
    assert_eq!(written(&give(&mut *protocol, &request(0, shell))), [selected(0, "once")]);
    let shell = json!({"toolCallId": "run_shell_command__2", "kind": "execute", "title": "make"});
    assert_eq!(written(&give(&mut *protocol, &request(1, shell))), [selected(1, "no")]);
    let write = json!({"toolCallId": "write_file__3", "kind": "edit", "title": "Writing to a",
                       "content": [{"type": "diff", "path": "/workspace/a", "newText": "x"}]});
    assert_eq!(written(&give(&mut *protocol, &request(2, write))), [selected(2, "once")]);
}

#[test]
fn only_a_call_that_a_person_permitted_is_allowed_again() {
    let permitted: [ToolCall; 1] = [call("Bash", &json!({"command": "make all"}))];
    let (session, none) = (fresh(), BTreeMap::new());
    let context = LaunchContext { permitted: &permitted, ..launch(&session, &none) };
    let mut protocol = agent(Kind::Acp).protocol(&asking("agent"), &context);
    protocol.start();
    feed(&mut *protocol, HELLO);
    feed(&mut *protocol, SESSION);
    assert_eq!(written(&give(&mut *protocol, &request(0, command("t", "make all")))), [selected(0, "once")]);
    assert_eq!(asked(&give(&mut *protocol, &request(1, command("u", "make  all")))).len(), 1);
}

#[test]
fn a_call_is_the_same_whatever_was_reported_before() {
    let calls = [false, true].map(|more| {
        let mut protocol = in_turn(&asking("agent"));
        if more {
            let raw = json!({"command": "make", "description": "build it", "cwd": "/workspace"});
            let news =
                json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "execute", "rawInput": raw});
            give(&mut *protocol, &update(news));
        }
        asked(&give(&mut *protocol, &request(0, command("t", "make")))).remove(0).about
    });
    assert_eq!(calls[0], calls[1]);
}

#[test]
fn a_denied_call_that_fails_was_denied() {
    let mut protocol = in_turn(&AgentSettings { permission: Permission::Deny, ..settings("agent") });
    let actions = give(&mut *protocol, &request(0, command("t", "make")));
    assert_eq!(decisions(&actions), [("Bash".to_owned(), Outcome::Deny, Some("Bash(make *)".to_owned()))]);
    let failed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"});
    let reported = events(&give(&mut *protocol, &update(failed)));
    assert!(
        matches!(&reported[..], [AgentEvent::Tool(tool)] if tool.status == ToolStatus::Denied),
        "{reported:?}"
    );
}

#[test]
fn an_agent_without_the_option_gets_a_cancelled_outcome() {
    let line = json!({"id": 3, "method": "session/request_permission",
                      "params": {"sessionId": "s", "toolCall": command("t", "make"), "options": []}});
    let sent = written(&give(&mut *in_turn(&settings("agent")), &line));
    assert_eq!(sent[0]["result"], json!({"outcome": {"outcome": "cancelled"}}));
}

#[test]
fn an_interrupt_cancels_pending_requests() {
    let mut protocol = in_turn(&asking("agent"));
    give(&mut *protocol, &request(7, command("t", "make")));
    let actions = protocol.on_steer(Steer::Interrupt);
    let sent = written(&actions);
    assert_eq!(sent[0]["method"], "session/cancel");
    assert_eq!(sent[1], json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "cancelled"}}}));
    assert_eq!(events(&actions), [AgentEvent::Withdrawn { request: "7".into() }]);
    assert_eq!(answer(&mut *protocol, "7", Reply::Allowed), []);
}

#[test]
fn a_request_ends_with_its_turn_with_its_call_or_when_cancelled() {
    let withdrawn = vec![AgentEvent::Withdrawn { request: "7".into() }];
    let over = update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}));
    let cancelled = json!({"method": "$/cancel_request", "params": {"requestId": 7}});
    for (line, wanted) in
        [(answered("prompt", "end_turn"), &withdrawn), (cancelled, &withdrawn), (over, &vec![])]
    {
        let mut protocol = in_turn(&asking("agent"));
        give(&mut *protocol, &request(7, command("t", "make")));
        let reported = events(&give(&mut *protocol, &line));
        let found: Vec<_> =
            reported.into_iter().filter(|event| matches!(event, AgentEvent::Withdrawn { .. })).collect();
        assert_eq!(found, *wanted, "{line}");
        assert_eq!(answer(&mut *protocol, "7", Reply::Allowed), [], "{line}");
    }
}

#[test]
fn files_and_terminals_are_refused() {
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/kill"] {
        let actions =
            give(&mut *in_turn(&settings("agent")), &json!({"id": "x", "method": method, "params": {}}));
        assert_eq!((events(&actions), written(&actions).len()), (vec![], 1), "{method}");
        assert_eq!(written(&actions)[0]["error"]["code"], -32_601, "{method}");
    }
}

fn form() -> Value {
    let properties = json!({
        "color": {"type": "string", "description": "Which color?", "oneOf": [
            {"const": "r", "title": "red"}, {"const": "g", "title": "green", "description": "like grass"}]},
        "count": {"type": "integer", "title": "How many?"},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    });
    json!({"id": 5, "method": "elicitation/create",
           "params": {"sessionId": "s", "mode": "form", "message": "Choose.",
                      "requestedSchema": {"type": "object", "properties": properties}}})
}

#[test]
fn a_form_is_a_question_with_a_part_for_each_field() {
    let mut protocol = in_turn(&settings("agent"));
    let asked = asked(&give(&mut *protocol, &form()));
    let choice =
        |label: &str, description: &str| Choice { label: label.into(), description: description.into() };
    let part = |text: &str, options: Vec<Choice>, many| Part { text: text.into(), options, many };
    let parts = vec![
        part("Choose.\nWhich color?", vec![choice("red", ""), choice("green", "like grass")], false),
        part("How many?", vec![], false),
        part("sure", vec![choice("yes", ""), choice("no", "")], false),
        part("tags", vec![choice("a", ""), choice("b", "")], true),
    ];
    assert_eq!(asked[0].about, About::Choice { parts });
    let answers = ["green", "3", "yes", "a, b"].map(str::to_owned).to_vec();
    let sent = written(&answer(&mut *protocol, "5", Reply::Chosen { answers }));
    let content = json!({"color": "g", "count": 3, "sure": true, "tags": ["a", "b"]});
    assert_eq!(sent[0]["result"], json!({"action": "accept", "content": content}));
}

#[test]
fn a_form_may_be_declined_and_other_requests_are_declined() {
    let mut protocol = in_turn(&settings("agent"));
    give(&mut *protocol, &form());
    let sent = written(&answer(&mut *protocol, "5", denied("")));
    assert_eq!(sent[0]["result"], json!({"action": "decline"}));
    let url = json!({"id": 6, "method": "elicitation/create", "params": {"mode": "url", "url": "http://x"}});
    assert_eq!(written(&give(&mut *protocol, &url))[0]["result"], json!({"action": "decline"}));
}

fn send_message(protocol: &mut dyn Protocol, number: u32, text: &str) -> Vec<Action> {
    protocol.on_steer(Steer::Tell { message: MessageNo(number), text: text.into() })
}

fn heard(number: u32) -> [AgentEvent; 2] {
    [AgentEvent::TurnStarted, AgentEvent::Heard { message: MessageNo(number) }]
}

#[test]
fn messages_wait_for_the_end_of_the_turn_and_become_the_next_prompt() {
    let mut protocol = in_turn(&settings("agent"));
    give(&mut *protocol, &text_chunk("one"));
    assert_eq!(send_message(&mut *protocol, 1, "use cargo"), []);
    assert_eq!(send_message(&mut *protocol, 2, "and be quick"), []);
    assert_eq!(send_message(&mut *protocol, 1, "use cargo"), []);
    let actions = give(&mut *protocol, &answered("prompt", "end_turn"));
    assert_eq!(written(&actions), [prompt("tell-1", "use cargo")]);
    assert!(!actions.contains(&Action::CloseStdin));
    assert_eq!(events(&give(&mut *protocol, &text_chunk("two")))[..2], heard(1));
    let actions = give(&mut *protocol, &answered("tell-1", "end_turn"));
    assert_eq!(written(&actions), [prompt("tell-2", "and be quick")]);
    // An answer alone also shows that it was heard.
    let actions = give(&mut *protocol, &answered("tell-2", "refusal"));
    assert_eq!(events(&actions)[..2], heard(2));
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    assert_eq!(send_message(&mut *protocol, 3, "too late"), []);
    assert!(matches!(end(&mut *protocol), End::Declined { .. }));
}

#[test]
fn messages_after_a_failed_turn_are_not_heard() {
    let mut protocol = in_turn(&settings("agent"));
    send_message(&mut *protocol, 1, "use cargo");
    let failed = json!({"id": "prompt", "error": {"code": 401, "message": "no"}});
    let actions = give(&mut *protocol, &failed);
    assert_eq!((written(&actions), actions.last()), (vec![], Some(&Action::CloseStdin)));

    let mut protocol = in_turn(&settings("agent"));
    give(&mut *protocol, &text_chunk("one"));
    send_message(&mut *protocol, 1, "use cargo");
    give(&mut *protocol, &answered("prompt", "end_turn"));
    let actions = give(&mut *protocol, &json!({"id": "tell-1", "error": {"code": 401, "message": "no"}}));
    assert!(!events(&actions).iter().any(|event| matches!(event, AgentEvent::Heard { .. })), "{actions:?}");
    assert!(matches!(end(&mut *protocol), End::Auth { .. }));
}

#[test]
fn reading_a_conversation_again_gives_the_same_actions() {
    let lines = [
        HELLO.to_owned(),
        SESSION.to_owned(),
        request(7, command("t", "make")).to_string(),
        text_chunk("one").to_string(),
        answered("prompt", "end_turn").to_string(),
        text_chunk("two").to_string(),
        answered("tell-1", "end_turn").to_string(),
    ];
    let mut live = super::support::protocol(&asking("agent"), &fresh());
    let mut lived = live.start();
    for (at, line) in lines.iter().enumerate() {
        lived.extend(feed(&mut *live, line));
        if at == 2 {
            lived.extend(answer(&mut *live, "7", Reply::Allowed));
            lived.extend(send_message(&mut *live, 1, "use cargo"));
        }
    }
    let mut again = super::support::protocol(&asking("agent"), &fresh());
    for sent in &lived {
        if let Action::Write(line) = sent {
            again.recall(line);
        }
    }
    let mut read = again.start();
    for line in &lines {
        read.extend(feed(&mut *again, line));
    }
    // The answer itself is the only line that is not written again.
    lived.retain(|action| !matches!(action, Action::Write(line) if line.starts_with(b"{\"id\":7")));
    assert_eq!(read, lived);
    // A repeated message is not sent twice.
    assert_eq!(send_message(&mut *again, 1, "use cargo"), []);
}
