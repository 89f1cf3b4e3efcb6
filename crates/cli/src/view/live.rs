//! A foreground run on the screen: the story scrolls, one last line lives.
//!
//! The line is drawn only by [`Live::look`] and by what is printed above it, never behind anybody's back: the screen may
//! belong to whoever types an answer, or to a shell that has put the run into the background.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use towline_core::{AgentEvent, AttemptNo, Envelope, Event, Phase, QuestionNo, ToolStatus, Usage};
use towline_store::GoalRecord;

use super::asking::AnswerBy;
use super::{Paint, Story, spent};
use crate::output;

/// How often the run looks at the screen and moves its last line.
pub(crate) const TICK: Duration = Duration::from_millis(100);

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
    /// The living line, where it is drawn.
    line: Option<ProgressBar>,
    began: Instant,
    phase: &'static str,
    /// What is to be answered.
    asked: Option<QuestionNo>,
    attempt: Option<AttemptNo>,
    doing: Option<String>,
    used: Usage,
}

impl Live {
    /// A view for this terminal, or plain lines where there is none.
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            story: Story::new(paint),
            last_line: LastLine::Lives,
            line: None,
            began: Instant::now(),
            phase: "queued",
            asked: None,
            attempt: None,
            doing: None,
            used: Usage::default(),
        }
    }

    /// Goes on with a goal where it stands.
    pub(crate) fn go_on(&mut self, record: &GoalRecord) {
        let state = &record.state;
        self.story.go_on(state);
        self.attempt = state.last_attempt().map(|attempt| attempt.n);
        self.used = state.usage();
        self.enter(&state.phase);
        self.ask_again(record.goal.id);
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, envelope: &Envelope) {
        for text in self.story.lines(envelope) {
            self.print(&text);
        }
        self.follow(&envelope.event);
        if let Some(line) = &self.line {
            line.set_message(self.summary());
        }
    }

    /// Shows what is asked to somebody who has not seen it.
    pub(crate) fn ask_again(&mut self, goal: towline_core::GoalId) {
        let Some(question) = self.asked else { return };
        for text in self.story.ask_again(question, goal) {
            self.print(&text);
        }
    }

    /// Prints a line above the living one.
    pub(crate) fn print(&self, text: &str) {
        match &self.line {
            Some(line) => line.suspend(|| output::print(text)),
            None => output::print(text),
        }
    }

    /// Draws the living line where it may live, and nowhere else. Gives whose the last line was before.
    pub(crate) fn look(&mut self, last_line: LastLine) -> LastLine {
        self.story.answer_by(match last_line {
            LastLine::Typed => AnswerBy::Typing,
            LastLine::Lives | LastLine::Foreign => AnswerBy::Command,
        });
        match (last_line, self.line.take()) {
            (LastLine::Lives, Some(line)) => {
                line.tick();
                self.line = Some(line);
            }
            (LastLine::Lives, None) => self.line = self.draw(),
            (LastLine::Typed, Some(line)) => line.finish_and_clear(),
            // It stands where the shell has written since: nothing there is ours to clear.
            (LastLine::Foreign, Some(line)) => line.set_draw_target(ProgressDrawTarget::hidden()),
            (LastLine::Typed | LastLine::Foreign, None) => {}
        }
        std::mem::replace(&mut self.last_line, last_line)
    }

    fn draw(&self) -> Option<ProgressBar> {
        output::is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg} {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            let bar = bar.with_elapsed(self.began.elapsed());
            bar.set_message(self.summary());
            bar
        })
    }

    /// Takes the living line away.
    pub(crate) fn finish(mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::PhaseChanged { phase } => self.enter(phase),
            Event::Agent { event: AgentEvent::Tool(tool) } => {
                self.doing = (tool.status == ToolStatus::Running).then(|| tool.title.clone());
            }
            Event::Agent { event: AgentEvent::Usage { used, .. } } => self.used += *used,
            Event::CheckStarted { name } => self.doing = Some(name.clone()),
            Event::CheckFinished { .. } => self.doing = None,
            _ => {}
        }
    }

    fn enter(&mut self, phase: &Phase) {
        self.phase = phase.name();
        self.doing = None;
        self.asked = None;
        match phase {
            Phase::Running { attempt } => self.attempt = Some(*attempt),
            Phase::Blocked { question, .. } => self.asked = Some(*question),
            _ => {}
        }
    }

    fn summary(&self) -> String {
        let mut parts = vec![self.phase.to_owned()];
        parts.extend(self.attempt.map(|attempt| format!("attempt {attempt}")));
        parts.extend(self.doing.clone());
        if !self.used.is_empty() {
            parts.push(spent(&self.used));
        }
        output::brief(&parts.join(" · "))
    }
}
