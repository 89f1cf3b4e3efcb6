//! The course of a conversation: its beginning, summaries, events, and its end.

use serde_json::{Value, json};
use towline_agent::{Action, AgentSettings, Protocol};
use towline_core::{
    AgentEvent, End, Limit, LimitStatus, PlanEntry, Refusal, Role, SessionId, SessionStarted, Tokens,
    ToolKind, ToolStatus, TurnStop,
};

use super::support::{
    DONE, HELLO, PROMPT, STARTED, THREAD, compacting, ended, events, fed, feed, fresh, in_turn, news,
    protocol, resume, settings, written,
};

fn prompt() -> Value {
    let input = json!([{"type": "text", "text": PROMPT, "text_elements": []}]);
    let params = json!({"threadId": "t", "clientUserMessageId": "prompt", "input": input});
    json!({"jsonrpc": "2.0", "id": "prompt", "method": "turn/start", "params": params})
}

fn started(resumed: bool) -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: SessionId::new("t"),
        resumed,
        model: Some("m".into()),
        agent_version: Some("0.166.0".into()),
    })
}

fn opened(mut protocol: Box<dyn Protocol>) -> Box<dyn Protocol> {
    protocol.start();
    feed(&mut *protocol, HELLO);
    protocol
}

#[test]
fn the_session_is_reported_as_soon_as_it_has_an_id_and_the_prompt_follows() {
    let mut protocol = opened(protocol(&settings(), &fresh()));
    let actions = feed(&mut *protocol, THREAD);
    assert_eq!((events(&actions), written(&actions)), (vec![started(false)], vec![prompt()]));
    assert_eq!(events(&feed(&mut *protocol, STARTED)), [AgentEvent::TurnStarted]);
    assert_eq!(feed(&mut *protocol, STARTED), []);
    let actions = feed(&mut *protocol, DONE);
    assert!(matches!(&events(&actions)[..], [AgentEvent::TurnEnded(end)] if end.stop == TurnStop::Done));
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    assert_eq!(ended(&mut *protocol), End::Completed);
}

#[test]
fn a_session_is_resumed_only_when_its_id_comes_back() {
    let actions = feed(&mut *opened(protocol(&settings(), &resume("t"))), THREAD);
    assert_eq!(events(&actions), [started(true)]);
    let actions = feed(&mut *opened(protocol(&settings(), &resume("old"))), THREAD);
    let text = "the agent did not resume session old: it started session t instead".to_owned();
    assert_eq!(events(&actions), [started(false), AgentEvent::Notice { text }]);
}

#[test]
fn a_refused_conversation_closes_the_input() {
    let refused = r#"{"id":"thread","error":{"code":-32600,"message":"no rollout found for thread id x"}}"#;
    let mut gone = opened(protocol(&settings(), &resume("x")));
    assert_eq!(feed(&mut *gone, refused), [Action::CloseStdin]);
    assert_eq!(ended(&mut *gone), End::ResumeRefused { why: Refusal::NotFound });

    let message = "the agent refused the conversation: no rollout found for thread id x".to_owned();
    let mut fresh_one = opened(protocol(&settings(), &fresh()));
    feed(&mut *fresh_one, refused);
    assert_eq!(ended(&mut *fresh_one), End::Crashed { message });
}

#[test]
fn a_conversation_that_another_process_has_open_continues_in_a_copy() {
    let in_use =
        r#"{"id":"thread","error":{"code":-32600,"message":"thread old already has an active writer"}}"#;
    let mut taken = opened(protocol(&settings(), &resume("old")));
    let asked = written(&feed(&mut *taken, in_use));
    assert_eq!(
        (&asked[0]["method"], &asked[0]["params"]["threadId"]),
        (&json!("thread/fork"), &json!("old"))
    );
    let actions = feed(&mut *taken, &THREAD.replace(r#""id":"thread""#, r#""id":"fork""#));
    let text =
        "another process has session old open: the agent continues in a copy of it, session t".to_owned();
    assert_eq!(events(&actions), [started(true), AgentEvent::Notice { text }]);
    assert_eq!(written(&actions), [prompt()]);

    // Without a copy, the refusal counts.
    let mut refused = opened(protocol(&settings(), &resume("old")));
    feed(&mut *refused, in_use);
    let no_copy =
        r#"{"id":"fork","error":{"code":-32600,"message":"thread old already has an active writer"}}"#;
    assert_eq!(feed(&mut *refused, no_copy), [Action::CloseStdin]);
    assert_eq!(ended(&mut *refused), End::ResumeRefused { why: Refusal::InUse });
}

#[test]
fn a_refused_initialize_or_prompt_is_a_crash_with_the_reason() {
    let mut hello = protocol(&settings(), &fresh());
    hello.start();
    let refused = r#"{"id":"initialize","error":{"code":1,"message":"no"}}"#;
    assert_eq!(feed(&mut *hello, refused), [Action::CloseStdin]);
    assert_eq!(ended(&mut *hello), End::Crashed { message: "the agent refused to begin: no".into() });
    let mut prompt = opened(protocol(&settings(), &fresh()));
    let refused = r#"{"id":"prompt","error":{"code":1,"message":"no"}}"#;
    assert_eq!(fed(&mut *prompt, &[THREAD, refused]).last(), Some(&Action::CloseStdin));
    assert_eq!(ended(&mut *prompt), End::Crashed { message: "the agent refused the prompt: no".into() });
}

#[test]
fn an_answer_that_cannot_be_read_ends_the_conversation_and_is_counted() {
    let actions = feed(&mut *opened(protocol(&settings(), &fresh())), r#"{"id":"thread","result":{}}"#);
    assert!(
        matches!(&events(&actions)[..], [AgentEvent::Unrecognised { what, .. }] if what == "answer to thread/start")
    );
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
}

#[test]
fn a_setting_without_effect_is_reported() {
    let capped = AgentSettings { max_turns: Some(3), ..settings() };
    let reported = events(&feed(&mut *opened(protocol(&capped, &fresh())), THREAD));
    let text = "Codex has no cap of its own on turns: `max_turns` is not used".to_owned();
    assert_eq!(reported, [started(false), AgentEvent::Notice { text }]);
}

fn usage(total: u64, last: u64, turn: &str) -> String {
    let counts = |input: u64| {
        json!({"totalTokens": input, "inputTokens": input, "cachedInputTokens": 0, "outputTokens": 0,
            "reasoningOutputTokens": 0})
    };
    let usage = json!({"total": counts(total), "last": counts(last), "modelContextWindow": 1000});
    let params = json!({"threadId": "t", "turnId": turn, "tokenUsage": usage});
    json!({"method": "thread/tokenUsage/updated", "params": params}).to_string()
}

const SUMMARY: &str =
    r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"s","status":"inProgress"}}}"#;
const SUMMARY_OVER: &str =
    r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"s","status":"completed"}}}"#;

fn summary_item(when: &str) -> String {
    news(&format!("item/{when}"), json!({"item": {"type": "contextCompaction", "id": "c"}}))
}

#[test]
fn a_summary_comes_before_the_prompt_and_counts_as_no_turn() {
    let mut protocol = opened(compacting(&resume("t")));
    let actions = feed(&mut *protocol, THREAD);
    let wanted = json!({"jsonrpc": "2.0", "id": "compact", "method": "thread/compact/start", "params": {"threadId": "t"}});
    assert_eq!(written(&actions), [wanted]);
    let (begins, over) = (summary_item("started"), summary_item("completed"));
    let frames = [
        usage(900, 700, "old"),
        r#"{"id":"compact","result":{}}"#.to_owned(),
        SUMMARY.to_owned(),
        begins,
        usage(1600, 700, "s"),
        usage(1600, 60, "s"),
        over,
    ];
    let reported: Vec<_> = frames.iter().flat_map(|frame| events(&feed(&mut *protocol, frame))).collect();
    let [
        AgentEvent::Usage { used: nothing, .. },
        AgentEvent::Usage { used: summary, .. },
        AgentEvent::Usage { context_used: Some(Tokens(60)), .. },
        AgentEvent::Compacted { before: Some(Tokens(700)), after: Some(Tokens(60)) },
    ] = &reported[..]
    else {
        panic!("{reported:#?}")
    };
    assert!(nothing.is_empty());
    assert_eq!(summary.input, Tokens(700));
    let actions = feed(&mut *protocol, SUMMARY_OVER);
    assert_eq!((events(&actions), written(&actions)), (vec![], vec![prompt()]));
    assert_eq!(events(&feed(&mut *protocol, STARTED)), [AgentEvent::TurnStarted]);
    assert_eq!(feed(&mut *protocol, DONE).last(), Some(&Action::CloseStdin));
    assert_eq!(ended(&mut *protocol), End::Completed);
}

#[test]
fn without_a_summary_the_reason_is_reported_and_the_prompt_follows() {
    let refused = r#"{"id":"compact","error":{"code":1,"message":"no"}}"#;
    let failed = SUMMARY_OVER.replace(
        r#""status":"completed""#,
        r#""status":"failed","error":{"message":"bad thing","codexErrorInfo":"other"}"#,
    );
    let cases: [(&[&str], &str); 3] = [
        (&[refused], "no"),
        (&[SUMMARY, SUMMARY_OVER], "the agent gave no reason"),
        (&[SUMMARY, &failed], "bad thing"),
    ];
    for (frames, reason) in cases {
        let mut protocol = opened(compacting(&resume("t")));
        feed(&mut *protocol, THREAD);
        let actions = fed(&mut *protocol, frames);
        assert_eq!(events(&actions), [AgentEvent::NotCompacted { reason: reason.into() }]);
        assert_eq!(written(&actions), [prompt()]);
        fed(&mut *protocol, &[STARTED, DONE]);
        assert_eq!(ended(&mut *protocol), End::Completed);
    }
}

#[test]
fn a_new_conversation_is_not_summarised() {
    let actions = feed(&mut *opened(compacting(&resume("old"))), THREAD);
    assert!(matches!(events(&actions).last(), Some(AgentEvent::NotCompacted { .. })));
    assert_eq!(written(&actions), [prompt()]);
}

#[test]
fn a_failed_summary_ends_the_attempt_if_the_prompt_would_fail_too() {
    let failed = |error: &str| {
        let mut protocol = opened(compacting(&resume("t")));
        let over = SUMMARY_OVER.replace(r#""status":"completed""#, error);
        let actions = fed(&mut *protocol, &[THREAD, SUMMARY, &over]);
        assert_eq!(actions.last(), Some(&Action::CloseStdin), "{error}");
        assert!(matches!(events(&actions).last(), Some(AgentEvent::TurnEnded(_))), "{error}");
        ended(&mut *protocol)
    };
    let named =
        |name: &str| format!(r#""status":"failed","error":{{"message":"x","codexErrorInfo":"{name}"}}"#);
    assert_eq!(failed(&named("usageLimitExceeded")), End::RateLimited { until: None });
    assert_eq!(failed(&named("contextWindowExceeded")), End::ContextOverflow);
    let message = "the turn was interrupted".to_owned();
    assert_eq!(failed(r#""status":"interrupted""#), End::Crashed { message });
}

#[test]
fn an_exit_before_the_prompt_is_answered_is_no_success() {
    let over = summary_item("completed");
    let whole = [HELLO, THREAD, SUMMARY, &over, SUMMARY_OVER, STARTED];
    for length in 0..=whole.len() {
        let mut protocol = compacting(&resume("t"));
        protocol.start();
        fed(&mut *protocol, &whole[..length]);
        let end = ended(&mut *protocol);
        assert!(matches!(end, End::Crashed { .. }), "after {length} lines: {end:?}");
    }
}

#[test]
fn a_subagents_turn_is_not_ours() {
    let mut protocol = in_turn(&settings());
    let sub = |line: &str| line.replace("\"t\"", "\"sub\"");
    let spawned = json!({"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "status": "completed",
        "prompt": "look around", "receiverThreadIds": ["sub"]});
    feed(&mut *protocol, &news("item/completed", json!({ "item": spawned })));
    assert_eq!(feed(&mut *protocol, &sub(STARTED)), []);
    let text = news("item/completed", json!({"item": {"type": "agentMessage", "id": "m", "text": "hm"}}));
    let event = AgentEvent::Message { role: Role::Assistant, text: "hm".into() };
    assert_eq!(feed(&mut *protocol, &sub(&text)), [Action::Emit { event, parent: Some("c".into()) }]);
    assert_eq!(feed(&mut *protocol, &sub(DONE)), []);
    assert!(matches!(ended(&mut *protocol), End::Crashed { .. }));
}

#[test]
fn subagents_at_work_are_waited_for() {
    let mut protocol = in_turn(&settings());
    let sub = |line: &str| line.replace("\"t\"", "\"sub\"");
    feed(&mut *protocol, &sub(STARTED));
    let actions = feed(&mut *protocol, DONE);
    let text = "subagents still at work as the turn ends: 1".to_owned();
    assert_eq!(events(&actions)[0], AgentEvent::Notice { text });
    assert!(!actions.contains(&Action::CloseStdin));
    // Another turn of ours in the meantime counts, and its end decides.
    assert_eq!(events(&feed(&mut *protocol, &STARTED.replace("\"u\"", "\"v\""))), [AgentEvent::TurnStarted]);
    assert_eq!(feed(&mut *protocol, &sub(DONE)), []);
    assert_eq!(feed(&mut *protocol, &DONE.replace("\"u\"", "\"v\"")).last(), Some(&Action::CloseStdin));
    assert_eq!(ended(&mut *protocol), End::Completed);
}

#[test]
fn a_turn_after_the_input_is_closed_does_not_change_the_result() {
    let mut protocol = in_turn(&settings());
    feed(&mut *protocol, DONE);
    assert_eq!(feed(&mut *protocol, &STARTED.replace("\"u\"", "\"v\"")), []);
    assert_eq!(ended(&mut *protocol), End::Completed);
}

#[test]
fn retries_are_reported_and_counted_until_a_request_works() {
    let mut protocol = in_turn(&settings());
    let error = |status: u16| {
        let info = json!({"responseStreamDisconnected": {"httpStatusCode": status}});
        let error =
            json!({"message": "Reconnecting... 1/5", "codexErrorInfo": info, "additionalDetails": "words"});
        news("error", json!({"error": error, "willRetry": true}))
    };
    let retrying = |status, attempt| {
        Action::emit(AgentEvent::Retrying {
            status: Some(status),
            attempt,
            delay_ms: 0,
            error: "words".into(),
        })
    };
    assert_eq!(feed(&mut *protocol, &error(500)), [retrying(500, 1)]);
    assert_eq!(feed(&mut *protocol, &error(401)), [retrying(401, 2)]);
    feed(&mut *protocol, &news("item/agentMessage/delta", json!({"itemId": "m", "delta": "x"})));
    assert_eq!(feed(&mut *protocol, &error(401)), [retrying(401, 1)]);
    assert!(matches!(ended(&mut *protocol), End::Crashed { .. }));
    feed(&mut *protocol, &error(403));
    assert!(matches!(ended(&mut *protocol), End::Auth { .. }));
}

#[test]
fn quotas_are_reported_when_they_change() {
    let mut protocol = in_turn(&settings());
    let limits = |percent: u64| {
        let primary = json!({"usedPercent": percent, "windowDurationMins": 300, "resetsAt": 1_794_740_000});
        json!({"method": "account/rateLimits/updated", "params": {"rateLimits": {"primary": primary}}})
            .to_string()
    };
    let until = jiff::Timestamp::from_second(1_794_740_000).ok();
    let reported = |status, utilization| {
        let scope = Some("five_hour".to_owned());
        let limit = Limit { scope, status, utilization: Some(utilization), resets_at: until };
        Action::emit(AgentEvent::RateLimit(limit))
    };
    assert_eq!(feed(&mut *protocol, &limits(43)), [reported(LimitStatus::Allowed, 0.43)]);
    assert_eq!(feed(&mut *protocol, &limits(43)), []);
    let nothing = r#"{"method":"account/rateLimits/updated","params":{"rateLimits":{}}}"#;
    assert_eq!(feed(&mut *protocol, nothing), []);
    assert_eq!(feed(&mut *protocol, &limits(100)), [reported(LimitStatus::Rejected, 1.0)]);
    assert_eq!(ended(&mut *protocol), End::RateLimited { until });
}

#[test]
fn a_plan_is_reported_with_its_progress() {
    let plan = json!([{"step": "a", "status": "completed"}, {"step": "b", "status": "inProgress"}]);
    let reported =
        events(&feed(&mut *in_turn(&settings()), &news("turn/plan/updated", json!({ "plan": plan }))));
    let entries =
        vec![PlanEntry { text: "a".into(), done: true }, PlanEntry { text: "b".into(), done: false }];
    assert_eq!(reported, [AgentEvent::Plan { entries }]);
}

#[test]
fn warnings_are_reported_once() {
    let mut protocol = in_turn(&settings());
    let warning = news("warning", json!({"message": "careful"}));
    let notice = Action::emit(AgentEvent::Notice { text: "careful".into() });
    assert_eq!(feed(&mut *protocol, &warning), [notice]);
    assert_eq!(feed(&mut *protocol, &warning), []);
}

#[test]
fn tool_calls_are_reported_by_their_kind() {
    let command = |actions: Value| {
        json!({"type": "commandExecution", "id": "c", "status": "completed", "exitCode": 0,
            "command": "/bin/bash -lc 'cat a'", "commandActions": actions, "aggregatedOutput": "x".repeat(9000)})
    };
    let change = |kind: Value| {
        json!({"type": "fileChange", "id": "c", "status": "declined",
            "changes": [{"path": "/w/a", "kind": kind, "diff": ""}]})
    };
    let moved = json!({"type": "update", "move_path": "/w/b"});
    let cases = [
        (command(json!([{"type": "read", "path": "/w/a"}])), ToolKind::Read, ToolStatus::Ok, "cat a"),
        (
            command(json!([{"type": "search"}, {"type": "listFiles"}])),
            ToolKind::Search,
            ToolStatus::Ok,
            "cat a",
        ),
        (command(json!([{"type": "read"}, {"type": "unknown"}])), ToolKind::Execute, ToolStatus::Ok, "cat a"),
        (command(json!([])), ToolKind::Execute, ToolStatus::Ok, "cat a"),
        (change(json!({"type": "add"})), ToolKind::Edit, ToolStatus::Denied, "/w/a"),
        (change(json!({"type": "delete"})), ToolKind::Delete, ToolStatus::Denied, "/w/a"),
        (change(moved), ToolKind::Move, ToolStatus::Denied, "/w/a, /w/b"),
        (json!({"type": "webSearch", "id": "c", "query": "q"}), ToolKind::Fetch, ToolStatus::Ok, "q"),
        (
            json!({"type": "imageView", "id": "c", "path": "/w/a.png"}),
            ToolKind::Read,
            ToolStatus::Ok,
            "/w/a.png",
        ),
    ];
    for (item, kind, status, title) in cases {
        let reported =
            events(&feed(&mut *in_turn(&settings()), &news("item/completed", json!({ "item": item }))));
        let [AgentEvent::Tool(tool)] = &reported[..] else { panic!("{reported:?}") };
        assert_eq!((tool.tool, tool.status, tool.title.as_str()), (kind, status, title), "{item}");
        assert!(tool.output.as_ref().is_none_or(|output| output.len() == 4096));
    }
}
