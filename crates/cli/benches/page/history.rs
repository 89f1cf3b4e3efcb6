//! The log of a goal that has been at work for weeks.

use std::path::Path;

use serde_json::json;
use towline_core::{
    AgentEvent, AttemptNo, Envelope, Event, Goal, GoalState, Role, Source, ToolKind, ToolStatus, ToolUse,
};
use towline_store::{Append, SqliteStore, Store, WorkerName};

const EVENTS: usize = 100_000;
/// How many are written at once.
const BATCH: usize = 1_000;

/// Adds the events to a goal that nobody works on.
pub(crate) fn write(database: &Path, goal: &Goal, state: &GoalState) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(database).expect("a store");
        let (worker, at) = (WorkerName("bench".to_owned()), goal.created_at);
        let lease = store.claim(goal.id, &worker, at, at, None).await.expect("a lease");
        let mut expected = store.load(goal.id).await.expect("a goal").last_seq;
        for batch in 0..EVENTS / BATCH {
            let events = (0..BATCH).map(|n| Envelope {
                attempt: Some(AttemptNo::FIRST),
                ..Envelope::new(goal.id, at, Source::Agent, Event::Agent { event: work(batch * BATCH + n) })
            });
            let append = Append {
                notifies: false,
                goal: goal.id,
                generation: lease.generation,
                expected,
                events: events.collect(),
                state: state.clone(),
                effects: Vec::new(),
                settled: Vec::new(),
                at,
            };
            expected = store.append(append).await.expect("it is written").last_seq;
        }
    });
}

/// Tool calls, and messages of different lengths between them.
fn work(n: usize) -> AgentEvent {
    if n.is_multiple_of(4) {
        let text = format!("Step {n} is done. {}", "It went as it should. ".repeat(n % 23));
        return AgentEvent::Message { role: Role::Assistant, text };
    }
    AgentEvent::Tool(ToolUse {
        id: format!("toolu_{n:024}"),
        tool: ToolKind::Execute,
        name: "Bash".to_owned(),
        title: format!("cargo test --package part-{n}"),
        status: ToolStatus::Ok,
        input: Some(json!({"command": format!("cargo test --package part-{n}")})),
        output: Some("test result: ok. 12 passed; 0 failed\n".repeat(n % 7)),
        exit_code: Some(0),
        paths: Vec::new(),
    })
}
