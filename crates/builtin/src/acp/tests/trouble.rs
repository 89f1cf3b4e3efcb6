//! A provider that fails.

use serde_json::{Value, json};
use towline_provider::{ErrorClass, ProviderError};

use super::super::clock;
use super::support::*;

fn retries(news: &[Value]) -> Vec<Value> {
    let retries = news.iter().filter(|message| message["method"] == "_towline/retrying");
    retries.map(|message| message["params"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn passing_errors_are_retried_and_each_retry_is_reported() {
    let steps =
        [fails("Hal", ErrorClass::CutOff), fails("", ErrorClass::Server), replies("Hello."), replies("ok")];
    let (mut agent, session) = new_session(steps).await;
    let (news, answer) = agent.prompt(&session, "go").await;
    assert_eq!(stop_reason(&answer), "end_turn");
    let retried = retries(&news);
    assert_eq!(retried.len(), 2);
    for (retry, (attempt, delay)) in retried.iter().zip([(2, 375..=625), (3, 1500..=2500)]) {
        assert_eq!(retry["attempt"], attempt);
        assert_eq!((&retry["sessionId"], &retry["message"]), (&json!(session), &json!("scripted")));
        assert!(delay.contains(&retry["delayMs"].as_u64().unwrap()), "{retry}");
    }
    let chunks = updates(&news, Some("agent_message_chunk"));
    assert_ne!(chunks[0]["messageId"], chunks[1]["messageId"]);
    agent.prompt(&session, "on").await;
    let items = agent.asked()[3].items.clone();
    assert_eq!(items.len(), 3, "{items:?}");
}

#[tokio::test(start_paused = true)]
async fn lasting_errors_end_the_prompt_with_their_class() {
    for (class, name, code, tries) in [
        (ErrorClass::Auth, "auth", 401, 1),
        (ErrorClass::Limited, "limited", 429, 1),
        (ErrorClass::Server, "server", 503, 3),
        (ErrorClass::Network, "network", 503, 3),
        (ErrorClass::CutOff, "cut_off", 502, 3),
        (ErrorClass::Refused, "refused", 400, 1),
        (ErrorClass::Invalid, "invalid", 400, 1),
    ] {
        let steps = (0..tries).map(|_| fails("", class)).chain([replies("Better.")]);
        let (mut agent, session) = new_session(steps).await;
        let (_, answer) = agent.prompt(&session, "go").await;
        let wanted = json!({"code": code, "message": "scripted", "data": {"class": name}});
        assert_eq!(answer["error"], wanted);
        assert_eq!(stop_reason(&agent.prompt(&session, "again").await.1), "end_turn");
    }
}

#[tokio::test]
async fn a_short_limit_is_waited_for_once() {
    let limited = |milliseconds| {
        let until = clock::now() + jiff::SignedDuration::from_millis(milliseconds);
        let class = ErrorClass::Limited;
        Step::Fails(
            "",
            ProviderError { class, status: Some(429), until: Some(until), message: "slow".into() },
        )
    };
    let (mut agent, session) = new_session([limited(50), replies("ok"), limited(50), limited(50)]).await;
    let (news, answer) = agent.prompt(&session, "go").await;
    assert_eq!((stop_reason(&answer), retries(&news).len()), ("end_turn", 1));
    let (_, answer) = agent.prompt(&session, "go").await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["class"]),
        (&json!(429), &json!("limited"))
    );
    assert!(answer["error"]["data"]["until"].is_string(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_another_try_can_be_cancelled() {
    let (mut agent, session) = new_session([fails("", ErrorClass::Network)]).await;
    let id = agent.ask(&session, "go").await;
    agent.wait_for("_towline/retrying").await;
    agent.send(&json!({"method": "session/cancel", "params": {"sessionId": session}})).await;
    assert_eq!(stop_reason(&agent.until(id).await.1), "cancelled");
    assert_eq!(agent.asked().len(), 1);
}
