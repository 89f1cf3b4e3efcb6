//! Compares the events that an attempt's raw bytes give with those that are stored.
//!
//! It compares everything that follows from the bytes: each event of the agent with its offset and parent call, the
//! question that the agent left in a file, how the process ended and how that is classified. It skips everything else:
//! actions of Towline and the operator, reports through Towline's own tools, requests that Towline withdrew, and ends that
//! Towline renamed because it had stopped the agent, or because the agent asked, slept or was denied its work.

use std::iter::Peekable;

use serde::Serialize;
use serde_json::Value;
use towline_core::{AgentEvent, AttemptNo, End, Envelope, Event, Exit, Phase, Source, without_escapes};
use towline_mask::is_masked_form_of;

use super::{Replay, Replayed};

/// A comparison under way: to be given the goal's stored log in its order.
pub struct Comparison {
    attempt: AttemptNo,
    fresh: Peekable<Replay>,
    /// How many events were the same.
    same: u64,
    /// Whether Towline has begun to stop the attempt.
    stopped: bool,
    part: Part,
}

/// Where in the goal's log the comparison is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Within,
    After,
    /// After an end before which no engine had read all of the output.
    Unread,
}

/// What came of a stored event.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// It is of another attempt, or of none.
    Elsewhere,
    /// It happened during the attempt, and follows from none of its bytes.
    Beside,
    /// It follows from the bytes, too.
    Same(Box<Replayed>),
}

/// Where the two part.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// How many events were the same before.
    pub same: u64,
    /// The stored event; none if the bytes have more events.
    pub stored: Option<Box<Envelope>>,
    /// The event from the bytes; none if more are stored.
    pub fresh: Option<Box<Replayed>>,
}

/// Which part of the stored events is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// All of it.
    All,
    /// Only what kind of event it is: what is stored hides secrets that may be in it.
    Kind,
}

impl Difference {
    /// Both sides in words.
    pub fn words(&self, wording: Wording) -> String {
        let shown = |event: &Event| serde_json::to_string(event).unwrap_or_default();
        let stored = match &self.stored {
            Some(stored) => format!("stored (event {}): {}", stored.seq, shown(&stored.event)),
            None => "stored: nothing more".to_owned(),
        };
        let fresh = match (&self.fresh, wording) {
            (Some(fresh), Wording::All) => shown(&fresh.event),
            (Some(fresh), Wording::Kind) => {
                format!("`{}` (not shown, because what is stored hides secrets)", fresh.event.name())
            }
            (None, _) => "nothing more".to_owned(),
        };
        format!("after {} events as stored:\n  {stored}\n  replayed: {fresh}", self.same)
    }
}

impl Comparison {
    /// Of this replay of an attempt with what is stored.
    pub fn new(attempt: AttemptNo, replay: Replay) -> Self {
        Self { attempt, fresh: replay.peekable(), same: 0, stopped: false, part: Part::Before }
    }

    /// Takes in the next event of the stored log.
    pub fn take(&mut self, stored: &Envelope) -> Result<Taken, Difference> {
        self.follow(stored);
        if self.part != Part::Within {
            return Ok(Taken::Elsewhere);
        }
        if !self.counts(stored) {
            return Ok(Taken::Beside);
        }
        if matches!(stored.event, Event::AttemptEnded { .. }) {
            self.part = Part::After;
        }
        match self.fresh.next_if(|fresh| is_same(stored, fresh, self.stopped)) {
            Some(fresh) => {
                self.same += 1;
                Ok(Taken::Same(Box::new(fresh)))
            }
            None if is_no_output(stored) => Ok(Taken::Beside),
            None if is_unread(stored, self.stopped) => {
                self.part = Part::Unread;
                Ok(Taken::Beside)
            }
            None => Err(self.difference(Some(stored))),
        }
    }

    /// Ends the comparison after the stored log: how many events were the same. If the end of the attempt is not stored, the
    /// bytes may have more events.
    pub fn finish(mut self) -> Result<u64, Difference> {
        if self.part == Part::After && self.fresh.peek().is_some() {
            return Err(self.difference(None));
        }
        Ok(self.same)
    }

    /// The events from the bytes that are left.
    pub fn rest(self) -> impl Iterator<Item = Replayed> {
        self.fresh
    }

    fn difference(&mut self, stored: Option<&Envelope>) -> Difference {
        let stored = stored.cloned().map(Box::new);
        Difference { same: self.same, stored, fresh: self.fresh.next().map(Box::new) }
    }

    /// Takes note of where in the log we are.
    fn follow(&mut self, stored: &Envelope) {
        match &stored.event {
            Event::PhaseChanged { phase: Phase::Running { attempt } }
                if *attempt == self.attempt && self.part == Part::Before =>
            {
                self.part = Part::Within;
            }
            Event::PhaseChanged { phase: Phase::Stopping(_) } if self.part == Part::Within => {
                self.stopped = true;
            }
            _ => {}
        }
    }

    /// Whether an event may follow from the attempt's bytes.
    fn counts(&self, stored: &Envelope) -> bool {
        let is_news = matches!(stored.event, Event::Agent { .. } | Event::AttemptEnded { .. });
        is_news && stored.attempt == Some(self.attempt)
    }
}

/// Whether an event of the agent may have come by another way than its output: through Towline's own tools, or because
/// Towline let go of a request.
fn is_no_output(stored: &Envelope) -> bool {
    let Event::Agent { event } = &stored.event else { return false };
    let by_another_way = matches!(
        event,
        AgentEvent::Asked(_)
            | AgentEvent::SleepAsked { .. }
            | AgentEvent::Progress { .. }
            | AgentEvent::Submitted { .. }
            | AgentEvent::Withdrawn { .. }
    );
    by_another_way && stored.raw.is_none() && stored.source == Source::Agent
}

/// Whether the attempt was ended because its agent could not be adopted: no engine has read the rest of its output.
fn is_unread(stored: &Envelope, stopped: bool) -> bool {
    let Event::AttemptEnded { end, exit, .. } = &stored.event else { return false };
    *exit == Exit::default() && (stopped || matches!(end, End::SpawnFailed { .. }))
}

fn is_same(stored: &Envelope, fresh: &Replayed, stopped: bool) -> bool {
    if (stored.source, stored.raw) != (fresh.source, fresh.raw) || !is_equal(&stored.parent, &fresh.parent) {
        return false;
    }
    match (&stored.event, &fresh.event) {
        (
            Event::AttemptEnded { end: stored, exit: stored_exit, .. },
            Event::AttemptEnded { end, exit, .. },
        ) => is_equal(stored_exit, exit) && (stopped || is_renamed(end, stored) || is_equal(stored, end)),
        (stored, fresh) => is_equal(stored, fresh),
    }
}

/// Whether Towline has given another name to an end that was a good one, or that a signal to the supervisor brought about.
fn is_renamed(end: &End, named: &End) -> bool {
    match end {
        End::Completed => matches!(named, End::Asked | End::Slept { .. } | End::PermissionDenied { .. }),
        End::Crashed { .. } => *named == End::Interrupted,
        _ => false,
    }
}

/// Whether two values are the same except for secrets that are hidden in the stored one: a replay may not know
/// them any more.
fn is_equal<T: PartialEq + Serialize>(stored: &T, fresh: &T) -> bool {
    if stored == fresh {
        return true;
    }
    match (serde_json::to_value(stored), serde_json::to_value(fresh)) {
        (Ok(stored), Ok(fresh)) => is_masked(&stored, &fresh),
        _ => false,
    }
}

fn is_masked(stored: &Value, fresh: &Value) -> bool {
    match (stored, fresh) {
        // Earlier versions stored what steers a terminal in every text.
        (Value::String(stored), Value::String(fresh)) => {
            is_masked_form_of(stored, fresh) || is_masked_form_of(&without_escapes(stored), fresh)
        }
        (Value::Array(stored), Value::Array(fresh)) => {
            stored.len() == fresh.len()
                && stored.iter().zip(fresh).all(|(stored, fresh)| is_masked(stored, fresh))
        }
        (Value::Object(stored), Value::Object(fresh)) => {
            let same_field = |name: &String, value: &Value| {
                let named = stored.get(name).into_iter();
                let hidden = stored.iter().filter(|(hidden, _)| is_masked_form_of(hidden, name));
                named.chain(hidden.map(|(_, value)| value)).any(|stored| is_masked(stored, value))
            };
            stored.len() == fresh.len() && fresh.iter().all(|(name, value)| same_field(name, value))
        }
        // Earlier versions stored 0 for what an agent does not report.
        (Value::Number(stored), Value::Null) => stored.as_u64() == Some(0),
        (stored, fresh) => stored == fresh,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_hidden_may_be_anything_and_the_rest_must_be_the_same() {
        let fresh = json!({"text": "key abc", "list": ["x", 1], "abc": null});
        let cases = [
            (json!({"text": "key abc", "list": ["x", 1], "abc": 0}), true),
            (json!({"text": "key abc", "list": ["x", 1], "abc": 1}), false),
            (json!({"text": "key abc", "list": ["x", 1], "abc": null}), true),
            (json!({"text": "key [masked K]", "list": ["x", 1], "[masked K]": null}), true),
            (json!({"text": "lock [masked K]", "list": ["x", 1], "abc": null}), false),
            (json!({"text": "key [masked K]", "list": ["x", 2], "abc": null}), false),
            (json!({"text": "key [masked K]", "list": ["x"], "abc": null}), false),
            (json!({"text": "key [masked K]", "list": ["x", 1]}), false),
        ];
        for (stored, wanted) in cases {
            assert_eq!(is_masked(&stored, &fresh), wanted, "{stored}");
        }
    }
}
