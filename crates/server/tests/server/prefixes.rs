//! A goal is named by its id, or by a part of it that no other goal shares; and lists have what programs need.

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn a_part_of_an_id_names_a_goal_wherever_an_id_does() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let (id, short) = (goal.id.to_string(), goal.id.short());
    let shown = server.get(&format!("/goals/{short}")).send().await;
    assert_eq!((shown.status, &shown.json()["id"]), (200, &json!(id)), "{shown:?}");
    let events = server.get(&format!("/goals/{short}/events")).send().await;
    assert_eq!(events.status, 200, "{events:?}");
    let new = json!({
        "prompt": "x", "repository": server.project.path(), "checks": ["true"], "after": [{"goal": short}],
    });
    let created = server.post("/goals").json(&new).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    let paused = server.post(&format!("/goals/{short}/pause")).send().await;
    assert_eq!((paused.status, &paused.json()["id"]), (200, &json!(id)), "{paused:?}");
    server.get("/goals/ffffffff").send().await.refused(404);
    server.get("/goals/@").send().await.refused(400);
    server.stop().await;
}

#[tokio::test]
async fn a_part_that_several_goals_share_is_refused() {
    let server = Server::start().await;
    let ids = [server.goal().await.id.to_string(), server.goal().await.id.to_string()];
    let shared: String =
        ids[0].chars().zip(ids[1].chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let refused = server.get(&format!("/goals/{shared}")).send().await;
    assert_eq!(refused.status, 422, "{refused:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_list_of_goals_has_their_prompts() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let listed = server.get("/goals").send().await.json();
    assert_eq!(listed["goals"][0]["prompt"], json!(goal.prompt), "{listed}");
    server.stop().await;
}
