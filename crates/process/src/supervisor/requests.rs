//! What clients ask for, carried out.

use std::time::Instant;

use super::log;
use super::peer::{Incoming, Payload, Peer};
use super::state::{LONGEST_LIFETIME, Supervisor};
use crate::clock;
use crate::record::StopCause;
use crate::wire::{Operation, Outcome, Request};

impl Supervisor {
    /// Serves everything that can be served now, client by client.
    pub(super) fn serve_requests(&mut self, now: Instant) {
        // The list is taken out so that a client and the rest can be changed together.
        let mut peers = std::mem::take(&mut self.peers);
        for peer in &mut peers {
            self.serve(peer, now);
        }
        // A write that was completed after another client had asked for its turn.
        if self.stdin.writer().is_none() {
            for peer in &mut peers {
                if std::mem::take(&mut peer.waits_for_stdin) {
                    self.serve(peer, now);
                }
            }
        }
        self.peers = peers;
    }

    fn serve(&mut self, peer: &mut Peer, now: Instant) {
        while !peer.gone && !peer.waits_for_stdin {
            match peer.take_incoming() {
                Incoming::Request(request) => self.on_request(peer, request, now),
                Incoming::Payload(bytes) => self.on_payload(peer, &bytes),
                Incoming::Nothing => return,
                Incoming::Nonsense(why) => {
                    log::note(&format!("a client was disconnected, its request is not understood: {why}"));
                    peer.gone = true;
                }
            }
        }
    }

    fn on_request(&mut self, peer: &mut Peer, request: Request, now: Instant) {
        let outcome = match request.op {
            Operation::Write { length } => return self.on_write(peer, request, length, now),
            Operation::CloseStdin => {
                self.stdin.close();
                Outcome::Done
            }
            Operation::Stop => {
                self.ending.stop(StopCause::Requested, now);
                Outcome::Done
            }
            Operation::Kill => {
                self.ending.insist(now);
                Outcome::Done
            }
            Operation::Extend(_) if self.ending.has_begun() => Outcome::Stopping,
            Operation::Extend(deadline) => {
                self.deadline =
                    self.deadline.max(now + deadline.remaining(clock::unix_ms()).min(LONGEST_LIFETIME));
                Outcome::Done
            }
        };
        peer.reply(request.id, outcome);
    }

    fn on_write(&mut self, peer: &mut Peer, request: Request, length: u64, now: Instant) {
        let refused = if !self.leader_runs() {
            Some(Outcome::Ended)
        } else if !self.stdin.is_open() {
            Some(Outcome::StdinClosed)
        } else if self.stdin.writer().is_some() {
            return peer.put_back(&request);
        } else {
            self.stdin.begin(peer.id);
            // It may have waited long for its turn; its own time begins now.
            peer.heard_at = now;
            None
        };
        peer.payload = Some(Payload { request: request.id, remaining: length, refused });
        // An empty write has no bytes that would complete it.
        self.complete_if_whole(peer);
    }

    fn on_payload(&mut self, peer: &mut Peer, bytes: &[u8]) {
        if let Some(payload) = &mut peer.payload
            && payload.refused.is_none()
            && let Err(error) = self.stdin.stage(bytes)
        {
            self.stdin.abandon();
            payload.refused = Some(Outcome::Failed(format!("stdin.log cannot be written: {error}")));
        }
        self.complete_if_whole(peer);
    }

    fn complete_if_whole(&mut self, peer: &mut Peer) {
        let Some(payload) = peer.payload.take_if(|payload| payload.remaining == 0) else { return };
        let outcome = payload.refused.unwrap_or_else(|| self.stdin.commit());
        peer.reply(payload.request, outcome);
    }
}
