//! What happened in an attempt before this engine looked after it, and when.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use towline_process::{OutputTimes, Stream};

/// What happened before this engine looked after the attempt.
pub(super) struct Past {
    /// Output up to here was there already.
    pub(super) output_to: u64,
    times: OutputTimes,
    /// Requests of the agent that were answered, and when.
    pub(super) answered: BTreeMap<String, Timestamp>,
}

impl Past {
    pub(super) fn of(dir: &Path, answered: BTreeMap<String, Timestamp>) -> Self {
        let output_to = std::fs::symlink_metadata(dir.join("stdout.log")).map_or(0, |log| log.len());
        Self { output_to, times: OutputTimes::new(dir, Stream::Stdout), answered }
    }

    /// When the output before `end` was there, unless it was just now.
    pub(super) fn time_of(&mut self, end: u64) -> Option<Timestamp> {
        if end > self.output_to {
            return None;
        }
        let at_ms = self.times.at(end).ok().flatten()?;
        Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()
    }
}
