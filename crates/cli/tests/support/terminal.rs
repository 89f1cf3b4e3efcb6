//! A terminal with a program in it, and what a person would see there.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use towline_testkit::scratch::{clean_command, wait_for};

use super::{Desk, LIMIT};

/// A terminal, with what was written to it.
pub(crate) struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<String>>,
    /// The side that programs get.
    theirs: Option<OwnedFd>,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = openpt(flags | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let theirs = ioctl_tiocgptpeer(&ours, flags | OpenptFlags::CLOEXEC).expect("its other side");
        let size = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("a size");
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().expect("a second handle");
        let shown = Arc::new(Mutex::new(String::new()));
        let showing = Arc::clone(&shown);
        std::thread::spawn(move || {
            let (mut bytes, mut all) = ([0; 4096], Vec::new());
            // An error says that nobody has the other side open any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                all.extend(&bytes[..count]);
                *showing.lock().expect("unharmed") = String::from_utf8_lossy(&all).into_owned();
            }
        });
        Self { keyboard, shown, theirs: Some(theirs) }
    }

    /// Starts the command in a session of its own, of which this is the terminal.
    pub(crate) fn start(&mut self, desk: &Desk, command: &Command) -> Child {
        let mut session = clean_command("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        session.env("TERM", "xterm-256color");
        session.current_dir(desk.project.path());
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

    pub(crate) fn shown(&self) -> String {
        self.shown.lock().expect("unharmed").clone()
    }

    pub(crate) fn wait_for(&self, text: &str, times: usize) {
        let what = format!("{text:?} on the screen");
        wait_for(LIMIT, &what, || self.shown().matches(text).count() >= times);
    }

    /// What stands on the screen, with all that has scrolled out of it: text, line ends, carriage returns, and the
    /// orders to move the cursor up and down, to clear a line and to change colours.
    pub(crate) fn screen(&self) -> Vec<String> {
        let mut lines: Vec<Vec<char>> = vec![Vec::new()];
        let (mut row, mut column) = (0, 0);
        let shown = self.shown();
        let mut rest = shown.chars();
        while let Some(c) = rest.next() {
            match c {
                '\n' => row += 1,
                '\r' => column = 0,
                '\u{1b}' => {
                    assert_eq!(rest.next(), Some('['), "an order that is not understood: {shown:?}");
                    let order = rest.as_str();
                    let end = order.find(char::is_alphabetic).expect("an order with an end");
                    let count = order[..end].parse::<usize>().unwrap_or(1);
                    match rest.nth(end) {
                        Some('A') => row -= count.min(row),
                        Some('B') => row += count,
                        Some('K') => lines[row].clear(),
                        Some('m') => {}
                        _ => panic!("an order that is not understood: {order:?}"),
                    }
                }
                c => {
                    let line = &mut lines[row];
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    column += 1;
                }
            }
            lines.resize(lines.len().max(row + 1), Vec::new());
        }
        lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect()
    }
}
