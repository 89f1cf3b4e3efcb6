//! Who may do what, and what every refusal and every reply looks like.

use serde_json::json;

use crate::server::{Server, TOKEN};

#[tokio::test]
async fn without_the_right_token_nothing_is_shown() {
    let server = Server::start().await;
    let goal = server.goal().await;
    for path in
        ["/goals".to_owned(), format!("/goals/{}", goal.id), "/metrics".to_owned(), "/nowhere".to_owned()]
    {
        let ask = server.client.ask("GET", &path);
        let missing = ask.clone().send().await;
        missing.refused(401);
        assert_eq!(missing.headers["www-authenticate"], "Bearer");
        for wrong in ["x", &TOKEN[1..], &TOKEN.to_uppercase()] {
            ask.clone().token(wrong).send().await.refused(401);
        }
        ask.clone().header("authorization", &format!("Basic {TOKEN}")).send().await.refused(401);
    }
    server.client.ask("GET", &format!("/goals?token={TOKEN}")).send().await.refused(401);
    assert_eq!(server.client.ask("GET", "/healthz").send().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn guessing_tokens_is_slowed_down_and_right_ones_are_not() {
    let server = Server::start().await;
    let (_goal, token) = server.goal_at_work().await;
    let mut statuses = Vec::new();
    for number in 0..30 {
        statuses
            .push(server.client.ask("GET", "/goals").token(&format!("guess-{number}")).send().await.status);
    }
    assert!(statuses.starts_with(&[401; 20]) && statuses.ends_with(&[429; 10]), "{statuses:?}");
    assert_eq!(server.get("/goals").send().await.status, 200);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(server.client.ask("POST", "/mcp").token(&token).json(&ping).send().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn names_and_pages_of_other_servers_are_refused() {
    let server = Server::start().await;
    let address = server.client.address;
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "",
        "[::2]:80",
        "localhost:8901@evil.example",
        "localhost:80:80",
    ] {
        server.get("/goals").header("host", host).send().await.refused(421);
        server.client.ask("GET", "/healthz").header("host", host).send().await.refused(421);
    }
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8689", "towline.example"] {
        assert_eq!(server.get("/goals").header("host", host).send().await.status, 200, "{host}");
    }
    for (first, second) in
        [("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")]
    {
        // The names of headers have no case, so these are two of one name.
        server.get("/goals").header("Host", first).header("host", second).send().await.refused(400);
    }
    for origin in ["http://evil.example".to_owned(), format!("http://{address}")] {
        server.get("/goals").at(&origin).send().await.refused(400);
        server.client.ask("GET", "/healthz").at(&origin).send().await.refused(400);
    }
    for origin in
        ["http://evil.example", "null", "http://localhost:3000", &format!("http://{address}.evil.example")]
    {
        server.get("/goals").header("origin", origin).send().await.refused(403);
    }
    let own = server.get("/goals").header("origin", &format!("http://{address}")).send().await;
    assert_eq!(own.status, 200);
    assert!(!own.headers.keys().any(|name| name.starts_with("access-control")), "{own:?}");
    server.stop().await;
}

#[tokio::test]
async fn every_reply_forbids_storing_sniffing_and_running_it() {
    let server = Server::start().await;
    for ask in [server.get("/goals"), server.get("/nowhere"), server.client.ask("GET", "/goals")] {
        let got = ask.send().await;
        assert_eq!(got.headers["cache-control"], "no-store");
        assert_eq!(got.headers["x-content-type-options"], "nosniff");
        assert_eq!(got.headers["content-security-policy"], "default-src 'none'");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_token_of_an_attempt_calls_its_tools_while_the_attempt_lives_and_shows_nothing_of_its_goal() {
    let server = Server::start().await;
    let (goal, token) = server.goal_at_work().await;
    let other = server.goal().await;
    let ask = |method: &str, path: &str| server.client.ask(method, path).token(&token);
    let own = format!("/goals/{}", goal.id);
    let ping = || ask("POST", "/mcp").json(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(ping().send().await.status, 200);
    // What hidden checks are and print is in the log.
    ask("GET", &format!("{own}/events")).header("accept", "text/event-stream").send().await.refused(403);
    for path in
        ["/goals", "/events", "/queue", "/metrics", "/questions", "/accounts", "/cost", "/openapi.json"]
    {
        ask("GET", path).send().await.refused(403);
    }
    for below in ["", "/events", "/diff", "/divergence", "/attempts/1/log"] {
        for goal in [&own, &format!("/goals/{}", other.id)] {
            ask("GET", &format!("{goal}{below}")).send().await.refused(403);
        }
    }
    for what in ["answer", "tell", "pause", "resume", "cancel", "retry", "merge"] {
        ask("POST", &format!("{own}/{what}")).json(&json!({"text": "yes"})).send().await.refused(403);
    }
    ask("POST", "/goals").json(&json!({})).send().await.refused(403);
    server.set_state(goal.id, |state| state.phase = towline_core::Phase::Queued).await;
    ping().send().await.refused(401);
    server.stop().await;
}

#[tokio::test]
async fn the_tools_of_an_agent_answer_over_http() {
    let server = Server::start().await;
    let (_goal, token) = server.goal_at_work().await;
    let call = |message: serde_json::Value| server.client.ask("POST", "/mcp").token(&token).json(&message);
    let listed = call(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).send().await.json();
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(json!(names), json!(["ask", "sleep", "progress", "submit"]));
    let news = call(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).send().await;
    assert_eq!((news.status, news.body.as_str()), (202, ""));
    let arguments = json!({"name": "submit", "arguments": {"summary": "done"}});
    let submitted =
        call(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments})).send().await;
    for wrong in ["", "{", "tools/list"] {
        let post = server.client.ask("POST", "/mcp").token(&token);
        post.body("application/json", wrong).send().await.refused(400);
    }
    let nonsense = call(json!({"no": "message"})).send().await.json();
    assert_eq!(nonsense["error"]["code"], -32600, "{nonsense}");
    for method in ["GET", "DELETE"] {
        let other = server.client.ask(method, "/mcp").token(&token).send().await;
        other.refused(405);
        assert_eq!(other.headers["allow"], "POST");
    }
    // No engine of this test runs the attempt.
    assert_eq!(submitted.json()["result"]["isError"], true);
    server.post("/mcp").json(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).send().await.refused(403);
    server.stop().await;
}

#[tokio::test]
async fn a_method_that_a_route_does_not_have_is_refused() {
    let server = Server::start().await;
    let goal = server.goal().await.id;
    server.post("/healthz").send().await.refused(405);
    for method in ["PUT", "DELETE", "PATCH"] {
        server.client.ask(method, &format!("/goals/{goal}")).token(TOKEN).send().await.refused(405);
    }
    server.get(&format!("/goals/{goal}/attempts/0/log")).send().await.refused(400);
    server.stop().await;
}

#[tokio::test]
async fn what_the_server_started_keeps_nobody_out_with_the_token_of_the_operator() {
    let server = Server::start().await;
    let follow = || server.get("/events").header("accept", "text/event-stream").follow();
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(follow().await);
    }
    let refused = server.ask_from_below("GET", "/goals", "").await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    streams.push(follow().await);
    assert_eq!(server.get("/goals").send().await.status, 200);
    drop(streams);
    server.stop().await;
}

#[tokio::test]
async fn what_the_server_started_may_read_with_the_token_of_the_operator_and_changes_nothing() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let before = server.everything().await;
    let read = server.ask_from_below("GET", &format!("/goals/{}", goal.id), "").await;
    assert!(read.starts_with("HTTP/1.1 200"), "{read}");
    let changed = server.ask_from_below("POST", &format!("/goals/{}/cancel", goal.id), "").await;
    assert!(changed.starts_with("HTTP/1.1 403"), "{changed}");
    assert!(changed.contains("an agent, check or setup command cannot steer or follow goals"), "{changed}");
    assert_eq!(server.everything().await, before);
    server.stop().await;
}
