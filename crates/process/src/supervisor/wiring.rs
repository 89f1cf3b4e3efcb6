//! The program's standard streams: pipes, a file, or a terminal. This makes both ends of each of them.
//!
//! Neighbours: `leader` gives the program its ends, the supervisor reads and writes ours and sees no difference.

use std::io;
use std::os::fd::OwnedFd;

use towline_files::{Changes, HeldDirectory, Watch};

use super::output::Origin;
use super::stdin::Inlet;
use super::terminal::{Terminal, Typist};
use crate::files::Stream;
use crate::launch::Stdio;

/// The ends that the program gets.
pub(super) struct Theirs {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// The ends that stay with us.
pub(super) struct Ours {
    pub(super) stdin: Inlet,
    pub(super) stdout: Origin,
    /// None where there is no output apart from the standard one.
    pub(super) stderr: Option<Origin>,
    /// Held as long as the program runs: a terminal that nobody holds is hung up, which would end a program that has
    /// merely let go of it.
    pub(super) terminal: Option<OwnedFd>,
}

/// Makes the streams.
pub(super) fn connect(stdio: Stdio, place: &HeldDirectory) -> io::Result<(Theirs, Ours)> {
    match stdio {
        Stdio::Pipes => {
            let (from_stdout, stdout) = io::pipe()?;
            pipes(stdout.into(), Origin::pipe(from_stdout.into())?)
        }
        Stdio::OutputFile => {
            let path = place.join(Stream::Stdout.file_name());
            let log = towline_files::append(&path)?;
            // As a program expects its output to be.
            rustix::io::ioctl_fionbio(&log, false)?;
            let watch = Watch::new()?;
            watch.add(&path, Changes::Writes)?;
            pipes(log.into(), Origin::Log(watch))
        }
        Stdio::Terminal(size) => terminal(Terminal::open(size)?),
    }
}

fn pipes(stdout: OwnedFd, from_stdout: Origin) -> io::Result<(Theirs, Ours)> {
    let (stdin, to_stdin) = io::pipe()?;
    let (from_stderr, stderr) = io::pipe()?;
    let ours = Ours {
        stdin: Inlet::new(to_stdin.into(), None)?,
        stdout: from_stdout,
        stderr: Some(Origin::pipe(from_stderr.into())?),
        terminal: None,
    };
    Ok((Theirs { stdin: stdin.into(), stdout, stderr: stderr.into() }, ours))
}

fn terminal(Terminal { near, far }: Terminal) -> io::Result<(Theirs, Ours)> {
    let ours = Ours {
        stdin: Inlet::new(near.try_clone()?, Some(Typist::default()))?,
        stdout: Origin::pipe(near.try_clone()?)?,
        stderr: None,
        terminal: Some(near),
    };
    Ok((Theirs { stdin: far.try_clone()?, stdout: far.try_clone()?, stderr: far }, ours))
}
