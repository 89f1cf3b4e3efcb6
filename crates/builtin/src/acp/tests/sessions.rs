//! Sessions that continue in another process.

use serde_json::{Value, json};
use towline_provider::Item;

use super::support::*;

fn file(place: &Place, session: &str) -> std::path::PathBuf {
    place.sessions().join(format!("{session}.jsonl"))
}

#[tokio::test]
async fn a_loaded_session_is_shown_again_and_a_resumed_one_is_not() {
    let place = Place::new();
    write(&place.work(), "a.txt", "one\n");
    let mut settings = place.settings();
    settings.prices = Some("input=10,output=0".parse().unwrap());
    let steps = [answers("I read.", &[("read", json!({"path": "a.txt"}))]), replies("Done.")];
    let mut agent = Agent::start(settings.clone(), place.work(), steps);
    let session = agent.new_session().await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})).await;
    agent.prompt(&session, "go").await;
    agent.end().await;

    let mut agent = Agent::start(settings.clone(), place.work(), [replies("On.")]);
    let (news, answer) = agent.open("session/load", &session).await;
    assert_eq!(answer["result"]["modes"]["currentModeId"], "bypass");
    let shown: Vec<_> = updates(&news, None).iter().map(|update| update["sessionUpdate"].clone()).collect();
    let kinds =
        ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"];
    assert_eq!(shown, kinds);
    assert_eq!(text(&news, "agent_message_chunk"), "I read.Done.");
    assert_eq!(ends(&news)[0].1, "completed");
    let usage = agent.wait_for_update("usage_update").await;
    assert_eq!((&usage["used"], &usage["cost"]["amount"]), (&json!(130), &json!(0.0022)));
    let (news, _) = agent.prompt(&session, "on").await;
    assert_eq!(updates(&news, Some("usage_update"))[0]["cost"]["amount"], json!(0.0033));
    assert_eq!(agent.asked()[0].items.len(), 5);
    agent.end().await;

    let mut agent = Agent::start(settings, place.work(), [replies("On.")]);
    let (news, answer) = agent.open("session/resume", &session).await;
    assert_eq!((updates(&news, None), answer["result"].is_object()), (Vec::<Value>::new(), true));
    agent.prompt(&session, "on").await;
    assert_eq!(agent.asked()[0].items.len(), 7);
}

#[tokio::test]
async fn a_session_cut_at_any_byte_continues_with_the_whole_records() {
    let place = Place::new();
    let steps = [calls(&[("list", json!({})), ("list", json!({"path": "."}))]), replies("Done.")];
    let (mut agent, session) = place.session(steps).await;
    agent.prompt(&session, "go").await;
    agent.end().await;
    let whole = std::fs::read(file(&place, &session)).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in (header..=whole.len()).step_by(7).chain([whole.len()]) {
        std::fs::write(file(&place, &session), &whole[..cut]).unwrap();
        let mut agent = place.agent([replies("On.")]);
        let (_, answer) = agent.open("session/resume", &session).await;
        assert!(answer["result"].is_object(), "{cut}: {answer}");
        agent.prompt(&session, "on").await;
        let items = agent.asked()[0].items.clone();
        // Wherever the cut is, every call has a result, in the order of the calls.
        for pair in items.windows(2) {
            if let [Item::Model(message), next] = pair
                && !message.calls.is_empty()
            {
                let Item::Results { results } = next else { panic!("{cut}: {items:?}") };
                let ids = |id: &String| id.clone();
                let called: Vec<_> = message.calls.iter().map(|call| ids(&call.id)).collect();
                assert_eq!(results.iter().map(|result| ids(&result.id)).collect::<Vec<_>>(), called, "{cut}");
                let stopped = "The agent was stopped in the middle of this call";
                assert!(results.iter().all(|result| !result.failed || result.output.starts_with(stopped)));
            }
        }
        assert_eq!(items.last(), Some(&user("on")), "{cut}");
        agent.end().await;
    }
}

#[tokio::test]
async fn a_session_of_another_directory_is_not_found() {
    let place = Place::new();
    let (agent, session) = place.session([]).await;
    agent.end().await;
    let mut agent = place.agent([]);
    for id in ["", "../x", "0197a3b2-0000-7000-8000-000000000000", &session.to_uppercase()] {
        let (_, answer) = agent.open("session/load", id).await;
        assert_eq!(answer["error"]["code"], -32_002, "{id}: {answer}");
    }
    let elsewhere = json!({"sessionId": session, "cwd": place.sessions(), "mcpServers": []});
    let answer = agent.call("session/resume", elsewhere).await;
    assert_eq!(answer["error"]["code"], -32_002);
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("no such session"), "{answer}");
}

#[tokio::test]
async fn a_session_belongs_to_one_process_at_a_time() {
    let place = Place::new();
    let (first, session) = place.session([]).await;
    let mut second = place.agent([]);
    let (_, answer) = second.open("session/resume", &session).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("open in another process"), "{answer}");
    first.end().await;
    let (_, answer) = second.open("session/resume", &session).await;
    assert!(answer["result"].is_object(), "{answer}");
    // The same process may open it again.
    let (_, answer) = second.open("session/load", &session).await;
    assert!(answer["result"].is_object(), "{answer}");
}
