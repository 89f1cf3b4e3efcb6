//! A foreground run on the screen: the story scrolls, one last line lives.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use towline_core::{AgentEvent, AttemptNo, Envelope, Event, Phase, ToolStatus, Usage};

use super::{Paint, Story, spent};
use crate::output;

/// How often the living line is drawn.
const TICK: Duration = Duration::from_millis(120);

/// What a foreground run shows.
pub(crate) struct Live {
    story: Story,
    /// Only where there is a terminal.
    line: Option<ProgressBar>,
    phase: &'static str,
    attempt: Option<AttemptNo>,
    doing: Option<String>,
    used: Usage,
}

impl Live {
    /// A view for this terminal, or plain lines where there is none.
    pub(crate) fn new(paint: Paint) -> Self {
        let line = output::is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg} {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(TICK);
            bar
        });
        Self {
            story: Story::new(paint),
            line,
            phase: "queued",
            attempt: None,
            doing: None,
            used: Usage::default(),
        }
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

    /// Prints a line above the living one.
    pub(crate) fn print(&self, text: &str) {
        match &self.line {
            Some(line) => line.suspend(|| output::print(text)),
            None => output::print(text),
        }
    }

    /// Leaves the last line of the screen to whoever types, or takes it back.
    pub(crate) fn make_room(&self, room: bool) {
        let Some(line) = &self.line else { return };
        if room {
            line.disable_steady_tick();
            line.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            line.set_draw_target(ProgressDrawTarget::stdout());
            line.enable_steady_tick(TICK);
        }
    }

    /// Takes the living line away.
    pub(crate) fn finish(self) {
        if let Some(line) = self.line {
            line.finish_and_clear();
        }
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::PhaseChanged { phase } => {
                self.phase = phase.name();
                self.doing = None;
                if let Phase::Running { attempt } = phase {
                    self.attempt = Some(*attempt);
                }
            }
            Event::Agent { event: AgentEvent::Tool(tool) } => {
                self.doing = (tool.status == ToolStatus::Running).then(|| output::printable(&tool.title));
            }
            Event::Agent { event: AgentEvent::Usage { used, .. } } => self.used += *used,
            Event::CheckStarted { name } => self.doing = Some(name.clone()),
            Event::CheckFinished { .. } => self.doing = None,
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
        parts.join(" · ")
    }
}
