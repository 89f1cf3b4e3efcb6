//! What a client cannot do to the server.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::server::Server;

#[tokio::test]
async fn a_body_that_is_too_large_or_of_another_kind_is_refused() {
    let server = Server::start().await;
    let goal = server.goal().await;
    let tell = server.post(&format!("/goals/{}/tell", goal.id));
    let large = json!({"text": "x".repeat(2 << 20)});
    tell.clone().json(&large).send().await.refused(413);
    // A length that is a lie is not believed.
    tell.clone().header("transfer-encoding", "chunked").send_chunked(2 << 20).await.refused(413);
    tell.clone().body("text/plain", "{\"text\": \"x\"}").send().await.refused(415);
    tell.body("application/x-www-form-urlencoded", "text=x").send().await.refused(415);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_nonsense_or_nothing_disturbs_nobody() {
    let server = Server::start().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(server.client.address).await.expect("connected");
        stream.write_all(b"GET / HT").await.expect("sent");
        silent.push(stream);
    }
    let mut nonsense = TcpStream::connect(server.client.address).await.expect("connected");
    nonsense.write_all(b"\x16\x03\x01\x00\xff nonsense\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, nonsense.read_to_end(&mut answer)).await.expect("in time");
    read.expect("an answer");
    assert_eq!(server.get("/goals").send().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn clients_that_prove_nothing_keep_nobody_out() {
    let server = Server::start().await;
    let mut silent = Vec::new();
    for _ in 0..320 {
        silent.push(TcpStream::connect(server.client.address).await.expect("connected"));
    }
    // Sooner than silent clients are sent away.
    let asked = tokio::time::timeout(Duration::from_secs(10), server.get("/goals").send()).await;
    assert_eq!(asked.expect("in time").status, 200);
    // The oldest one was disconnected to make room.
    let read = tokio::time::timeout(PATIENCE, silent[0].read(&mut [0])).await.expect("in time");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_agent_that_holds_all_connections_it_can_get_leaves_room_for_others() {
    let server = Server::start().await;
    let (_goal, token) = server.goal_at_work().await;
    let (_other, others_token) = server.goal_at_work().await;
    let ping = |token: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        server.client.ask("POST", "/mcp").token(token).json(&message)
    };
    let mut held = Vec::new();
    for _ in 0..16 {
        held.push(ping(&token).hold().await);
    }
    assert!(held.iter().all(|(status, _)| *status == 200));
    ping(&token).send().await.refused(503);
    assert_eq!(ping(&others_token).send().await.status, 200);
    let mut streams = Vec::new();
    for _ in 0..240 {
        streams.push(server.get("/events").follow().await);
    }
    assert_eq!(server.get("/goals").send().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn the_server_ends_while_clients_are_connected() {
    let server = Server::start().await;
    let mut stream = server.get("/events").follow().await;
    let idle = TcpStream::connect(server.client.address).await.expect("connected");
    tokio::time::timeout(Duration::from_secs(10), server.stop()).await.expect("in time");
    assert!(stream.next().await.is_none());
    drop(idle);
}
