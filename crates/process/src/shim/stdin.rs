//! What the program reads: `stdin.log`, and the pipe that is fed from it.
//!
//! The log is also the queue. A client's bytes are staged behind its end and count once they are complete; the
//! pipe is fed from the file as the program reads. So a program that never reads costs no memory, and a client
//! that dies in the middle of a write leaves nothing behind.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::log;
use super::peer::PeerId;
use crate::wire::Outcome;

pub(super) struct Stdin {
    pipe: Option<File>,
    log: File,
    /// How much of the log is complete writes.
    committed: u64,
    /// How much the present writer has put behind that.
    staged: u64,
    /// How much the pipe has taken.
    sent: u64,
    close_when_sent: bool,
    /// Whose write is being staged; one at a time, so that writes do not mix.
    writer: Option<PeerId>,
}

impl Stdin {
    pub(super) fn new(log: File) -> Self {
        Self { pipe: None, log, committed: 0, staged: 0, sent: 0, close_when_sent: false, writer: None }
    }

    /// Takes over the writing end of the program's pipe.
    pub(super) fn attach(&mut self, pipe: OwnedFd) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        self.pipe = Some(File::from(pipe));
        Ok(())
    }

    /// Whether the program can still be written to; notices when it has closed its end.
    pub(super) fn is_open(&mut self) -> bool {
        if self.pipe.as_ref().is_some_and(has_no_reader) {
            self.pipe = None;
        }
        self.pipe.is_some() && !self.close_when_sent
    }

    pub(super) fn writer(&self) -> Option<PeerId> {
        self.writer
    }

    /// The pipe, if there is something to put into it.
    pub(super) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        if self.sent < self.committed { self.pipe.as_ref().map(AsFd::as_fd) } else { None }
    }

    pub(super) fn begin(&mut self, writer: PeerId) {
        self.writer = Some(writer);
        self.staged = 0;
    }

    pub(super) fn stage(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.log.write_all_at(bytes, self.committed + self.staged)?;
        self.staged += bytes.len() as u64;
        Ok(())
    }

    /// Makes what was staged count. Refused when the pipe was closed in the meantime.
    pub(super) fn commit(&mut self) -> Outcome {
        if self.pipe.is_none() {
            self.abandon();
            return Outcome::StdinClosed;
        }
        self.committed += self.staged;
        self.staged = 0;
        self.writer = None;
        Outcome::Done
    }

    /// Forgets what was staged.
    pub(super) fn abandon(&mut self) {
        self.staged = 0;
        self.writer = None;
        if let Err(error) = self.log.set_len(self.committed) {
            log::note(&format!("cannot cut an unfinished write off stdin.log: {error}"));
        }
    }

    /// Closes the pipe once everything written so far has gone through it.
    pub(super) fn close(&mut self) {
        self.close_when_sent = true;
        self.close_if_sent();
    }

    /// Puts into the pipe what it takes now.
    pub(super) fn feed(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        let pending = usize::try_from(self.committed - self.sent).unwrap_or(usize::MAX).min(buffer.len());
        let Some(chunk) = buffer.get_mut(..pending) else { return };
        let taken = self.log.read_exact_at(chunk, self.sent).and_then(|()| pipe.write(chunk));
        match taken {
            Ok(count) => {
                self.sent += count as u64;
                self.close_if_sent();
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                // The program closed its end; whoever writes next is told.
                if error.kind() != io::ErrorKind::BrokenPipe {
                    log::note(&format!("cannot write to the program: {error}"));
                }
                self.pipe = None;
            }
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.log.sync_data()
    }

    /// The program is gone: nothing can be written any more.
    pub(super) fn detach(&mut self) {
        self.pipe = None;
    }

    fn close_if_sent(&mut self) {
        if self.close_when_sent && self.sent == self.committed {
            self.pipe = None;
        }
    }
}

fn has_no_reader(pipe: &File) -> bool {
    let mut asked = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().contains(PollFlags::ERR)
}
