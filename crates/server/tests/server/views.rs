//! What is not about one goal.

use serde_json::json;
use towline_core::{Account, AccountStatus, AgentName};
use towline_engine::{Clock, SystemClock};

use crate::server::Server;

#[tokio::test]
async fn projects_and_the_queue_are_listed() {
    let server = Server::start().await;
    let (first, second) = (server.goal().await, server.goal().await);
    let project = first.workspace.repository.clone();
    assert_eq!(
        server.get("/projects").send().await.json(),
        json!([{"repository": project, "goals": {"queued": 2}}])
    );
    let queue = server.get("/queue").send().await.json();
    assert_eq!(queue["running"], json!([]));
    let ids: Vec<_> =
        queue["waiting"].as_array().expect("a list").iter().map(|line| line["id"].clone()).collect();
    assert_eq!(json!(ids), json!([first.id.to_string(), second.id.to_string()]));
    server.stop().await;
}

#[tokio::test]
async fn a_goal_that_waits_for_another_shows_it() {
    let server = Server::start().await;
    let first = server.goal().await.id;
    let new = json!({"prompt": "Then", "repository": server.project.path(), "after": [{"goal": first.to_string()}]});
    let second = server.post("/goals").json(&new).send().await.json();
    let queue = server.get("/queue").send().await.json();
    let held = queue["waiting"].as_array().expect("a list").iter().find(|line| line["id"] == second["id"]);
    let hold = &held.expect("queued")["hold"];
    assert_eq!(hold["reason"], "prerequisite");
    assert_eq!(hold["text"], json!(format!("waits for {} (queued)", first.short())));
    server.stop().await;
}

#[tokio::test]
async fn an_account_that_is_closed_is_opened_for_a_trial() {
    let server = Server::start().await;
    let account = Account {
        name: "main".to_owned(),
        agent: AgentName::new("own"),
        status: AccountStatus::Closed,
        updated_at: SystemClock.now(),
    };
    server.store.set_account(&account).await.expect("stored");
    assert_eq!(server.get("/accounts").send().await.json()[0]["state"], "closed");
    assert_eq!(server.post("/accounts/main/open").send().await.json()["state"], "trial");
    assert_eq!(server.store.accounts().await.expect("accounts")[0].status, AccountStatus::Trial);
    server.post("/accounts/other/open").send().await.refused(404);
    server.stop().await;
}

#[tokio::test]
async fn agents_spending_health_metrics_and_the_document_are_shown() {
    let server = Server::start().await;
    server.goal().await;
    assert_eq!(server.get("/agents").send().await.json()[0]["name"], "own");
    for by in ["day", "project", "account", "agent", "model", "goal"] {
        let cost = server.get(&format!("/cost?by={by}")).send().await.json();
        assert_eq!((&cost["by"], &cost["lines"]), (&json!(by), &json!([])));
    }
    server.get("/cost?by=moon").send().await.refused(400);
    server.get("/cost?since=yesterday").send().await.refused(422);
    assert_eq!(
        server.client.ask("GET", "/healthz").send().await.json(),
        json!({"status": "ok", "version": "0.0.0-test"})
    );
    let metrics = server.get("/metrics").send().await.body;
    for row in [
        "towline_goals{phase=\"queued\"} 1",
        "towline_goals_running 0",
        "towline_goals_queued 1",
        "towline_spend_today_usd 0",
        "towline_notices_pending 0",
        "towline_store_errors_total 0",
        "towline_http_requests_total{class=\"4xx\"} 2",
    ] {
        assert!(metrics.lines().any(|line| line == row), "{row}: {metrics}");
    }
    let document = server.get("/openapi.json").send().await.json();
    assert_eq!(document["openapi"], "3.1.0");
    server.stop().await;
}
