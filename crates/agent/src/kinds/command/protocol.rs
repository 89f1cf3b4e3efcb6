//! The conversation with a program: it is told the prompt once, and whatever it prints is its answer.

use towline_core::{
    AgentEvent, End, Role, SessionId, SessionPlan, SessionStarted, TurnEnd, TurnStop, Usage, plain_line,
};

use super::patterns::Patterns;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol};
use crate::settings::{AgentSettings, PromptBy};
use crate::text;
use crate::unrecognised::Unrecognised;

/// How much of what it printed is kept as its message. The end is what counts.
const MESSAGE_TAIL: usize = 16 * 1024;

/// A running program.
pub(super) struct CommandProtocol {
    patterns: Patterns,
    plan: SessionPlan,
    /// Whether a conversation can be gone on with once the program has ended.
    outlives: bool,
    prompt_by: PromptBy,
    /// Whether what it complains of is among all else that it prints.
    in_terminal: bool,
    prompt: String,
    begun: bool,
    has_session: bool,
    is_limited: bool,
    said: String,
    unrecognised: Unrecognised,
}

impl CommandProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        Self {
            patterns: Patterns::of(&settings.cli),
            plan: context.session.clone(),
            outlives: !settings.cli.resume.is_empty(),
            prompt_by: settings.cli.prompt,
            in_terminal: settings.cli.terminal.is_some(),
            prompt: context.prompt.to_owned(),
            begun: false,
            has_session: false,
            is_limited: false,
            said: String::new(),
            unrecognised: Unrecognised::default(),
        }
    }
}

impl Protocol for CommandProtocol {
    fn start(&mut self) -> Vec<Action> {
        let mut prompt = std::mem::take(&mut self.prompt);
        // At once, because it may work for long before it says a word.
        let begun = Action::emit(AgentEvent::TurnStarted);
        if self.prompt_by != PromptBy::Stdin {
            return vec![begun, Action::CloseStdin];
        }
        if !prompt.ends_with('\n') {
            prompt.push('\n');
        }
        vec![begun, Action::Write(prompt.into_bytes()), Action::CloseStdin]
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        let mut actions: Vec<Action> = self.begin().into_iter().collect();
        match frame {
            Frame::Line(bytes) => {
                let text = plain_line(&String::from_utf8_lossy(bytes));
                actions.extend(text.split('\n').flat_map(|line| self.on_line(line)));
            }
            Frame::TooLong { length } => {
                let raw = format!("a line of {length} bytes");
                actions.extend(self.unrecognised.note("too long".to_owned(), &raw));
            }
        }
        actions
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        if let Some(problem) = &exit.spawn {
            return (Vec::new(), End::SpawnFailed { problem: problem.clone() });
        }
        let end = self.end(exit);
        let mut actions = self.unrecognised.rest();
        if end == End::Completed {
            // It may have had nothing to say.
            actions.extend(self.begin());
        }
        actions.extend(self.last_word_on_session(exit, &end));
        actions.extend(self.end_turn(&end));
        (actions, end)
    }
}

impl CommandProtocol {
    /// What is true from the first sign of life on.
    fn begin(&mut self) -> Option<Action> {
        if std::mem::replace(&mut self.begun, true) {
            return None;
        }
        (!self.patterns.find_sessions()).then(|| self.session(self.asked_for().clone()))
    }

    fn on_line(&mut self, line: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        if !self.has_session
            && let Some(id) = self.patterns.session(line)
        {
            actions.push(self.session(SessionId::new(id)));
        }
        if let Some(cost) = self.patterns.cost(line) {
            let used = Usage { cost, ..Usage::default() };
            actions.push(Action::emit(AgentEvent::Usage {
                model: None,
                used,
                context_used: None,
                context_size: None,
            }));
        }
        self.is_limited |= self.patterns.is_limit(line);
        let text = format!("{line}\n");
        self.keep(&text);
        actions.push(Action::emit(AgentEvent::MessageDelta { text }));
        actions
    }

    /// Keeps the end of what was said, and cuts it only now and then: most lines cost no copy of the rest.
    fn keep(&mut self, text: &str) {
        self.said.push_str(text);
        if self.said.len() > 2 * MESSAGE_TAIL {
            self.said = text::tail(&self.said, MESSAGE_TAIL).to_owned();
        }
    }

    fn asked_for(&self) -> &SessionId {
        let (SessionPlan::Fresh(id) | SessionPlan::Resume(id)) = &self.plan;
        id
    }

    fn session(&mut self, native_id: SessionId) -> Action {
        self.has_session = true;
        let resumed = matches!(&self.plan, SessionPlan::Resume(asked) if *asked == native_id);
        let started = SessionStarted { native_id, resumed, model: None, agent_version: None };
        Action::emit(AgentEvent::SessionStarted(started))
    }

    /// The session of a program that did not say its id on its standard output. An id of ours that it has never heard is
    /// none to go on with, so without its word there is no session to be resumed.
    fn last_word_on_session(&mut self, exit: &ProcessEnd, end: &End) -> Option<Action> {
        if self.has_session || !self.begun {
            return None;
        }
        if let Some(id) = exit.stderr_tail.lines().find_map(|line| self.patterns.session(&plain_line(line))) {
            return Some(self.session(SessionId::new(id)));
        }
        let went_on = *end == End::Completed && matches!(self.plan, SessionPlan::Resume(_));
        (went_on || !self.outlives).then(|| self.session(self.asked_for().clone()))
    }

    fn end_turn(&self, end: &End) -> Vec<Action> {
        let text = text::tail(self.said.trim(), MESSAGE_TAIL).to_owned();
        let stop = match end {
            End::Completed => TurnStop::Done,
            End::Crashed { message } => TurnStop::Failed { status: None, reason: message.clone() },
            other => TurnStop::Failed { status: None, reason: other.name().to_owned() },
        };
        let message = (!text.is_empty())
            .then(|| Action::emit(AgentEvent::Message { role: Role::Assistant, text: text.clone() }));
        let ended = TurnEnd { stop, text, structured: None, inner_turns: None, reported_cost: None };
        message.into_iter().chain([Action::emit(AgentEvent::TurnEnded(ended))]).collect()
    }

    fn end(&self, exit: &ProcessEnd) -> End {
        let stderr = exit.stderr_tail.lines().map(plain_line).collect::<Vec<_>>().join("\n");
        if self.is_limited || stderr.lines().any(|line| self.patterns.is_limit(line)) {
            return End::RateLimited { until: None };
        }
        if (exit.code, exit.signal) == (Some(0), None) {
            return End::Completed;
        }
        let how = exit.how();
        let said = if self.in_terminal { self.said.trim().lines().next_back() } else { None };
        let words = Some(stderr.trim()).filter(|words| !words.is_empty()).or(said);
        End::Crashed { message: words.map_or(how.clone(), |words| format!("{how}: {words}")) }
    }
}
