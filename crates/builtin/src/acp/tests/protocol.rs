//! The protocol around turns.

use serde_json::json;

use super::support::*;

#[tokio::test]
async fn it_announces_its_capabilities() {
    let place = Place::new();
    let mut agent = place.agent([]);
    let answer = agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let wanted = json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "towline", "title": "Towline", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "sessionCapabilities": {"resume": {}},
            "promptCapabilities": {"embeddedContext": true},
            "mcpCapabilities": {},
        },
        "authMethods": [],
    });
    assert_eq!(answer["result"], wanted);
}

#[tokio::test]
async fn a_new_session_has_modes_a_model_and_a_command() {
    let place = Place::new();
    let mut agent = place.agent([]);
    let answer = agent.call("session/new", json!({"cwd": place.work(), "mcpServers": []})).await;
    let result = &answer["result"];
    assert_eq!(result["modes"]["currentModeId"], "ask");
    assert_eq!(result["modes"]["availableModes"][1]["id"], "bypass");
    assert_eq!(result["models"]["currentModelId"], "scripted");
    let commands = agent.wait_for_update("available_commands_update").await;
    assert_eq!(commands["availableCommands"][0]["name"], "compact");
}

#[tokio::test]
async fn a_malformed_message_is_refused_and_the_next_line_is_read() {
    let place = Place::new();
    let mut agent = place.agent([]);
    for (line, code) in [
        ("nonsense", -32_700),
        ("[]", -32_600),
        (r#"{"id":9}"#, -32_600),
        (r#"{"id":9,"method":"session/fly"}"#, -32_601),
        (r#"{"id":9,"method":"session/new"}"#, -32_602),
        (r#"{"id":9,"method":"session/new","params":{"cwd":"relative"}}"#, -32_602),
        (r#"{"id":9,"method":"session/new","params":{"cwd":"/no/such/directory"}}"#, -32_602),
        (r#"{"id":9,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#, -32_002),
        (r#"{"id":9,"method":"session/set_mode","params":{"sessionId":"x","modeId":"fly"}}"#, -32_602),
        (r#"{"id":9,"method":"session/set_mode","params":{"sessionId":"x","modeId":"ask"}}"#, -32_002),
    ] {
        agent.line("").await;
        agent.line(r#"{"method":"session/cancel","params":{"sessionId":"x"}}"#).await;
        agent.line(r#"{"method":"_unknown"}"#).await;
        agent.line(line).await;
        let answer = agent.next().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    assert_eq!(agent.call("initialize", json!({})).await["result"]["protocolVersion"], 1);
    assert_eq!(agent.end().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn requests_are_answered_while_a_turn_runs_and_a_second_prompt_is_refused() {
    let (mut agent, session) = new_session([Step::Hangs("working")]).await;
    let prompt = agent.ask(&session, "go").await;
    agent.wait_for_update("agent_message_chunk").await;
    assert!(agent.call("initialize", json!({})).await["result"].is_object());
    let set = agent.call("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})).await;
    assert_eq!(set["result"], json!({}));
    let (_, refused) = agent.prompt(&session, "more").await;
    assert_eq!(refused["error"]["code"], -32_600);
    let (_, reopened) = agent.open("session/load", &session).await;
    assert_eq!(reopened["error"]["code"], -32_600);
    agent.send(&json!({"method": "session/cancel", "params": {"sessionId": session}})).await;
    assert_eq!(stop_reason(&agent.until(prompt).await.1), "cancelled");
}

#[tokio::test]
async fn sessions_run_side_by_side() {
    let (mut agent, one) = new_session([Step::Hangs("one works"), replies("two is done")]).await;
    let two = agent.new_session().await;
    let first = agent.ask(&one, "hang").await;
    agent.wait_for_update("agent_message_chunk").await;
    let (news, answer) = agent.prompt(&two, "go").await;
    assert_eq!(
        (text(&news, "agent_message_chunk").as_str(), stop_reason(&answer)),
        ("two is done", "end_turn")
    );
    assert!(news.iter().all(|message| message["params"]["sessionId"] == two.as_str()));
    agent.send(&json!({"method": "session/cancel", "params": {"sessionId": one}})).await;
    assert_eq!(stop_reason(&agent.until(first).await.1), "cancelled");
}

#[tokio::test]
async fn the_end_of_the_input_cancels_what_runs_and_ends_the_agent() {
    let (mut agent, session) = new_session([Step::Hangs("working")]).await;
    let id = agent.ask(&session, "go").await;
    agent.wait_for_update("agent_message_chunk").await;
    let last = agent.end().await;
    assert_eq!((&last[0]["id"], stop_reason(&last[0])), (&json!(id), "cancelled"));
}

#[tokio::test]
async fn another_model_is_asked_once_it_is_chosen() {
    let (mut agent, session) = new_session([replies("a"), replies("b")]).await;
    agent.prompt(&session, "one").await;
    agent.call("session/set_model", json!({"sessionId": session, "modelId": "other"})).await;
    let (news, _) = agent.prompt(&session, "two").await;
    let models: Vec<_> = agent.asked().into_iter().map(|asked| asked.model).collect();
    assert_eq!(models, ["scripted", "other"]);
    assert_eq!(updates(&news, Some("usage_update"))[0]["_meta"]["towline"]["model"], "other");
}
