//! A server on a desk, and its HTTP interface.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;

use serde_json::Value;
use towline_testkit::scratch::wait_for;

use super::{Desk, LIMIT, finish};

/// Starts a server on a free port, and waits until it is known.
pub(crate) fn up(desk: &Desk) -> Child {
    up_with(desk, &[])
}

/// The same, with more arguments.
pub(crate) fn up_with(desk: &Desk, more: &[&str]) -> Child {
    let args = ["up", "--listen", "127.0.0.1:0", "--wait", "1s"];
    let server = desk.start(args.into_iter().chain(more.iter().copied()));
    wait_until_known(desk, &server);
    server
}

/// Waits until others find this very server.
pub(crate) fn wait_until_known(desk: &Desk, server: &Child) {
    let announced = desk.home.towline().join("server.json");
    let is_known = || {
        let announced = std::fs::read(&announced).unwrap_or_default();
        let announced: Value = serde_json::from_slice(&announced).unwrap_or_default();
        announced["pid"] == server.id()
    };
    wait_for(LIMIT, "the server", is_known);
}

/// Adds a goal, and returns its id.
pub(crate) fn add(desk: &Desk, prompt: &str, more: &[&str]) -> String {
    let args = ["add", prompt, "--json"].into_iter().chain(more.iter().copied());
    desk.towline(args).json()["id"].as_str().expect("an id").to_owned()
}

/// Ends a process as a power failure would.
pub(crate) fn kill(mut process: Child) {
    process.kill().expect("killed");
    process.wait().expect("reaped");
}

/// Stops the server as a person does.
pub(crate) fn down(desk: &Desk, server: Child) {
    let down = desk.towline(["down"]);
    assert_eq!(down.code, Some(0), "{down:?}");
    let ended = finish(server);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Sends a request to the server, and returns the status and the body.
pub(crate) fn post(desk: &Desk, path: &str, body: &Value) -> (u16, Value) {
    let server = desk.towline(["open", "--json"]).json();
    let address = server["address"].as_str().expect("an address");
    let token = std::fs::read_to_string(desk.home.towline().join("operator-token")).expect("a token");
    let body = body.to_string();
    let request = format!(
        "POST /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}
