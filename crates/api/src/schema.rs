//! The committed schema is the one that the types have.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::*;

/// An entry of a goal's log, as `logs --json` and `run --events` print it: one per line.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used: the type itself is the core's")]
struct LoggedEvent {
    /// The goal's id.
    goal: String,
    /// The place in the goal's log, counted from 1.
    seq: u64,
    /// When Towline recorded it.
    at: jiff::Timestamp,
    /// The attempt that it belongs to.
    attempt: Option<u32>,
    /// `agent`, `towline` or `operator`.
    source: String,
    /// The tool call of a subagent that it happened below.
    parent: Option<String>,
    /// Where in the attempt's raw output it was read from.
    raw: Option<Value>,
    /// What happened; `kind` names it.
    event: Value,
}

/// Adds what a command prints.
fn add<T: JsonSchema>(generator: &mut SchemaGenerator, commands: &mut Map<String, Value>, command: &str) {
    commands.insert(command.to_owned(), generator.subschema_for::<T>().to_value());
}

fn schema() -> Value {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut commands = Map::new();
    let list = &mut commands;
    add::<GoalReport>(&mut generator, list, "show --json");
    add::<GoalReport>(&mut generator, list, "run --json");
    add::<Vec<GoalLine>>(&mut generator, list, "ls --json");
    add::<AddedGoal>(&mut generator, list, "add --json");
    add::<QueueReport>(&mut generator, list, "queue --json");
    add::<Vec<AccountLine>>(&mut generator, list, "accounts --json");
    add::<OpenedAccount>(&mut generator, list, "accounts open --json");
    add::<CostReport>(&mut generator, list, "cost --json");
    add::<Vec<QuestionLine>>(&mut generator, list, "questions --json");
    add::<LoggedEvent>(&mut generator, list, "logs --json");
    add::<LoggedEvent>(&mut generator, list, "run --events");
    add::<LoggedEvent>(&mut generator, list, "replay --json");
    add::<ReplayReport>(&mut generator, list, "replay --check --json");
    add::<InitReport>(&mut generator, list, "init --json");
    add::<MergeReport>(&mut generator, list, "merge --json");
    add::<PushReport>(&mut generator, list, "push --json");
    add::<VerifyReport>(&mut generator, list, "verify --json");
    add::<ProofVerifyReport>(&mut generator, list, "verify --proof --json");
    add::<Vec<KeyReport>>(&mut generator, list, "keys --json");
    add::<KeyReport>(&mut generator, list, "keys rotate --json");
    add::<Vec<RmReport>>(&mut generator, list, "rm --json");
    add::<GcReport>(&mut generator, list, "gc --json");
    add::<Vec<AgentLine>>(&mut generator, list, "agents --json");
    add::<AgentCheck>(&mut generator, list, "agents check --json");
    add::<DoctorReport>(&mut generator, list, "doctor --json");
    add::<RepositoryTrust>(&mut generator, list, "trust --json");
    add::<Vec<TrustedRepository>>(&mut generator, list, "trust --list --json");
    add::<RevokedTrust>(&mut generator, list, "trust --revoke --json");
    add::<Notification>(&mut generator, list, "notify.command");
    add::<ErrorReport>(&mut generator, list, "error");
    serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What Towline prints as JSON, by command; `error` is what a command with --json prints when it fails",
        "properties": commands,
        "$defs": generator.take_definitions(true),
    })
}

#[test]
fn the_committed_schema_describes_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");
    let schema = format!("{}\n", serde_json::to_string_pretty(&schema()).expect("a schema"));
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).expect("the file is written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == schema,
        "crates/api/schema.json does not match the types; write it with UPDATE_SCHEMA=1 cargo test -p towline-api"
    );
}
