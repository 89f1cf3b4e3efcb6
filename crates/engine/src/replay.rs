//! Replays an attempt from its raw bytes: the same reading as of a living agent, without one.
//!
//! Neighbours: `reading` turns bytes into events, `opening` knows what the conversation was begun with, and
//! [`Comparison`] holds the outcome against what is stored. Files are read here and nothing else is done: no process, no
//! store, no clock.

mod comparison;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use towline_agent::Action;
use towline_core::{AgentEvent, AttemptNo, Event, GoalId, RawRef, Source, Work};
use towline_process::ExitRecord;

pub use self::comparison::{Comparison, Difference, Taken, Wording};
use crate::home::Home;
use crate::opening::Opening;
use crate::question_file;
use crate::reading::{Output, Reading};
use crate::sent::Sent;

/// Why an attempt cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Its agent was never started.
    #[error("attempt {attempt} left no output: its agent was not started")]
    NotStarted { attempt: AttemptNo },
    /// It is over, and what it left was removed.
    #[error("the raw logs of attempt {attempt} were removed: there is nothing to replay it from")]
    Removed { attempt: AttemptNo },
    /// It is not over.
    #[error("attempt {attempt} is not over yet")]
    NotOver { attempt: AttemptNo },
    /// What its conversation was begun with is not there, or from another version.
    #[error("cannot read what attempt {attempt} was begun with in {}: {source}", dir.display())]
    Unreadable {
        attempt: AttemptNo,
        dir: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

/// Something that follows from an attempt's raw bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// When its bytes were there; none for what follows from no byte of its own.
    pub at: Option<Timestamp>,
    /// Who did it.
    pub source: Source,
    /// The tool call of a subagent that it happened below.
    pub parent: Option<String>,
    /// The raw bytes it was read from.
    pub raw: Option<RawRef>,
    pub event: Event,
}

/// An attempt's events, read again from its raw bytes.
pub struct Replay {
    dir: PathBuf,
    reading: Reading,
    record: Option<ExitRecord>,
    ready: VecDeque<Replayed>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Output,
    Over,
}

impl Replay {
    /// Of an attempt that has its exit record, or whose end is recorded although it left none.
    pub fn open(home: &Home, goal: GoalId, attempt: AttemptNo, over: Over) -> Result<Self, ReplayError> {
        let dir = home.attempt(goal, attempt);
        if over == Over::Recorded && !dir.exists() {
            return Err(ReplayError::Removed { attempt });
        }
        if !dir.join("launch.json").exists() {
            return Err(ReplayError::NotStarted { attempt });
        }
        let record = ExitRecord::read(&dir).ok().flatten();
        if record.is_none() && over == Over::NotYet {
            return Err(ReplayError::NotOver { attempt });
        }
        Self::of(dir.clone(), record).map_err(|source| ReplayError::Unreadable { attempt, dir, source })
    }

    /// Of what an agent left in this directory.
    pub(crate) fn of(dir: PathBuf, record: Option<ExitRecord>) -> io::Result<Self> {
        let opening = Opening::read(&dir)?;
        let nothing = BTreeMap::new();
        let context = opening.context(&nothing, &nothing);
        let protocol = opening.protocol(&context, &Sent::read(&dir));
        let reading = Reading::new(&dir, protocol);
        Ok(Self { reading, record, ready: VecDeque::new(), stage: Stage::Start, dir })
    }

    /// Reads on until there is something to report.
    fn read_on(&mut self) {
        while self.ready.is_empty() {
            match self.stage {
                Stage::Start => {
                    let first = self.reading.start();
                    self.record(first, None);
                    self.stage = Stage::Output;
                }
                Stage::Output => match self.reading.next_line() {
                    Some((raw, actions)) => self.record(actions, Some(raw)),
                    None if self.reading.take_in() == Output::More => {}
                    None => self.come_to_the_end(),
                },
                Stage::Over => return,
            }
        }
    }

    fn come_to_the_end(&mut self) {
        if let Some((raw, actions)) = self.reading.rest() {
            self.record(actions, Some(raw));
        }
        let (last, end, exit) = self.reading.end(self.record.as_ref());
        self.record(last, None);
        let question = question_file::read_now(&self.dir).map(|event| Event::Agent { event });
        let ended = Event::AttemptEnded { end, exit, work: Work::Nothing, changes: String::new() };
        let own = |event| Replayed { at: None, source: Source::Towline, parent: None, raw: None, event };
        self.ready.extend(question.into_iter().chain([ended]).map(own));
        self.stage = Stage::Over;
    }

    /// Collects the events. What the protocol wants to write was written in the original run.
    fn record(&mut self, actions: Vec<Action>, raw: Option<RawRef>) {
        let at = raw.and_then(|raw| self.reading.time_of(raw.offset + raw.length));
        for action in actions {
            match action {
                // Shown while it is written, and never stored.
                Action::Emit { event: AgentEvent::MessageDelta { .. }, .. } => {}
                Action::Emit { event, parent } => {
                    let event = Event::Agent { event };
                    self.ready.push_back(Replayed { at, source: Source::Agent, parent, raw, event });
                }
                Action::Write(_) | Action::CloseStdin => {}
            }
        }
    }
}

/// Whether an attempt is known to be over although it may have no exit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Its end is recorded.
    Recorded,
    /// As far as is recorded, it still runs.
    NotYet,
}

impl Iterator for Replay {
    type Item = Replayed;

    fn next(&mut self) -> Option<Replayed> {
        self.read_on();
        self.ready.pop_front()
    }
}
