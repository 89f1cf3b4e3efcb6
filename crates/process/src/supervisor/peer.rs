//! One connected client, seen from the supervisor. Everything it can make the supervisor hold is bounded: unread requests,
//! unsent replies, and at most one notice, which always carries the newest lengths.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::PollFlags;

use crate::clock::RunClock;
use crate::files::is_transient;
use crate::wire::{self, Lengths, MAX_REQUEST_LINE, Message, Outcome, Request};

/// Unread input held for a client; more stays in its socket.
const INBOX_CAP: usize = 64 * 1024;
/// Replies waiting for a client that does not read; above this its requests wait too.
const OUTBOX_CAP: usize = 16 * 1024;

/// Distinguishes clients for as long as the supervisor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PeerId(pub(super) u64);

impl PeerId {
    /// Whoever started us.
    pub(super) const STARTER: Self = Self(0);
}

/// The bytes of a write that are still to come.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) request: u64,
    pub(super) remaining: u64,
    /// Why the bytes are thrown away instead of staged, if they are.
    pub(super) refused: Option<Outcome>,
}

/// The next part of a client's input.
#[derive(Debug)]
pub(super) enum Incoming {
    Request(Request),
    /// Some bytes of the payload that was announced.
    Payload(Vec<u8>),
    /// Not enough of anything, or the client must first read its replies.
    Nothing,
    /// What it sent is not of the protocol.
    Nonsense(String),
}

pub(super) struct Peer {
    pub(super) id: PeerId,
    socket: UnixStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    pub(super) payload: Option<Payload>,
    /// The lengths that were last sent.
    sent_lengths: Option<Lengths>,
    /// When it last sent something.
    pub(super) heard_at: Instant,
    /// Its next request has to wait for another client's write to be complete.
    pub(super) waits_for_stdin: bool,
    pub(super) gone: bool,
    sent_farewell: bool,
}

impl Peer {
    pub(super) fn new(id: PeerId, socket: UnixStream, now: Instant) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            id,
            socket,
            inbox: Vec::new(),
            outbox: Vec::new(),
            payload: None,
            sent_lengths: None,
            heard_at: now,
            waits_for_stdin: false,
            gone: false,
            sent_farewell: false,
        })
    }

    pub(super) fn interest(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.wants_input());
        flags.set(PollFlags::OUT, !self.outbox.is_empty());
        flags
    }

    fn wants_input(&self) -> bool {
        !self.waits_for_stdin && self.inbox.len() < INBOX_CAP && self.outbox.len() < OUTBOX_CAP
    }

    /// Whether something could be served at once, without hearing from the client again.
    pub(super) fn has_request(&self) -> bool {
        let served_next = self.payload.is_some() || self.inbox.contains(&b'\n');
        !self.waits_for_stdin && !self.inbox.is_empty() && self.outbox.len() < OUTBOX_CAP && served_next
    }

    /// Acts on what poll reported about the socket.
    pub(super) fn on_ready(&mut self, flags: PollFlags, buffer: &mut [u8], now: Instant) {
        if self.wants_input() {
            if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.receive(buffer, now);
            }
        } else if flags.intersects(PollFlags::HUP | PollFlags::ERR) {
            // Nobody will ever read its replies, and waiting for this event again would spin.
            self.gone = true;
        }
    }

    fn receive(&mut self, buffer: &mut [u8], now: Instant) {
        let room = INBOX_CAP.saturating_sub(self.inbox.len()).min(buffer.len());
        let Some(space) = buffer.get_mut(..room) else { return };
        match self.socket.read(space) {
            Ok(0) => self.gone = true,
            Ok(count) => {
                self.heard_at = now;
                self.inbox.extend_from_slice(space.get(..count).unwrap_or_default());
            }
            Err(error) if is_transient(&error) => {}
            Err(_) => self.gone = true,
        }
    }

    /// Takes the next thing out of the input.
    pub(super) fn take_incoming(&mut self) -> Incoming {
        if self.outbox.len() >= OUTBOX_CAP || self.inbox.is_empty() {
            return Incoming::Nothing;
        }
        if let Some(payload) = &mut self.payload {
            let count = usize::try_from(payload.remaining).unwrap_or(usize::MAX).min(self.inbox.len());
            payload.remaining -= count as u64;
            return Incoming::Payload(self.consume(count));
        }
        match self.inbox.iter().position(|byte| *byte == b'\n') {
            Some(newline) if newline <= MAX_REQUEST_LINE => {
                let line = self.consume(newline + 1);
                serde_json::from_slice(&line)
                    .map_or_else(|error| Incoming::Nonsense(error.to_string()), Incoming::Request)
            }
            None if self.inbox.len() <= MAX_REQUEST_LINE => Incoming::Nothing,
            _ => Incoming::Nonsense("a request line without end".to_owned()),
        }
    }

    /// Puts a request back that cannot be served yet.
    pub(super) fn put_back(&mut self, request: &Request) {
        self.inbox.splice(..0, wire::line(request));
        self.waits_for_stdin = true;
    }

    fn consume(&mut self, count: usize) -> Vec<u8> {
        let taken: Vec<u8> = self.inbox.drain(..count).collect();
        if self.inbox.is_empty() {
            self.inbox = Vec::new();
        }
        taken
    }

    pub(super) fn reply(&mut self, id: u64, outcome: Outcome) {
        self.outbox.extend(wire::line(&Message::Reply { id, outcome }));
    }

    /// Sends what is waiting, and sends the client the lengths of the logs, unless it knows or has not yet read what
    /// it was sent before. Replies go first: a notice that had to wait for them would wait for the next event.
    pub(super) fn send_lengths(&mut self, lengths: Lengths, clock: RunClock) {
        self.flush();
        if self.outbox.is_empty() && self.sent_lengths != Some(lengths) {
            self.sent_lengths = Some(lengths);
            self.outbox.extend(wire::line(&grown(lengths, clock)));
            self.flush();
        }
    }

    /// The last thing a client hears, after the last lengths. May be called again to send what did not get through.
    pub(super) fn send_farewell(&mut self, lengths: Lengths, clock: RunClock, farewell: &Message) {
        if !std::mem::replace(&mut self.sent_farewell, true) {
            if self.sent_lengths != Some(lengths) {
                self.outbox.extend(wire::line(&grown(lengths, clock)));
            }
            self.outbox.extend(wire::line(farewell));
        }
        self.flush();
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match self.socket.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if is_transient(&error) => return,
                Err(_) => {
                    self.gone = true;
                    return;
                }
            }
        }
        self.outbox = Vec::new();
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn grown(Lengths { stdout, stderr }: Lengths, clock: RunClock) -> Message {
    Message::Grown { stdout, stderr, now_ms: Some(clock.now_ms()) }
}
