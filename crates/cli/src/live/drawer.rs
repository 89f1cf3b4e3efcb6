//! The block at the bottom of a terminal, below lines that scroll: put there, moved on, taken away, each by one write.
//!
//! The cursor rests at the end of the block's last line, so that what a terminal echoes (`^C`) appears there and is gone
//! with the next write. Neighbours: [`super::Live`] decides what is shown and when.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::termios::tcgetwinsize;
use towline_terminal::{Letters, clean, columns, printable};

/// How many rows of the screen the block takes, as it was drawn. Here and not in the drawer so that a panic, wherever it
/// happens, takes the block away before it speaks.
static ROWS: AtomicUsize = AtomicUsize::new(0);

/// A terminal shows everything between these two at once. Terminals that do not know them show it as it comes.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const CLEAR_LINE: &str = "\u{1b}[K";
/// Behind a space: tmux takes clearing from the first cell of the screen for clearing the screen, and moves what was there
/// into its history.
const CLEAR_BELOW: &str = " \u{1b}[J\r";

/// How many columns and rows the terminal on standard output has. One that does not know its size has an ordinary one.
pub(super) fn screen_size() -> (usize, usize) {
    let known = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Writes the block of one run.
pub(super) struct Drawer {
    letters: Letters,
    drawn: Vec<String>,
    /// The width of the screen when the block was drawn.
    width: usize,
}

impl Drawer {
    /// Nothing is drawn yet.
    pub(super) fn new(letters: Letters) -> Self {
        take_away_before_a_panic_speaks();
        Self { letters, drawn: Vec::new(), width: 0 }
    }

    /// Writes lines above the block and the block as it is now. Writes nothing where nothing changes.
    pub(super) fn draw(&mut self, above: &[String], block: Vec<String>, width: usize) {
        if let Some(bytes) = self.frame(above, block, width) {
            write(&bytes);
        }
    }

    /// Takes the block away.
    pub(super) fn erase(&mut self) {
        self.draw(&[], Vec::new(), self.width);
    }

    /// Puts this into the title of the terminal; with a bell, where a person is needed.
    pub(super) fn announce(&self, title: &str, with_bell: bool) {
        let bell = if with_bell { "\u{7}" } else { "" };
        write(&format!("\u{1b}]0;{}\u{7}{bell}", self.letters.shown(&printable(title))));
    }

    /// Another program has written below the block, so it is not ours to erase.
    pub(super) fn forget(&mut self) {
        self.drawn.clear();
        ROWS.store(0, Ordering::Relaxed);
    }

    fn frame(&mut self, above: &[String], block: Vec<String>, width: usize) -> Option<String> {
        let rows = self.rows_at(width);
        let is_there = rows > 0 || block.is_empty();
        if above.is_empty() && is_there && block == self.drawn && width == self.width {
            return None;
        }
        let mut bytes = format!("{BEGIN}{}", to_the_top_of(rows));
        if !above.is_empty() || rows != block.len() {
            bytes.push_str(CLEAR_BELOW);
        }
        for line in above {
            bytes.push_str(&clean(line));
            bytes.push_str("\r\n");
        }
        let painted = block.iter().map(|line| format!("{}{CLEAR_LINE}", self.letters.shown(&clean(line))));
        bytes.push_str(&painted.collect::<Vec<_>>().join("\r\n"));
        bytes.push_str(END);
        ROWS.store(block.len(), Ordering::Relaxed);
        (self.drawn, self.width) = (block, width);
        Some(bytes)
    }

    /// How many rows the block takes on a screen of this width: a screen that has become narrower since has broken its
    /// lines.
    fn rows_at(&self, width: usize) -> usize {
        if ROWS.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.drawn.iter().map(|line| columns(line).div_ceil(width.max(1)).max(1)).sum()
    }
}

impl Drop for Drawer {
    fn drop(&mut self) {
        self.erase();
    }
}

fn to_the_top_of(rows: usize) -> String {
    match rows {
        0 => String::new(),
        1 => "\r".to_owned(),
        rows => format!("\r\u{1b}[{}A", rows - 1),
    }
}

/// One write, so that nothing can come between. A terminal that went away is no reason to stop.
fn write(bytes: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes.as_bytes()).and_then(|()| stdout.flush());
}

fn take_away_before_a_panic_speaks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let speak = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let rows = ROWS.swap(0, Ordering::Relaxed);
            if rows > 0 {
                write(&format!("{}{CLEAR_BELOW}", to_the_top_of(rows)));
            }
            speak(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 20;

    fn owned(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    /// All in one test: there is one screen, and one block on it.
    #[test]
    fn the_block_stays_below_what_is_printed_and_nothing_of_it_stays_behind() {
        let mut drawer = Drawer::new(Letters::Unicode);
        let mut terminal = vt100::Parser::new(10, 20, 0);
        let mut show = |drawer: &mut Drawer, above: &[&str], lines: &[&str], width: usize| {
            let frame = drawer.frame(&owned(above), owned(lines), width);
            terminal.process(frame.as_deref().unwrap_or_default().as_bytes());
            let rows = terminal.screen().rows(0, 20).map(|row| row.trim_end().to_owned());
            (frame.is_some(), rows.filter(|row| !row.is_empty()).collect::<Vec<_>>())
        };
        let shown = |lines: &[&str]| (true, owned(lines));
        assert_eq!(show(&mut drawer, &[], &["a", "b 1s"], WIDTH), shown(&["a", "b 1s"]));
        assert!(!show(&mut drawer, &[], &["a", "b 1s"], WIDTH).0);
        assert_eq!(show(&mut drawer, &["one"], &["a", "b"], WIDTH), shown(&["one", "a", "b"]));
        assert_eq!(show(&mut drawer, &[], &["a", "b", "c"], WIDTH), shown(&["one", "a", "b", "c"]));
        let long = "two that is longer than a row";
        let broken = ["one", "two that is longer t", "han a row", "d"];
        assert_eq!(show(&mut drawer, &[long], &["d"], WIDTH), shown(&broken));
        // What a terminal echoes is gone with the next write.
        assert_eq!(show(&mut drawer, &[], &["e"], WIDTH), shown(&[&broken[..3], &["e"]].concat()));
        assert_eq!(
            show(&mut drawer, &["x"; 9], &["a", "b"], WIDTH),
            shown(&[["x"; 8].as_slice(), &["a", "b"]].concat())
        );
        assert_eq!(show(&mut drawer, &[], &[], WIDTH), shown(&["x"; 8]));
        assert!(!show(&mut drawer, &[], &[], WIDTH).0);
        // On a screen that became narrower, the terminal has broken the lines.
        show(&mut drawer, &[], &["0123456789abcdef", "b"], WIDTH);
        assert_eq!(drawer.rows_at(8), 3);
        drawer.forget();
        assert_eq!(drawer.rows_at(8), 0);
    }
}
