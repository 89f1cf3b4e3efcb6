//! The signals the supervisor itself gets, turned into something the poll loop can wait for.
//!
//! All of them have handlers, also those that need no action: a handler, unlike an ignored signal, is not
//! inherited by the program, which so starts with default behaviour even when our own starter ignored SIGINT
//! or SIGHUP.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXFSZ};

pub(super) struct Signals {
    wakeup: UnixStream,
    stop: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        let (wakeup, write_end) = UnixStream::pair()?;
        wakeup.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // Registered before the wake-up, so that the flag is set when the loop looks.
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
            signal_hook::low_level::pipe::register(signal, write_end.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, write_end)?;
        for signal in [SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        Ok(Self { wakeup, stop })
    }

    /// Empties the wake-up pipe. What the signals were about is looked up, not counted.
    pub(super) fn clear(&mut self) {
        let mut bytes = [0; 256];
        while matches!(self.wakeup.read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }

    /// Whether somebody asked the supervisor to stop since the last look.
    pub(super) fn take_stop(&self) -> bool {
        self.stop.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}
