//! A terminal with a program in it, and what a person would see there: a real one towards the program, and an emulator
//! of one towards the test, so that screens can be looked at wherever the tests run.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use towline_testkit::scratch::{clean_command, wait_for};

use super::LIMIT;

/// Rows for all that is ever written, so that nothing scrolls away.
const ENDLESS: u16 = 2_000;

/// A terminal, with what was written to it.
pub(crate) struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    /// When something was written, and how many bytes there were then.
    written: Arc<Mutex<Vec<(Instant, usize)>>>,
    columns: u16,
    rows: u16,
    /// The side that programs get.
    theirs: Option<OwnedFd>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// A terminal that is wide enough for everything.
    pub(crate) fn new() -> Self {
        Self::sized(200, 40)
    }

    /// A terminal of this size.
    pub(crate) fn sized(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = openpt(flags | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let theirs = ioctl_tiocgptpeer(&ours, flags | OpenptFlags::CLOEXEC).expect("its other side");
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().expect("a second handle");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (showing, writing) = (Arc::clone(&shown), Arc::clone(&written));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error means that no process has the other side open any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let mut shown = showing.lock().expect("unharmed");
                shown.extend(&bytes[..count]);
                writing.lock().expect("unharmed").push((Instant::now(), shown.len()));
            }
        });
        let (theirs, reader) = (Some(theirs), Some(reader));
        let mut terminal = Self { keyboard, shown, written, columns, rows, theirs, reader };
        terminal.resize(columns, rows);
        terminal
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (columns, rows);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).expect("a size");
    }

    /// Starts the command in a session of its own, of which this is the terminal.
    pub(crate) fn start(&mut self, command: &Command) -> Child {
        let mut session = clean_command("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        session.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        session.current_dir(command.get_current_dir().expect("a directory"));
        let theirs = self.theirs.take().expect("one program for each terminal");
        let side = || theirs.try_clone().expect("a handle");
        session.stdin(side()).stdout(side()).stderr(side());
        session.spawn().expect("the program starts")
    }

    pub(crate) fn type_in(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// Every byte that was written.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("unharmed")).into_owned()
    }

    pub(crate) fn wait_for(&self, text: &str, times: usize) {
        let what = format!("{text:?} on the screen");
        wait_for(LIMIT, &what, || self.shown().matches(text).count() >= times);
    }

    /// Waits until the screen shows this; gives the screen.
    pub(crate) fn wait_to_see(&self, text: &str) -> Vec<String> {
        let mut picture = Vec::new();
        wait_for(LIMIT, &format!("{text:?} to be seen on the screen"), || {
            picture = self.picture();
            picture.iter().any(|line| line.contains(text))
        });
        picture
    }

    /// Whether the terminal echoes what is typed and passes it on line by line, as a shell expects it.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).expect("a terminal").local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Waits until everything that was written has arrived: nobody has the other side open any more.
    pub(crate) fn wait_for_the_end(&mut self) {
        let reader = self.reader.take().expect("once for each terminal");
        wait_for(LIMIT, "the last of what is written", || reader.is_finished());
    }

    /// The screen now, with the colours named where they change.
    pub(crate) fn painted(&self) -> Vec<String> {
        let emulator = self.emulated(self.rows);
        let screen = emulator.screen();
        let rows = (0..self.rows).map(|row| {
            let (mut line, mut colour) = (String::new(), "");
            for cell in (0..self.columns).filter_map(|column| screen.cell(row, column)) {
                let now = colour_of(cell);
                if now != colour && !(now.is_empty() && cell.contents().trim().is_empty()) {
                    line.push_str(&format!("<{now}>"));
                    colour = now;
                }
                line.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            line.trim_end().to_owned()
        });
        rows.collect()
    }

    /// The screen now, row by row.
    pub(crate) fn picture(&self) -> Vec<String> {
        lines(self.emulated(self.rows).screen())
    }

    /// The screen, with all that has scrolled out of it.
    pub(crate) fn screen(&self) -> Vec<String> {
        lines(self.emulated(ENDLESS).screen())
    }

    /// Its columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        (self.columns, self.rows)
    }

    /// Every byte that was written, with the times at which they came.
    pub(crate) fn recorded(&self) -> (Vec<u8>, Vec<(Instant, usize)>) {
        (self.shown.lock().expect("unharmed").clone(), self.written.lock().expect("unharmed").clone())
    }

    /// The screen now, as the emulator has it.
    pub(crate) fn emulated(&self, rows: u16) -> vt100::Parser {
        let mut emulator = vt100::Parser::new(rows, self.columns, 0);
        emulator.process(&self.shown.lock().expect("unharmed"));
        emulator
    }
}

fn colour_of(cell: &vt100::Cell) -> &'static str {
    match cell.fgcolor() {
        vt100::Color::Idx(1) => "red",
        vt100::Color::Idx(2) => "green",
        vt100::Color::Idx(3) => "yellow",
        _ if cell.bold() => "bold",
        _ if cell.dim() => "dim",
        _ => "",
    }
}

/// The rows of a screen, without the empty ones at its end.
fn lines(screen: &vt100::Screen) -> Vec<String> {
    let (_, columns) = screen.size();
    let mut lines: Vec<String> = screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
