//! A foreground run on the screen: the story scrolls, and below it stands one steady block that says what goes on now.
//!
//! The block is drawn only by [`Live::look`] and by what is printed above it, never behind anybody's back: the screen may
//! belong to whoever types an answer, or to a shell that has put the run into the background. Where there is no terminal
//! there is no block, and nothing here has to be called again and again.

use std::time::{Duration, Instant};

use towline_core::{Envelope, Event, Phase, QuestionNo};
use towline_engine::{Clock, SystemClock};
use towline_store::GoalRecord;

use super::asking::AnswerBy;
use super::board::{Board, Canvas};
use super::drawer::{Drawer, Size};
use super::letters::Letters;
use super::{Paint, Story, Telling};
use crate::context::Context;
use crate::output;

/// How often the run looks at the screen.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long the screen stays as it is at least: a flood of news is no reason to draw for each.
const STEADY: Duration = Duration::from_millis(80);

/// Whose the last line of the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLine {
    /// The run's.
    Lives,
    /// That of a person who may type an answer.
    Typed,
    /// That of a shell, while the run is in the background.
    Foreign,
}

/// What a foreground run shows.
pub(crate) struct Live {
    story: Story,
    last_line: LastLine,
    /// What is to be answered.
    asked: Option<QuestionNo>,
    /// The block, on a terminal that can have one.
    block: Option<Block>,
}

/// The block, and what is to be printed above it with the next frame.
struct Block {
    letters: Letters,
    /// Known once the goal is.
    board: Option<Board>,
    drawer: Drawer,
    waiting: Vec<String>,
    drawn_at: Option<Instant>,
}

impl Live {
    /// A view for this terminal, or plain lines where there is none.
    pub(crate) fn new(context: &Context) -> Self {
        let paint = Paint::for_stdout(context);
        let can_move = context.variable("TERM").is_some_and(|term| term != "dumb");
        let block = (can_move && output::is_terminal()).then(|| Block {
            letters: Letters::of(context),
            board: None,
            drawer: Drawer::new(paint),
            waiting: Vec::new(),
            drawn_at: None,
        });
        Self { story: Story::new(paint, Telling::Short), last_line: LastLine::Lives, asked: None, block }
    }

    /// Whether there is more to show than the events tell: what is stored is wanted at each change of the phase.
    pub(crate) const fn has_block(&self) -> bool {
        self.block.is_some()
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

    /// Goes on with a goal where it stands.
    pub(crate) fn go_on(&mut self, record: &GoalRecord) {
        self.know(record);
        for text in self.story.go_on(&record.state) {
            self.print(&text);
        }
        self.enter(&record.state.phase);
        self.ask_again(record.goal.id);
    }

    /// Takes note of what happened before the goal was gone on with, and tells none of it again: a tool that is still at
    /// work is seen then.
    pub(crate) fn recall(&mut self, events: &[Envelope]) {
        for envelope in events {
            if let Some(board) = self.block.as_mut().and_then(|block| block.board.as_mut()) {
                board.follow(envelope);
            }
            self.story.recall(envelope);
        }
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, envelope: &Envelope) {
        if let Event::PhaseChanged { phase } = &envelope.event {
            self.enter(phase);
        }
        if let Some(board) = self.block.as_mut().and_then(|block| block.board.as_mut()) {
            board.follow(envelope);
        }
        for text in self.story.lines(envelope) {
            self.print(&text);
        }
        self.draw();
    }

    const fn enter(&mut self, phase: &Phase) {
        self.asked = match phase {
            Phase::Blocked { question, .. } => Some(*question),
            _ => None,
        };
    }

    /// Shows what is asked to somebody who has not seen it.
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
    pub(crate) fn look(&mut self, last_line: LastLine) -> LastLine {
        self.story.answer_by(match last_line {
            LastLine::Typed => AnswerBy::Typing,
            LastLine::Lives | LastLine::Foreign => AnswerBy::Command,
        });
        if let Some(block) = &mut self.block {
            match last_line {
                LastLine::Lives => {}
                LastLine::Typed => block.leave(),
                LastLine::Foreign => {
                    // It stands where the shell has written since: nothing there is ours to clear.
                    block.drawer.forget();
                    block.leave();
                }
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

    /// Takes the block away for good; the story is complete.
    pub(crate) fn finish(mut self) {
        self.step_aside();
    }
}

impl Block {
    fn draw(&mut self) {
        let size = Size::of_stdout();
        let canvas = Canvas {
            // The last column is left to the cursor and what is echoed there: a terminal would break the line.
            width: size.width.saturating_sub(3).max(1),
            height: size.height,
            now: SystemClock.now(),
            letters: self.letters,
        };
        let lines = self.board.as_ref().map(|board| board.lines(&canvas)).unwrap_or_default();
        self.drawer.draw(&std::mem::take(&mut self.waiting), lines, size);
        self.drawn_at = Some(Instant::now());
    }

    /// Prints what waits, and leaves nothing of the block.
    fn leave(&mut self) {
        self.drawer.draw(&std::mem::take(&mut self.waiting), Vec::new(), Size::of_stdout());
        self.drawn_at = None;
    }
}
