//! How fast the output of agents is read, on one core, next to what others make of the same lines in the same run.
//!
//! `cargo xtask bench` runs it. Whoever is compared takes turns: each round has one reading of everybody, and a ratio is
//! that of the same round.
//!
//! Usage: decode [--python PYTHON --file FILE] [PROTOCOL…]
//! PYTHON has the official SDK installed; FILE is where the mix for both is written to.

#![expect(clippy::expect_used, reason = "a bench that cannot measure panics with the reason")]

mod envelopes;
mod mix;
mod python;

use std::hint::black_box;
use std::path::{Path, PathBuf};

use serde_json::Value;
use towline_agent::Kind;
use towline_testkit::figures::{Figure, median, shown};

use envelopes::{Claude, Thin};
use mix::Mix;
use python::Sdk;

/// How many bytes of each protocol are read.
const BYTES: usize = 64 * 1024 * 1024;
/// How many bytes are read in the comparison with others.
const LARGE: usize = 200_000_000;
/// How often everybody has their turn.
const ROUNDS: usize = 5;
/// What is wanted, in megabytes a second.
const GOAL: f64 = 200.0;
/// What is wanted of the speed of plain parsing.
const OF_TYPED: f64 = 0.6;
/// How many times faster than the official SDK we want to be.
const TIMES_SDK: f64 = 3.0;

const READING: &str = "Reading what agents write";
const COMPARED: &str = "Bytes to events, compared";

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let python = option(&mut names, "--python");
    let file = option(&mut names, "--file");
    // The others have no protocol, our own events, or the protocol of another kind.
    let others = [Kind::Command, Kind::Script, Kind::Builtin];
    for kind in Kind::ALL.into_iter().filter(|kind| !others.contains(kind)) {
        if names.is_empty() || names.iter().any(|wanted| wanted == kind.name()) {
            read_protocol(kind);
        }
    }
    if let (Some(python), Some(file)) = (python, file) {
        compare(&python, &file);
    }
}

/// Takes an option with its value out of the arguments.
fn option(arguments: &mut Vec<String>, name: &str) -> Option<PathBuf> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.drain(at..at + 2).next_back().map(PathBuf::from)
}

/// One protocol, next to the least and the most that `serde_json` can make of its lines.
fn read_protocol(kind: Kind) {
    let mix = Mix::of(kind, BYTES);
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|_| (mix.speed_to_events(), mix.speed_of_lines(thin), mix.speed_of_lines(value)))
        .collect();
    let speed = median(rounds.iter().map(|(ours, _, _)| *ours));
    let beside = format!(
        "type only: {} MB/s ({}); `Value`: {} MB/s ({})",
        shown(median(rounds.iter().map(|(_, thin, _)| *thin))),
        shown(median(rounds.iter().map(|(ours, thin, _)| ours / thin))),
        shown(median(rounds.iter().map(|(_, _, value)| *value))),
        shown(median(rounds.iter().map(|(ours, _, value)| ours / value))),
    );
    Figure::new(READING, kind.name(), speed, "MB/s").at_least(GOAL).beside(beside).print();
}

/// One round of the comparison, in megabytes a second.
struct Round {
    ours: f64,
    typed: f64,
    thin: f64,
    sdk: f64,
}

/// Claude's recordings, next to plain parsing into typed envelopes and the official SDK, which reads nothing else.
fn compare(python: &Path, file: &Path) {
    let mix = Mix::of(Kind::Claude, LARGE);
    std::fs::write(file, &mix.bytes).expect("the mix is written");
    let understood = mix.lines().filter(|line| serde_json::from_slice::<Claude<'_>>(line).is_ok()).count();
    let lines = mix.lines().count();
    let mut sdk = Sdk::start(python, file);
    let mut refused = 0;
    let rounds: Vec<Round> = (0..ROUNDS)
        .map(|_| {
            let (ours, typed, thin) =
                (mix.speed_to_events(), mix.speed_of_lines(typed), mix.speed_of_lines(thin));
            let reading = sdk.read();
            assert_eq!(reading.lines, lines, "the SDK reads the same lines");
            refused = reading.refused;
            Round { ours, typed, thin, sdk: mix.bytes.len() as f64 / 1e6 / reading.seconds }
        })
        .collect();
    let middle = |of: fn(&Round) -> f64| median(rounds.iter().map(of));

    let what = format!(
        "{} MB of Claude's recordings: {} conversations, {} lines",
        mix.bytes.len() / 1_000_000,
        shown(mix.conversations.len() as f64),
        shown(lines as f64)
    );
    Figure::new(COMPARED, what, middle(|round| round.ours), "MB/s").print();
    let beside = format!(
        "{} MB/s; it reads {}% of the lines",
        shown(middle(|round| round.typed)),
        understood * 100 / lines
    );
    Figure::new(COMPARED, "of typed, borrowed envelopes", middle(|round| round.ours / round.typed), "")
        .at_least(OF_TYPED)
        .gates()
        .beside(beside)
        .print();
    let beside = format!("{} MB/s", shown(middle(|round| round.thin)));
    Figure::new(
        COMPARED,
        "of the thinnest envelope, the type only",
        middle(|round| round.ours / round.thin),
        "",
    )
    .beside(beside)
    .print();
    let versions = &sdk.versions;
    let beside = format!(
        "{} MB/s; claude-agent-sdk {} on Python {}, refused {} lines",
        shown(middle(|round| round.sdk)),
        versions.sdk,
        versions.python,
        shown(refused as f64)
    );
    Figure::new(COMPARED, "times the official Python SDK", middle(|round| round.ours / round.sdk), "")
        .at_least(TIMES_SDK)
        .gates()
        .beside(beside)
        .print();
}

fn thin(line: &[u8]) {
    let _ = black_box(serde_json::from_slice::<Thin<'_>>(line));
}

fn typed(line: &[u8]) {
    let _ = black_box(serde_json::from_slice::<Claude<'_>>(line));
}

fn value(line: &[u8]) {
    let _ = black_box(serde_json::from_slice::<Value>(line));
}
