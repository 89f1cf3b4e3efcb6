//! A person's permissions, questions and answers, and the operator's messages while the agent works.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{
    Action, AgentSettings, Kind, LaunchContext, Permission, Protocol, Steer, agent, tool_call as call,
};
use towline_core::{
    About, AgentEvent, Ask, Choice, Decision, MessageNo, Outcome, Part, Reply, ToolCall, ToolStatus,
};

use super::support::{
    DONE, HELLO, STARTED, THREAD, asking, begun, events, fed, feed, fresh, in_turn, launch, news, protocol,
    settings, written,
};

fn command_request(id: u32, script: &str) -> String {
    let params = json!({"threadId": "t", "turnId": "u", "itemId": "c", "kind": "command",
        "command": format!("/bin/bash -lc '{script}'")});
    json!({"id": id, "method": "item/commandExecution/requestApproval", "params": params}).to_string()
}

fn file_item(paths: &[(&str, &str)]) -> String {
    let changes: Vec<_> =
        paths.iter().map(|(kind, path)| json!({"path": path, "kind": {"type": kind}, "diff": "x"})).collect();
    let item = json!({"type": "fileChange", "id": "f", "status": "inProgress", "changes": changes});
    news("item/started", json!({ "item": item }))
}

fn file_request(id: u32) -> String {
    let params = json!({"threadId": "t", "turnId": "u", "itemId": "f", "startedAtMs": 1});
    json!({"id": id, "method": "item/fileChange/requestApproval", "params": params}).to_string()
}

fn resolved(id: u32) -> String {
    news("serverRequest/resolved", json!({"requestId": id}))
}

fn reply(protocol: &mut dyn Protocol, request: &str, reply: Reply) -> Vec<Action> {
    protocol.on_steer(Steer::Answer { request: request.into(), reply })
}

fn denied(message: &str) -> Reply {
    Reply::Denied { message: message.into() }
}

fn answer(id: u32, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn accept(id: u32) -> Value {
    answer(id, json!({"decision": "accept"}))
}

fn decline(id: u32) -> Value {
    answer(id, json!({"decision": "decline"}))
}

fn decided(tool: &str, outcome: Outcome, by: &str, rule: &str) -> AgentEvent {
    AgentEvent::Decided(Decision { tool: tool.into(), outcome, by: by.into(), rule: Some(rule.into()) })
}

#[test]
fn a_call_without_a_rule_waits_for_a_person_and_the_answer_is_written() {
    let make = json!({"command": "make all"});
    let about = About::Permission {
        call: call("Bash", &make),
        title: "make all".into(),
        rule: "Bash(make *)".into(),
    };
    let ask = Ask { request: Some("0".into()), about, default: None, patience: None };
    let cases = [(Reply::Allowed, accept(0)), (denied(""), decline(0))];
    for (answered, wanted) in cases {
        let mut protocol = in_turn(&asking());
        let actions = feed(&mut *protocol, &command_request(0, "make all"));
        assert_eq!(actions, [Action::emit(AgentEvent::Asked(ask.clone()))]);
        assert_eq!(written(&reply(&mut *protocol, "0", answered)), [wanted]);
        assert_eq!(reply(&mut *protocol, "0", Reply::Allowed), [], "answered twice");
        assert_eq!(feed(&mut *protocol, &resolved(0)), []);
    }
}

#[test]
fn a_message_with_a_refusal_is_sent_beside_it_and_permits_nothing() {
    for answered in [denied("use cargo"), Reply::Chosen { answers: vec!["use cargo".into()] }] {
        let mut protocol = in_turn(&asking());
        feed(&mut *protocol, &command_request(0, "make all"));
        let lines = written(&reply(&mut *protocol, "0", answered));
        assert_eq!(lines[0], decline(0));
        assert_eq!(
            (lines.len(), &lines[1]["method"], &lines[1]["id"]),
            (2, &"turn/steer".into(), &"refused-0".into())
        );
        let text = &lines[1]["params"]["input"][0]["text"];
        assert_eq!(text, "The operator does not permit this use of Bash: use cargo");
    }
}

#[test]
fn rules_go_before_asking_and_the_deny_list_before_all() {
    let settings = AgentSettings {
        allow: vec!["Bash(git *)".into(), "Bash(rm *)".into()],
        deny: vec!["Bash(rm *)".into()],
        ..asking()
    };
    let ruled = |script: &str| {
        let actions = feed(&mut *in_turn(&settings), &command_request(4, script));
        (written(&actions), events(&actions))
    };
    let allowed = decided("Bash", Outcome::Allow, "rule", "Bash(git *)");
    assert_eq!(ruled("git status"), (vec![accept(4)], vec![allowed]));
    let forbidden = || decided("Bash", Outcome::Deny, "rule", "Bash(rm *)");
    assert_eq!(ruled("rm -r x"), (vec![decline(4)], vec![forbidden()]));
    assert_eq!(ruled("git status && rm -r x"), (vec![decline(4)], vec![forbidden()]));
    let (none, asked) = ruled("git status && make");
    assert!(none.is_empty() && matches!(&asked[..], [AgentEvent::Asked(_)]), "{asked:?}");
}

#[test]
fn a_command_that_cannot_be_parsed_is_denied_by_patterns_and_allowed_by_none() {
    let ruled = |allow: &str, deny: &str, permission| {
        let deny = if deny.is_empty() { vec![] } else { vec![deny.to_owned()] };
        let settings = AgentSettings { permission, allow: vec![allow.into()], deny, ..settings() };
        let line = command_request(0, "x").replace("-lc 'x'", "-lc 'open");
        events(&feed(&mut *in_turn(&settings), &line))
    };
    let deny = decided("Bash", Outcome::Deny, "rule", "Bash(rm *)");
    assert_eq!(ruled("Edit", "Bash(rm *)", Permission::Bypass), [deny]);
    assert!(matches!(&ruled("Bash(*open)", "", Permission::Ask)[..], [AgentEvent::Asked(_)]));
    let whole = decided("Bash", Outcome::Allow, "rule", "Bash");
    assert_eq!(ruled("Bash", "", Permission::Deny), [whole]);
}

#[test]
fn a_patch_is_allowed_when_all_of_its_changes_are() {
    let ruled = |allow: &[&str], deny: &[&str], paths: &[(&str, &str)]| {
        let list = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
        let mut protocol = in_turn(&AgentSettings { allow: list(allow), deny: list(deny), ..asking() });
        feed(&mut *protocol, &file_item(paths));
        let actions = feed(&mut *protocol, &file_request(0));
        (written(&actions), events(&actions))
    };
    let two = [("update", "/workspace/src/a.rs"), ("add", "/workspace/src/b.rs")];
    let allowed = decided("Edit", Outcome::Allow, "rule", "Edit(src/*)");
    assert_eq!(ruled(&["Edit(src/*)", "Write"], &[], &two), (vec![accept(0)], vec![allowed]));
    let (none, asked) = ruled(&["Edit(src/*)"], &[], &two);
    assert!(none.is_empty() && matches!(&asked[..], [AgentEvent::Asked(_)]), "{asked:?}");
    let forbidden = decided("Edit", Outcome::Deny, "rule", "Write(src/b*)");
    assert_eq!(ruled(&["Edit", "Write"], &["Write(src/b*)"], &two), (vec![decline(0)], vec![forbidden]));
    let (none, asked) = ruled(&["Edit(src/*)"], &[], &[]);
    assert!(none.is_empty() && matches!(&asked[..], [AgentEvent::Asked(_)]), "{asked:?}");
}

fn with_permitted(settings: &AgentSettings, permitted: &[ToolCall]) -> Box<dyn Protocol> {
    let (session, none) = (fresh(), BTreeMap::new());
    let context = LaunchContext { permitted, ..launch(&session, &none) };
    begun(agent(Kind::Codex).protocol(settings, &context))
}

#[test]
fn only_a_call_that_a_person_permitted_is_allowed_again() {
    let two = [("update", "/workspace/a"), ("add", "/workspace/b")];
    let mut first = in_turn(&asking());
    feed(&mut *first, &file_item(&two));
    let asked = events(&feed(&mut *first, &file_request(0)));
    let [AgentEvent::Asked(Ask { about: About::Permission { call: patch, .. }, .. })] = &asked[..] else {
        panic!("{asked:?}")
    };
    let permitted = [patch.clone(), call("Bash", &json!({"command": "make all"}))];
    let mut protocol =
        with_permitted(&AgentSettings { permission: Permission::Deny, ..settings() }, &permitted);
    feed(&mut *protocol, &file_item(&two));
    assert_eq!(written(&feed(&mut *protocol, &file_request(1))), [accept(1)]);
    let actions = feed(&mut *protocol, &command_request(2, "make all"));
    assert_eq!(events(&actions), [decided("Bash", Outcome::Allow, "person", "Bash(make *)")]);
    assert_eq!(written(&feed(&mut *protocol, &command_request(3, "make  all"))), [decline(3)]);
    feed(&mut *protocol, &file_item(&two[..1]));
    assert_eq!(written(&feed(&mut *protocol, &file_request(4))), [decline(4)]);
}

#[test]
fn a_request_that_is_open_at_the_end_of_its_turn_is_withdrawn() {
    let mut protocol = in_turn(&asking());
    feed(&mut *protocol, &command_request(0, "make"));
    let interrupted = DONE.replace("completed\"}}}", "interrupted\"}}}");
    let actions = feed(&mut *protocol, &interrupted);
    assert_eq!(events(&actions)[0], AgentEvent::Withdrawn { request: "0".into() });
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    assert_eq!(reply(&mut *protocol, "0", Reply::Allowed), []);
}

#[test]
fn a_settled_request_is_not_answered() {
    let mut protocol = in_turn(&asking());
    feed(&mut *protocol, &command_request(0, "make"));
    assert_eq!(feed(&mut *protocol, &resolved(0)), []);
    assert_eq!(reply(&mut *protocol, "0", Reply::Allowed), []);
}

#[test]
fn several_requests_are_answered_in_any_order() {
    let mut protocol = in_turn(&asking());
    fed(&mut *protocol, &[&command_request(0, "make"), &command_request(1, "npm ci")]);
    let text = news("item/completed", json!({"item": {"type": "agentMessage", "id": "m", "text": "hm"}}));
    assert_eq!(events(&feed(&mut *protocol, &text)).len(), 1);
    assert_eq!(written(&reply(&mut *protocol, "1", Reply::Allowed)), [accept(1)]);
    assert_eq!(written(&reply(&mut *protocol, "0", denied(""))), [decline(0)]);
    assert_eq!(reply(&mut *protocol, "7", Reply::Allowed), []);
}

#[test]
fn a_subagent_that_asks_keeps_the_input_open_after_the_turn() {
    let mut protocol = in_turn(&asking());
    feed(&mut *protocol, &STARTED.replace("\"t\"", "\"sub\""));
    feed(&mut *protocol, &command_request(0, "make").replace("\"t\"", "\"sub\""));
    assert!(!feed(&mut *protocol, DONE).contains(&Action::CloseStdin));
    assert_eq!(written(&reply(&mut *protocol, "0", Reply::Allowed)), [accept(0)]);
    let over = DONE.replace("\"t\"", "\"sub\"");
    assert_eq!(feed(&mut *protocol, &over), [Action::CloseStdin]);
}

#[test]
fn tools_of_mcp_servers_go_by_the_name_that_rules_use() {
    let item = json!({"type": "mcpToolCall", "id": "c", "server": "docs", "tool": "find", "status": "inProgress",
        "arguments": {"query": "x"}});
    let params = json!({"threadId": "t", "turnId": "u", "serverName": "docs", "mode": "form", "message": "Allow?",
        "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"query": "x"}}});
    let request = json!({"id": 3, "method": "mcpServer/elicitation/request", "params": params}).to_string();
    let ruled = |deny: &str| {
        let mut protocol = in_turn(&AgentSettings { deny: vec![deny.into()], ..settings() });
        feed(&mut *protocol, &news("item/started", json!({ "item": item })));
        feed(&mut *protocol, &request)
    };
    let actions = ruled("mcp__docs");
    assert_eq!(written(&actions), [answer(3, json!({"action": "decline"}))]);
    assert_eq!(events(&actions), [decided("mcp__docs__find", Outcome::Deny, "rule", "mcp__docs")]);
    let allowed = ruled("mcp__other");
    assert_eq!(written(&allowed), [answer(3, json!({"action": "accept", "content": {}}))]);
    // If a server asks for anything else, there is nothing to show a person.
    let form = request.replace("mcp_tool_call", "something_else");
    let actions = feed(&mut *in_turn(&settings()), &form);
    assert_eq!(written(&actions), [answer(3, json!({"action": "decline"}))]);
    assert!(matches!(&events(&actions)[..], [AgentEvent::Notice { .. }]));
}

#[test]
fn a_person_gets_the_models_questions_in_every_mode() {
    let questions = json!([
        {"id": "colour", "header": "Colour", "question": "Which colour?",
         "options": [{"label": "Red", "description": "warm"}]},
        {"id": "name", "header": "Name", "question": "Which name?", "options": null},
    ]);
    let params =
        json!({"threadId": "t", "turnId": "u", "itemId": "q", "isBlocking": true, "questions": questions});
    let request = json!({"id": 0, "method": "item/tool/requestUserInput", "params": params}).to_string();
    let options = vec![Choice { label: "Red".into(), description: "warm".into() }];
    let parts = vec![
        Part { text: "Which colour?".into(), options, many: false },
        Part { text: "Which name?".into(), options: vec![], many: false },
    ];
    let ask =
        Ask { request: Some("0".into()), about: About::Choice { parts }, default: None, patience: None };
    let nobody = "The operator does not answer this. Decide yourself, go on, and state the decision and your reasons \
                  in your last message.";
    let both = |one: &str, two: &str| {
        answer(0, json!({"answers": {"colour": {"answers": [one]}, "name": {"answers": [two]}}}))
    };
    for permission in [Permission::Bypass, Permission::Ask, Permission::Deny] {
        let asked = || {
            let mut protocol = in_turn(&AgentSettings { permission, ..settings() });
            let actions = feed(&mut *protocol, &request);
            assert_eq!(actions, [Action::emit(AgentEvent::Asked(ask.clone()))]);
            protocol
        };
        let chosen = Reply::Chosen { answers: vec!["Red".into(), "x".into()] };
        assert_eq!(written(&reply(&mut *asked(), "0", chosen)), [both("Red", "x")]);
        assert_eq!(written(&reply(&mut *asked(), "0", denied("later"))), [both("later", "later")]);
        assert_eq!(written(&reply(&mut *asked(), "0", denied(" "))), [both(nobody, nobody)]);
    }
}

fn send_message(protocol: &mut dyn Protocol, n: u32, text: &str) -> Vec<Action> {
    protocol.on_steer(Steer::Tell { message: MessageNo(n), text: text.into() })
}

fn echo(id: &str) -> String {
    news("item/started", json!({"item": {"type": "userMessage", "id": "x", "clientId": id, "content": []}}))
}

fn sent_message(n: u32, text: &str) -> Value {
    let id = format!("tell-{n}");
    let input = json!([{"type": "text", "text": text, "text_elements": []}]);
    let params = json!({"threadId": "t", "expectedTurnId": "u", "clientUserMessageId": id, "input": input});
    json!({"jsonrpc": "2.0", "id": id, "method": "turn/steer", "params": params})
}

#[test]
fn messages_are_written_once_and_heard_once() {
    let mut protocol = in_turn(&settings());
    assert_eq!(
        written(&send_message(&mut *protocol, 3, "mind the \"docs\"")),
        [sent_message(3, "mind the \"docs\"")]
    );
    assert_eq!(send_message(&mut *protocol, 3, "mind the \"docs\""), []);
    assert_eq!(feed(&mut *protocol, r#"{"id":"tell-3","result":{"turnId":"u"}}"#), []);
    assert_eq!(feed(&mut *protocol, &echo("prompt")), []);
    let heard = Action::emit(AgentEvent::Heard { message: MessageNo(3) });
    assert_eq!(feed(&mut *protocol, &echo("tell-3")), [heard]);
    assert_eq!(feed(&mut *protocol, &echo("tell-3").replace("started", "completed")), []);
    assert_eq!(feed(&mut *protocol, &echo("tell-x")), []);
}

#[test]
fn messages_that_are_refused_or_too_late_are_not_heard() {
    let mut protocol = in_turn(&settings());
    send_message(&mut *protocol, 1, "x");
    let refused = r#"{"id":"tell-1","error":{"code":-32600,"message":"no active turn to steer"}}"#;
    assert_eq!(feed(&mut *protocol, refused), []);
    feed(&mut *protocol, DONE);
    assert_eq!(send_message(&mut *protocol, 2, "x"), []);
}

#[test]
fn messages_wait_for_the_turn_to_begin() {
    let mut protocol = protocol(&settings(), &fresh());
    protocol.start();
    assert_eq!(send_message(&mut *protocol, 1, "a"), []);
    fed(&mut *protocol, &[HELLO, THREAD]);
    assert_eq!(send_message(&mut *protocol, 2, "b"), []);
    assert_eq!(written(&feed(&mut *protocol, STARTED)), [sent_message(1, "a"), sent_message(2, "b")]);
}

#[test]
fn an_interrupt_has_its_own_id_and_without_a_turn_the_input_is_closed() {
    let mut protocol = in_turn(&settings());
    for n in 1..=2 {
        let params = json!({"threadId": "t", "turnId": "u"});
        let id = format!("interrupt-{n}");
        let wanted = json!({"jsonrpc": "2.0", "id": id, "method": "turn/interrupt", "params": params});
        assert_eq!(written(&protocol.on_steer(Steer::Interrupt)), [wanted]);
    }
    let mut early = super::support::protocol(&settings(), &fresh());
    early.start();
    assert_eq!(early.on_steer(Steer::Interrupt), [Action::CloseStdin]);
    assert_eq!(early.on_steer(Steer::Interrupt), []);
}

#[test]
fn running_calls_are_cancelled_when_the_turn_is_interrupted() {
    let mut protocol = in_turn(&settings());
    let item = json!({"type": "commandExecution", "id": "c", "status": "inProgress", "command": "/bin/sh -c 'sleep 9'"});
    feed(&mut *protocol, &news("item/started", json!({ "item": item })));
    let reported = events(&feed(&mut *protocol, &DONE.replace("completed\"}}}", "interrupted\"}}}")));
    let [AgentEvent::Tool(tool), AgentEvent::TurnEnded(_)] = &reported[..] else { panic!("{reported:?}") };
    assert_eq!((tool.status, tool.title.as_str()), (ToolStatus::Cancelled, "sleep 9"));
}
