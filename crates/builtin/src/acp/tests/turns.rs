//! The course of a turn.

use std::time::Instant;

use serde_json::{Value, json};
use towline_provider::{CallResult, Item, Stop, Usage};

use super::support::*;
use crate::test_waits::{contained, reaped};

#[tokio::test]
async fn words_are_streamed_and_end_the_turn_with_its_usage() {
    let place = Place::new();
    let mut settings = place.settings();
    settings.prices = Some("input=10,output=50,cache_read=1,cache_write=20".parse().unwrap());
    let mut agent = Agent::start(settings, place.work(), [replies("Hello."), replies("Again.")]);
    let session = agent.new_session().await;
    let (news, answer) = agent.prompt(&session, "Greet me").await;
    assert_eq!(text(&news, "agent_message_chunk"), "Hello.");
    // 100 × 10 + 20 × 50 + 7 × 1 + 3 × 20 micro-dollars.
    let taken = json!({"model": "scripted", "input": 100, "output": 20, "cache_read": 7, "cache_write": 3});
    let usage = |amount: f64| {
        json!({
            "sessionUpdate": "usage_update",
            "used": 130,
            "size": 100_000,
            "cost": {"amount": amount, "currency": "USD"},
            "_meta": {"towline": taken},
        })
    };
    assert_eq!(updates(&news, Some("usage_update")), [usage(0.002_067)]);
    let total = json!({
        "totalTokens": 130,
        "inputTokens": 100,
        "outputTokens": 20,
        "cachedReadTokens": 7,
        "cachedWriteTokens": 3,
    });
    assert_eq!(answer["result"], json!({"stopReason": "end_turn", "usage": total}));
    let (news, _) = agent.prompt(&session, "Again").await;
    assert_eq!(updates(&news, Some("usage_update")), [usage(0.004_134)]);
    let items = &agent.asked()[1].items;
    assert_eq!((items.len(), &items[0], &items[2]), (3, &user("Greet me"), &user("Again")));
}

#[tokio::test]
async fn calls_are_reported_and_run_and_the_model_gets_their_results() {
    let place = Place::new();
    write(&place.work(), "a.txt", "one\n");
    let edit = json!({"path": "a.txt", "old": "one", "new": "two"});
    let (mut agent, session) = place.session([calls(&[("edit", edit.clone())]), replies("Done.")]).await;
    let (news, answer) = agent.prompt(&session, "go").await;
    assert_eq!(std::fs::read_to_string(place.work().join("a.txt")).unwrap(), "two\n");
    let path = place.work().join("a.txt");
    let reported = &updates(&news, Some("tool_call"))[0];
    let wanted = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": "edit-1",
        "title": "edit a.txt",
        "kind": "edit",
        "status": "pending",
        "locations": [{"path": path}],
        "rawInput": edit,
    });
    assert_eq!(*reported, wanted);
    let last = updates(&news, Some("tool_call_update")).pop().unwrap();
    let diff = json!({"type": "diff", "path": path, "oldText": "one\n", "newText": "two\n"});
    assert_eq!((&last["status"], &last["content"][0]), (&json!("completed"), &diff));
    let asked = agent.asked();
    let Item::Results { results } = &asked[1].items[2] else { panic!("{asked:?}") };
    assert_eq!((results[0].id.as_str(), results[0].failed), ("edit-1", false));
    assert_eq!(answer["result"]["usage"]["totalTokens"], 260);
    assert_eq!(stop_reason(&answer), "end_turn");
}

#[tokio::test]
async fn the_model_learns_of_an_unknown_tool_and_of_wrong_arguments() {
    let wanted =
        calls(&[("fly", json!({})), ("read", json!("no object")), ("read", json!({"path": "../x"}))]);
    let (mut agent, session) = new_session([wanted, replies("Sorry.")]).await;
    let (news, answer) = agent.prompt(&session, "go").await;
    assert_eq!(stop_reason(&answer), "end_turn");
    let ends = ends(&news);
    assert_eq!(ends.iter().map(|(_, status, _)| status.as_str()).collect::<Vec<_>>(), ["failed"; 3]);
    assert!(ends[0].2.starts_with("There is no tool `fly`. There are: read, write, "), "{}", ends[0].2);
    let results = agent.asked()[1].items[2].clone();
    let Item::Results { results } = results else { panic!("{results:?}") };
    let ids: Vec<_> = results.iter().map(|result: &CallResult| result.id.as_str()).collect();
    assert_eq!(ids, ["fly-1", "read-2", "read-3"]);
    assert!(results.iter().all(|result| result.failed));
}

#[tokio::test]
async fn answers_that_are_cut_or_refused_end_the_turn_without_their_calls() {
    for (stop, reason) in [(Stop::MaxTokens, "max_tokens"), (Stop::Refused, "refusal")] {
        let cut = calls(&[("write", json!({"path": "a", "content": "x"}))]);
        let (mut agent, session) = new_session([but(cut, |answer| answer.stop = stop), replies("ok")]).await;
        let (_, answer) = agent.prompt(&session, "go").await;
        assert_eq!(stop_reason(&answer), reason);
        assert!(!agent.work.join("a").exists());
        agent.prompt(&session, "on").await;
        let items = agent.asked()[1].items.clone();
        assert!(matches!(&items[2], Item::Results { results } if results[0].failed), "{items:?}");
        assert_eq!(items[3], user("on"));
    }
}

#[tokio::test]
async fn a_turn_ends_at_its_limit_of_answers() {
    let place = Place::new();
    let mut settings = place.settings();
    settings.max_turns = Some(2);
    let look = || calls(&[("list", json!({}))]);
    let mut agent = Agent::start(settings, place.work(), [look(), look(), look(), replies("Done.")]);
    let session = agent.new_session().await;
    assert_eq!(stop_reason(&agent.prompt(&session, "go").await.1), "max_turn_requests");
    assert_eq!(stop_reason(&agent.prompt(&session, "on").await.1), "end_turn");
}

#[tokio::test]
async fn the_output_of_a_command_is_reported_while_it_runs() {
    let command = json!({"command": "echo ready; while ! test -e go; do sleep 0.01; done; echo end"});
    let (mut agent, session) = new_session([calls(&[("run", command)]), replies("Done.")]).await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})).await;
    let id = agent.ask(&session, "go").await;
    loop {
        let update = agent.wait_for_update("tool_call_update").await;
        if update["content"][0]["content"]["text"] == "ready\n" {
            assert_eq!(update["status"], "in_progress");
            break;
        }
    }
    write(&agent.work, "go", "");
    let (news, answer) = agent.until(id).await;
    assert_eq!((ends(&news)[0].1.as_str(), stop_reason(&answer)), ("completed", "end_turn"));
}

#[tokio::test]
async fn a_flood_is_reported_at_intervals_and_only_its_end() {
    let begun = Instant::now();
    let command = json!({"command": "head -c 100000000 /dev/zero | tr '\\0' x"});
    let (mut agent, session) = new_session([calls(&[("run", command)]), replies("Done.")]).await;
    let (news, _) = agent.prompt(&session, "go").await;
    let mut reports = updates(&news, Some("tool_call_update"));
    reports.retain(|update| update["status"] == "in_progress");
    // The first one comes before any output.
    let quarters = begun.elapsed().as_millis() / 250 + 2;
    assert!(reports.len() > 1 && reports.len() as u128 <= quarters, "{} in {quarters}", reports.len());
    let longest = reports.iter().filter_map(|update| update["content"][0]["content"]["text"].as_str());
    assert!(longest.map(str::len).max() <= Some(8 * 1024));
}

#[tokio::test]
async fn a_cancelled_command_is_ended_and_the_conversation_continues() {
    let command = json!({"command": "echo $$ > pid; sleep 600"});
    let (mut agent, session) = new_session([calls(&[("run", command)]), replies("ok")]).await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})).await;
    let id = agent.ask(&session, "go").await;
    let pid_file = agent.work.join("pid");
    contained(&pid_file, "\n").await;
    agent.send(&json!({"method": "session/cancel", "params": {"sessionId": session}})).await;
    let (news, answer) = agent.until(id).await;
    assert_eq!(stop_reason(&answer), "cancelled");
    assert_eq!(ends(&news)[0].1, "failed");
    reaped(&pid_file).await;
    assert_eq!(stop_reason(&agent.prompt(&session, "on").await.1), "end_turn");
    let items = agent.asked()[1].items.clone();
    let Item::Results { results } = &items[2] else { panic!("{items:?}") };
    assert!(results[0].failed && results[0].output.starts_with("The user cancelled"), "{results:?}");
    let rest: Vec<_> = items[3..].to_vec();
    assert_eq!(rest, [user("on")]);
    assert_eq!(agent.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_provider_that_counts_no_tokens_is_reported_once_per_session() {
    let uncounted = |step| but(step, |answer| answer.usage = Usage::default());
    let look = || calls(&[("list", json!({}))]);
    let steps = [look(), uncounted(look()), uncounted(replies("Done.")), uncounted(replies("Again."))];
    let (mut agent, session) = new_session(steps).await;
    let problems = |news: &[Value]| {
        let problems = news.iter().filter(|message| message["method"] == "_towline/problem");
        problems.map(|message| message["params"]["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let reported = problems(&agent.prompt(&session, "go").await.0);
    assert!(reported.len() == 1 && reported[0].contains("does not report how many tokens"), "{reported:?}");
    assert_eq!(problems(&agent.prompt(&session, "on").await.0), Vec::<String>::new());
}

#[tokio::test]
async fn towline_is_asked_before_each_request_and_a_turn_that_gets_no_answer_sends_none() {
    let read = json!({"path": "."});
    let (mut agent, session) = new_session([calls(&[("list", read)]), replies("Done.")]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "towline"}})).await;
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let prompt = agent.request("session/prompt", prompt).await;
    let asked = agent.wait_for("_towline/counted").await;
    assert_eq!((&asked["params"], agent.asked().len()), (&json!({"sessionId": session}), 0));
    agent.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}})).await;
    agent.wait_for("_towline/counted").await;
    agent
        .send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}))
        .await;
    let (_, answer) = agent.until(prompt).await;
    assert_eq!((&answer["result"]["stopReason"], agent.asked().len()), (&json!("cancelled"), 1));
}
