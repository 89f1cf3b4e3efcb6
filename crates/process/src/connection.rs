//! The client's end of the socket: requests out, replies and notices in.
//!
//! Every wait in here may be given up at any point without harm. What was to be sent stays queued and is sent
//! by the next call; what was received stays until it is taken; a reply that nobody waits for
//! any more is dropped.

use std::io;
use std::path::Path;
use std::time::Instant;

use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::clock::{self, millis};
use crate::error::ProcessError;
use crate::files::is_transient;
use crate::record::ExitRecord;
use crate::wire::{self, Lengths, Message, Operation, Outcome, Request};

/// Room made for each read; messages are short, but many may wait.
const RECEIVE_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    sent: usize,
    last_id: u64,
    reply: Option<(u64, Outcome)>,
    /// The newest lengths, if they have not been taken yet.
    pub(crate) grown: Option<Lengths>,
    /// The run's own time, and when it was heard.
    time: Option<(u64, Instant)>,
    pub(crate) exited: Option<Box<ExitRecord>>,
    /// Whether the supervisor has hung up. Every earlier message has been read by then.
    pub(crate) is_closed: bool,
}

impl Connection {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            outbox: Vec::new(),
            sent: 0,
            last_id: 0,
            reply: None,
            grown: None,
            time: None,
            exited: None,
            is_closed: false,
        }
    }

    /// The run's own time, once it was heard.
    pub(crate) fn run_time_ms(&self) -> Option<u64> {
        self.time.map(|(heard, at)| heard.saturating_add(millis(at.elapsed())))
    }

    /// Queues a request with the bytes that follow it. Its reply is asked for by the number that is given back.
    pub(crate) fn send_later(&mut self, op: Operation, payload: &[u8]) -> u64 {
        self.last_id += 1;
        self.outbox.extend(wire::line(&Request { id: self.last_id, op }));
        self.outbox.extend_from_slice(payload);
        self.last_id
    }

    /// Waits for the reply to a request; `None` if the supervisor hangs up.
    pub(crate) async fn reply(&mut self, id: u64, dir: &Path) -> Result<Option<Outcome>, ProcessError> {
        loop {
            if let Some((_, outcome)) = self.reply.take_if(|(replied, _)| *replied == id) {
                return Ok(Some(outcome));
            }
            if self.is_closed {
                return Ok(None);
            }
            self.step(dir).await?;
        }
    }

    /// Waits until something can be sent or received, and does it.
    pub(crate) async fn step(&mut self, dir: &Path) -> Result<(), ProcessError> {
        let pending = self.sent < self.outbox.len();
        let interest = if pending { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let ready = self.stream.ready(interest).await.map_err(ProcessError::io("use the socket of", dir))?;
        if pending && ready.is_writable() {
            self.send();
        }
        if ready.is_readable() || ready.is_read_closed() {
            self.receive();
            self.take_in_lines(dir)?;
        }
        Ok(())
    }

    fn send(&mut self) {
        match self.stream.try_write(self.outbox.get(self.sent..).unwrap_or_default()) {
            Ok(count) => self.sent += count,
            Err(error) if is_transient(&error) => return,
            // The supervisor hung up. Earlier messages are still to be read; there the end shows too.
            Err(_) => self.sent = self.outbox.len(),
        }
        if self.sent == self.outbox.len() {
            self.outbox = Vec::new();
            self.sent = 0;
        }
    }

    fn receive(&mut self) {
        loop {
            self.inbox.reserve(RECEIVE_BYTES);
            match self.stream.try_read_buf(&mut self.inbox) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    fn take_in_lines(&mut self, dir: &Path) -> Result<(), ProcessError> {
        let Some(end) = self.inbox.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let lines: Vec<u8> = self.inbox.drain(..=end).collect();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(Message::Reply { id, outcome }) => self.reply = Some((id, outcome)),
                Ok(Message::Grown { stdout, stderr, now_ms }) => {
                    self.grown = Some(Lengths { stdout, stderr });
                    self.time = Some((now_ms.unwrap_or_else(clock::unix_ms), Instant::now()));
                }
                Ok(Message::Exited(record)) => self.exited = Some(record),
                Err(source) => return Err(ProcessError::Protocol { dir: dir.to_owned(), source }),
            }
        }
        Ok(())
    }
}
