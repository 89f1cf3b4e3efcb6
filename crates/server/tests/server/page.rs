//! The page: its files are for everybody, signing in takes the code of a link, and a session may do what the operator may.

use serde_json::{Value, json};
use towline_engine::{Clock, SystemClock, new_sign_in_code};

use crate::client::{Ask, Got};
use crate::server::Server;

impl Server {
    /// A file of the page, without any token.
    fn page(&self, path: &str) -> Ask {
        self.client.ask_root("GET", path)
    }

    fn code(&self) -> String {
        new_sign_in_code(&self.home, SystemClock.now()).expect("a code")
    }

    async fn sign_in(&self, code: &str) -> Got {
        self.client.ask("POST", "/sign-in").json(&json!({"code": code})).send().await
    }

    async fn session(&self) -> String {
        let got = self.sign_in(&self.code()).await;
        assert_eq!(got.status, 200, "{got:?}");
        got.json()["session"].as_str().expect("a session").to_owned()
    }

    async fn status_of(&self, session: &str) -> u16 {
        self.client.ask("GET", "/queue").token(session).send().await.status
    }
}

#[tokio::test]
async fn the_page_needs_no_token_and_runs_nothing_but_its_own_files() {
    let server = Server::start().await;
    let got = server.page("/").send().await;
    assert_eq!((got.status, got.headers["content-type"].as_str()), (200, "text/html; charset=utf-8"));
    let policy = &got.headers["content-security-policy"];
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    assert_eq!(got.headers["x-frame-options"], "DENY");
    let named: Vec<&str> = got.body.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert!(!named.is_empty(), "{}", got.body);
    for file in named {
        assert_eq!(server.page(file).send().await.status, 200, "{file}");
    }
    // A browser that has it is sent nothing.
    let again = server.page("/").header("if-none-match", &got.headers["etag"]).send().await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    server.stop().await;
}

#[tokio::test]
async fn the_files_of_the_page_are_compressed_for_clients_that_take_it() {
    let server = Server::start().await;
    let script = || server.page("/assets/page.js");
    let plain = script().send().await;
    let policy = &plain.headers["content-security-policy"];
    let length = |got: &Got| got.headers["content-length"].parse::<usize>().expect("a length");
    for accepted in ["gzip", "br, deflate;q=0.5, GZIP;q=0.8"] {
        let got = script().header("accept-encoding", accepted).send().await;
        let headers = ["content-encoding", "vary", "content-type"].map(|name| got.headers[name].as_str());
        assert_eq!(headers, ["gzip", "accept-encoding", "text/javascript; charset=utf-8"], "{accepted}");
        assert_eq!((got.status, &got.headers["content-security-policy"]), (200, policy));
        assert!(length(&got) * 5 < length(&plain) * 2, "{} of {}", length(&got), length(&plain));
        assert_ne!(got.headers["etag"], plain.headers["etag"], "the two are other bytes");
        let known =
            script().header("accept-encoding", accepted).header("if-none-match", &got.headers["etag"]);
        assert_eq!(known.send().await.status, 304);
    }
    for refused in ["", "br", "gzip;q=0", "gzip;q=0.0, identity"] {
        let got = script().header("accept-encoding", refused).send().await;
        assert_eq!((got.headers.get("content-encoding"), &got.body), (None, &plain.body), "{refused}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_no_file_of_the_page_needs_a_token() {
    let server = Server::start().await;
    for path in
        ["/x", "/assets/", "/assets/../index.html", "/index.html/", "//", "/api/v1", "/..%2f..%2fetc/passwd"]
    {
        server.page(path).send().await.refused(401);
    }
    let got = server.page("/").header("host", "evil.example").send().await;
    got.refused(421);
    server.stop().await;
}

#[tokio::test]
async fn a_link_signs_in_once_and_its_session_is_the_operators() {
    let server = Server::start().await;
    let code = server.code();
    let session = server.sign_in(&code).await.json()["session"].as_str().expect("a session").to_owned();
    let refused = server.sign_in(&code).await.refused(401);
    assert_eq!(refused["hint"], "run `towline open` for a new link");
    let goal = server.goal().await;
    let seen = server.client.ask("GET", &format!("/goals/{}", goal.id)).token(&session).send().await;
    assert_eq!(seen.json()["id"], goal.id.to_string());
    let cancelled =
        server.client.ask("POST", &format!("/goals/{}/cancel", goal.id)).token(&session).send().await;
    assert_eq!(cancelled.json()["phase"], "cancelled");
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_code_is_refused_and_many_of_them_too() {
    let server = Server::start().await;
    for code in [String::new(), "x".repeat(100_000), "../sessions".to_owned()] {
        server.sign_in(&code).await.refused(401);
    }
    for body in [json!({}), json!({"code": 1}), json!({"code": "x", "more": 1}), Value::Null] {
        server.client.ask("POST", "/sign-in").json(&body).send().await.refused(400);
    }
    for method in ["GET", "PUT", "TRACE"] {
        server.client.ask(method, "/sign-in").send().await.refused(401);
    }
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(server.sign_in("wrong").await.status);
    }
    assert_eq!((statuses.first(), statuses.last()), (Some(&401), Some(&429)));
    // The right one still works.
    server.session().await;
    server.stop().await;
}

#[tokio::test]
async fn a_session_that_signs_out_is_over_and_the_operator_ends_all() {
    let server = Server::start().await;
    let sessions = [server.session().await, server.session().await, server.session().await];
    let got = server.client.ask("POST", "/sign-out").token(&sessions[0]).send().await;
    assert_eq!(got.json(), json!({"sessions": 1}));
    assert_eq!((server.status_of(&sessions[0]).await, server.status_of(&sessions[1]).await), (401, 200));
    assert_eq!(server.post("/sign-out").send().await.json(), json!({"sessions": 2}));
    assert_eq!((server.status_of(&sessions[1]).await, server.status_of(&sessions[2]).await), (401, 401));
    server.stop().await;
}

#[tokio::test]
async fn a_session_key_is_not_stored_with_the_reply_to_its_request() {
    let server = Server::start().await;
    let ask = |code: String| {
        let ask = server.client.ask("POST", "/sign-in").header("idempotency-key", "one");
        ask.json(&json!({"code": code})).send()
    };
    let code = server.code();
    assert_eq!(ask(code.clone()).await.status, 200);
    ask(code).await.refused(401);
    assert_eq!(ask(server.code()).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_session_that_is_over_follows_nothing_more() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let session = server.session().await;
    let ask =
        |path: String| server.client.ask("GET", &path).token(&session).header("accept", "text/event-stream");
    let mut pool = ask("/events?cursor=0".to_owned()).follow().await;
    let mut one = ask(format!("/goals/{}/events", goal.id)).follow().await;
    assert!(pool.next().await.is_some() && one.next().await.is_some(), "the goal was created");
    server.post("/sign-out").send().await;
    server.write(goal.id, 1).await;
    for stream in [&mut pool, &mut one] {
        assert!(stream.next().await.is_none());
    }
    server.stop().await;
}
