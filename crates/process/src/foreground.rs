//! Which process group has the terminal.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::termios::tcgetpgrp;

use crate::platform;

/// Whether our process group has this terminal now; a shell that puts us into the background takes it away. `None` for what
/// has no such groups.
pub fn is_in_foreground(terminal: impl AsFd) -> Option<bool> {
    let ours = platform::own_group()?;
    match tcgetpgrp(terminal) {
        Ok(group) => Some(u32::try_from(group.as_raw_nonzero().get()) == Ok(ours)),
        // Both groups are outside our process namespace.
        Err(Errno::OPNOTSUPP) if ours == 0 => Some(true),
        Err(_) => None,
    }
}
