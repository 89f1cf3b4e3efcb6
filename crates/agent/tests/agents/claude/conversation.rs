//! What is written and reported at each point of a conversation.

use serde_json::{Value, json};
use towline_agent::{Action, AgentSettings, Permission, ProcessEnd, Protocol, Steer};
use towline_core::{AgentEvent, Decision, End, Outcome, SessionId, SessionStarted, TurnStop};

use super::support::{PROMPT, events, feed, fresh, in_session, message, protocol, resume, settings, written};

fn init(session: &str) -> String {
    json!({"type": "system", "subtype": "init", "session_id": session, "model": "m", "claude_code_version": "2"})
        .to_string()
}

fn started(session: &str, resumed: bool) -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: SessionId::new(session),
        resumed,
        model: Some("m".into()),
        agent_version: Some("2".into()),
    })
}

fn notice(text: &str) -> AgentEvent {
    AgentEvent::Notice { text: text.into() }
}

fn permission_request(tool: &str, input: Value) -> String {
    let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t1"});
    json!({"type": "control_request", "request_id": "q1", "request": request}).to_string()
}

fn answer(response: Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": "q1", "response": response}})
}

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;

#[test]
fn the_prompt_follows_the_greeting_and_the_input_stays_open() {
    let actions = protocol(&settings(), &fresh("s")).start();
    let greeting = json!({"type": "control_request", "request_id": "towline-initialize",
                          "request": {"subtype": "initialize", "hooks": null, "forwardSubagentText": true}});
    assert_eq!(written(&actions), [greeting, message("prompt", PROMPT)]);
    assert_eq!(actions.len(), 2);
}

#[test]
fn only_the_first_init_starts_the_session_and_each_prompt_is_one_turn() {
    let mut protocol = protocol(&settings(), &fresh("s"));
    protocol.start();
    assert_eq!(events(&feed(&mut *protocol, &init("s"))), [started("s", false), AgentEvent::TurnStarted]);
    assert_eq!(events(&feed(&mut *protocol, &init("s"))), []);
}

#[test]
fn a_session_is_resumed_when_the_id_asked_for_comes_back() {
    let begin = |id: &str| {
        let mut protocol = protocol(&settings(), &resume("s"));
        protocol.start();
        events(&feed(&mut *protocol, &init(id)))
    };
    assert_eq!(begin("s"), [started("s", true), AgentEvent::TurnStarted]);
    let instead = notice("the agent did not resume session s: it started session other instead");
    assert_eq!(begin("other"), [started("other", false), instead, AgentEvent::TurnStarted]);
}

#[test]
fn a_later_change_of_the_session_is_reported() {
    let mut protocol = in_session(&settings());
    assert_eq!(events(&feed(&mut *protocol, &init("other"))), [started("other", false)]);
}

#[test]
fn an_mcp_server_that_does_not_start_is_reported() {
    let line = r#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":
        [{"name":"docs","status":"failed"},{"name":"db","status":"connected"}]}"#
        .replace('\n', "");
    let mut protocol = protocol(&settings(), &fresh("s"));
    let reported = events(&feed(&mut *protocol, &line));
    assert!(reported.contains(&notice("the MCP server `docs` could not be started")), "{reported:?}");
    assert_eq!(reported.len(), 2);
}

#[test]
fn a_permission_request_is_answered_by_rule_at_once() {
    let strict = AgentSettings {
        permission: Permission::Deny,
        allow: vec!["Bash(git *)".into()],
        deny: vec!["Bash(git push *)".into()],
        ..settings()
    };
    let deny = json!({"behavior": "deny", "message":
        "Bash is not permitted here in this way, and nobody can be asked. Go on without it."});
    let cases = [
        (&strict, "git status", None, Outcome::Allow, "Bash(git *)"),
        (&strict, "git push --force", Some(&deny), Outcome::Deny, "Bash(git push *)"),
        (&strict, "make", Some(&deny), Outcome::Deny, "Bash(make *)"),
        (&settings(), "make", None, Outcome::Allow, "permission = \"bypass\""),
    ];
    for (settings, command, refusal, outcome, rule) in cases {
        let input = json!({"command": command});
        let actions = feed(&mut *in_session(settings), &permission_request("Bash", input.clone()));
        let allow = json!({"behavior": "allow", "updatedInput": input});
        assert_eq!(written(&actions), [answer(refusal.unwrap_or(&allow).clone())], "{command}");
        let decision = Decision { tool: "Bash".into(), outcome, by: "rule".into(), rule: Some(rule.into()) };
        assert_eq!(events(&actions), [AgentEvent::Decided(decision)], "{command}");
    }
}

#[test]
fn an_unknown_request_is_answered_with_an_error_and_counted() {
    let line = r#"{"type":"control_request","request_id":"q9","request":{"subtype":"elicitation"}}"#;
    let actions = feed(&mut *in_session(&settings()), line);
    let response =
        json!({"subtype": "error", "request_id": "q9", "error": "Towline does not answer elicitation"});
    assert_eq!(written(&actions), [json!({"type": "control_response", "response": response})]);
    let [AgentEvent::Unrecognised { what, .. }] = &events(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!(what, "control_request/elicitation");
}

#[test]
fn a_cancelled_request_is_not_answered_again() {
    let mut protocol = in_session(&settings());
    feed(&mut *protocol, &permission_request("Bash", json!({})));
    assert_eq!(feed(&mut *protocol, r#"{"type":"control_cancel_request","request_id":"q1"}"#), []);
}

#[test]
fn a_refusal_of_our_own_request_is_reported() {
    let line = r#"{"type":"control_response","response":{"subtype":"error","request_id":"x","error":"no"}}"#;
    let reported = notice("the agent refused a request of Towline: no");
    assert_eq!(events(&feed(&mut *in_session(&settings()), line)), [reported]);
}

fn interrupt(protocol: &mut dyn Protocol) -> Vec<Value> {
    written(&protocol.on_steer(Steer::Interrupt))
}

#[test]
fn each_interrupt_is_a_request_of_its_own_until_the_input_is_closed() {
    let mut protocol = in_session(&settings());
    let request =
        |id: &str| json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}});
    assert_eq!(interrupt(&mut *protocol), [request("towline-interrupt-1")]);
    assert_eq!(interrupt(&mut *protocol), [request("towline-interrupt-2")]);
    assert_eq!(feed(&mut *protocol, DONE).last(), Some(&Action::CloseStdin));
    assert_eq!(interrupt(&mut *protocol), [] as [Value; 0]);
}

#[test]
fn a_turn_that_ends_with_an_error_has_failed() {
    let end = |line: &str| {
        let reported = events(&feed(&mut *in_session(&settings()), line));
        let Some(AgentEvent::TurnEnded(end)) = reported.last() else { panic!("{reported:?}") };
        (end.stop.clone(), end.text.clone())
    };
    let failed = |status, reason: &str| TurnStop::Failed { status, reason: reason.into() };
    assert_eq!(end(DONE), (TurnStop::Done, "ok".into()));
    let overloaded =
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"x"}"#;
    assert_eq!(end(overloaded), (failed(Some(529), "an error without a name"), "x".into()));
    let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["a","b"]}"#;
    assert_eq!(end(turns), (failed(None, "error_max_turns"), "a; b".into()));
}

#[test]
fn a_result_survives_odd_fields() {
    let line = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","modelUsage":7,
        "permission_denials":{"x":1},"errors":"none","total_cost_usd":-1}"#
        .replace('\n', "");
    let mut protocol = in_session(&settings());
    assert_eq!(feed(&mut *protocol, &line).last(), Some(&Action::CloseStdin));
    assert_eq!(protocol.on_exit(&ProcessEnd { code: Some(0), ..ProcessEnd::default() }).1, End::Completed);
}

#[test]
fn the_older_name_of_the_cost_is_read_too() {
    let line = r#"{"type":"result","subtype":"success","is_error":false,"cost_usd":0.004}"#;
    let reported = events(&feed(&mut *in_session(&settings()), line));
    let [AgentEvent::Usage { used, .. }, AgentEvent::TurnEnded(end)] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert_eq!((used.cost.0, end.reported_cost.map(|cost| cost.0)), (4_000, Some(4_000)));
}

#[test]
fn a_clean_result_with_an_odd_exit_counts_with_a_notice() {
    let exits = [
        (ProcessEnd { code: Some(1), ..ProcessEnd::default() }, "exited with code 1"),
        (ProcessEnd { signal: Some(15), ..ProcessEnd::default() }, "ended by signal 15"),
    ];
    for (exit, how) in exits {
        let mut protocol = in_session(&settings());
        feed(&mut *protocol, DONE);
        let (last, end) = protocol.on_exit(&exit);
        let reported = notice(&format!("the agent finished its turn and then {how}; its result counts"));
        assert_eq!((events(&last), end), (vec![reported], End::Completed));
    }
}

#[test]
fn a_used_up_quota_no_longer_counts_once_the_model_answers() {
    let rejected =
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794711639}}"#;
    let answers =
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","usage":{}}}}"#;
    let killed = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let mut protocol = in_session(&settings());
    feed(&mut *protocol, rejected);
    feed(&mut *protocol, answers);
    assert!(matches!(protocol.on_exit(&killed).1, End::Crashed { .. }));
    feed(&mut *protocol, rejected);
    assert!(matches!(protocol.on_exit(&killed).1, End::RateLimited { until: Some(_) }));
}

#[test]
fn a_result_of_an_unknown_shape_ends_the_turn_but_is_no_success() {
    let mut protocol = in_session(&settings());
    let actions = feed(&mut *protocol, r#"{"type":"result","subtype":"success","is_error":"no"}"#);
    assert!(matches!(events(&actions)[..], [AgentEvent::Unrecognised { .. }]), "{actions:?}");
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    let (_, end) = protocol.on_exit(&ProcessEnd { code: Some(0), ..ProcessEnd::default() });
    assert!(matches!(end, End::Crashed { .. }), "{end:?}");
}

#[test]
fn only_interesting_system_frames_are_reported() {
    let reported = |line: Value| events(&feed(&mut *in_session(&settings()), &line.to_string()));
    let system = |subtype: &str, rest: Value| {
        let mut line = json!({"type": "system", "subtype": subtype});
        line.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
        line
    };
    let cases = [
        (
            system("status", json!({"status": null, "compact_result": "failed", "compact_error": "no room"})),
            1,
        ),
        (system("status", json!({"status": "requesting"})), 0),
        (system("informational", json!({"level": "warning", "content": "a hook stopped it"})), 1),
        (system("informational", json!({"level": "info", "content": "x"})), 0),
        (system("model_fallback", json!({"content": "overloaded: another model takes over"})), 1),
        (system("hook_started", json!({"hook_name": "x"})), 0),
        (system("task_progress", json!({"task_id": "x"})), 0),
        (json!({"type": "auth_status", "isAuthenticating": false, "error": "expired"}), 1),
        (json!({"type": "auth_status", "isAuthenticating": true}), 0),
        (json!({"type": "tool_progress", "tool_use_id": "x"}), 0),
    ];
    for (line, notices) in cases {
        let reported = reported(line.clone());
        assert_eq!(reported.len(), notices, "{line}: {reported:?}");
        assert!(
            reported.iter().all(|event| matches!(event, AgentEvent::Notice { .. })),
            "{line}: {reported:?}"
        );
    }
}

#[test]
fn paid_extra_usage_is_a_warning_and_not_the_end_of_the_quota() {
    let line = r#"{"type":"rate_limit_event","rate_limit_info":
        {"status":"rejected","isUsingOverage":true,"rateLimitType":"five_hour","utilization":1.0}}"#
        .replace('\n', "");
    let limit = towline_core::Limit {
        scope: Some("five_hour".into()),
        status: towline_core::LimitStatus::Warning,
        utilization: Some(1.0),
        resets_at: None,
    };
    assert_eq!(events(&feed(&mut *in_session(&settings()), &line)), [AgentEvent::RateLimit(limit)]);
}

#[test]
fn a_turn_ends_after_several_unanswered_requests_in_a_row() {
    let retry = |status: Value, error: &str| {
        json!({"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": status, "error": error})
            .to_string()
    };
    let unanswered = retry(Value::Null, "unknown");
    let answers = r#"{"type":"stream_event","event":{"type":"message_start","message":{}}}"#;
    let mut protocol = in_session(&settings());
    // An answer, or an error that the provider itself reports, shows that it can be reached.
    for reached in [answers, &retry(json!(529), "overloaded"), &retry(Value::Null, "overloaded")] {
        for _ in 0..4 {
            assert_eq!(written(&feed(&mut *protocol, &unanswered)), [Value::Null; 0]);
        }
        assert_eq!(written(&feed(&mut *protocol, reached)), [Value::Null; 0]);
    }
    let retries: Vec<Action> = (0..5).flat_map(|_| feed(&mut *protocol, &unanswered)).collect();
    assert_eq!(written(&retries).len(), 1);
    assert_eq!(written(&retries)[0]["request"], json!({"subtype": "interrupt"}));
    assert_eq!(retries.last(), Some(&Action::CloseStdin));
    let AgentEvent::Retrying { error, .. } = &events(&retries)[0] else { panic!("{retries:?}") };
    assert_eq!(error, "the provider at https://api.example was not reached");
    assert_eq!(feed(&mut *protocol, &unanswered).len(), 1, "the CLI is asked once");
}
