//! Answering on the spot: what a person types while a goal that runs in the foreground waits for an answer.
//!
//! The keyboard is read only while a question is open and the terminal is ours: what is typed otherwise is meant for
//! somebody else, and a program in the background that reads is stopped.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::termios::{QueueSelector, tcflush};
use towline_core::{Ask, GoalId, Phase, QuestionNo};
use towline_engine::{Home, Reply, Request, Steerer, Wish, ask};
use towline_process::is_in_foreground;
use towline_store::Store;

use crate::output;
use crate::view::LastLine;

/// Somebody at a keyboard, as far as there is one.
pub(crate) struct Typing {
    goal: GoalId,
    store: Arc<dyn Store>,
    steering: Steering,
    /// What they are asked now.
    asked: Option<(QuestionNo, Ask)>,
    /// Opened with the first question.
    keyboard: Option<Keyboard>,
}

impl Typing {
    /// Nobody is asked yet.
    pub(crate) const fn new(goal: GoalId, store: Arc<dyn Store>, steering: Steering) -> Self {
        Self { goal, store, steering, asked: None, keyboard: None }
    }

    /// Takes note of the phase: whether a person is asked, and what.
    pub(crate) async fn follow(&mut self, phase: &Phase) {
        let asked = match phase {
            Phase::Blocked { question, .. } => self.load(*question).await,
            _ => None,
        };
        let number = |asked: &Option<(QuestionNo, Ask)>| asked.as_ref().map(|(number, _)| *number);
        let is_another = number(&asked) != number(&self.asked);
        self.asked = asked;
        if is_another && self.asked.is_some() && is_at_keyboard() {
            self.forget_what_was_typed();
        }
    }

    /// Whose the last line of the screen is now.
    pub(crate) fn last_line(&self) -> LastLine {
        match &self.asked {
            _ if !output::is_in_front() => LastLine::Foreign,
            Some(_) if is_at_keyboard() => LastLine::Typed,
            _ => LastLine::Lives,
        }
    }

    /// What was typed before a question is no answer to it: a `yes` that came too late for one permission must not
    /// give the next.
    fn forget_what_was_typed(&mut self) {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.typed.clear();
        }
    }

    async fn load(&self, question: QuestionNo) -> Option<(QuestionNo, Ask)> {
        let record = self.store.load(self.goal).await.ok()?;
        record.state.question(question).map(|question| (question.n, question.ask.clone()))
    }

    /// A line that they have typed since they were asked, if there is one.
    pub(crate) fn line(&mut self) -> Option<String> {
        if self.asked.is_none() || !is_at_keyboard() {
            return None;
        }
        if self.keyboard.is_none() {
            self.keyboard = Keyboard::open().ok();
        }
        self.keyboard.as_mut()?.line()
    }

    /// Takes a line for the answer; gives back what is wrong with it.
    pub(crate) async fn answer(&self, line: &str) -> Result<(), String> {
        let Some((question, ask)) = &self.asked else { return Ok(()) };
        if line.trim().is_empty() {
            return Ok(());
        }
        let reply = ask.read_answer(line).map_err(|bad| bad.to_string())?;
        self.steering.send(self.goal, Wish::Answer { question: *question, reply }).await
    }
}

/// How what is typed reaches the engine that runs the goal.
pub(crate) enum Steering {
    /// It is in this process.
    Own(Steerer),
    /// It is in another process.
    Other {
        /// The state directory.
        home: Home,
        /// Where the goal is stored.
        store: Arc<dyn Store>,
    },
}

impl Steering {
    /// Sends a request; gives back why it was refused. A goal that has ended meanwhile needs none.
    async fn send(&self, goal: GoalId, wish: Wish) -> Result<(), String> {
        match self {
            Self::Own(steerer) => match steerer.wish(wish.into()).await {
                Some(Err(illegal)) => Err(illegal.to_string()),
                Some(Ok(())) | None => Ok(()),
            },
            Self::Other { home, store } => {
                let record = store.load(goal).await.map_err(|error| error.to_string())?;
                let asked = ask(home, &record, &Request::Wish { goal, wish }).await;
                match asked.map_err(|error| error.to_string())? {
                    Some(Reply::Refused { why }) => Err(why),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Whether somebody sees what is asked and can type the answer.
fn is_at_keyboard() -> bool {
    is_in_foreground(io::stdin()).unwrap_or(false) && output::is_terminal()
}

/// The terminal, in a handle of our own that never makes anybody wait.
struct Keyboard {
    terminal: File,
    typed: Vec<u8>,
}

impl Keyboard {
    fn open() -> io::Result<Self> {
        let mut options = File::options();
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let terminal = options.read(true).custom_flags(flags.cast_signed()).open("/dev/tty")?;
        Ok(Self { terminal, typed: Vec::new() })
    }

    /// The next line. Bytes that are no text are shown as such: they are no answer that fits.
    fn line(&mut self) -> Option<String> {
        let mut bytes = [0; 4_096];
        while !self.typed.contains(&b'\n') {
            match self.terminal.read(&mut bytes) {
                Ok(count @ 1..) => self.typed.extend(bytes.get(..count)?),
                Ok(_) | Err(_) => return None,
            }
        }
        let end = self.typed.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.typed.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}
