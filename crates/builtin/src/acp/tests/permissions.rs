//! Permissions of calls.

use serde_json::{Value, json};
use towline_provider::Item;

use super::support::*;

fn writes(name: &str) -> Step {
    calls(&[("write", json!({"path": name, "content": "x"}))])
}

fn requests(news: &[Value]) -> Vec<&Value> {
    news.iter().filter(|message| message["method"] == "session/request_permission").collect()
}

#[tokio::test]
async fn calls_that_act_need_permission_and_those_that_read_do_not() {
    let looks = calls(&[("list", json!({}))]);
    let (mut agent, session) = new_session([looks, writes("a"), replies("ok")]).await;
    let (news, _) = agent.prompt(&session, "go").await;
    let asked = requests(&news);
    assert_eq!(asked.len(), 1);
    let params = &asked[0]["params"];
    assert_eq!(params["toolCall"]["toolCallId"], "write-1");
    assert_eq!(params["toolCall"]["kind"], "edit");
    assert_eq!(params["toolCall"]["rawInput"], json!({"path": "a", "content": "x"}));
    let kinds: Vec<_> = (0..3).map(|option| params["options"][option]["kind"].clone()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert!(agent.work.join("a").exists());
}

#[tokio::test]
async fn allow_always_holds_for_the_kind_of_call() {
    let steps = [writes("a"), writes("b"), calls(&[("run", json!({"command": "true"}))]), replies("ok")];
    let (mut agent, session) = new_session(steps).await;
    agent.permit = "allow_always";
    let (news, _) = agent.prompt(&session, "go").await;
    let asked: Vec<_> =
        requests(&news).iter().map(|request| request["params"]["toolCall"]["kind"].clone()).collect();
    assert_eq!(asked, ["edit", "execute"]);
}

#[tokio::test]
async fn nothing_is_asked_in_bypass() {
    let (mut agent, session) = new_session([writes("a"), replies("ok")]).await;
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})).await;
    let (news, _) = agent.prompt(&session, "go").await;
    assert_eq!((requests(&news).len(), agent.work.join("a").exists()), (0, true));
}

#[tokio::test]
async fn a_rejection_is_reported_to_the_model_and_the_turn_continues() {
    let (mut agent, session) = new_session([writes("a"), replies("Then not.")]).await;
    agent.permit = "reject_once";
    let (news, answer) = agent.prompt(&session, "go").await;
    assert_eq!((stop_reason(&answer), ends(&news)[0].1.as_str()), ("end_turn", "failed"));
    assert!(!agent.work.join("a").exists());
    let items = agent.asked()[1].items.clone();
    let Item::Results { results } = &items[2] else { panic!("{items:?}") };
    assert!(results[0].failed && results[0].output.contains("not permitted"), "{results:?}");
}

#[tokio::test]
async fn a_turn_that_waits_for_a_permission_can_be_cancelled() {
    let (mut agent, session) = new_session([writes("a"), replies("ok")]).await;
    let id = agent.ask(&session, "go").await;
    let request = agent.wait_for("session/request_permission").await;
    agent.send(&json!({"method": "session/cancel", "params": {"sessionId": session}})).await;
    assert_eq!(stop_reason(&agent.until(id).await.1), "cancelled");
    // The client's answer comes too late and is ignored.
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    agent.send(&json!({"id": request["id"], "result": outcome})).await;
    agent.prompt(&session, "on").await;
    assert!(!agent.work.join("a").exists());
}
