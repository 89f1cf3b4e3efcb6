//! The terminal while the dashboard has it. However the dashboard ends, the terminal is as it was before.

use std::io::{self, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

/// Whether the terminal is ours. Here and not in the screen, so that a panic, wherever it happens, can give it back.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// The terminal, taken over.
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
    title: String,
}

impl Screen {
    /// Takes the terminal over.
    pub(crate) fn open() -> io::Result<Self> {
        restore_before_a_panic_speaks();
        take()?;
        let terminal = fresh().inspect_err(|_| restore())?;
        Ok(Self { terminal, title: String::new() })
    }

    /// Gives the terminal back for as long as `rest` takes.
    pub(crate) fn suspend(&mut self, rest: impl FnOnce()) -> io::Result<()> {
        restore();
        rest();
        take()?;
        self.title.clear();
        self.redraw()
    }

    /// Draws everything again with the next screen, whatever is there now and however large the terminal is.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        self.terminal = fresh()?;
        Ok(())
    }

    /// Names the terminal's window, where that is news.
    pub(crate) fn name(&mut self, title: String) -> io::Result<()> {
        if self.title != title {
            execute!(io::stdout(), SetTitle(&title))?;
            self.title = title;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// An empty screen. Its size is given: where it follows the terminal by itself, clearing it asks the terminal for the place of the cursor,
/// and some terminals do not answer.
fn fresh() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    let (columns, rows) = size()?;
    execute!(io::stdout(), Clear(ClearType::All))?;
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns.max(1), rows.max(1)));
    Terminal::with_options(CrosstermBackend::new(io::stdout()), TerminalOptions { viewport })
}

fn take() -> io::Result<()> {
    IS_OURS.store(true, Ordering::SeqCst);
    let taken =
        enable_raw_mode().and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste));
    taken.inspect_err(|_| restore())
}

/// Gives the terminal back, once. One that went away needs nothing.
fn restore() {
    if IS_OURS.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show, SetTitle(""));
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

fn restore_before_a_panic_speaks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let speak = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            speak(panic);
        }));
    });
}
