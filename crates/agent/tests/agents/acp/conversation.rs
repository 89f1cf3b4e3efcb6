//! The course of a conversation, from the first request to the end of a turn.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{
    Action, AgentSettings, Kind, LaunchContext, McpServer, Permission, ProcessEnd, Protocol, Steer, agent,
};
use towline_core::{
    AgentEvent, End, MicroUsd, PlanEntry, Role, SessionStarted, Tokens, ToolKind, ToolStatus, ToolUse,
    TurnStop, Usage,
};

use super::support::{
    HELLO, SESSION, answered, end, events, exited, feed, fresh, give, in_turn, launch, prompt, protocol,
    resume, settings, text_chunk, update, written,
};

fn methods(actions: &[Action]) -> Vec<String> {
    written(actions)
        .iter()
        .map(|message| message["method"].as_str().unwrap_or("(answer)").to_owned())
        .collect()
}

fn started(id: &str, resumed: bool) -> AgentEvent {
    AgentEvent::SessionStarted(SessionStarted {
        native_id: towline_core::SessionId::new(id),
        resumed,
        model: None,
        agent_version: Some("1.2".into()),
    })
}

fn message(text: &str) -> AgentEvent {
    AgentEvent::Message { role: Role::Assistant, text: text.into() }
}

fn stop(actions: &[Action]) -> Option<TurnStop> {
    events(actions).into_iter().find_map(|event| match event {
        AgentEvent::TurnEnded(end) => Some(end.stop),
        _ => None,
    })
}

#[test]
fn one_step_follows_the_other_and_the_prompt_comes_last() {
    let settings = AgentSettings {
        mcp: [("docs".to_owned(), McpServer::program(vec!["serve".into(), "--docs".into()]))].into(),
        system_append: Some("Be brief.".into()),
        ..settings("agent")
    };
    let mut protocol = protocol(&settings, &fresh());
    assert_eq!(methods(&protocol.start()), ["initialize"]);
    let new = written(&feed(&mut *protocol, HELLO));
    let server = json!({"name": "docs", "command": "serve", "args": ["--docs"], "env": []});
    assert_eq!(new[0]["method"], "session/new");
    assert_eq!(new[0]["params"], json!({"cwd": "/workspace", "mcpServers": [server]}));
    let actions = feed(&mut *protocol, SESSION);
    assert_eq!(events(&actions), [started("s", false), AgentEvent::TurnStarted]);
    let blocks = &written(&actions)[0]["params"]["prompt"];
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(*blocks, json!([text("Be brief."), text("make the tests pass")]));
}

#[test]
fn a_turn_is_reported_from_its_pieces_to_its_end() {
    let mut protocol = in_turn(&settings("agent"));
    let thinks =
        update(json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}));
    assert_eq!(give(&mut *protocol, &thinks), []);
    let first = give(&mut *protocol, &text_chunk("I "));
    let delta = |text: &str| AgentEvent::MessageDelta { text: text.into() };
    assert_eq!(events(&first), [AgentEvent::Thought { text: "hm".into() }, delta("I ")]);
    assert_eq!(events(&give(&mut *protocol, &text_chunk("am done"))), [delta("am done")]);
    let actions = give(&mut *protocol, &answered("prompt", "end_turn"));
    let reported = events(&actions);
    assert_eq!(reported[0], message("I am done"));
    let AgentEvent::TurnEnded(ended) = &reported[1] else { panic!("{reported:?}") };
    assert_eq!((&ended.stop, ended.text.as_str()), (&TurnStop::Done, "I am done"));
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    assert_eq!(end(&mut *protocol), End::Completed);
}

#[test]
fn an_odd_exit_is_reported_and_the_result_counts() {
    let mut protocol = in_turn(&settings("agent"));
    give(&mut *protocol, &text_chunk("done"));
    give(&mut *protocol, &answered("prompt", "end_turn"));
    let (reported, end) = protocol.on_exit(&ProcessEnd { signal: Some(9), ..ProcessEnd::default() });
    assert_eq!(end, End::Completed);
    assert!(matches!(&events(&reported)[..], [AgentEvent::Notice { text }] if text.contains("signal 9")));
}

#[test]
fn messages_are_separated_by_their_ids_and_by_other_updates() {
    let chunk = |id: &str, text: &str| {
        let content = json!({"type": "text", "text": text});
        update(json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content}))
    };
    let mut protocol = in_turn(&settings("agent"));
    let mut actions = give(&mut *protocol, &chunk("1", "one"));
    actions.extend(give(&mut *protocol, &chunk("2", "two")));
    actions.extend(give(
        &mut *protocol,
        &update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x"})),
    ));
    actions.extend(give(&mut *protocol, &chunk("2", "three")));
    actions.extend(give(&mut *protocol, &answered("prompt", "end_turn")));
    let whole: Vec<_> =
        events(&actions).into_iter().filter(|event| matches!(event, AgentEvent::Message { .. })).collect();
    assert_eq!(whole, [message("one"), message("two"), message("three")]);
}

#[test]
fn a_tool_call_is_reported_once_per_change() {
    let mut protocol = in_turn(&settings("agent"));
    let begins = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "bash", "kind": "execute",
                        "status": "pending", "locations": [{"path": "/workspace"}]});
    let runs = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "make all",
                      "status": "in_progress", "rawInput": {"command": "make all"}});
    let output = json!([{"type": "content", "content": {"type": "text", "text": "oh no"}}]);
    let ends = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
                      "content": output, "rawOutput": {"metadata": {"exit": 2}}});
    let mut reported = Vec::new();
    for news in [&begins, &begins, &runs, &runs, &ends, &ends] {
        reported.extend(events(&give(&mut *protocol, &update(news.clone()))));
    }
    let tool = |title: &str, status, input: Option<Value>, output: Option<&str>, exit_code| {
        AgentEvent::Tool(ToolUse {
            id: "t".into(),
            tool: ToolKind::Execute,
            name: "Bash".into(),
            title: title.into(),
            status,
            input,
            output: output.map(str::to_owned),
            exit_code,
            paths: vec![],
        })
    };
    let input = Some(json!({"command": "make all"}));
    let wanted = [
        tool("bash", ToolStatus::Pending, None, None, None),
        tool("make all", ToolStatus::Running, input.clone(), None, None),
        tool("make all", ToolStatus::Failed, input, Some("oh no"), Some(2)),
    ];
    assert_eq!(reported, wanted);
}

#[test]
fn plans_and_modes_are_reported_and_other_updates_are_not() {
    let mut protocol = in_turn(&settings("agent"));
    let entries = json!([{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]);
    let plan = events(&give(&mut *protocol, &update(json!({"sessionUpdate": "plan", "entries": entries}))));
    let entry = |text: &str, done| PlanEntry { text: text.into(), done };
    assert_eq!(plan, [AgentEvent::Plan { entries: vec![entry("a", true), entry("b", false)] }]);
    let mode = update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
    let reported = events(&give(&mut *protocol, &mode));
    assert_eq!(reported, [AgentEvent::Notice { text: "the agent is now in mode `plan`".into() }]);
    for quiet in
        ["available_commands_update", "config_option_update", "session_info_update", "user_message_chunk"]
    {
        assert_eq!(give(&mut *protocol, &update(json!({"sessionUpdate": quiet}))), [], "{quiet}");
    }
}

#[test]
fn resume_is_preferred_to_load() {
    let hello = |capabilities: Value| json!({"id": "initialize", "result": {"protocolVersion": 1, "agentCapabilities": capabilities}});
    let cases = [
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), "session/resume"),
        (json!({"loadSession": true}), "session/load"),
        (json!({"loadSession": true, "sessionCapabilities": {"resume": null}}), "session/load"),
    ];
    for (capabilities, wanted) in cases {
        let mut protocol = protocol(&settings("agent"), &resume("old"));
        protocol.start();
        let asked = written(&give(&mut *protocol, &hello(capabilities)));
        assert_eq!(asked[0]["method"], wanted);
        assert_eq!(asked[0]["params"]["sessionId"], "old", "{wanted}");
        let reported = events(&give(&mut *protocol, &json!({"id": "session", "result": {}})));
        let AgentEvent::SessionStarted(session) = &reported[0] else { panic!("{reported:?}") };
        assert_eq!((session.native_id.as_str(), session.resumed), ("old", true));
        assert!(!matches!(reported[1], AgentEvent::Notice { .. }), "{reported:?}");
    }
}

#[test]
fn an_agent_that_cannot_continue_a_session_gets_no_prompt_that_continues_one() {
    let mut protocol = protocol(&settings("agent"), &resume("old"));
    protocol.start();
    let hello = json!({"id": "initialize", "result": {"protocolVersion": 1, "agentCapabilities": {}}});
    assert_eq!(give(&mut *protocol, &hello), [Action::CloseStdin]);
    assert_eq!(end(&mut *protocol).name(), "resume_refused");
}

#[test]
fn another_session_than_the_one_that_was_asked_for_gets_no_prompt_either() {
    let mut protocol = protocol(&settings("agent"), &resume("old"));
    protocol.start();
    feed(&mut *protocol, HELLO);
    let other = json!({"id": "session", "result": {"sessionId": "other"}});
    assert_eq!(give(&mut *protocol, &other), [Action::CloseStdin]);
    assert_eq!(end(&mut *protocol).name(), "resume_refused");
}

#[test]
fn gemini_is_not_asked_to_load_a_session() {
    let mut protocol = protocol(&settings("gemini"), &resume("old"));
    protocol.start();
    assert_eq!(methods(&feed(&mut *protocol, HELLO)), ["session/new"]);
}

#[test]
fn a_refused_session_ends_the_attempt_before_any_prompt() {
    let refused = |code: i64| json!({"id": "session", "error": {"code": code, "message": "no"}});
    let cases =
        [(fresh(), -32_000, "auth"), (resume("old"), -32_603, "resume_refused"), (fresh(), -1, "crashed")];
    for (session, code, wanted) in cases {
        let mut protocol = protocol(&settings("agent"), &session);
        protocol.start();
        feed(&mut *protocol, HELLO);
        assert_eq!(give(&mut *protocol, &refused(code)), [Action::CloseStdin]);
        assert_eq!(end(&mut *protocol).name(), wanted);
    }
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut protocol = protocol(&settings("agent"), &fresh());
    protocol.start();
    let actions = give(&mut *protocol, &json!({"id": "initialize", "result": {"protocolVersion": 2}}));
    assert_eq!(actions, [Action::CloseStdin]);
    let End::Crashed { message } = end(&mut *protocol) else { panic!("no crash") };
    assert!(message.contains("version 2"), "{message}");
}

fn with_model(session: &Value) -> Vec<Value> {
    let settings = AgentSettings { model: Some("big".into()), ..settings("agent") };
    let mut protocol = protocol(&settings, &fresh());
    protocol.start();
    feed(&mut *protocol, HELLO);
    written(&give(&mut *protocol, &json!({"id": "session", "result": session})))
}

#[test]
fn the_model_is_chosen_in_each_way_that_agents_offer() {
    let options =
        json!([{"id": "m", "category": "model", "currentValue": "small", "options": [{"value": "big"}]}]);
    let sent = with_model(&json!({"sessionId": "s", "configOptions": options}));
    assert_eq!(sent[0]["method"], "session/set_config_option");
    assert_eq!(sent[0]["params"], json!({"sessionId": "s", "configId": "m", "value": "big"}));
    let sent = with_model(&json!({"sessionId": "s", "models": {"currentModelId": "small"}}));
    assert_eq!(sent[0]["method"], "session/set_model");
    assert_eq!(sent[0]["params"], json!({"sessionId": "s", "modelId": "big"}));
    let sent = with_model(&json!({"sessionId": "s", "models": {"currentModelId": "big"}}));
    assert_eq!(sent[0]["method"], "session/prompt");
}

#[test]
fn an_unavailable_model_is_not_replaced_by_another() {
    let settings = AgentSettings { model: Some("big".into()), ..settings("agent") };
    let mut protocol = protocol(&settings, &fresh());
    protocol.start();
    feed(&mut *protocol, HELLO);
    feed(&mut *protocol, SESSION);
    let refused = json!({"id": "model", "error": {"code": -32_602, "message": "model not found"}});
    assert_eq!(give(&mut *protocol, &refused), [Action::CloseStdin]);
    let wanted = "the choice of the model failed: model not found".to_owned();
    assert_eq!(end(&mut *protocol), End::Crashed { message: wanted });
}

fn gemini_session(settings: &AgentSettings, mode: &str) -> (Box<dyn Protocol>, Vec<Value>) {
    let mut protocol = protocol(settings, &fresh());
    protocol.start();
    feed(&mut *protocol, HELLO);
    let session = json!({"sessionId": "s", "modes": {"currentModeId": mode}});
    let sent = written(&give(&mut *protocol, &json!({"id": "session", "result": session})));
    (protocol, sent)
}

#[test]
fn gemini_gets_the_mode_that_fits_the_settings() {
    let bypass = settings("gemini");
    let denies = AgentSettings { deny: vec!["Bash(rm *)".into()], ..settings("gemini") };
    let asks = AgentSettings { permission: Permission::Ask, ..settings("gemini") };
    let cases = [
        (&bypass, "default", Some("yolo")),
        (&bypass, "yolo", None),
        (&denies, "default", None),
        (&asks, "default", None),
        (&asks, "yolo", Some("default")),
    ];
    for (settings, current, wanted) in cases {
        let (_, sent) = gemini_session(settings, current);
        assert_eq!(sent[0]["params"]["modeId"].as_str(), wanted, "{current}");
    }
    // One mode is a convenience; permissions depend on the other.
    let refused = json!({"id": "mode", "error": {"code": -1, "message": "no"}});
    let (mut protocol, _) = gemini_session(&bypass, "default");
    assert_eq!(methods(&give(&mut *protocol, &refused)), ["session/prompt"]);
    let (mut protocol, _) = gemini_session(&asks, "yolo");
    assert_eq!(give(&mut *protocol, &refused), [Action::CloseStdin]);
    assert!(matches!(end(&mut *protocol), End::Crashed { .. }));
}

#[test]
fn a_turn_in_which_nothing_happens_is_no_success() {
    let mut protocol = in_turn(&settings("agent"));
    let actions = give(&mut *protocol, &answered("prompt", "end_turn"));
    assert!(matches!(stop(&actions), Some(TurnStop::Failed { .. })), "{actions:?}");
    assert!(matches!(end(&mut *protocol), End::Crashed { .. }));
}

#[test]
fn an_interrupt_ends_the_turn_and_before_there_is_one_the_conversation() {
    let mut protocol = in_turn(&settings("agent"));
    let sent = written(&protocol.on_steer(Steer::Interrupt));
    assert_eq!(sent, [json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}})]);
    let actions = give(&mut *protocol, &answered("prompt", "cancelled"));
    assert_eq!(stop(&actions), Some(TurnStop::Interrupted));
    assert_eq!(actions.last(), Some(&Action::CloseStdin));
    assert_eq!(end(&mut *protocol), End::Crashed { message: "the turn was interrupted".into() });

    let mut protocol = self::protocol(&settings("agent"), &fresh());
    protocol.start();
    assert_eq!(protocol.on_steer(Steer::Interrupt), [Action::CloseStdin]);
    assert_eq!(feed(&mut *protocol, HELLO), []);
    assert!(matches!(protocol.on_exit(&exited(0)).1, End::Crashed { .. }));
}

fn total(dollars: f64) -> Value {
    update(json!({"sessionUpdate": "usage_update", "used": 1000, "size": 200_000,
                  "cost": {"amount": dollars, "currency": "USD"}}))
}

fn costs(actions: &[Action]) -> Vec<u64> {
    let cost = |event: AgentEvent| match event {
        AgentEvent::Usage { used, .. } => Some(used.cost.0),
        _ => None,
    };
    events(actions).into_iter().filter_map(cost).collect()
}

#[test]
fn only_the_increase_of_the_total_cost_is_counted() {
    let mut protocol = in_turn(&settings("agent"));
    assert_eq!(costs(&give(&mut *protocol, &total(0.01))), [10_000]);
    assert_eq!(costs(&give(&mut *protocol, &total(0.015))), [5_000]);
    assert_eq!(costs(&give(&mut *protocol, &total(0.015))), [0; 0]);
    assert_eq!(costs(&give(&mut *protocol, &total(0.01))), [0; 0]);
    let euros = update(json!({"sessionUpdate": "usage_update", "cost": {"amount": 9, "currency": "EUR"}}));
    assert_eq!(costs(&give(&mut *protocol, &euros)), [0; 0]);
    assert_eq!(costs(&give(&mut *protocol, &total(0.016))), [1_000]);
}

#[test]
fn the_earlier_cost_of_a_session_is_not_counted_again() {
    for (known, wanted) in [(Some(MicroUsd(4_000)), 6_000), (None, 0)] {
        let mut protocol = protocol(&settings("agent"), &resume("s"));
        if let Some(cost) = known {
            protocol.used_before(Usage { cost, ..Usage::default() });
        }
        protocol.start();
        feed(&mut *protocol, HELLO);
        feed(&mut *protocol, r#"{"id":"session","result":{}}"#);
        assert_eq!(costs(&give(&mut *protocol, &total(0.01))), [wanted]);
        assert_eq!(costs(&give(&mut *protocol, &total(0.012))), [2_000]);
    }
}

#[test]
fn tokens_of_a_turn_are_counted_with_the_reasoning_once() {
    let used = |usage: Value| {
        let mut protocol = in_turn(&settings("agent"));
        let line = json!({"id": "prompt", "result": {"stopReason": "end_turn", "usage": usage}});
        events(&give(&mut *protocol, &line)).into_iter().find_map(|event| match event {
            AgentEvent::Usage { used, .. } => Some(used),
            _ => None,
        })
    };
    let wanted = |output| Usage {
        input: Tokens(800),
        output: Tokens(output),
        cache_read: Tokens(200),
        ..Usage::default()
    };
    let usage = |total: u64| {
        json!({"inputTokens": 800, "outputTokens": 40, "thoughtTokens": 10, "cachedReadTokens": 200,
               "totalTokens": total})
    };
    assert_eq!(used(usage(1050)), Some(wanted(50)));
    assert_eq!(used(usage(1040)), Some(wanted(40)));
    assert_eq!(used(json!({"totalTokens": 7})), None);
}

fn compacting(program: &str) -> (Box<dyn Protocol>, Vec<Action>) {
    let (session, none) = (resume("s"), BTreeMap::new());
    let context = LaunchContext { compact: Some("keep it short"), ..launch(&session, &none) };
    let mut protocol = agent(Kind::Acp).protocol(&settings(program), &context);
    protocol.start();
    feed(&mut *protocol, HELLO);
    let commands =
        json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "init"}]});
    give(&mut *protocol, &update(commands));
    let actions = feed(&mut *protocol, r#"{"id":"session","result":{}}"#);
    (protocol, actions)
}

#[test]
fn without_a_compact_command_the_prompt_is_sent_at_once() {
    let (_, actions) = compacting("agent");
    assert!(
        events(&actions).iter().any(|event| matches!(event, AgentEvent::NotCompacted { .. })),
        "{actions:?}"
    );
    assert_eq!(written(&actions), [prompt("prompt", "make the tests pass")]);
}

#[test]
fn a_summary_comes_before_the_prompt_and_is_no_turn() {
    for (answer, happened) in [
        (answered("compact", "end_turn"), true),
        (answered("compact", "refusal"), false),
        (json!({"id": "compact", "error": {"code": -32_603, "message": "no"}}), false),
    ] {
        let (mut protocol, actions) = compacting("opencode");
        assert_eq!(written(&actions), [prompt("compact", "/compact keep it short")]);
        assert_eq!(give(&mut *protocol, &text_chunk("A summary.")), []);
        let actions = give(&mut *protocol, &answer);
        let reported = events(&actions);
        assert_eq!(matches!(&reported[0], AgentEvent::Compacted { .. }), happened, "{reported:?}");
        assert_eq!(matches!(&reported[0], AgentEvent::NotCompacted { .. }), !happened, "{reported:?}");
        assert_eq!(reported[1], AgentEvent::TurnStarted);
        assert_eq!(written(&actions), [prompt("prompt", "make the tests pass")]);
    }
}

#[test]
fn settings_that_cannot_be_passed_on_are_named() {
    let settings = AgentSettings { max_turns: Some(3), dirs: vec!["/docs".into()], ..settings("agent") };
    let mut protocol = protocol(&settings, &fresh());
    protocol.start();
    feed(&mut *protocol, HELLO);
    let reported = events(&feed(&mut *protocol, SESSION));
    let notices: Vec<_> =
        reported.iter().filter(|event| matches!(event, AgentEvent::Notice { .. })).collect();
    assert_eq!(notices.len(), 2, "{reported:?}");
}
