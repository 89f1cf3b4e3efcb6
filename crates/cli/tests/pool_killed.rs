//! A server that is killed at any moment and started again: every goal ends as it would have, and nothing happens twice.
//!
//! The moments are each kind of event, as soon as one of them is in the log, and random ones. The engine's own simulation kills a
//! server at every write and every effect; this shows the same for the program, with real processes, on a sample.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::server::{down, kill, wait_until_known};
use support::{Desk, LIMIT, of_attempts};
use tokio::runtime::Runtime;
use towline_core::{Envelope, Event, PoolSeq};
use towline_store::{GoalRecord, Listing, SqliteStore, Store, load_all};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_until_process_tree_gone;

const SEED: u64 = 20_261_118;
/// How many random moments are tried. Every other time the next server is killed as well.
const RANDOM_MOMENTS: u32 = 8;
/// How many pools run at the same time.
const AT_ONCE: usize = 4;

/// What each goal is named after, and what its agent does. The kind is in a file: later prompts do not repeat the first.
const AGENT: &str = r#"
printf '%s\n' "$TOWLINE_QUESTION_FILE" >> "$HOME/started"
turn=0
while IFS= read -r line; do
  case "$line" in
    *'"control_request"'*) answer_control "$line"; continue ;;
    *'"role":"user"'* | *'"role": "user"'*) ;;
    *) continue ;;
  esac
  turn=$((turn + 1))
  test -e kind || printf '%s' "$line" | sed 's/.*the goal \([a-z]*\).*/\1/' > kind
  tries=$(($(cat tries 2>/dev/null || echo 0) + 1))
  echo $tries > tries
  text='Done.'
  init
  assistant 'Working.'
  sleep 0.2
  case "$(cat kind) $tries" in
    'fails '*) ;;
    'turns 1') ;;
    'asks 1') printf '{"question":"Which colour?"}' > "$TOWLINE_QUESTION_FILE" ;;
    'sleeps 1') text='{\"towline\": \"sleep\", \"seconds\": 1, \"reason\": \"it dries\"}' ;;
    *) echo fixed > fix.txt ;;
  esac
  assistant "$text"
  result false null "$text"
done
"#;

/// The goals: one is done after a red verdict, one never, one asks, one sleeps, and one waits for the first.
const GOALS: [(&str, &str); 5] = [
    ("turns", "the goal turns green"),
    ("fails", "the goal fails"),
    ("asks", "the goal asks"),
    ("sleeps", "the goal sleeps"),
    ("waits", "---\nafter: [turns]\n---\nthe goal waits\n"),
];

/// When a server is killed.
#[derive(Debug, Clone)]
enum Moment {
    /// As soon as so many events of this kind are in the log.
    Event(String, usize),
    /// So long after its start.
    After(Duration),
}

/// What a pool has come to.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// By title: the phase, how its attempts ended, and what it has cost.
    goals: BTreeMap<String, (String, Vec<Value>, Value)>,
    total: Value,
}

/// A pool whose log is read while its server runs.
struct Pool {
    desk: Desk,
    store: SqliteStore,
    runtime: Runtime,
}

impl Pool {
    fn new() -> Self {
        let desk = Desk::with_script(|dir| hostile::with_body(dir, "agent", AGENT)).without_baseline();
        for (name, text) in GOALS {
            desk.project.write(format!("goals/{name}.md"), text);
        }
        let added = desk.towline(["add", "goals", "--check", "test -f fix.txt", "--budget", "attempts=2"]);
        assert_eq!(added.code, Some(0), "{added:?}");
        let store = SqliteStore::open(&desk.home.towline().join("towline.db")).expect("the store");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { desk, store, runtime }
    }

    /// Starts a server. It is not waited for: it may be killed before it is known.
    fn up(&self) -> Child {
        self.desk.start(["up", "--listen", "127.0.0.1:0", "--slots", "2", "--wait", "1s"])
    }

    fn events(&self, after: PoolSeq) -> Vec<(PoolSeq, Envelope)> {
        self.runtime.block_on(self.store.events_since(after, 10_000)).expect("the log")
    }

    fn records(&self) -> Vec<GoalRecord> {
        self.runtime.block_on(load_all(&self.store, Listing::all())).expect("the goals").records
    }

    /// Waits for the moment, and answers questions meanwhile. Whether all goals have ended before it came.
    fn run_until(&self, moment: Option<&Moment>) -> bool {
        let begun = Instant::now();
        let (mut seen, mut count) = (PoolSeq(0), 0);
        loop {
            assert!(begun.elapsed() < LIMIT * 2, "{:#?}", self.records());
            let new = self.events(seen);
            seen = new.last().map_or(seen, |(place, _)| *place);
            let has_come = match moment {
                Some(Moment::Event(wanted, times)) => {
                    count += new.iter().filter(|(_, event)| kind(event) == *wanted).count();
                    count >= *times
                }
                Some(Moment::After(wait)) => begun.elapsed() >= *wait,
                None => false,
            };
            if has_come {
                return false;
            }
            if !new.is_empty() && self.answer_and_look() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Answers an open question. Whether all goals have ended.
    fn answer_and_look(&self) -> bool {
        let records = self.records();
        for record in records.iter().filter(|record| record.state.phase.name() == "blocked") {
            let answered = self.desk.towline(["answer", &record.goal.id.to_string(), "blue"]);
            assert_eq!(answered.code, Some(0), "{answered:?}");
        }
        records.iter().all(|record| record.state.phase.is_settled())
    }

    /// What must hold of every log and process, whatever happened.
    fn assert_sound(&self) {
        let mut last = BTreeMap::new();
        for (_, event) in self.events(PoolSeq(0)) {
            let before = last.insert(event.goal, event.seq.0).unwrap_or(0);
            assert_eq!(event.seq.0, before + 1, "a gap or a double in the log of {}", event.goal);
        }
        let started = std::fs::read_to_string(self.desk.home.path().join("started")).expect("starts");
        let distinct: BTreeSet<&str> = started.lines().collect();
        assert_eq!(started.lines().count(), distinct.len(), "an attempt was started twice:\n{started}");
        wait_until_process_tree_gone(&self.desk.home.marker(), LIMIT);
    }

    fn outcome(&self) -> Outcome {
        let costs = self.desk.towline(["cost", "--by", "goal", "--json"]).json();
        let cost_of = |goal: &str| {
            let lines = costs["lines"].as_array().into_iter().flatten();
            lines.filter(|line| line["key"] == goal).map(|line| line["usage"].clone()).collect()
        };
        let goals = self.records().into_iter().map(|record| {
            let id = record.goal.id.to_string();
            let (ends, cost) = (self.ends_of_started(&self.desk.show(&id)), cost_of(&id));
            (record.goal.title, (record.state.phase.name().to_owned(), ends, cost))
        });
        Outcome { goals: goals.collect(), total: costs["total"].clone() }
    }
}

impl Pool {
    /// How the attempts whose agents started have ended. A server that is killed between `launch.json` and the start of the supervisor
    /// leaves an attempt that nobody may start again: it is `lost`, its agent never ran, and another one takes its place.
    fn ends_of_started(&self, report: &Value) -> Vec<Value> {
        let started = std::fs::read_to_string(self.desk.home.path().join("started")).expect("starts");
        let [dirs, ends] = ["dir", "end"].map(|field| of_attempts(report, field));
        let attempts = dirs.iter().zip(ends).filter(|(dir, end)| {
            let has_started = started.contains(&format!("{}/", dir.as_str().expect("a directory")));
            assert!(has_started || end == "lost", "{end} without a start: {dir}\n{started}");
            has_started
        });
        attempts.map(|(_, end)| end).collect()
    }
}

/// Kills a server at each of these moments, starts the next one, and returns what the pool has come to, with its log.
fn play(moments: &[Moment]) -> (Outcome, Vec<(PoolSeq, Envelope)>) {
    let pool = Pool::new();
    let mut server = pool.up();
    for moment in moments {
        pool.run_until(Some(moment));
        kill(server);
        server = pool.up();
    }
    assert!(pool.run_until(None));
    wait_until_known(&pool.desk, &server);
    down(&pool.desk, server);
    pool.assert_sound();
    (pool.outcome(), pool.events(PoolSeq(0)))
}

/// What happened, without what differs from run to run.
fn kind(event: &Envelope) -> String {
    if let Event::PhaseChanged { phase } = &event.event {
        return phase.name().to_owned();
    }
    let json = serde_json::to_value(&event.event).expect("JSON");
    let name = |value: &Value| value["kind"].as_str().unwrap_or_default().to_owned();
    match &json["event"] {
        Value::Null => name(&json),
        of_agent => format!("{} {}", name(&json), name(of_agent)),
    }
}

/// A number from 0 to 1 that is random and yet the same for the same seed.
fn roll(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[test]
fn a_server_that_is_killed_at_any_moment_loses_nothing_and_does_nothing_twice() {
    let begun = Instant::now();
    let (expected, log) = play(&[]);
    let whole = begun.elapsed();
    let phases: Vec<&str> = expected.goals.values().map(|(phase, ..)| phase.as_str()).collect();
    assert_eq!(phases.iter().filter(|phase| **phase == "done").count(), 4, "{expected:#?}");

    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (_, event) in log.iter().filter(|(_, event)| event.event != Event::Created) {
        *kinds.entry(kind(event)).or_default() += 1;
    }
    let mut seed = SEED;
    // The first one of every other kind, and any one of the others.
    let cases = kinds.iter().enumerate().map(|(place, (kind, count))| {
        let times = if place % 2 == 0 { 1 } else { 1 + (roll(&mut seed) * *count as f64) as usize };
        vec![Moment::Event(kind.clone(), times)]
    });
    let mut cases: Vec<Vec<Moment>> = cases.collect();
    for round in 0..RANDOM_MOMENTS {
        let mut moment = |share: f64| Moment::After(whole.mul_f64(roll(&mut seed) * share));
        cases.push(if round % 2 == 0 { vec![moment(1.0)] } else { vec![moment(0.6), moment(0.4)] });
    }
    eprintln!(
        "{} kinds of events, {RANDOM_MOMENTS} random moments (seed {SEED}): {} cases",
        kinds.len(),
        cases.len()
    );
    let cases = Mutex::new(cases.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(moments) = cases.lock().expect("no thread has failed").next() else { break };
                    let played = std::panic::catch_unwind(|| play(&moments).0);
                    let outcome = played.unwrap_or_else(|_| panic!("killed at {moments:?} (seed {SEED})"));
                    assert_eq!(outcome, expected, "killed at {moments:?} (seed {SEED})");
                }
            });
        }
    });
    eprintln!("all of them in {:?}", begun.elapsed());
}
