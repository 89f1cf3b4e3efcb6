//! Conversations that become too long.

use serde_json::{Value, json};
use towline_provider::{ErrorClass, Item};

use super::support::*;

fn compacted(news: &[Value]) -> Vec<(u64, u64)> {
    let messages = news.iter().filter(|message| message["method"] == "_towline/compacted");
    messages
        .map(|message| {
            (message["params"]["before"].as_u64().unwrap(), message["params"]["after"].as_u64().unwrap())
        })
        .collect()
}

/// An answer after which the context holds `input` tokens.
fn filling(step: Step, input: u64) -> Step {
    but(step, |answer| answer.usage.input = input)
}

#[tokio::test]
async fn a_conversation_that_fills_its_window_is_summarised_and_the_turn_continues() {
    let look = filling(calls(&[("list", json!({}))]), 90_000);
    let (mut agent, session) = new_session([look, replies("SUMMARY"), replies("Done.")]).await;
    let (news, answer) = agent.prompt(&session, "do it").await;
    assert_eq!((stop_reason(&answer), text(&news, "agent_message_chunk").as_str()), ("end_turn", "Done."));
    let messages = compacted(&news);
    assert!(messages.len() == 1 && messages[0].0 > 90_000 && messages[0].1 < 10_000, "{messages:?}");
    let asked = agent.asked();
    assert_eq!(asked[1].tools, 0);
    let Item::User { text: request } = &asked[1].items[0] else { panic!("{asked:?}") };
    assert!(request.contains("User: do it") && request.contains("You called list"), "{request}");
    let Item::User { text: summary } = &asked[2].items[0] else { panic!("{asked:?}") };
    assert!(summary.ends_with("SUMMARY"), "{summary}");
    assert_eq!(asked[2].items[1..], [user("do it")]);
    // All three answers count.
    assert_eq!(answer["result"]["usage"]["inputTokens"], 90_200);
}

#[tokio::test]
async fn a_provider_that_reports_an_overflow_gets_a_summary_once() {
    let steps = [fails("", ErrorClass::Overflow), replies("SUMMARY"), replies("Done.")];
    let (mut agent, session) = new_session(steps).await;
    let (news, answer) = agent.prompt(&session, "go").await;
    assert_eq!((stop_reason(&answer), compacted(&news).len()), ("end_turn", 1));
    let steps = [fails("", ErrorClass::Overflow), replies("SUMMARY"), fails("", ErrorClass::Overflow)];
    let (mut agent, session) = new_session(steps).await;
    let (_, answer) = agent.prompt(&session, "go").await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["class"]),
        (&json!(413), &json!("overflow"))
    );
}

#[tokio::test]
async fn a_summary_that_does_not_help_ends_the_turn() {
    let full = || filling(calls(&[("list", json!({}))]), 95_000);
    let (mut agent, session) = new_session([full(), replies("SUMMARY"), full()]).await;
    let (_, answer) = agent.prompt(&session, "go").await;
    assert_eq!(answer["error"]["data"]["class"], "overflow", "{answer}");
    assert_eq!(agent.asked().len(), 3);
    let long = "x".repeat(500_000);
    let (mut agent, session) = new_session([replies("SUMMARY")]).await;
    let (_, answer) = agent.prompt(&session, &long).await;
    assert_eq!(answer["error"]["data"]["class"], "overflow", "{answer}");
}

#[tokio::test]
async fn the_user_can_ask_for_a_summary() {
    let (mut agent, session) = new_session([replies("Hi."), replies("SUMMARY"), replies("ok")]).await;
    let (news, answer) = agent.prompt(&session, "/compact").await;
    assert_eq!(
        (stop_reason(&answer), text(&news, "agent_message_chunk").as_str()),
        ("end_turn", "There is nothing to summarise yet.")
    );
    agent.prompt(&session, "hello").await;
    let (news, answer) = agent.prompt(&session, "/compact the greeting").await;
    assert_eq!((stop_reason(&answer), compacted(&news).len()), ("end_turn", 1));
    assert!(text(&news, "agent_message_chunk").starts_with("The conversation was summarised: about "));
    let asked = agent.asked();
    let Item::User { text: request } = &asked[1].items[0] else { panic!("{asked:?}") };
    assert!(request.contains("Focus on this: the greeting"), "{request}");
    agent.prompt(&session, "on").await;
    let items = agent.asked()[2].items.clone();
    assert!(items.len() == 2 && items[1] == user("on"), "{items:?}");
}
