//! The program's terminal, when it is to have one: how it is opened, and how it is written to.
//!
//! It is line by line (canonical) from the beginning, because only readers that began to read so can get an end of
//! input later. What makes that mode unfit for text of any kind is taken care of here: special characters are switched
//! off but for one that text does not have, and lines that are longer than the system's limit are handed over in pieces,
//! which readers do not notice.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};

use crate::launch::WindowSize;

/// Hands over what comes before it, and is the end of input where nothing does. UTF-8 has no such byte.
const END: u8 = 0xff;
/// In the place of a special character: there is none.
const NO_CHARACTER: u8 = 0;
/// What is written of a line before that is handed over. Systems cut at 4096 bytes, some at 1024.
const LONGEST_PIECE: usize = 1000;
/// How often the end of input is sent: a terminal forgets it once somebody has read it, and the program may have children
/// that read, too.
const TIMES_SENT: usize = 8;

/// The two sides of a terminal.
pub(super) struct Terminal {
    pub(super) near: OwnedFd,
    pub(super) far: OwnedFd,
}

impl Terminal {
    pub(super) fn open(size: WindowSize) -> io::Result<Self> {
        // Neither may become the supervisor's own controlling terminal.
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        fcntl_setfd(&near, FdFlags::CLOEXEC)?;
        grantpt(&near)?;
        unlockpt(&near)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let far = rustix::fs::open(ptsname(&near, Vec::new())?, flags, Mode::empty())?;
        let mut modes = tcgetattr(&far)?;
        modes.make_raw();
        modes.local_modes.insert(LocalModes::ICANON);
        for code in [SpecialCodeIndex::VERASE, SpecialCodeIndex::VKILL, SpecialCodeIndex::VEOL] {
            modes.special_codes[code] = NO_CHARACTER;
        }
        modes.special_codes[SpecialCodeIndex::VEOF] = END;
        tcsetattr(&far, OptionalActions::Now, &modes)?;
        let size = Winsize { ws_col: size.columns, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&far, size)?;
        Ok(Self { near, far })
    }
}

/// Writes to a terminal so that everything arrives.
#[derive(Debug, Default)]
pub(super) struct Typist {
    /// How much of a line was written and not yet handed over.
    piece: usize,
    ends_sent: usize,
}

impl Typist {
    /// Writes what the terminal takes now of `bytes`, and returns how much that is.
    pub(super) fn write(&mut self, terminal: &mut File, bytes: &[u8]) -> io::Result<usize> {
        if self.piece >= LONGEST_PIECE {
            self.hand_over(terminal)?;
        }
        let most = bytes.len().min(LONGEST_PIECE - self.piece);
        let count = terminal.write(bytes.get(..most).unwrap_or_default())?;
        let taken = bytes.get(..count).unwrap_or_default();
        self.piece = match taken.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => count - newline - 1,
            None => self.piece + count,
        };
        Ok(count)
    }

    /// Sends the end of input. `WouldBlock` means that it was not yet sent as often as it should be.
    pub(super) fn end(&mut self, terminal: &mut File) -> io::Result<()> {
        if self.piece > 0 {
            self.hand_over(terminal)?;
        }
        while self.ends_sent < TIMES_SENT
            && let Some(end) = end_character(terminal)
        {
            terminal.write_all(&[end])?;
            self.ends_sent += 1;
        }
        Ok(())
    }

    fn hand_over(&mut self, terminal: &mut File) -> io::Result<()> {
        // A program that reads single keys has them already.
        if let Some(end) = end_character(terminal) {
            terminal.write_all(&[end])?;
        }
        self.piece = 0;
        Ok(())
    }
}

/// What means the end in the terminal as the program has it by now; nothing does where single keys are read.
fn end_character(terminal: &File) -> Option<u8> {
    let modes = tcgetattr(terminal).ok().filter(|modes| modes.local_modes.contains(LocalModes::ICANON))?;
    Some(modes.special_codes[SpecialCodeIndex::VEOF]).filter(|end| *end != NO_CHARACTER)
}
