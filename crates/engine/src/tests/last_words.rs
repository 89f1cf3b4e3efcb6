//! Every event of an agent is recorded once, whenever its engine dies.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::json;
use towline_agent::{AgentSettings, ApiSettings, CliSettings, Kind, Permission};
use towline_core::{
    AgentName, AttemptNo, Envelope, Event, Generation, RawRef, SessionLimits, Source, Timeouts,
};
use towline_process::ExitRecord;
use towline_store::StoreError;

use super::faulty_store::Call;
use super::harness::{PlayedEngine, Work, World};
use super::values::{goal, prepared, verdict};
use crate::replay::{Comparison, Over, Replay, Wording};

pub(super) fn settings(kind: Kind) -> AgentSettings {
    let hour = Duration::from_secs(3_600);
    AgentSettings {
        kind,
        command: vec!["agent".into()],
        model: None,
        permission: Permission::Bypass,
        allow: Vec::new(),
        deny: Vec::new(),
        system_append: None,
        dirs: Vec::new(),
        max_turns: None,
        mcp: BTreeMap::new(),
        args: Vec::new(),
        env: BTreeMap::new(),
        pass_env: Vec::new(),
        account: None,
        sessions: SessionLimits::default(),
        timeouts: Timeouts { startup: hour, idle: hour, turn: hour },
        stop_grace: Duration::from_secs(5),
        cli: CliSettings::default(),
        api: ApiSettings::default(),
        mcp_file: None,
        prices: BTreeMap::new(),
    }
}

/// Lines that are more than is read at once, and frames that nobody understands, whose count is among the last words.
fn output(kind: Kind) -> String {
    let long = "x".repeat(100_000);
    let line = |number: usize| match kind {
        Kind::Script => format!("{}\n", json!({"kind": "notice", "text": format!("{number} {long}")})),
        _ => format!("{number} {long}\n"),
    };
    let lines: String = (0..6).map(line).collect();
    match kind {
        Kind::Script => {
            let (begun, ended) = (
                json!({"kind": "turn_started"}),
                json!({"kind": "turn_ended",
                "stop": {"why": "done"}, "text": "done", "structured": null, "inner_turns": null, "reported_cost": null}),
            );
            format!("{begun}\n{}{lines}{ended}\n", "?\n".repeat(100))
        }
        _ => format!("{lines}the end, without a newline"),
    }
}

/// An agent that has run to its end and left this.
fn leave_run(world: &World, kind: Kind) {
    let dir = world.home.attempt(goal(1).id, AttemptNo::new(1).expect("not zero"));
    world.home.make(&dir).expect("made");
    let output = output(kind);
    let record = ExitRecord { code: Some(0), stdout_bytes: output.len() as u64, ..ExitRecord::default() };
    fs::write(dir.join("launch.json"), "{}").expect("written");
    fs::write(dir.join("stdout.log"), output).expect("written");
    fs::write(dir.join("stderr.log"), "").expect("written");
    fs::write(dir.join("exit.json"), serde_json::to_vec(&record).expect("JSON")).expect("written");
}

/// What is recorded about the attempt, without the times.
fn of_attempt(log: &[Envelope]) -> Vec<(Source, Option<RawRef>, Event)> {
    let of_attempt = log.iter().filter(|envelope| {
        matches!(
            envelope.event,
            Event::AttemptStarted { .. } | Event::Agent { .. } | Event::AttemptEnded { .. }
        )
    });
    of_attempt.map(|envelope| (envelope.source, envelope.raw, envelope.event.clone())).collect()
}

/// Runs the goal. Its engine dies instead of recording the batch with this number, counted from the start of the attempt,
/// and another one adopts the attempt. Gives the log, and whether there was such a batch.
async fn run(kind: Kind, dies_at: usize) -> (Vec<Envelope>, bool) {
    let world = World::new();
    leave_run(&world, kind);
    let agents = BTreeMap::from([(AgentName::new("agent"), settings(kind))]);
    let mut engine = world.engine_that_reads(agents.clone());
    let handle = engine.start(goal(1)).await;
    let preparation = engine.next().await;
    // The first one is the end of the preparation.
    let mut left = dies_at + 1;
    world.store.fail(move |call| {
        left = left.saturating_sub(usize::from(call == Call::Append));
        let (ours, held) = (Generation(1), Generation(2));
        (call == Call::Append && left == 0).then(|| StoreError::Fenced { goal: goal(1).id, ours, held })
    });
    preparation.finish(prepared()).await;
    let result = handle.result();
    tokio::pin!(result);
    let checks = tokio::select! {
        checks = engine.checks() => Some(checks),
        ended = &mut result => {
            ended.expect_err("it died");
            None
        }
    };
    world.store.heal();
    let died = checks.is_none();
    if let Some(checks) = checks {
        finish(&mut engine, checks).await;
        result.await.expect("a result");
    } else {
        drop(engine);
        let mut engine = world.engine_that_reads(agents);
        let handle = engine.resume(goal(1).id).await;
        let checks = engine.checks().await;
        finish(&mut engine, checks).await;
        handle.result().await.expect("a result");
    }
    let log = world.envelopes(goal(1).id).await;
    assert_replays(&world, &log);
    (log, died)
}

async fn finish(engine: &mut PlayedEngine, checks: Work) {
    checks.finish(verdict("t1", true)).await;
    engine.publish().await;
}

/// The recorded events are those of the raw bytes.
fn assert_replays(world: &World, log: &[Envelope]) {
    let first = AttemptNo::new(1).expect("not zero");
    let replay = Replay::open(&world.home, goal(1).id, first, Over::Recorded).expect("it can be replayed");
    let mut comparison = Comparison::new(first, replay);
    for envelope in log {
        let taken = comparison.take(envelope);
        taken.unwrap_or_else(|difference| panic!("{}", difference.words(Wording::All)));
    }
    comparison.finish().expect("nothing more");
}

#[tokio::test(start_paused = true)]
async fn whenever_its_engine_dies_each_event_of_an_agent_is_recorded_once() {
    for kind in [Kind::Command, Kind::Script] {
        let (undisturbed, _) = run(kind, usize::MAX - 1).await;
        let wanted = of_attempt(&undisturbed);
        let mut deaths = 0;
        loop {
            let (log, died) = run(kind, deaths + 1).await;
            assert_eq!(of_attempt(&log), wanted, "{kind:?}: the engine died before batch {}", deaths + 1);
            if !died {
                break;
            }
            deaths += 1;
        }
        assert!(deaths >= 3, "the start, output and the end: {deaths}");
    }
}
