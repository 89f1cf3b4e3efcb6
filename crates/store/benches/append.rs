//! How many events become durable in a second: real SQLite, the settings of the product, and a disk that is waited for.
//!
//! `cargo xtask bench` runs it. The events are those of an agent at work: its messages, the tools that it calls with their
//! input and output, and what that used. A batch is one append, as the engine makes of each chunk of output that it reads.

#![expect(clippy::expect_used, reason = "a bench that cannot measure panics with the reason")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use towline_core::{
    AgentEvent, AgentName, Attempt, AttemptNo, Budget, CheckResult, Commit, Envelope, Event, Goal, GoalId,
    GoalState, Origin, RawRef, Role, Source, Tokens, ToolKind, ToolStatus, ToolUse, Usage, Verdict,
    WorkspaceMode, WorkspaceSpec,
};
use towline_store::{Append, SqliteStore, Store, WorkerName};
use towline_testkit::figures::{Figure, median, shown};

const SECTION: &str = "Durable events";
/// How many events are in an append.
const BATCHES: [usize; 3] = [1, 64, 512];
/// The batches that the goal is about.
const LARGE: usize = 512;
/// How many events a second are wanted.
const GOAL: f64 = 50_000.0;
/// How many appends of each size are made in a round.
const APPENDS: usize = 40;
const ROUNDS: usize = 5;
/// How many attempts a goal has had.
const HISTORIES: [u32; 2] = [1, 400];
/// How much longer an append may take with the longest history than with the shortest.
const GROWTH: f64 = 2.0;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder on a disk");
    let store = SqliteStore::open(&folder.path().join("towline.db")).expect("a store");
    let mut writer = Writer::new(&store, 0, 0).await;
    let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for batch in BATCHES {
            rates.entry(batch).or_default().push(writer.rate(&store, batch).await);
        }
    }
    let bytes = serde_json::to_vec(&work(0)).map_or(0, |event| event.len());
    for (batch, rates) in rates {
        let what = if batch == 1 { "one by one".to_owned() } else { format!("{batch} in an append") };
        let each = 1e3 * batch as f64 / median(rates.iter().copied());
        let beside = format!("{} ms an append, with its wait for the disk", shown(each));
        let figure = Figure::new(SECTION, what, median(rates), "/s");
        let figure = if batch == LARGE {
            figure.at_least(GOAL).beside(format!("{beside}; a tool call is {bytes} bytes"))
        } else {
            figure.beside(beside)
        };
        figure.print();
    }
    measure_histories(&store).await;
}

/// An append of one event to goals with histories of different lengths.
async fn measure_histories(store: &SqliteStore) {
    let mut writers = Vec::new();
    for (number, attempts) in (1..).zip(HISTORIES) {
        writers.push(Writer::new(store, number, attempts).await);
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); writers.len()];
    for _ in 0..ROUNDS {
        for (writer, times) in writers.iter_mut().zip(&mut times) {
            times.push(1e3 / writer.rate(store, 1).await);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let beside = HISTORIES.iter().zip(&medians).map(|(n, time)| format!("{n} attempts: {} ms", shown(*time)));
    Figure::new(SECTION, "an append after 400 attempts against one after 1", medians[1] / medians[0], "×")
        .below(GROWTH)
        .gates()
        .beside(beside.collect::<Vec<_>>().join(", "))
        .print();
}

/// Whoever drives the goal.
struct Writer {
    goal: Goal,
    state: GoalState,
    generation: towline_core::Generation,
    expected: towline_core::Seq,
}

impl Writer {
    /// Of a goal that has had so many attempts.
    async fn new(store: &SqliteStore, number: u32, attempts: u32) -> Self {
        let id = format!("01932f6e-7c00-7abc-8def-{number:012x}").parse().expect("an id");
        let goal = Goal { id, ..goal() };
        let attempts = (1..=attempts).map(|n| attempt(&goal, n)).collect();
        let state = GoalState { attempts, ..GoalState::new(&goal) };
        let created = Envelope::new(goal.id, Timestamp::UNIX_EPOCH, Source::Towline, Event::Created);
        let record = store.create(&goal, &state, created).await.expect("a goal");
        let (worker, now) = (WorkerName("bench".to_owned()), Timestamp::UNIX_EPOCH);
        let lease = store.claim(goal.id, &worker, now, now, None).await.expect("a lease");
        Self { goal, state, generation: lease.generation, expected: record.last_seq }
    }

    /// Events a second, with this many in each append.
    async fn rate(&mut self, store: &SqliteStore, batch: usize) -> f64 {
        let appends: Vec<Append> = (0..APPENDS).map(|_| self.next(batch)).collect();
        let begun = Instant::now();
        for append in appends {
            let append = Append { expected: self.expected, ..append };
            self.expected = store.append(append).await.expect("it is written").last_seq;
        }
        (APPENDS * batch) as f64 / begun.elapsed().as_secs_f64()
    }

    /// An append of this many events, which move the newest attempt.
    fn next(&mut self, batch: usize) -> Append {
        if let Some(newest) = self.state.attempts.last_mut() {
            newest.usage += Usage { input: Tokens(1_200), ..Usage::default() };
        }
        Append {
            notifies: false,
            goal: self.goal.id,
            generation: self.generation,
            expected: self.expected,
            events: (0..batch).map(|n| new(self.goal.id, Event::Agent { event: work(n) })).collect(),
            state: self.state.clone(),
            effects: Vec::new(),
            settled: Vec::new(),
            at: Timestamp::UNIX_EPOCH,
        }
    }
}

fn new(goal: GoalId, event: Event) -> Envelope {
    Envelope {
        attempt: Some(AttemptNo::FIRST),
        raw: Some(RawRef { offset: 123_456, length: 789 }),
        ..Envelope::new(goal, Timestamp::UNIX_EPOCH, Source::Agent, event)
    }
}

/// What an agent does, one thing after the other.
fn work(n: usize) -> AgentEvent {
    let tool = |status: ToolStatus, output: Option<&str>| {
        AgentEvent::Tool(ToolUse {
            id: format!("toolu_{n:024}"),
            tool: ToolKind::Execute,
            name: "Bash".to_owned(),
            title: "cargo test --package towline-core".to_owned(),
            status,
            input: Some(
                json!({"command": "cargo test --package towline-core", "description": "Run the tests"}),
            ),
            output: output.map(str::to_owned),
            exit_code: output.map(|_| 0),
            paths: Vec::new(),
        })
    };
    match n % 4 {
        0 => tool(ToolStatus::Running, None),
        1 => tool(
            ToolStatus::Ok,
            Some("running 12 tests\n............\ntest result: ok. 12 passed; 0 failed\n"),
        ),
        2 => AgentEvent::Message {
            role: Role::Assistant,
            text: "The tests pass now; next I look at what else calls this function.".to_owned(),
        },
        _ => AgentEvent::Usage {
            model: Some("model".to_owned()),
            used: Usage { input: Tokens(1_200), output: Tokens(340), ..Usage::default() },
            context_used: Some(Tokens(45_000)),
            context_size: Some(Tokens(200_000)),
        },
    }
}

/// An attempt with a verdict as long as usual. Nothing of it has to be running for an append.
fn attempt(goal: &Goal, n: u32) -> Attempt {
    let n = AttemptNo::new(n).expect("attempts count from 1");
    let (agent, now) = (AgentName::new("scripted"), Timestamp::UNIX_EPOCH);
    let check = CheckResult {
        name: "tests".to_owned(),
        met: false,
        exit_code: Some(101),
        problem: None,
        evidence: "assertion failed: left == right\n".repeat(60),
        took: Duration::from_secs(3),
        output: None,
        tests: None,
    };
    let verdict = Verdict {
        candidate: Commit::new("0000000000000000000000000000000000000000"),
        head: None,
        tree: "0000000000000000000000000000000000000000".to_owned(),
        restored: Vec::new(),
        checks: vec![check],
        notes: Vec::new(),
        checkout: towline_core::Checkout::Clean,
        sandbox: None,
    };
    Attempt {
        ended_at: Some(now),
        text: "The tests pass now. ".repeat(20),
        verdict: Some(verdict),
        ..Attempt::begun(goal.id, n, agent, None, now)
    }
}

fn goal() -> Goal {
    Goal {
        id: "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("an id"),
        title: "Fix the tests".to_owned(),
        prompt: "Make the tests pass.".to_owned(),
        checks: Vec::new(),
        budget: Budget::default(),
        agents: vec![AgentName::new("scripted")],
        model: None,
        agent_settings: BTreeMap::new(),
        protect: Vec::new(),
        unprotect: Vec::new(),
        workspace: WorkspaceSpec {
            mode: WorkspaceMode::Clone,
            repository: "repository".to_owned(),
            base: Commit::new("0000000000000000000000000000000000000000"),
            setup: Vec::new(),
            copy: Vec::new(),
            generated: Vec::new(),
            pass_env: Vec::new(),
            warm: Vec::new(),
            confirm: towline_core::Confirm::Clean,
            git: None,
        },
        briefing: false,
        baseline: towline_core::BaselineMode::Auto,
        sessions: BTreeMap::new(),
        accounts: BTreeMap::new(),
        continues: None,
        scheduling: towline_core::Scheduling::default(),
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        origin: Origin { channel: "cli".to_owned(), thread: None, by: None },
        created_at: Timestamp::UNIX_EPOCH,
    }
}
