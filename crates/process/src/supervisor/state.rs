//! The loop: wait for anything, act on it, update the clients, and find out whether the end is reached.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use towline_files::HeldDirectory;

use super::ending::Ending;
use super::finishing::report_failed_start;
use super::output::{Looked, Output};
use super::peer::{Peer, PeerId};
use super::signals::Signals;
use super::startup::Prepared;
use super::stdin::Stdin;
use super::{leader, log};
use crate::ancestry::is_in_our_tree;
use crate::clock::RunClock;
use crate::files::Stream;
use crate::index::IndexWriter;
use crate::platform::{self, ProcessId};
use crate::record::StopCause;
use crate::wire::Lengths;

/// The one buffer everything goes through.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;
/// Clients at one time; more are turned away.
const MOST_PEERS: usize = 32;
/// The loop looks around at least this often.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A time that no run lasts, and that can be added to any moment.
pub(super) const LONGEST_LIFETIME: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// How long a client may leave a write unfinished while others wait for their turn.
const WRITE_STALL: Duration = Duration::from_secs(5);
/// Pause after a client could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// How the program itself ended.
pub(super) struct LeaderEnd {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) at: Instant,
    pub(super) at_ms: u64,
}

/// What the loop waited for.
#[derive(Clone, Copy)]
enum Source {
    Signals,
    Listener,
    Output(Stream),
    Stdin,
    Peer(PeerId),
}

pub(super) struct Supervisor {
    /// When the run is ended if nobody extends it.
    pub(super) deadline: Instant,
    pub(super) leader: ProcessId,
    pub(super) ending: Ending,
    pub(super) stdin: Stdin,
    pub(super) peers: Vec<Peer>,
    pub(super) leader_end: Option<LeaderEnd>,
    /// Held as long as the program runs, so that it is not hung up before.
    terminal: Option<OwnedFd>,
    pub(super) clock: RunClock,
    pub(super) outputs: [Output; 2],
    pub(super) index: IndexWriter,
    signals: Signals,
    listener: UnixListener,
    pub(super) place: HeldDirectory,
    /// Held as long as anything of the tree may be left.
    pub(super) identity: Option<File>,
    next_peer: u64,
    buffer: Box<[u8]>,
}

impl Supervisor {
    /// Runs the program to its end.
    pub(super) fn run(prepared: Prepared) -> io::Result<()> {
        match leader::start(&prepared.launch, &prepared.place)? {
            Ok(leader) => Self::new(prepared, leader).supervise(),
            Err(error) => report_failed_start(prepared, error),
        }
    }

    fn new(prepared: Prepared, leader: leader::Leader) -> Self {
        let streams = leader.streams;
        let stdout = Output::new(Stream::Stdout, prepared.stdout_log, Some(streams.stdout));
        let stderr = Output::new(Stream::Stderr, prepared.stderr_log, streams.stderr);
        Self {
            deadline: Instant::now() + prepared.launch.lifetime.min(LONGEST_LIFETIME),
            leader: leader.process,
            ending: Ending::new(leader.process, &prepared.launch),
            stdin: Stdin::new(prepared.stdin_log, streams.stdin),
            peers: prepared.starter.into_iter().collect(),
            leader_end: None,
            terminal: streams.terminal,
            clock: prepared.clock,
            outputs: [stdout, stderr],
            index: IndexWriter::new(prepared.index),
            signals: prepared.signals,
            listener: prepared.listener,
            place: prepared.place,
            identity: Some(prepared.identity),
            next_peer: PeerId::STARTER.0 + 1,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        }
    }

    fn supervise(mut self) -> io::Result<()> {
        loop {
            let (lengths, clock) = (self.lengths(), self.clock);
            self.peers.iter_mut().for_each(|peer| peer.send_lengths(lengths, clock));
            let ready = self.wait_for_something()?;
            let now = Instant::now();
            for (source, flags) in ready {
                self.on_ready(source, flags, now);
            }
            self.serve_requests(now);
            if self.reap_all(now) && self.ending.look(now).is_some_and(|tree| tree.is_empty()) {
                return self.finish();
            }
            self.keep_time(now);
            if self.ending.is_helpless(now) {
                return Err(self.give_up());
            }
        }
    }

    /// What is left of the tree comes to whoever started us, who ends it.
    fn give_up(self) -> io::Error {
        if self.leader_runs()
            && let Some(group) = platform::raw_pid(self.leader.pid)
        {
            // Not reaped yet, so the number is certain.
            let _ = kill_process_group(group, Signal::KILL);
        }
        io::Error::other("the processes of the run can be neither seen nor ended")
    }

    /// Whether the program itself still runs.
    pub(super) fn leader_runs(&self) -> bool {
        self.leader_end.is_none()
    }

    fn wait_for_something(&self) -> io::Result<Vec<(Source, PollFlags)>> {
        let mut sources = vec![Source::Signals, Source::Listener];
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
        ];
        for output in &self.outputs {
            if let Some(pipe) = output.pollable() {
                sources.push(Source::Output(output.stream));
                fds.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
            }
        }
        if let Some(pipe) = self.stdin.pollable() {
            sources.push(Source::Stdin);
            fds.push(PollFd::from_borrowed_fd(pipe, PollFlags::OUT));
        }
        for peer in &self.peers {
            sources.push(Source::Peer(peer.id));
            fds.push(PollFd::from_borrowed_fd(peer.as_fd(), peer.interest()));
        }
        let timeout = Timespec::try_from(self.time_to_next_step()).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = fds.iter().map(PollFd::revents);
        Ok(sources.into_iter().zip(flags).filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn time_to_next_step(&self) -> Duration {
        if self.peers.iter().any(Peer::has_request) {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let stalled = self.writing_peer().map(|peer| peer.heard_at + WRITE_STALL);
        let steps = [self.ending.next_step_at(), stalled, self.outputs[0].retry_at, self.outputs[1].retry_at];
        let nearest = steps.into_iter().flatten().min();
        let mut wait = nearest.map_or(LONGEST_WAIT, |at| at.saturating_duration_since(now)).min(LONGEST_WAIT);
        if let Some(due) = self.index.due_in(self.clock.now_ms()) {
            wait = wait.min(due);
        }
        if !self.ending.has_begun() {
            wait = wait.min(self.deadline.saturating_duration_since(now));
        }
        wait
    }

    fn on_ready(&mut self, source: Source, flags: PollFlags, now: Instant) {
        match source {
            Source::Signals => self.on_signals(now),
            Source::Listener => self.on_connections(now),
            Source::Output(stream) => drop(self.read_output(stream, now)),
            Source::Stdin => self.stdin.feed(&mut self.buffer),
            Source::Peer(id) => {
                if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == id) {
                    peer.on_ready(flags, &mut self.buffer, now);
                }
            }
        }
    }

    fn on_signals(&mut self, now: Instant) {
        self.signals.clear();
        if self.signals.take_stop() {
            self.ending.stop(StopCause::Requested, now);
        }
    }

    fn on_connections(&mut self, now: Instant) {
        loop {
            match self.listener.accept() {
                Ok(_) if self.peers.len() >= MOST_PEERS => {
                    log::note("a client was turned away, too many are connected");
                }
                Ok((socket, _)) if is_supervised(&socket) => {
                    log::note("a client was turned away, it is one of the processes that are supervised");
                }
                Ok((socket, _)) => self.admit(socket, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    log::note(&format!("cannot accept a client: {error}"));
                    // It stays waiting, so without a pause the loop would spin until the system has room again.
                    std::thread::sleep(ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, socket: UnixStream, now: Instant) {
        match Peer::new(PeerId(self.next_peer), socket, now) {
            Ok(peer) => self.peers.push(peer),
            Err(error) => log::note(&format!("cannot serve a client: {error}")),
        }
        self.next_peer += 1;
    }

    pub(super) fn read_output(&mut self, stream: Stream, now: Instant) -> Looked {
        let output = &mut self.outputs[stream as usize];
        let looked = output.look(&mut self.buffer, now);
        if let Looked::Read(grown) = looked {
            let end = output.length;
            self.note_growth(stream, end - grown, grown);
        }
        looked
    }

    fn note_growth(&mut self, stream: Stream, offset: u64, length: u64) {
        if length > 0
            && let Err(error) = self.index.grew(stream, offset, length, self.clock.now_ms())
        {
            log::note(&format!("cannot write the index: {error}"));
        }
    }

    /// Whoever takes the run up after a crash finds the time of the last sign of life there.
    fn flush_index(&mut self) {
        if self.index.due_in(self.clock.now_ms()) == Some(Duration::ZERO)
            && let Err(error) = self.index.flush()
        {
            log::note(&format!("cannot write the index: {error}"));
        }
    }

    pub(super) fn retry_outputs(&mut self, now: Instant) {
        for stream in Stream::ALL {
            let output = &mut self.outputs[stream as usize];
            let grown = output.retry(now);
            let end = output.length;
            self.note_growth(stream, end - grown, grown);
        }
    }

    fn keep_time(&mut self, now: Instant) {
        self.retry_outputs(now);
        self.flush_index();
        if !self.ending.has_begun() && now >= self.deadline {
            self.ending.stop(StopCause::Deadline, now);
        }
        if !self.ending.has_begun() && self.outputs.iter().any(|output| output.is_full) {
            self.ending.stop(StopCause::FileLimit, now);
        }
        if self.outputs[Stream::Stdout as usize].is_closed() {
            self.ending.stdout_closed(now);
        }
        if self.outputs.iter().all(Output::is_closed) {
            self.ending.outputs_closed(now);
        }
        self.ending.tick(now);
        if let Some(peer) = self.peers.iter_mut().find(|peer| self.stdin.writer() == Some(peer.id))
            && now.saturating_duration_since(peer.heard_at) >= WRITE_STALL
        {
            log::note("a client left a write unfinished and was disconnected");
            peer.gone = true;
        }
        self.dismiss_gone();
    }

    fn writing_peer(&self) -> Option<&Peer> {
        self.peers.iter().find(|peer| self.stdin.writer() == Some(peer.id))
    }

    fn dismiss_gone(&mut self) {
        if self.writing_peer().is_some_and(|peer| peer.gone) {
            self.stdin.abandon();
            self.peers.iter_mut().for_each(|peer| peer.waits_for_stdin = false);
        }
        self.peers.retain(|peer| !peer.gone);
    }

    pub(super) fn lengths(&self) -> Lengths {
        Lengths { stdout: self.outputs[0].length, stderr: self.outputs[1].length }
    }

    /// Reaps whoever has ended. Whether the whole tree is gone, by the kernel's word that we have no child left: whatever
    /// loses its parent becomes our child.
    fn reap_all(&mut self, now: Instant) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if u32::try_from(pid.as_raw_nonzero().get()) == Ok(self.leader.pid) {
                        self.on_leader_exit(status, now);
                    }
                }
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    fn on_leader_exit(&mut self, status: WaitStatus, now: Instant) {
        // Its number may be given to a descendant now, which must not be taken for it.
        if self.leader_end.is_some() {
            return;
        }
        self.leader_end = Some(LeaderEnd {
            code: status.exit_status(),
            signal: status.terminating_signal(),
            at: now,
            at_ms: self.clock.now_ms(),
        });
        self.stdin.detach();
        self.terminal = None;
        self.ending.leader_exited(now);
    }
}

/// Whether a client is one of the processes that it would steer. One that cannot be traced counts as one.
fn is_supervised(client: &UnixStream) -> bool {
    platform::peer_of(client).is_some_and(|pid| is_in_our_tree(pid).unwrap_or(true))
}
