//! How fast the output of agents is read, on one core, next to what plain JSON parsing of the same lines takes.
//!
//! `cargo xtask bench` runs it. The lines are those of the recordings, again and again; each repetition of a recording
//! is a conversation of its own.

use std::borrow::Cow;
use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use towline_agent::{Frame, Kind, ProcessEnd, Protocol};
use towline_fuzzing::{conversation, target};

/// How many bytes of each protocol are read.
const BYTES: usize = 64 * 1024 * 1024;
/// The best of so many runs counts: whatever else the machine does only makes it slower.
const RUNS: usize = 3;
/// What is wanted, in megabytes a second.
const GOAL: f64 = 200.0;
/// The seeds of the targets begin with so many bytes that are no output.
const HEADER: usize = 2;

const PROTOCOLS: [(&str, Kind); 4] =
    [("claude", Kind::Claude), ("codex", Kind::Codex), ("acp", Kind::Acp), ("gemini", Kind::Gemini)];

/// The output of many conversations, one after the other.
struct Mix {
    bytes: Vec<u8>,
    /// Where the lines of each conversation are.
    conversations: Vec<Vec<std::ops::Range<usize>>>,
}

impl Mix {
    fn of(recordings: &[Vec<u8>]) -> Self {
        let mut mix = Self { bytes: Vec::with_capacity(BYTES * 2), conversations: Vec::new() };
        while mix.bytes.len() < BYTES {
            for recording in recordings {
                let mut lines = Vec::new();
                for line in recording[HEADER..].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let start = mix.bytes.len();
                    mix.bytes.extend_from_slice(line);
                    lines.push(start..mix.bytes.len());
                }
                mix.conversations.push(lines);
            }
        }
        mix
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.conversations.iter().flatten().map(|range| &self.bytes[range.clone()])
    }

    /// Megabytes a second of one core, the best of some runs. What is prepared before each run does not count.
    fn speed<P>(&self, prepare: impl Fn() -> P, read: impl Fn(&Self, &mut P)) -> f64 {
        let once = || {
            let mut prepared = prepare();
            let begun = cpu_time();
            read(self, &mut prepared);
            cpu_time().saturating_sub(begun)
        };
        let best = (0..RUNS).map(|_| once()).min().unwrap_or(Duration::MAX);
        self.bytes.len() as f64 / 1e6 / best.as_secs_f64()
    }

    /// A conversation for each of them, begun and waiting for what the agent writes.
    fn protocols(&self, kind: Kind) -> Vec<Box<dyn Protocol>> {
        let begun = |_: &Vec<_>| {
            let mut protocol = conversation(kind);
            black_box(protocol.start());
            protocol
        };
        self.conversations.iter().map(begun).collect()
    }
}

/// The time that this thread had a core to itself: what others do on the machine is not in it.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn as_conversations(mix: &Mix, protocols: &mut [Box<dyn Protocol>]) {
    let exit = ProcessEnd { code: Some(0), ..ProcessEnd::default() };
    for (lines, protocol) in mix.conversations.iter().zip(protocols) {
        for range in lines {
            black_box(protocol.on_frame(Frame::Line(&mix.bytes[range.clone()])));
        }
        black_box(protocol.on_exit(&exit));
    }
}

/// What every frame says about itself, and nothing of what is in it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    frame: Option<Cow<'a, str>>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    id: Option<IgnoredAny>,
}

fn as_envelopes(mix: &Mix, _: &mut ()) {
    for line in mix.lines() {
        black_box(serde_json::from_slice::<Envelope<'_>>(line).is_ok());
    }
}

fn as_values(mix: &Mix, _: &mut ()) {
    for line in mix.lines() {
        black_box(serde_json::from_slice::<Value>(line).is_ok());
    }
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| protocol | MB/s | goal | envelope only, MB/s | `Value`, MB/s | of envelope | of `Value` |"
    )?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for (name, kind) in PROTOCOLS {
        let recordings = target(name).map(|target| (target.seeds)()).unwrap_or_default();
        let mix = Mix::of(&recordings);
        let ours = mix.speed(|| mix.protocols(kind), |mix, protocols| as_conversations(mix, protocols));
        let (envelope, value) = (mix.speed(|| (), as_envelopes), mix.speed(|| (), as_values));
        writeln!(
            out,
            "| {name} | {ours:.0} | {GOAL:.0} | {envelope:.0} | {value:.0} | {:.2} | {:.2} |",
            ours / envelope,
            ours / value
        )?;
    }
    Ok(())
}
