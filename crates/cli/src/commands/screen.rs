//! Where the events of a run go: to a person as a story, to a program as JSON, or nowhere.

use std::sync::Arc;

use towline_core::{Envelope, Event, GoalId, Phase, Seq};
use towline_engine::{Home, LiveMessage};
use towline_store::{GoalRecord, Store};

use crate::args::RunFormat;
use crate::commands::foreground::suspend;
use crate::commands::typing::{Echo, Typing};
use crate::context::Context;
use crate::output::{self, Layout};
use crate::view::{LastLine, Live, how_to_answer};

/// How many events of a goal that is resumed are searched for tools that still run.
const RECALLED: usize = 1_000;

/// Where the events go.
pub(super) enum Screen {
    Story(Box<Live>),
    Events,
    Silent,
}

impl Screen {
    pub(super) fn new(context: &Context, home: &Home, format: RunFormat) -> Self {
        match format {
            RunFormat { events: true, .. } => Self::Events,
            RunFormat { json: true, .. } => Self::Silent,
            _ => Self::Story(Box::new(Live::new(context, home.clone()))),
        }
    }

    /// Who shows what is typed.
    pub(super) fn echo(&self) -> Echo {
        match self {
            Self::Story(live) if live.has_block() => Echo::View,
            _ => Echo::Terminal,
        }
    }

    /// Shows the state of a goal that existed before.
    pub(super) fn go_on(&mut self, record: &GoalRecord) {
        match self {
            Self::Story(live) => {
                let (id, title) = (record.goal.id.short(), output::brief(&record.goal.title));
                live.print(&format!("goal {id}  {title}"));
                live.go_on(record);
            }
            Self::Events | Self::Silent => print_open_question(record.goal.id, &record.state.phase),
        }
    }

    /// Takes note of the newest of what happened before. What cannot be read is not shown.
    pub(super) async fn recall(&mut self, record: &GoalRecord, store: &Arc<dyn Store>) {
        if let Self::Story(live) = self {
            let after = Seq(record.last_seq.0.saturating_sub(RECALLED as u64));
            live.recall(&store.events(record.goal.id, after, RECALLED).await.unwrap_or_default());
        }
    }

    /// Takes over what is stored about the goal, where that is shown. What cannot be read is not shown.
    pub(super) async fn know(&mut self, goal: GoalId, store: &Arc<dyn Store>) {
        if let Self::Story(live) = self
            && live.has_block()
            && let Ok(record) = store.load(goal).await
        {
            live.know(&record);
        }
    }

    pub(super) fn show(&mut self, event: &Envelope) {
        match self {
            Self::Story(live) => return live.show(event),
            Self::Events => output::print_json(Layout::Line, event),
            Self::Silent => {}
        }
        if let Event::PhaseChanged { phase } = &event.event {
            print_open_question(event.goal, phase);
        }
    }

    /// Shows the message that the agent is writing.
    pub(super) fn write(&mut self, message: LiveMessage) {
        if let Self::Story(live) = self {
            live.write(message.text);
        }
    }

    /// Takes note of whose the screen is.
    pub(super) fn look(&mut self, typing: &Typing) -> Change {
        let Self::Story(live) = self else { return Change::None };
        let now = if output::is_in_front() { LastLine::Lives } else { LastLine::Foreign };
        match (live.look(now, typing.prompt()), now) {
            (LastLine::Foreign, LastLine::Lives) => Change::BackInFront,
            _ => Change::None,
        }
    }

    pub(super) fn ask_again(&mut self, goal: GoalId) {
        if let Self::Story(live) = self {
            live.ask_again(goal);
        }
    }

    /// Leaves the screen to the shell until it lets us go on.
    pub(super) fn suspend(&mut self) {
        if let Self::Story(live) = self {
            live.step_aside();
        }
        suspend();
    }

    pub(super) fn print(&mut self, text: &str) {
        match self {
            Self::Story(live) => live.print(text),
            Self::Events | Self::Silent => output::eprint(format_args!("{text}")),
        }
    }

    pub(super) fn finish(self) {
        if let Self::Story(live) = self {
            live.finish();
        }
    }
}

/// Prints the question that a run waits for, for output without a view.
fn print_open_question(goal: GoalId, phase: &Phase) {
    if let Phase::Blocked { .. } = phase {
        let command = how_to_answer(goal, None);
        output::eprint(format_args!("waiting for an answer; see `towline questions`, then: {command}"));
    }
}

/// The state of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing that matters.
    None,
    /// It is ours again, with who knows what on it.
    BackInFront,
}
