//! What the agent of an attempt printed, byte by byte and secrets included.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use towline_core::Envelope;
use towline_engine::Following;
use towline_process::{LogReader, Stream};

use crate::error::Error;
use crate::find::{self, Found};
use crate::steer::follow;

/// How long output that is no event may wait until it is printed.
const PAUSE: Duration = Duration::from_millis(200);

/// How far the output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// As far as it has come.
    Now,
    /// Until no engine runs the goal; includes later attempts unless one was named.
    End,
}

/// Prints what the agent of an attempt printed on one of its streams, of the last attempt if none is named.
pub async fn raw_output(
    found: &Found,
    attempt: Option<u32>,
    stream: Stream,
    until: Until,
    print: fn(&[u8]),
) -> Result<(), Error> {
    let mut number = find::attempt_or_last(&found.record, attempt).map_err(|failure| {
        let setup = found.state.home.setup_logs(found.record.goal.id);
        let hint = format!("the output of its setup commands is in {}", setup.display());
        if attempt.is_none() && setup.exists() { failure.hint(hint) } else { failure }
    })?;
    let directory = |number| found.state.home.attempt(found.record.goal.id, number);
    let ended = found.record.state.attempt(number).is_some_and(|attempt| attempt.ended_at.is_some());
    if ended && !directory(number).exists() {
        let what = format!("the output of attempt {number} was removed");
        return Err(Error::not_found(what)
            .hint("`towline gc` removes it after `retention.logs`; the events are still there"));
    }
    let open = |number| RawOutput::open(directory(number), stream, print);
    let mut output = open(number);
    output.copy()?;
    if until == Until::End {
        let mut following = follow(found, found.record.last_seq).await?;
        while let Some(event) = output.copy_until_event(&mut following).await? {
            if let (None, Some(newer)) = (attempt, event.attempt.filter(|newer| *newer > number)) {
                number = newer;
                output = open(number);
            }
        }
        output.copy()?;
    }
    Ok(())
}

/// What an attempt's agent printed on one of its streams.
struct RawOutput {
    log: PathBuf,
    reader: LogReader,
    print: fn(&[u8]),
}

impl RawOutput {
    fn open(directory: PathBuf, stream: Stream, print: fn(&[u8])) -> Self {
        let reader = LogReader::output(&directory, stream, 0);
        Self { log: directory.join(stream.file_name()), reader, print }
    }

    /// Prints what is new.
    fn copy(&mut self) -> Result<(), Error> {
        loop {
            let chunk = self
                .reader
                .read()
                .map_err(|error| Error::internal(format!("cannot read {}: {error}", self.log.display())))?;
            if chunk.is_empty() {
                return Ok(());
            }
            (self.print)(chunk);
        }
    }

    /// Prints what is new until the next event, which may be the beginning of another attempt.
    async fn copy_until_event(&mut self, following: &mut Following) -> Result<Option<Envelope>, Error> {
        let mut next = pin!(following.next());
        loop {
            tokio::select! {
                event = &mut next => {
                    self.copy()?;
                    return Ok(event?);
                }
                () = tokio::time::sleep(PAUSE) => self.copy()?,
            }
        }
    }
}
