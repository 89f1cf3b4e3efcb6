//! One of the program's outputs and the log it goes to.
//!
//! Nothing is ever dropped: when the log cannot be written (a full disk), the bytes at hand are held and the pipe
//! is left alone until they are safe, which in the end makes the program wait. A log that has reached the limit for the size of a
//! file never grows again, so the supervisor ends such a run.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use sha2::{Digest, Sha256};
use towline_files::Watch;

use super::log;
use crate::files::{self, Stream, is_transient};

/// How long to wait before a log that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Where the bytes of a log come from.
pub(super) enum Origin {
    /// A pipe, or our side of a terminal, which from here look the same.
    Pipe(File),
    /// The program itself writes the log. Whether it will ever do so again cannot be known.
    Log(Watch),
}

impl Origin {
    /// The end of a pipe or of a terminal from which the program's output is read.
    pub(super) fn pipe(end: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&end, true)?;
        Ok(Self::Pipe(File::from(end)))
    }
}

pub(super) struct Output {
    pub(super) stream: Stream,
    origin: Option<Origin>,
    log: File,
    pub(super) length: u64,
    /// Of everything in the log, unless the program itself writes it.
    hash: Option<Sha256>,
    held: Vec<u8>,
    pub(super) retry_at: Option<Instant>,
    /// The log is as long as a file may be. No wait helps against that.
    pub(super) is_full: bool,
}

/// What one look at where the bytes come from brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// The log grew by so many bytes (none if they are held).
    Read(u64),
    /// Nothing there now.
    Empty,
    /// Every writer is gone.
    Closed,
}

impl Output {
    /// Without an origin it is closed from the beginning.
    pub(super) fn new(stream: Stream, log: File, origin: Option<Origin>) -> Self {
        let hash = (!matches!(origin, Some(Origin::Log(_)))).then(Sha256::new);
        Self { stream, origin, log, length: 0, hash, held: Vec::new(), retry_at: None, is_full: false }
    }

    /// What to wait for, if anything.
    pub(super) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        match &self.origin {
            Some(Origin::Pipe(pipe)) if self.held.is_empty() => Some(pipe.as_fd()),
            Some(Origin::Log(watch)) => Some(watch.as_fd()),
            _ => None,
        }
    }

    /// The SHA-256 of the log as it was written, in hexadecimal.
    pub(super) fn sha256(&self) -> Option<String> {
        self.hash.clone().map(files::hexadecimal)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.origin.is_none()
    }

    /// Whether bytes wait for room that there may be later.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty() && !self.is_full
    }

    /// Moves at most one buffer from the pipe to the log, or looks how far the program has written it.
    pub(super) fn look(&mut self, buffer: &mut [u8], now: Instant) -> Looked {
        let read = match &mut self.origin {
            None => return Looked::Closed,
            Some(Origin::Log(watch)) => {
                watch.clear();
                return self.measure();
            }
            Some(Origin::Pipe(pipe)) => pipe.read(buffer),
        };
        match read {
            Ok(0) => {
                self.origin = None;
                Looked::Closed
            }
            Ok(count) => Looked::Read(self.append(buffer.get(..count).unwrap_or_default(), now)),
            Err(error) if is_transient(&error) => Looked::Empty,
            Err(error) => {
                // It is how a terminal shows that nobody has it open any more.
                if error.raw_os_error() != Some(Errno::IO.raw_os_error()) {
                    log::note(&format!("cannot read {:?} of the program: {error}", self.stream));
                }
                self.origin = None;
                Looked::Closed
            }
        }
    }

    /// What was there once counts as there, even if the program cuts its own log.
    fn measure(&mut self) -> Looked {
        match self.log.metadata() {
            Ok(log) if log.len() > self.length => {
                let grown = log.len() - self.length;
                self.length = log.len();
                Looked::Read(grown)
            }
            Ok(_) => Looked::Empty,
            Err(error) => {
                log::note(&format!("cannot measure {}: {error}", self.stream.file_name()));
                Looked::Empty
            }
        }
    }

    /// Tries once more to write what is held, if it is time to. Gives back by how much the log grew.
    pub(super) fn retry(&mut self, now: Instant) -> u64 {
        if self.retry_at.is_none_or(|at| now < at) {
            return 0;
        }
        let held = std::mem::take(&mut self.held);
        self.append(&held, now)
    }

    /// The log, if there is anything in it.
    pub(super) fn written(&self) -> Option<&File> {
        (self.length > 0).then_some(&self.log)
    }

    /// Lets go of where the bytes come from: whoever still writes to a pipe gets SIGPIPE.
    pub(super) fn close(&mut self) {
        self.origin = None;
    }

    /// Writes to the end of the log; what does not fit is held. The place is always given, so that a write that
    /// failed half way is simply done again.
    fn append(&mut self, mut bytes: &[u8], now: Instant) -> u64 {
        let before = self.length;
        while !bytes.is_empty() {
            match self.log.write_at(bytes, self.length) {
                Ok(count) => {
                    let (written, rest) = bytes.split_at(count);
                    self.length += count as u64;
                    if let Some(hash) = &mut self.hash {
                        hash.update(written);
                    }
                    bytes = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if self.retry_at.is_none() {
                        log::note(&format!(
                            "cannot write {}, will try again: {error}",
                            self.stream.file_name()
                        ));
                    }
                    self.is_full = error.kind() == io::ErrorKind::FileTooLarge;
                    self.held = bytes.to_vec();
                    self.retry_at = Some(now + RETRY);
                    return self.length - before;
                }
            }
        }
        self.retry_at = None;
        self.length - before
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pipe() -> (File, OwnedFd) {
        let (read_end, write_end) = rustix::pipe::pipe().unwrap();
        (File::from(write_end), read_end)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_holds_the_bytes_and_leaves_the_pipe_alone_until_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (mut program, read_end) = pipe();
        let mut output = Output::new(Stream::Stdout, full, Some(Origin::pipe(read_end).unwrap()));
        let mut buffer = [0; 64];
        let start = Instant::now();

        program.write_all(b"first").unwrap();
        assert_eq!(output.look(&mut buffer, start), Looked::Read(0));
        assert!(output.pollable().is_none(), "the pipe must not be read while bytes are held");
        assert_eq!(output.retry(start), 0, "too early");
        assert_eq!(output.retry(start + RETRY), 0, "still full");

        output.log = towline_files::create_new(&dir.path().join("stdout.log")).unwrap();
        assert_eq!(output.retry(start + RETRY * 2), 5);
        assert!(output.pollable().is_some());
        program.write_all(b" second").unwrap();
        assert_eq!(output.look(&mut buffer, start), Looked::Read(7));
        drop(program);
        assert_eq!(output.look(&mut buffer, start), Looked::Closed);
        assert_eq!(std::fs::read(dir.path().join("stdout.log")).unwrap(), b"first second");
    }
}
