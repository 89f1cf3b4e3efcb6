//! The metrics, as the parser of Prometheus' own client reads them.

use serde_json::{Value, json};
use towline_core::{MicroUsd, Phase};
use towline_testkit::agents::clients_folder;
use towline_testkit::scratch::clean_command;

use crate::server::{Server, TOKEN};

/// What the parser makes of them.
async fn families(server: &Server) -> Value {
    let mut python = clean_command(clients_folder().join("python3"));
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/metrics.py"));
    python.env("URL", format!("http://{}/api/v1", server.client.address)).env("TOKEN", TOKEN);
    let ran = tokio::task::spawn_blocking(move || python.output().expect("Python starts"));
    let ran = ran.await.expect("no panic");
    assert!(ran.status.success(), "{ran:?}");
    let read: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(read["content_type"], "text/plain; version=0.0.4; charset=utf-8");
    read["families"].clone()
}

fn gauge(help: &str, samples: Value) -> Value {
    json!({"type": "gauge", "help": help, "samples": samples})
}

fn counter(help: &str, samples: Value) -> Value {
    json!({"type": "counter", "help": help, "samples": samples})
}

#[tokio::test]
async fn a_client_of_prometheus_reads_every_family_with_its_values() {
    let server = Server::start().await;
    server.goal().await;
    server.goal().await;
    server.goal_as(|state| state.phase = Phase::Cancelled).await;
    let (at_work, _) = server.goal_at_work().await;
    server.set_state(at_work.id, |state| state.attempts[0].usage.cost = MicroUsd(1_250_000)).await;
    let _stream = server.get("/events").follow().await;
    server.get("/goals").send().await;
    server.get("/nowhere").send().await.refused(404);
    server.client.ask("GET", "/goals").send().await.refused(401);
    let phase = |phase: &str, count: f64| json!(["towline_goals", {"phase": phase}, count]);
    let replies = |class: &str, count: f64| json!(["towline_http_requests_total", {"class": class}, count]);
    let wanted = json!({
        "towline_goals":
            gauge("Goals by phase.", json!([phase("cancelled", 1.0), phase("queued", 2.0), phase("running", 1.0)])),
        "towline_goals_running": gauge("Goals that hold a slot.", json!([["towline_goals_running", {}, 1.0]])),
        "towline_goals_queued":
            gauge("Goals that wait for their start.", json!([["towline_goals_queued", {}, 2.0]])),
        "towline_spend_today_usd":
            gauge("US dollars spent today, estimates included.", json!([["towline_spend_today_usd", {}, 1.25]])),
        "towline_notices_pending":
            gauge("Notifications to be delivered.", json!([["towline_notices_pending", {}, 0.0]])),
        "towline_store_errors": counter(
            "Requests that failed because of the store.",
            json!([["towline_store_errors_total", {}, 0.0]])
        ),
        "towline_http_requests": counter(
            "Replies by the class of their status.",
            json!([
                replies("1xx", 0.0), replies("2xx", 2.0), replies("3xx", 0.0), replies("4xx", 2.0), replies("5xx", 0.0)
            ])
        ),
        "towline_http_streams": gauge("Open streams of events.", json!([["towline_http_streams", {}, 1.0]])),
    });
    assert_eq!(families(&server).await, wanted);
    server.stop().await;
}
