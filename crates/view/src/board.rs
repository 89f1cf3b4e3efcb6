//! What a goal is doing now, as the steady block below its story shows it.
//!
//! Fed by the goal's events, and at each change of its phase by the stored goal. Neighbours: `lines` lays it out. Nothing here
//! reads a clock or writes anything.

mod budget;
mod lines;
#[cfg(test)]
pub(crate) mod tests;

use std::path::PathBuf;

use jiff::Timestamp;
use towline_core::{AbsentJudge, AgentEvent, Envelope, Event, Goal, GoalState, Phase, Seq, show_duration};
use towline_engine::Home;
use towline_store::GoalRecord;
use towline_terminal::Tools;

pub(crate) use budget::spent_of_limits;
pub use lines::Canvas;

/// What a goal is doing now.
pub struct Board {
    /// The goal, as it was when the board began.
    pub goal: Goal,
    /// What is known about it; its phase is [`Self::phase`], which is as far as the events have come.
    state: GoalState,
    /// Up to where the events are counted in the state.
    counted: Seq,
    phase: Phase,
    since: Timestamp,
    tools: Tools,
    /// Why it waits in the queue, where that is known.
    pub hold: Option<String>,
    /// The agent's own note on what it does.
    note: Option<String>,
    /// The message that the agent is writing.
    pub writing: String,
    /// When the agent was last heard of.
    heard: Timestamp,
    check: Option<RunningCheck>,
    /// The results of the running verdict so far.
    results: Vec<(String, bool)>,
    /// Whether the workspace is there, so that a goal that still prepares runs its checks on the base.
    is_prepared: bool,
}

/// A check that runs.
struct RunningCheck {
    name: String,
    since: Timestamp,
    /// The directory of its output, where that can be read.
    directory: Option<String>,
    /// The last line that it has printed.
    last_line: Option<String>,
}

impl Board {
    /// The board of a goal in its present state.
    pub fn of(record: &GoalRecord) -> Self {
        Self {
            goal: record.goal.clone(),
            state: record.state.clone(),
            counted: record.last_seq,
            phase: record.state.phase.clone(),
            since: record.updated_at,
            tools: Tools::default(),
            hold: None,
            note: None,
            writing: String::new(),
            heard: record.updated_at,
            check: None,
            results: Vec::new(),
            is_prepared: record.state.workspace.is_some(),
        }
    }

    /// Takes over what is stored, which may be ahead of the events that were seen.
    pub fn correct(&mut self, record: &GoalRecord) {
        // At the same place as well: events that were only recalled have not moved the state.
        if record.last_seq >= self.counted {
            self.state = record.state.clone();
            self.counted = record.last_seq;
        }
    }

    /// Takes note of what happened.
    pub fn follow(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::PhaseChanged { phase } => self.enter(phase.clone(), envelope.at),
            Event::Agent { event } => self.hear(event, envelope),
            Event::Prepared { .. } => self.is_prepared = true,
            Event::AttemptStarted { sandbox } if envelope.seq > self.counted => {
                if let Some(attempt) = self.state.attempts.last_mut() {
                    (attempt.started, attempt.sandbox) = (true, *sandbox);
                }
            }
            Event::CheckStarted { name, process } => {
                self.check = Some(RunningCheck {
                    name: name.clone(),
                    since: envelope.at,
                    directory: process.as_ref().map(|process| process.directory.clone()),
                    last_line: None,
                });
            }
            Event::CheckFinished { result } => {
                self.check = None;
                // The confirmation in a clean checkout counts instead of the first run.
                self.results.retain(|(name, _)| *name != result.name);
                self.results.push((result.name.clone(), result.met));
            }
            Event::JudgeUnavailable { account, .. } => {
                self.check = None;
                if envelope.seq > self.counted {
                    let (account, at) = (account.clone(), envelope.at);
                    self.state.absent_judge = Some(AbsentJudge { account, at, ..AbsentJudge::default() });
                }
            }
            Event::VerdictReached { .. } if envelope.seq > self.counted => self.state.absent_judge = None,
            _ => {}
        }
        self.counted = self.counted.max(envelope.seq);
    }

    /// Where the output of the running check is, if one runs for an attempt.
    pub fn check_output(&self, home: &Home) -> Option<PathBuf> {
        let Phase::Checking { attempt } = &self.phase else { return None };
        let directory = self.check.as_ref()?.directory.as_ref()?;
        Some(home.attempt(self.goal.id, *attempt).join("checks").join(directory))
    }

    /// Takes note of the last line that the running check has printed.
    pub fn show_check_line(&mut self, line: Option<String>) {
        if let Some(check) = &mut self.check {
            check.last_line = line;
        }
    }

    fn enter(&mut self, phase: Phase, at: Timestamp) {
        // An agent that waited for an answer continues what it was doing.
        if self.phase.living_attempt().is_none() || self.phase.living_attempt() != phase.living_attempt() {
            self.tools = Tools::default();
            self.note = None;
            self.writing.clear();
        }
        self.check = None;
        if matches!(phase, Phase::Checking { .. }) {
            self.results.clear();
        }
        (self.phase, self.since, self.heard) = (phase, at, at);
    }

    fn hear(&mut self, event: &AgentEvent, envelope: &Envelope) {
        self.heard = envelope.at;
        let is_new = envelope.seq > self.counted;
        let attempt = self.state.attempts.last_mut().filter(|_| is_new);
        match event {
            AgentEvent::Tool(tool) => {
                self.tools.note(tool, envelope.at);
            }
            AgentEvent::SessionStarted(session) => {
                if let (Some(attempt), Some(model)) = (attempt, &session.model) {
                    attempt.model = Some(model.clone());
                }
            }
            AgentEvent::TurnStarted => {
                self.note = None;
                attempt.into_iter().for_each(|attempt| attempt.turns += 1);
            }
            AgentEvent::Usage { used, .. } => {
                attempt.into_iter().for_each(|attempt| attempt.usage.record(*used));
            }
            AgentEvent::Progress { text, percent } => {
                let percent = percent.map(|percent| format!("{percent}% ")).unwrap_or_default();
                self.note = Some(format!("{percent}{text}"));
            }
            AgentEvent::Plan { entries } => {
                let next = (1..).zip(entries).find(|(_, entry)| !entry.done);
                self.note = next.map(|(n, entry)| format!("step {n} of {}: {}", entries.len(), entry.text));
            }
            AgentEvent::Retrying { attempt, delay_ms, .. } => {
                let pause = show_duration(std::time::Duration::from_millis(*delay_ms));
                self.note = Some(format!("waits for the provider: try {attempt} in {pause}"));
            }
            AgentEvent::Message { .. } => {
                self.note = None;
                self.writing.clear();
            }
            _ => {}
        }
    }
}
