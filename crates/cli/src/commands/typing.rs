//! What a person types at a goal that they watch: an answer where a question is open, and a message otherwise.
//!
//! The keyboard is read only while the terminal is ours: a program in the background that reads is stopped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use towline_app::Steering;
use towline_core::{Ask, GoalId, Phase, QuestionNo};
use towline_engine::GoalCommand;
use towline_process::is_in_foreground;
use towline_store::Store;

use crate::live::{Input, Prompt, TypedAs};
use crate::output;

/// Sends a message although a question is open.
const MESSAGE: &str = "/tell ";

/// Who shows what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// The terminal, line by line.
    Terminal,
    /// The live view.
    View,
}

/// A typed line.
pub(crate) struct Typed {
    /// The question that it answers; none for a message.
    answers: Option<QuestionNo>,
    pub(super) text: String,
}

/// The keyboard, if there is one.
pub(crate) struct Typing {
    goal: GoalId,
    store: Arc<dyn Store>,
    steering: Steering,
    echo: Echo,
    /// What they are asked now.
    asked: Option<(QuestionNo, Ask)>,
    /// What the line is for that is being typed now.
    typed_as: TypedAs,
    input: Input,
    lines: VecDeque<Typed>,
    keyboard: Option<Keyboard>,
}

impl Typing {
    /// Nothing was typed yet.
    pub(crate) fn new(goal: GoalId, store: Arc<dyn Store>, steering: Steering, echo: Echo) -> Self {
        Self {
            goal,
            store,
            steering,
            echo,
            asked: None,
            typed_as: TypedAs::Message,
            input: Input::default(),
            lines: VecDeque::new(),
            keyboard: None,
        }
    }

    /// Takes note of the phase: whether a person is asked, and what.
    pub(crate) async fn follow(&mut self, phase: &Phase) {
        let asked = match phase {
            Phase::Blocked { question, .. } => self.load(*question).await,
            _ => None,
        };
        let number = |asked: &Option<(QuestionNo, Ask)>| asked.as_ref().map(|(number, _)| *number);
        if number(&asked) == number(&self.asked) {
            return;
        }
        // What was typed before a question is no answer to it: a `yes` that came too late for one permission must not
        // give the next.
        self.read_keys();
        if asked.is_some() && is_at_keyboard() {
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        }
        if self.typed_as == TypedAs::Answer && !self.input.text().is_empty() {
            self.input = Input::default();
        }
        self.asked = asked;
        self.begin_line();
    }

    /// Decides what the next line is for, unless one was begun.
    fn begin_line(&mut self) {
        if self.input.text().is_empty() {
            self.typed_as = if self.asked.is_some() { TypedAs::Answer } else { TypedAs::Message };
        }
    }

    async fn load(&self, question: QuestionNo) -> Option<(QuestionNo, Ask)> {
        let record = self.store.load(self.goal).await.ok()?;
        record.state.question(question).map(|question| (question.n, question.ask.clone()))
    }

    /// The line that is being typed, if there is a keyboard.
    pub(crate) fn prompt(&self) -> Option<Prompt> {
        is_at_keyboard().then(|| Prompt { typed_as: self.typed_as, text: self.input.text() })
    }

    /// The next line that was typed, if there is one.
    pub(crate) fn line(&mut self) -> Option<Typed> {
        self.read_keys();
        self.lines.pop_front()
    }

    fn read_keys(&mut self) {
        if !is_at_keyboard() {
            return;
        }
        if self.keyboard.is_none() {
            self.keyboard = Keyboard::open(self.echo).ok();
        }
        for byte in self.keyboard.as_mut().map(Keyboard::read).unwrap_or_default() {
            if let Some(text) = self.input.take(byte) {
                let asked = self.asked.as_ref().map(|(number, _)| *number);
                let answers = asked.filter(|_| self.typed_as == TypedAs::Answer);
                self.lines.push_back(Typed { answers, text });
            }
            self.begin_line();
        }
    }

    /// Gives the terminal back as it was; the next look takes it again.
    pub(crate) fn release(&mut self) {
        self.keyboard = None;
    }

    /// Sends a line to the goal; the error is what is wrong with it.
    pub(crate) async fn send(&self, typed: &Typed) -> Result<(), String> {
        let text = typed.text.trim();
        let message = text.strip_prefix(MESSAGE).or(Some(text).filter(|_| typed.answers.is_none()));
        let command = match (message, &self.asked) {
            _ if text.is_empty() => return Ok(()),
            (Some(text), _) => GoalCommand::Tell { text: text.to_owned() },
            (None, Some((question, ask))) if typed.answers == Some(*question) => {
                let reply = ask.read_answer(text).map_err(|bad| bad.to_string())?;
                GoalCommand::Answer { question: *question, reply }
            }
            // It was answered from elsewhere.
            (None, _) => return Ok(()),
        };
        self.steering.send(self.goal, command).await
    }
}

/// Whether a person sees the question and can type the answer.
fn is_at_keyboard() -> bool {
    is_in_foreground(io::stdin()).unwrap_or(false) && output::is_terminal()
}

/// The terminal, in a handle of our own that never makes anybody wait.
struct Keyboard {
    terminal: File,
    /// How the terminal was, where the view shows what is typed.
    before: Option<Termios>,
}

impl Keyboard {
    fn open(echo: Echo) -> io::Result<Self> {
        let mut options = File::options();
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let terminal = options.read(true).custom_flags(flags.cast_signed()).open("/dev/tty")?;
        // What was typed before the view began was not meant for it.
        let _ = tcflush(&terminal, QueueSelector::IFlush);
        let before = match echo {
            Echo::Terminal => None,
            Echo::View => Some(tcgetattr(&terminal)?),
        };
        if let Some(before) = &before {
            let mut modes = before.clone();
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            tcsetattr(&terminal, OptionalActions::Now, &modes)?;
        }
        Ok(Self { terminal, before })
    }

    /// What was typed since the last look.
    fn read(&mut self) -> Vec<u8> {
        let mut bytes = [0; 4_096];
        match self.terminal.read(&mut bytes) {
            Ok(count) => bytes.get(..count).unwrap_or_default().to_vec(),
            Err(_) => Vec::new(),
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A program in the background must not change the terminal; the shell has its own modes there.
        if let Some(before) = self.before.as_ref().filter(|_| is_at_keyboard()) {
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, before);
        }
    }
}
