//! The end of a run whose tree is gone: the rest of its output, the record, and the last word to every client.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use towline_files::HeldDirectory;

use super::log;
use super::output::Looked;
use super::startup::Prepared;
use super::state::{BUFFER_BYTES, LONGEST_WAIT, Supervisor};
use crate::files::{self, Stream};
use crate::platform;
use crate::record::{ExitRecord, SpawnError};
use crate::wire::{Lengths, Message};

/// A pipe holds at most this much unless root enlarges it, so more cannot be left in one whose writers are gone.
const MOST_LEFT_IN_PIPE: usize = 1024 * 1024;
/// Pause between tries to write the record to a full disk.
const RECORD_RETRY: Duration = Duration::from_secs(1);
/// How long those tries go on at least, whatever the deadline.
const RECORD_PATIENCE: Duration = Duration::from_secs(60);

impl Supervisor {
    /// The tree is gone: takes what is left in the pipes, writes the record, sends it, and ends.
    pub(super) fn finish(mut self) -> io::Result<()> {
        // The program may have lowered it, and the record needs a file.
        let _ = platform::raise_descriptor_limit();
        for stream in Stream::ALL {
            self.empty_pipe(stream);
        }
        let record = self.record();
        let saved = self.save(&record);
        if let Err(error) = &saved {
            log::note(&format!("the exit record is not on disk: {error}"));
        }
        // From here on the record answers whoever looks for us.
        self.identity = None;
        let _ = std::fs::remove_file(self.place.join(files::SOCKET));
        self.hand_over(&Message::Exited(Box::new(record)));
        saved
    }

    /// Holds the result until every client has taken it. One that never does is waited for up to the deadline.
    fn hand_over(&mut self, farewell: &Message) {
        let give_up_at = self.patience_ends_at();
        loop {
            let (lengths, clock) = (self.lengths(), self.clock);
            self.peers.iter_mut().for_each(|peer| peer.send_farewell(lengths, clock, farewell));
            self.peers.retain(|peer| !peer.gone && peer.has_unsent());
            let left = give_up_at.saturating_duration_since(Instant::now());
            if self.peers.is_empty() || left.is_zero() {
                return;
            }
            let unread = self.peers.iter().map(|peer| PollFd::from_borrowed_fd(peer.as_fd(), PollFlags::OUT));
            let mut fds: Vec<_> = unread.collect();
            let wait = left.min(LONGEST_WAIT);
            let _ = poll(&mut fds, Timespec::try_from(wait).ok().as_ref());
        }
    }

    fn empty_pipe(&mut self, stream: Stream) {
        for _ in 0..=MOST_LEFT_IN_PIPE / BUFFER_BYTES {
            self.wait_for_room(stream);
            let is_full = self.outputs[stream as usize].is_full;
            if is_full || !matches!(self.read_output(stream, Instant::now()), Looked::Read(_)) {
                break;
            }
        }
        self.wait_for_room(stream);
        self.outputs[stream as usize].close();
    }

    /// Waits until nothing is held back by a full disk, within the same bound as for the record.
    fn wait_for_room(&mut self, stream: Stream) {
        let give_up_at = self.patience_ends_at();
        while self.outputs[stream as usize].has_held() && Instant::now() < give_up_at {
            std::thread::sleep(RECORD_RETRY);
            self.retry_outputs(Instant::now());
        }
    }

    fn patience_ends_at(&self) -> Instant {
        let ended = self.leader_end.as_ref().map_or_else(Instant::now, |end| end.at);
        self.deadline.max(ended + RECORD_PATIENCE)
    }

    fn record(&self) -> ExitRecord {
        let end = self.leader_end.as_ref();
        ExitRecord {
            code: end.and_then(|end| end.code),
            signal: end.and_then(|end| end.signal),
            spawn_error: None,
            started_at_ms: self.clock.started_at_ms(),
            ended_at_ms: end.map_or_else(|| self.clock.now_ms(), |end| end.at_ms),
            stopped: self.ending.stopped,
            leftovers_killed: self.ending.leftovers(),
            stdout_bytes: self.outputs[0].length,
            stderr_bytes: self.outputs[1].length,
            stdout_sha256: self.outputs[0].sha256(),
            stderr_sha256: self.outputs[1].sha256(),
        }
    }

    /// The logs are on the disk before the record states their lengths.
    fn save(&mut self, record: &ExitRecord) -> io::Result<()> {
        let give_up_at = self.patience_ends_at();
        let _ = self.index.flush();
        loop {
            let saved = self.sync_logs().and_then(|()| write_record(&self.place, record));
            match saved {
                Ok(()) => return Ok(()),
                Err(error) if !may_pass(&error) || Instant::now() >= give_up_at => return Err(error),
                Err(error) => log::note(&format!("cannot write the exit record, will try again: {error}")),
            }
            std::thread::sleep(RECORD_RETRY);
        }
    }

    fn sync_logs(&self) -> io::Result<()> {
        let [stdout, stderr] = &self.outputs;
        let logs = [self.stdin.written(), stdout.written(), stderr.written(), self.index.written()];
        files::sync_together(logs.into_iter().flatten())
    }
}

fn write_record(place: &HeldDirectory, record: &ExitRecord) -> io::Result<()> {
    towline_files::replace_durably(&place.join(files::EXIT), &serde_json::to_vec_pretty(record)?)
}

/// Whether waiting can help, as it does with a full disk. A directory that was removed, or something else in the place of the
/// file, stays so.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound, PermissionDenied,
    };
    let lasting = [AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound, PermissionDenied];
    !lasting.contains(&error.kind())
}

/// The program never ran: the record has the reason, and there is nothing to supervise.
pub(super) fn report_failed_start(prepared: Prepared, error: SpawnError) -> io::Result<()> {
    let clock = prepared.clock;
    let record = ExitRecord {
        spawn_error: Some(error),
        started_at_ms: clock.started_at_ms(),
        ended_at_ms: clock.now_ms(),
        ..ExitRecord::default()
    };
    let saved = write_record(&prepared.place, &record);
    let _ = std::fs::remove_file(prepared.place.join(files::SOCKET));
    if let Some(mut starter) = prepared.starter {
        starter.send_farewell(Lengths::default(), clock, &Message::Exited(Box::new(record)));
    }
    saved
}
