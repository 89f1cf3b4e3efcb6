//! A provider that cannot be reached for a while, with the built-in agent and a real port.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use serde_json::json;
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::model::{ModelServer, Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

/// An address of loopback at which nobody listens.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Forwards `address` to the server at `to`, for as long as the test runs.
fn forward(address: SocketAddr, to: SocketAddr) {
    let listener = TcpListener::bind(address).expect("the port is still free");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(to).expect("the model listens");
            for (mut from, mut to) in [
                (client.try_clone().expect("a handle"), server.try_clone().expect("a handle")),
                (server, client),
            ] {
                std::thread::spawn(move || {
                    // Either side may go away at any time.
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
}

#[test]
fn an_outage_is_waited_out_at_no_cost_and_shows_the_next_try() {
    let works = Reply::tool("run", json!({"command": "echo towline > motto.txt"}));
    let model = ModelServer::start([Rule::always().reply(works).then(Reply::text("Written."))]);
    let address = free_address();
    let mut desk = Desk::new();
    desk.set("OPENAI_API_KEY", "dummy");
    desk.configure(&format!(
        "[defaults]\nagents = [\"mine\"]\n[agents.mine]\nkind = \"builtin\"\nprovider = \"openai\"\n\
         model = \"scripted-model\"\nbase_url = \"http://{address}/v1\"\n"
    ));
    let towline = desk.start(["run", "Write the motto", "--check", "grep -x towline motto.txt", "--json"]);
    let goal = desk.only_goal();
    let waits = desk.wait_for(&goal, "the second try", |report| {
        report["phase"] == "sleeping" && report["attempts"].as_array().map(Vec::len) == Some(2)
    });
    assert_eq!(of_attempts(&waits, "end"), ["server_error", "server_error"], "{waits}");
    assert_eq!(waits["reason"], "the model cannot be reached: server error");
    assert!(waits["until"].is_string(), "{waits}");
    assert_eq!(waits["budget"]["errors"]["left"], 5, "{waits}");
    let shown = desk.towline(["show", &goal]).stdout;
    assert!(shown.contains("the model cannot be reached"), "{shown}");

    let url = model.url();
    forward(address, url.trim_start_matches("http://").parse().expect("an address"));
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end").last(), Some(&json!("completed")), "{report}");
    assert_eq!(report["budget"]["attempts"]["left"], 9, "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}
