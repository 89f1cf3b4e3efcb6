//! Much output of agents, made of the recordings: all of them one after the other, again and again, each repetition a
//! conversation of its own.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use towline_agent::{Frame, Kind, ProcessEnd, Protocol};
use towline_fuzzing::{conversation, target};
use towline_process::{CHUNK_BYTES, Framed, LineFramer};

/// The seeds of the targets begin with so many bytes that are no output.
const HEADER: usize = 2;

/// How many conversations are got ready before they are read: as many as may be alive at once, so that it is the reading
/// that is measured and not the memory of thousands.
const TOGETHER: usize = 16;

/// The output of many conversations, one after the other.
pub(crate) struct Mix {
    kind: Kind,
    pub(crate) bytes: Vec<u8>,
    /// Where each conversation is.
    pub(crate) conversations: Vec<Range<usize>>,
    /// Where each line is, without its end.
    lines: Vec<Range<usize>>,
}

impl Mix {
    /// At least so many bytes of what agents of this kind wrote.
    pub(crate) fn of(kind: Kind, bytes: usize) -> Self {
        let recordings = target(kind.name()).map(|target| target.seeds()).unwrap_or_default();
        let mut mix = Self {
            kind,
            bytes: Vec::with_capacity(bytes + bytes / 8),
            conversations: Vec::new(),
            lines: Vec::new(),
        };
        while mix.bytes.len() < bytes {
            recordings.iter().for_each(|recording| mix.add(&recording[HEADER..]));
        }
        mix
    }

    fn add(&mut self, recording: &[u8]) {
        let begin = self.bytes.len();
        for line in recording.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(line);
            self.lines.push(start..self.bytes.len());
            self.bytes.push(b'\n');
        }
        self.conversations.push(begin..self.bytes.len());
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().map(|range| &self.bytes[range.clone()])
    }

    /// Megabytes a second of one core at which the lines are read in another way.
    pub(crate) fn speed_of_lines(&self, read: impl Fn(&[u8])) -> f64 {
        let begun = cpu_time();
        self.lines().for_each(read);
        self.speed(cpu_time().saturating_sub(begun))
    }

    /// Megabytes a second of one core from bytes to events: the bytes are cut into lines, and the protocol decides what each
    /// line means.
    pub(crate) fn speed_to_events(&self) -> f64 {
        let mut taken = Duration::ZERO;
        for batch in self.conversations.chunks(TOGETHER) {
            let mut protocols: Vec<_> = batch.iter().map(|_| begun(self.kind)).collect();
            let begun = cpu_time();
            for (range, protocol) in batch.iter().zip(&mut protocols) {
                to_events(&self.bytes[range.clone()], &mut **protocol);
            }
            taken += cpu_time().saturating_sub(begun);
        }
        self.speed(taken)
    }

    fn speed(&self, taken: Duration) -> f64 {
        self.bytes.len() as f64 / 1e6 / taken.as_secs_f64()
    }
}

/// A conversation that waits for what the agent writes.
fn begun(kind: Kind) -> Box<dyn Protocol> {
    let mut protocol = conversation(kind);
    black_box(protocol.start());
    protocol
}

fn to_events(bytes: &[u8], protocol: &mut dyn Protocol) {
    let mut framer = LineFramer::new(0);
    for chunk in bytes.chunks(CHUNK_BYTES) {
        framer.push(chunk);
        while let Some(framed) = framer.pull() {
            black_box(protocol.on_frame(frame(framed)));
        }
    }
    if let Some(framed) = framer.finish() {
        black_box(protocol.on_frame(frame(framed)));
    }
    black_box(protocol.on_exit(&ProcessEnd { code: Some(0), ..ProcessEnd::default() }));
}

fn frame(framed: Framed<'_>) -> Frame<'_> {
    match framed {
        Framed::Line(line) => Frame::Line(line.bytes),
        Framed::TooLong { len, .. } => Frame::TooLong { length: len },
    }
}

/// The time that this thread had a core to itself: what others do on the machine is not in it.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
