//! Requests for goals that nobody drives: they are recorded.

use serde_json::json;
use towline_core::{Ask, AttemptNo, Phase, Question, QuestionNo};
use towline_engine::{Clock, SystemClock};

use crate::server::Server;

#[tokio::test]
async fn a_goal_is_paused_resumed_cancelled_and_opened_again() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let path = |what: &str| format!("/goals/{}/{what}", goal.id);
    for (what, phase) in
        [("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled"), ("retry", "queued")]
    {
        let done = server.post(&path(what)).send().await;
        assert_eq!((done.status, done.json()["phase"].as_str()), (200, Some(phase)), "{what}: {done:?}");
    }
    let problem = server.post(&path("resume")).send().await.refused(409);
    assert!(problem["detail"].as_str().expect("words").contains("queued"), "{problem}");
    server.stop().await;
}

#[tokio::test]
async fn a_goal_is_opened_again_with_other_checks_and_a_larger_budget() {
    let server = Server::start().await;
    let goal = server.goal_as(|state| state.phase = Phase::Cancelled).await;
    let retry = json!({"budget": {"attempts": "+5"}, "checks": ["false"], "fresh": true});
    let opened = server.post(&format!("/goals/{}/retry", goal.id)).json(&retry).send().await;
    assert_eq!(opened.status, 200, "{opened:?}");
    assert!(opened.json()["checks_replaced_at"].is_string(), "{opened:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_message_is_recorded_for_the_next_attempt() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let tell = server.post(&format!("/goals/{}/tell", goal.id));
    assert_eq!(tell.clone().json(&json!({"text": "look at the tests"})).send().await.status, 200);
    let log = server.get(&format!("/goals/{}/events", goal.id)).send().await;
    assert!(log.body.contains("look at the tests"), "{log:?}");
    tell.json(&json!({"text": " "})).send().await.refused(422);
    server.stop().await;
}

#[tokio::test]
async fn a_question_is_listed_and_answered() {
    let server = Server::start().await;
    let goal = server.goal().await;
    server.post(&format!("/goals/{}/answer", goal.id)).json(&json!({"text": "a"})).send().await.refused(422);
    server
        .set_state(goal.id, |state| {
            let ask = Ask::choice("Which one?".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
            let (n, attempt, asked_at) = (QuestionNo(1), AttemptNo::FIRST, SystemClock.now());
            state.questions.push(Question { n, attempt, ask, asked_at, deadline: None, closed: None });
            state.phase = Phase::Blocked { question: n, until: None, attempt: None };
        })
        .await;
    let listed = server.get("/questions").send().await.json();
    assert_eq!(
        (listed[0]["goal"].as_str(), listed[0]["question"].as_str()),
        (Some(goal.id.to_string().as_str()), Some("Which one?"))
    );
    let answered =
        server.post(&format!("/goals/{}/answer", goal.id)).json(&json!({"text": "b"})).send().await;
    assert_eq!((answered.status, answered.json()["phase"].as_str()), (200, Some("queued")), "{answered:?}");
    assert_eq!(server.get("/questions").send().await.json(), json!([]));
    server.stop().await;
}
