//! A foreground run on the screen: the story scrolls, and below it is a block with the present state.
//!
//! The block is drawn only by [`Live::look`] and with lines that are printed above it, never in between: a person may be
//! typing an answer, or a shell has put the run into the background. Without a terminal there is no block, and no need to
//! call it again and again.

mod drawer;
mod input;

use std::path::Path;
use std::time::{Duration, Instant};

use towline_app::Context;
use towline_core::{Envelope, Event, Phase, QuestionNo};
use towline_engine::{Clock, Home, SystemClock};
use towline_process::Stream;
use towline_store::GoalRecord;
use towline_terminal::{AnswerBy, Detail, Letters, Paint, Place, Story, columns, printable};
use towline_view::{Board, Canvas};

use crate::output;
use drawer::{Drawer, screen_size};
pub(crate) use input::Input;

/// How often the run looks at the screen.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long the output of a running check is not read again.
const READING: Duration = Duration::from_millis(500);
/// How many bytes at the end of a check's output are searched for its last line.
const LAST_BYTES: u64 = 4_096;
/// How long the screen stays as it is at least: a flood of news is no reason to draw for each.
const STEADY: Duration = Duration::from_millis(80);

/// Whose the last line of the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLine {
    Lives,
    /// That of a shell, while the run is in the background.
    Foreign,
}

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedAs {
    Message,
    /// The open question.
    Answer,
}

/// The line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// What it is for.
    pub(crate) typed_as: TypedAs,
    /// What was typed so far.
    pub(crate) text: String,
}

impl Prompt {
    /// The end of what was typed, as far as there is room.
    fn line(&self, paint: Paint, width: usize) -> String {
        let label = match self.typed_as {
            TypedAs::Message => "message> ",
            TypedAs::Answer => "answer> ",
        };
        let typed = printable(&self.text);
        let mut text = typed.as_str();
        while !text.is_empty() && columns(label) + columns(text) > width {
            text = text.char_indices().nth(1).map_or("", |(at, _)| &text[at..]);
        }
        format!("{}{text}", paint.bold(label))
    }
}

/// What a foreground run shows.
pub(crate) struct Live {
    story: Story,
    last_line: LastLine,
    /// What is to be answered.
    asked: Option<QuestionNo>,
    /// The block, on a terminal that can have one.
    block: Option<Block>,
    home: Home,
}

/// The block, and what is to be printed above it with the next frame.
struct Block {
    /// Known once the goal is.
    board: Option<Board>,
    paint: Paint,
    drawer: Drawer,
    waiting: Vec<String>,
    drawn_at: Option<Instant>,
    prompt: Option<Prompt>,
    read_at: Option<Instant>,
}

impl Live {
    /// A view for this terminal, or plain lines where there is none.
    pub(crate) fn new(context: &Context, home: Home) -> Self {
        let paint = output::paint(context);
        let can_move = context.variable("TERM").is_some_and(|term| term != "dumb");
        let block = (can_move && output::is_terminal()).then(|| Block {
            board: None,
            paint,
            drawer: Drawer::new(Letters::of(|name| context.variable(name))),
            waiting: Vec::new(),
            drawn_at: None,
            prompt: None,
            read_at: None,
        });
        let story = Story::new(paint, Detail::Short);
        Self { story, last_line: LastLine::Lives, asked: None, block, home }
    }

    /// Whether the view has a block, which needs the stored goal at each change of the phase.
    pub(crate) const fn has_block(&self) -> bool {
        self.block.is_some()
    }

    fn board(&mut self) -> Option<&mut Board> {
        self.block.as_mut()?.board.as_mut()
    }

    /// Takes over what is stored about the goal.
    pub(crate) fn know(&mut self, record: &GoalRecord) {
        if let Some(block) = &mut self.block {
            match &mut block.board {
                Some(board) => board.correct(record),
                None => block.board = Some(Board::of(record)),
            }
        }
    }

    /// Shows why a queued goal does not start.
    pub(crate) fn hold(&mut self, why: Option<String>) {
        self.board().into_iter().for_each(|board| board.hold.clone_from(&why));
    }

    /// Begins with a goal in its present state.
    pub(crate) fn go_on(&mut self, record: &GoalRecord, place: Place) {
        self.know(record);
        for text in self.story.go_on(&record.state, place, SystemClock.now()) {
            self.print(&text);
        }
        self.enter(&record.state.phase);
        self.ask_again(record.goal.id);
    }

    /// Reads earlier events without printing them again, so that a tool that still runs is shown.
    pub(crate) fn recall(&mut self, events: &[Envelope]) {
        for envelope in events {
            self.board().into_iter().for_each(|board| board.follow(envelope));
            self.story.recall(envelope);
        }
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, envelope: &Envelope) {
        if let Event::PhaseChanged { phase } = &envelope.event {
            self.enter(phase);
        }
        self.board().into_iter().for_each(|board| board.follow(envelope));
        for text in self.story.lines(envelope, SystemClock.now()) {
            self.print(&text);
        }
        self.draw();
    }

    /// Shows the message that the agent is writing, as far as it has come; an empty one is over.
    pub(crate) fn write(&mut self, text: String) {
        if let Some(board) = self.board() {
            board.writing = text;
        }
        self.draw();
    }

    fn enter(&mut self, phase: &Phase) {
        let asked = match phase {
            Phase::Blocked { question, .. } => Some(*question),
            _ => None,
        };
        let was_asked = std::mem::replace(&mut self.asked, asked).is_some();
        let block = self.block.as_ref().filter(|_| self.last_line == LastLine::Lives);
        if let Some((block, board)) = block.and_then(|block| Some((block, block.board.as_ref()?))) {
            let needs_person = asked.is_some() || phase.is_settled();
            let what = if asked.is_some() { "needs an answer" } else { phase.name() };
            if needs_person || was_asked {
                block.drawer.announce(&format!("towline: {what} - {}", board.goal.title), needs_person);
            }
        }
    }

    /// Shows the open question to a person who has not seen it.
    pub(crate) fn ask_again(&mut self, goal: towline_core::GoalId) {
        let Some(question) = self.asked else { return };
        for text in self.story.ask_again(question, goal) {
            self.print(&text);
        }
    }

    /// Prints a line above the block.
    pub(crate) fn print(&mut self, text: &str) {
        let lines = output::fitted(text);
        match &mut self.block {
            Some(block) if self.last_line == LastLine::Lives => block.waiting.extend(lines),
            _ => lines.iter().for_each(output::print),
        }
    }

    /// Draws the block where it may live, and nowhere else. Gives whose the last line was before.
    pub(crate) fn look(&mut self, last_line: LastLine, prompt: Option<Prompt>) -> LastLine {
        self.story.answer_by = if prompt.is_some() { AnswerBy::Typing } else { AnswerBy::Command };
        if let Some(block) = &mut self.block {
            block.prompt = prompt;
            block.read_check(&self.home);
            if last_line == LastLine::Foreign {
                // The shell has written there since, so nothing is erased.
                block.drawer.forget();
                block.leave();
            }
        }
        let before = std::mem::replace(&mut self.last_line, last_line);
        self.draw();
        before
    }

    /// Draws what has changed, unless the screen was drawn a moment ago.
    fn draw(&mut self) {
        if let Some(block) = self.block.as_mut().filter(|_| self.last_line == LastLine::Lives)
            && block.drawn_at.is_none_or(|drawn| drawn.elapsed() >= STEADY)
        {
            block.draw();
        }
    }

    /// Takes the block away for a while; the next look draws it again.
    pub(crate) fn step_aside(&mut self) {
        if let Some(block) = self.block.as_mut().filter(|_| self.last_line == LastLine::Lives) {
            block.leave();
        }
    }
}

impl Block {
    fn draw(&mut self) {
        let (width, height) = screen_size();
        let canvas = Canvas {
            // The last column is left to the cursor and what is echoed there: a terminal would break the line.
            width: width.saturating_sub(3).max(1),
            height,
            now: SystemClock.now(),
            paint: self.paint,
        };
        let mut lines = self.board.as_ref().map(|board| board.lines(&canvas)).unwrap_or_default();
        lines.extend(self.prompt.as_ref().map(|prompt| prompt.line(self.paint, canvas.width)));
        self.drawer.draw(&std::mem::take(&mut self.waiting), lines, width);
        self.drawn_at = Some(Instant::now());
    }

    /// Reads the last line of the running check, now and then.
    fn read_check(&mut self, home: &Home) {
        let Some(board) = &mut self.board else { return };
        let Some(directory) = board.check_output(home) else { return };
        if self.read_at.is_none_or(|read| read.elapsed() >= READING) {
            self.read_at = Some(Instant::now());
            board.show_check_line(last_line_of(&directory.join(Stream::Stdout.file_name())));
        }
    }

    /// Prints what waits, and leaves nothing of the block.
    fn leave(&mut self) {
        self.drawer.draw(&std::mem::take(&mut self.waiting), Vec::new(), screen_size().0);
        self.drawn_at = None;
    }
}

/// The last line with words in a file that may grow.
fn last_line_of(path: &Path) -> Option<String> {
    let bytes = towline_files::read_end(path, LAST_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_line_is_shown_behind_what_it_is_for() {
        let prompt = |typed_as, text: &str| Prompt { typed_as, text: text.to_owned() };
        let shown = |prompt: Prompt| prompt.line(Paint::Plain, 16);
        assert_eq!(shown(prompt(TypedAs::Message, "")), "message> ");
        assert_eq!(shown(prompt(TypedAs::Answer, "use SQLite, not 日本")), "answer> not 日本");
    }

    #[test]
    fn the_last_line_with_words_is_found_at_the_end_of_a_long_file() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let file = dir.path().join("stdout.log");
        assert_eq!(last_line_of(&file), None);
        std::fs::write(&file, format!("{}\ntest b ... ok\n\n", "x".repeat(10_000))).expect("written");
        assert_eq!(last_line_of(&file).as_deref(), Some("test b ... ok"));
    }
}
