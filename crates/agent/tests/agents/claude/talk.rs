//! Questions and answers, a person's permissions, and the operator's messages while the agent works.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{
    Action, AgentSettings, Kind, LaunchContext, Permission, ProcessEnd, Protocol, Steer, agent,
    tool_call as call,
};
use towline_core::{
    About, AgentEvent, Ask, Choice, Decision, End, MessageNo, Outcome, Part, Reply, ToolCall, ToolStatus,
    TurnStop,
};

use super::support::{
    attempt, events, feed, fresh, in_session, launch, message, protocol, settings, written,
};

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/workspace"}"#;
const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;

fn asking() -> AgentSettings {
    AgentSettings { permission: Permission::Ask, ..settings() }
}

fn request(id: &str, call: &str, tool: &str, input: &Value) -> String {
    let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": call});
    json!({"type": "control_request", "request_id": id, "request": request}).to_string()
}

fn cancel(id: &str) -> String {
    json!({"type": "control_cancel_request", "request_id": id}).to_string()
}

fn response(id: &str, response: Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}})
}

fn allow(id: &str, input: &Value) -> Value {
    response(id, json!({"behavior": "allow", "updatedInput": input}))
}

fn deny(id: &str, message: &str) -> Value {
    response(id, json!({"behavior": "deny", "message": message}))
}

fn answer(protocol: &mut dyn Protocol, request: &str, reply: Reply) -> Vec<Action> {
    protocol.on_steer(Steer::Answer { request: request.into(), reply })
}

fn denied(message: &str) -> Reply {
    Reply::Denied { message: message.into() }
}

fn chosen(answers: &[&str]) -> Reply {
    Reply::Chosen { answers: answers.iter().map(|&answer| answer.to_owned()).collect() }
}

fn asks_permission(request: Option<&str>, input: &Value, title: &str, rule: &str) -> AgentEvent {
    let about = About::Permission { call: call("Bash", input), title: title.into(), rule: rule.into() };
    AgentEvent::Asked(Ask { request: request.map(str::to_owned), about, default: None, patience: None })
}

fn decided(outcome: Outcome, by: &str, rule: &str) -> AgentEvent {
    AgentEvent::Decided(Decision { tool: "Bash".into(), outcome, by: by.into(), rule: Some(rule.into()) })
}

fn make() -> Value {
    json!({"command": "make all"})
}

#[test]
fn a_call_without_a_rule_waits_for_a_person_and_the_answer_is_written() {
    let cases = [
        (Reply::Allowed, allow("q1", &make())),
        (denied("use cargo"), deny("q1", "use cargo")),
        (denied(""), deny("q1", "The operator does not permit this use of Bash. Go on without it.")),
        // Only a clear yes permits something.
        (chosen(&["yes"]), deny("q1", "yes")),
    ];
    for (reply, wanted) in cases {
        let mut protocol = in_session(&asking());
        let actions = feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
        assert_eq!(actions, [Action::emit(asks_permission(Some("q1"), &make(), "make all", "Bash(make *)"))]);
        let actions = answer(&mut *protocol, "q1", reply.clone());
        assert_eq!((written(&actions), actions.len()), (vec![wanted], 1), "{reply:?}");
        assert_eq!(answer(&mut *protocol, "q1", Reply::Allowed), [], "answered twice");
    }
}

#[test]
fn rules_go_before_asking_and_the_deny_list_before_all() {
    let settings = AgentSettings {
        allow: vec!["Bash(git *)".into(), "Bash(rm *)".into()],
        deny: vec!["Bash(rm *)".into(), "AskUserQuestion".into()],
        ..asking()
    };
    let ruled = |tool: &str, input: Value| {
        let mut protocol = in_session(&settings);
        let actions = feed(&mut *protocol, &request("q1", "t1", tool, &input));
        (written(&actions).len(), events(&actions), answer(&mut *protocol, "q1", Reply::Allowed))
    };
    let allowed = decided(Outcome::Allow, "rule", "Bash(git *)");
    assert_eq!(ruled("Bash", json!({"command": "git status"})), (1, vec![allowed], vec![]));
    let forbidden = decided(Outcome::Deny, "rule", "Bash(rm *)");
    assert_eq!(ruled("Bash", json!({"command": "rm -r x"})), (1, vec![forbidden], vec![]));
    let (answers, reported, _) = ruled("AskUserQuestion", json!({"questions": [{"question": "Which?"}]}));
    assert_eq!(answers, 1);
    assert!(matches!(&reported[..], [AgentEvent::Decided(_)]), "{reported:?}");
}

fn with_permitted(settings: &AgentSettings, permitted: &[ToolCall]) -> Box<dyn Protocol> {
    let (session, none) = (fresh("s"), BTreeMap::new());
    let context = LaunchContext { permitted, ..launch(&session, &none) };
    let mut protocol = agent(Kind::Claude).protocol(settings, &context);
    protocol.start();
    feed(&mut *protocol, INIT);
    protocol
}

#[test]
fn only_a_call_that_a_person_permitted_is_allowed_again() {
    let permitted = [call("Bash", &make())];
    for permission in [Permission::Ask, Permission::Deny] {
        let mut protocol = with_permitted(&AgentSettings { permission, ..settings() }, &permitted);
        let actions = feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
        assert_eq!(written(&actions), [allow("q1", &make())]);
        assert_eq!(events(&actions), [decided(Outcome::Allow, "person", "Bash(make *)")]);
    }
    let mut protocol = with_permitted(&asking(), &permitted);
    for (tool, input) in [("Bash", json!({"command": "make  all"})), ("PowerShell", make())] {
        let reported = events(&feed(&mut *protocol, &request("q1", "t1", tool, &input)));
        assert!(matches!(&reported[..], [AgentEvent::Asked(_)]), "{reported:?}");
    }
    let strict = AgentSettings { deny: vec!["Bash(make *)".into()], ..asking() };
    let actions = feed(&mut *with_permitted(&strict, &permitted), &request("q1", "t1", "Bash", &make()));
    assert_eq!(events(&actions), [decided(Outcome::Deny, "rule", "Bash(make *)")]);
}

#[test]
fn several_requests_are_answered_in_any_order() {
    let other = json!({"command": "npm ci"});
    let mut protocol = in_session(&asking());
    feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
    feed(&mut *protocol, &request("q2", "t2", "Bash", &other));
    let text = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hm"}]}}"#;
    assert_eq!(events(&feed(&mut *protocol, text)).len(), 1);
    assert_eq!(written(&answer(&mut *protocol, "q2", Reply::Allowed)), [allow("q2", &other)]);
    assert_eq!(written(&answer(&mut *protocol, "q1", denied("no"))), [deny("q1", "no")]);
    assert_eq!(answer(&mut *protocol, "q3", Reply::Allowed), []);
}

fn two_questions() -> Value {
    json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false,
         "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
        {"question": "Which parts?", "multiSelect": true, "options": []},
    ]})
}

#[test]
fn a_person_gets_the_models_questions_in_every_mode() {
    let choice =
        |label: &str, description: &str| Choice { label: label.into(), description: description.into() };
    let options = vec![choice("Red", "warm"), choice("Blue", "")];
    let parts = vec![
        Part { text: "Which colour?".into(), options, many: false },
        Part { text: "Which parts?".into(), options: vec![], many: true },
    ];
    let ask =
        Ask { request: Some("q1".into()), about: About::Choice { parts }, default: None, patience: None };
    let mut with_answers = two_questions();
    with_answers["answers"] = json!({"Which colour?": "a dark \"green\"", "Which parts?": "Core, CLI"});
    let nobody = "The operator does not answer this. Decide yourself, go on, and state the decision and your \
                  reasons in your last message.";
    for permission in [Permission::Bypass, Permission::Ask, Permission::Deny] {
        let settings = AgentSettings { permission, allow: vec!["AskUserQuestion".into()], ..settings() };
        let asked = || {
            let mut protocol = in_session(&settings);
            let actions = feed(&mut *protocol, &request("q1", "t1", "AskUserQuestion", &two_questions()));
            assert_eq!(actions, [Action::emit(AgentEvent::Asked(ask.clone()))]);
            protocol
        };
        let answers = chosen(&["a dark \"green\"", "Core, CLI"]);
        assert_eq!(written(&answer(&mut *asked(), "q1", answers)), [allow("q1", &with_answers)]);
        assert_eq!(
            written(&answer(&mut *asked(), "q1", denied("ask me later"))),
            [deny("q1", "ask me later")]
        );
        assert_eq!(written(&answer(&mut *asked(), "q1", denied(" "))), [deny("q1", nobody)]);
    }
}

#[test]
fn a_huge_question_is_shown_in_part_and_answered_in_full() {
    let long = "ä".repeat(20_000);
    let mut input = json!({"questions": [{"question": long}]});
    let mut protocol = in_session(&settings());
    let reported = events(&feed(&mut *protocol, &request("q1", "t1", "AskUserQuestion", &input)));
    let [AgentEvent::Asked(Ask { about: About::Choice { parts }, .. })] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert_eq!(parts[0].text, "ä".repeat(16 * 1024));
    input["answers"] = json!({long.as_str(): "yes"});
    assert_eq!(written(&answer(&mut *protocol, "q1", chosen(&["yes"]))), [allow("q1", &input)]);
}

#[test]
fn a_question_that_cannot_be_read_is_refused_at_once_and_counted() {
    for input in [json!({}), json!({"questions": []}), json!({"questions": [{"header": "x"}]}), json!(null)] {
        let actions = feed(&mut *in_session(&settings()), &request("q1", "t1", "AskUserQuestion", &input));
        let [AgentEvent::Unrecognised { what, .. }, AgentEvent::Decided(decision)] = &events(&actions)[..]
        else {
            panic!("{actions:?}")
        };
        assert_eq!((what.as_str(), decision.outcome), ("control_request/AskUserQuestion", Outcome::Deny));
        assert_eq!(written(&actions)[0]["response"]["response"]["behavior"], "deny");
    }
}

const DENIALS: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok",
    "permission_denials":[{"tool_name":"Bash","tool_use_id":"t1"}]}"#;
const DENIED: &str =
    r#"{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"t1"}"#;

fn decisions(actions: &[Action]) -> usize {
    events(actions).iter().filter(|event| matches!(event, AgentEvent::Decided(_))).count()
}

#[test]
fn a_persons_denial_is_not_reported_again() {
    let mut protocol = in_session(&asking());
    feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
    answer(&mut *protocol, "q1", denied("no"));
    assert_eq!(feed(&mut *protocol, DENIED), []);
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1",
        "content":"no","is_error":true}]}}"#;
    let reported = events(&feed(&mut *protocol, &result.replace('\n', "")));
    let [AgentEvent::Tool(tool)] = &reported[..] else { panic!("{reported:?}") };
    assert_eq!(tool.status, ToolStatus::Denied);
    assert_eq!(decisions(&feed(&mut *protocol, &DENIALS.replace('\n', ""))), 0);
}

#[test]
fn a_request_that_is_cancelled_is_withdrawn_and_nobody_decided_about_it() {
    let mut protocol = in_session(&asking());
    feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
    let withdrawn = AgentEvent::Withdrawn { request: "q1".into() };
    assert_eq!(feed(&mut *protocol, &cancel("q1")), [Action::emit(withdrawn)]);
    assert_eq!(feed(&mut *protocol, &cancel("q1")), []);
    assert_eq!(answer(&mut *protocol, "q1", Reply::Allowed), []);
    assert_eq!(decisions(&feed(&mut *protocol, &DENIALS.replace('\n', ""))), 0);
}

#[test]
fn a_call_that_has_its_result_waits_for_no_answer() {
    let mut protocol = in_session(&asking());
    feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
    let result =
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#;
    let reported = events(&feed(&mut *protocol, result));
    assert!(matches!(&reported[..], [AgentEvent::Tool(_)]), "{reported:?}");
    assert_eq!(answer(&mut *protocol, "q1", Reply::Allowed), []);
    assert_eq!(feed(&mut *protocol, DONE).last(), Some(&Action::CloseStdin));
}

#[test]
fn the_input_stays_open_while_a_background_task_waits_for_an_answer() {
    for last in ["answer", "cancel"] {
        let mut protocol = in_session(&asking());
        feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
        assert!(!feed(&mut *protocol, DONE).contains(&Action::CloseStdin));
        let actions = match last {
            "answer" => answer(&mut *protocol, "q1", Reply::Allowed),
            _ => feed(&mut *protocol, &cancel("q1")),
        };
        assert_eq!(actions.len(), 2, "{actions:?}");
        assert_eq!(actions.last(), Some(&Action::CloseStdin));
    }
    let mut protocol = in_session(&asking());
    feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
    let failed = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#;
    assert_eq!(feed(&mut *protocol, failed).last(), Some(&Action::CloseStdin));
    assert_eq!(answer(&mut *protocol, "q1", Reply::Allowed), []);
}

#[test]
fn with_the_input_closed_a_question_does_not_wait() {
    let mut protocol = in_session(&asking());
    feed(&mut *protocol, DONE);
    let actions = feed(&mut *protocol, &request("q1", "t1", "Bash", &make()));
    assert_eq!(actions, [Action::emit(asks_permission(None, &make(), "make all", "Bash(make *)"))]);
    assert_eq!(answer(&mut *protocol, "q1", Reply::Allowed), []);
}

fn send_message(protocol: &mut dyn Protocol, n: u32, text: &str) -> Vec<Action> {
    protocol.on_steer(Steer::Tell { message: MessageNo(n), text: text.into() })
}

fn echo(name: &str) -> String {
    let mut line = message(name, "whatever");
    line["isReplay"] = true.into();
    line.to_string()
}

fn heard(n: u32) -> Action {
    Action::emit(AgentEvent::Heard { message: MessageNo(n) })
}

#[test]
fn messages_are_written_once_and_heard_once() {
    let mut protocol = in_session(&settings());
    assert_eq!(
        written(&send_message(&mut *protocol, 3, "mind the \"docs\"")),
        [message("tell 3", "mind the \"docs\"")]
    );
    assert_eq!(send_message(&mut *protocol, 3, "mind the \"docs\""), []);
    assert_eq!(feed(&mut *protocol, &echo("prompt")), []);
    assert_eq!(feed(&mut *protocol, &echo("tell 3")), [heard(3)]);
    assert_eq!(feed(&mut *protocol, &echo("tell 3")), []);
    let foreign =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"x"}]},"uuid":"x","isReplay":true}"#;
    assert_eq!(feed(&mut *protocol, foreign), []);
}

#[test]
fn messages_without_an_echo_are_not_heard() {
    let mut protocol = in_session(&settings());
    send_message(&mut *protocol, 1, "x");
    assert_eq!(feed(&mut *protocol, &message("tell 1", "x").to_string()), []);
}

#[test]
fn heard_messages_are_known_when_the_conversation_is_read_again() {
    let mut protocol = in_session(&settings());
    assert_eq!(feed(&mut *protocol, &echo("tell 7")), [], "it was not sent");
    protocol.recall(message("tell 7", "sent before").to_string().as_bytes());
    assert_eq!(feed(&mut *protocol, &echo("tell 7")), [heard(7)]);
    assert_eq!(send_message(&mut *protocol, 7, "sent before"), []);
}

#[test]
fn ids_differ_by_message_and_attempt() {
    let ids: std::collections::BTreeSet<_> =
        ["prompt", "compact", "tell 1", "tell 2"].into_iter().map(|name| attempt().message(name)).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn nothing_is_written_after_the_input_is_closed() {
    let mut protocol = in_session(&settings());
    feed(&mut *protocol, DONE);
    assert_eq!(send_message(&mut *protocol, 1, "too late"), []);
    let mut protocol = in_session(&settings());
    protocol.on_exit(&ProcessEnd::default());
    assert_eq!(send_message(&mut *protocol, 1, "too late"), []);
}

const FAILED: &str =
    r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":500,"result":"x"}"#;

#[test]
fn late_messages_begin_a_turn_that_decides_the_end() {
    let exit = ProcessEnd { code: Some(0), ..ProcessEnd::default() };
    let until_late_turn = || {
        let mut protocol = protocol(&settings(), &fresh("s"));
        protocol.start();
        assert_eq!(events(&feed(&mut *protocol, INIT)).last(), Some(&AgentEvent::TurnStarted));
        send_message(&mut *protocol, 1, "one");
        send_message(&mut *protocol, 2, "two");
        assert_eq!(feed(&mut *protocol, DONE).last(), Some(&Action::CloseStdin));
        assert_eq!(feed(&mut *protocol, &echo("tell 1")), [Action::emit(AgentEvent::TurnStarted), heard(1)]);
        assert_eq!(feed(&mut *protocol, INIT), []);
        assert_eq!(feed(&mut *protocol, &echo("tell 2")), [heard(2)]);
        protocol
    };
    let mut done = until_late_turn();
    let reported = events(&feed(&mut *done, DONE));
    assert!(
        matches!(&reported[..], [AgentEvent::TurnEnded(end)] if end.stop == TurnStop::Done),
        "{reported:?}"
    );
    assert_eq!(done.on_exit(&exit).1, End::Completed);
    let mut failed = until_late_turn();
    feed(&mut *failed, FAILED);
    assert!(matches!(failed.on_exit(&exit).1, End::ServerError { .. }));
    assert!(matches!(until_late_turn().on_exit(&exit).1, End::Crashed { .. }));
}
