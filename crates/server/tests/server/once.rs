//! Requests with an `Idempotency-Key`.

use serde_json::json;
use sha2::{Digest, Sha256};
use towline_app::new_goal_id;
use towline_engine::{Clock, SystemClock};
use towline_store::StoredReply;

use crate::server::Server;

#[tokio::test]
async fn a_request_is_carried_out_once_however_often_it_is_sent() {
    let server = Server::start().await;
    let new = json!({"prompt": "Once", "repository": server.project.path()});
    let create = server.post("/goals").header("idempotency-key", "key-1").json(&new);
    let first = create.clone().send().await;
    let again = create.send().await;
    assert_eq!((first.status, again.status), (201, 201), "{first:?} {again:?}");
    assert_eq!(first.body, again.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(server.get("/goals").send().await.json()["goals"].as_array().map(Vec::len), Some(1));
    let other = json!({"prompt": "Twice", "repository": server.project.path()});
    server.post("/goals").header("idempotency-key", "key-1").json(&other).send().await.refused(422);
    server.post("/goals").header("idempotency-key", &"x".repeat(256)).json(&new).send().await.refused(400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_requests_with_one_key_at_once_one_is_carried_out_and_none_fails() {
    let server = Server::start().await;
    let new = json!({"prompt": "Once", "repository": server.project.path()});
    let create = server.post("/goals").header("idempotency-key", "key-1").json(&new);
    // Client and server are one process here, so the git that the server starts has the client's connections for a moment, and whoever
    // has one with it is taken for an agent.
    let send = async || {
        for _ in 0..100 {
            let status = create.clone().send().await.status;
            if status != 403 {
                return status;
            }
        }
        403
    };
    let mut statuses: Vec<u16> = futures::future::join_all((0..20).map(|_| send())).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201, "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
    assert_eq!(create.send().await.status, 201);
    assert_eq!(server.get("/goals").send().await.json()["goals"].as_array().map(Vec::len), Some(1));
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_is_given_again_and_a_request_under_way_is_not_begun_twice() {
    let server = Server::start().await;
    let cancel = |key: &str| {
        let path = "/goals/01932f6e-7c00-7abc-8def-0123456789ab/cancel";
        server.post(path).header("idempotency-key", key)
    };
    let first = cancel("a").send().await;
    let problem = first.refused(404);
    assert_eq!(cancel("a").send().await.refused(404), problem);
    let goal = server.goal().await;
    let path = format!("/goals/{}/pause", goal.id);
    let pause = server.post(&path).header("idempotency-key", "b");
    let (one, other) = tokio::join!(pause.clone().send(), pause.clone().send());
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert!(statuses == [200, 200] || statuses == [200, 409], "{statuses:?}");
    assert_eq!(pause.send().await.status, 200);
    let pauses = server.get(&format!("/goals/{}/events", goal.id)).send().await;
    assert_eq!(pauses.body.matches("pause_requested").count(), 1, "{pauses:?}");
    server.stop().await;
}

/// How requests and keys are stored.
fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    towline_core::hexadecimal(&hash.finalize())
}

impl Server {
    /// Leaves what a server leaves that is killed while it carries out this request.
    async fn cut_off(&self, key: &str, path: &str, request: &[u8], body: String) {
        let at = SystemClock.now();
        let request = hash(&[b"POST", path.as_bytes(), request]);
        let begun = StoredReply { request, status: None, body, at };
        let key = hash(&[b"operator", key.as_bytes()]);
        assert_eq!(self.store.begin_reply(&key, &begun, at).await.expect("stored"), None);
    }
}

#[tokio::test]
async fn a_goal_whose_creation_was_cut_off_is_created_once_when_the_request_is_sent_again() {
    let server = Server::start().await;
    let new = json!({"prompt": "Once", "repository": server.project.path()});
    let request = serde_json::to_vec(&new).expect("JSON");
    let (there, missing) = (server.goal().await.id, new_goal_id());
    for (key, id) in [("after", there), ("before", missing)] {
        server.cut_off(key, "/api/v1/goals", &request, id.to_string()).await;
        let create = server.post("/goals").header("idempotency-key", key).json(&new);
        let first = create.clone().send().await;
        assert_eq!((first.status, &first.json()["id"]), (201, &json!(id.to_string())), "{first:?}");
        assert!(first.headers.contains_key("location"), "{first:?}");
        let again = create.send().await;
        assert_eq!((again.status, &again.body), (201, &first.body), "{again:?}");
    }
    let other = json!({"prompt": "Other", "repository": server.project.path()});
    server.cut_off("other", "/api/v1/goals", &request, new_goal_id().to_string()).await;
    server.post("/goals").header("idempotency-key", "other").json(&other).send().await.refused(422);
    let goals = server.get("/goals").send().await.json();
    assert_eq!(goals["goals"].as_array().map(Vec::len), Some(2), "{goals}");

    let pause = format!("/goals/{there}/pause");
    server.cut_off("pause", &format!("/api/v1{pause}"), b"", String::new()).await;
    server.post(&pause).header("idempotency-key", "pause").send().await.refused(409);
    server.stop().await;
}
