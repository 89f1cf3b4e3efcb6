//! A server that looks after many goals: many agents at once, many goals that wait, a long queue.
//!
//! `cargo xtask bench` runs it. Goals are written to the store; the server is the release program. With the argument `agent` this
//! program is the agent that the server starts: a script that speaks the protocol of Claude Code.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

mod agent;
mod crowd;
#[path = "../shared/processes.rs"]
mod processes;
mod queue;
mod queues;
mod server;
#[path = "../shared/stored.rs"]
mod stored;
#[path = "../../tests/support/mod.rs"]
mod support;
mod waiting;

use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(agent::ARGUMENT) => agent::run(Path::new(&arguments[2]), &arguments[3..]),
        _ => {
            crowd::measure();
            waiting::measure();
            queues::measure();
        }
    }
}
