//! What the program reads: `stdin.log`, and the pipe or terminal that is fed from it.
//!
//! The log is also the queue. A client's bytes are staged behind its end and count once they are complete; the
//! pipe is fed from the file as the program reads. So a program that never reads costs no memory, and a client
//! that dies in the middle of a write leaves nothing behind.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::log;
use super::peer::PeerId;
use super::terminal::Typist;
use crate::files::is_transient;
use crate::wire::Outcome;

/// Our end of the program's standard input.
pub(super) struct Inlet {
    pipe: File,
    /// Who writes if it is the end of a terminal.
    typist: Option<Typist>,
}

impl Inlet {
    pub(super) fn new(end: OwnedFd, typist: Option<Typist>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&end, true)?;
        Ok(Self { pipe: File::from(end), typist })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.typist {
            None => self.pipe.write(bytes),
            Some(typist) => typist.write(&mut self.pipe, bytes),
        }
    }

    /// What is to be done before it is let go of.
    fn end(&mut self) -> io::Result<()> {
        self.typist.as_mut().map_or(Ok(()), |typist| typist.end(&mut self.pipe))
    }
}

pub(super) struct Stdin {
    inlet: Option<Inlet>,
    log: File,
    /// How much of the log is complete writes.
    committed: u64,
    /// How much the present writer has put behind that.
    staged: u64,
    /// How much the program's side has taken.
    sent: u64,
    close_when_sent: bool,
    /// Whose write is being staged; one at a time, so that writes do not mix.
    writer: Option<PeerId>,
}

impl Stdin {
    pub(super) fn new(log: File, inlet: Inlet) -> Self {
        let inlet = Some(inlet);
        Self { inlet, log, committed: 0, staged: 0, sent: 0, close_when_sent: false, writer: None }
    }

    /// Whether the program can still be written to; notices when it has closed its end.
    pub(super) fn is_open(&mut self) -> bool {
        if self.inlet.as_ref().is_some_and(has_no_reader) {
            self.inlet = None;
        }
        self.inlet.is_some() && !self.close_when_sent
    }

    pub(super) fn writer(&self) -> Option<PeerId> {
        self.writer
    }

    /// The pipe, if there is something to put into it, be it the end.
    pub(super) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        let inlet = self.inlet.as_ref().filter(|_| self.sent < self.committed || self.close_when_sent);
        inlet.map(|inlet| inlet.pipe.as_fd())
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
        if self.inlet.is_none() {
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
        let ended = self.close_if_sent();
        self.unless_broken(ended);
    }

    /// Puts into the pipe what it takes now.
    pub(super) fn feed(&mut self, buffer: &mut [u8]) {
        let Some(inlet) = &mut self.inlet else { return };
        let pending = usize::try_from(self.committed - self.sent).unwrap_or(usize::MAX).min(buffer.len());
        let Some(chunk) = buffer.get_mut(..pending) else { return };
        let mut fed = Ok(());
        if pending > 0 {
            let taken = self.log.read_exact_at(chunk, self.sent).and_then(|()| inlet.write(chunk));
            fed = taken.map(|count| self.sent += count as u64);
        }
        let fed = fed.and_then(|()| self.close_if_sent());
        self.unless_broken(fed);
    }

    /// Lets go of a pipe that the program has closed; the next write fails.
    fn unless_broken(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else { return };
        if is_transient(&error) {
            return;
        }
        let closed = [Errno::PIPE, Errno::IO].map(|errno| Some(errno.raw_os_error()));
        if !closed.contains(&error.raw_os_error()) {
            log::note(&format!("cannot write to the program: {error}"));
        }
        self.inlet = None;
    }

    /// The log, if there is anything in it.
    pub(super) fn written(&self) -> Option<&File> {
        (self.committed > 0).then_some(&self.log)
    }

    /// The program is gone: nothing can be written any more.
    pub(super) fn detach(&mut self) {
        self.inlet = None;
    }

    fn close_if_sent(&mut self) -> io::Result<()> {
        if self.close_when_sent && self.sent == self.committed {
            self.inlet.as_mut().map_or(Ok(()), Inlet::end)?;
            self.inlet = None;
        }
        Ok(())
    }
}

fn has_no_reader(inlet: &Inlet) -> bool {
    let mut asked = [PollFd::new(&inlet.pipe, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().intersects(gone)
}
