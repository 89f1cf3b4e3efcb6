//! The conversation with a program: it gets one prompt, and all that it prints is its answer.

use towline_core::{
    AgentEvent, End, Reported, Role, SessionId, SessionPlan, SessionStarted, TurnStop, Usage, plain_line,
};

use super::patterns::Patterns;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol};
use crate::settings::{AgentSettings, PromptBy};
use crate::text;
use crate::unrecognised::Unrecognised;

/// How much of its output becomes its message: the end.
const MESSAGE_TAIL: usize = 16 * 1024;

/// A running program.
pub(super) struct CommandProtocol {
    patterns: Patterns,
    plan: SessionPlan,
    /// Whether a conversation can be resumed once the program has ended.
    outlives: bool,
    prompt_by: PromptBy,
    /// Whether error messages are among the rest of its output.
    in_terminal: bool,
    prompt: String,
    begun: bool,
    has_session: bool,
    is_limited: bool,
    printed: String,
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
            printed: String::new(),
            unrecognised: Unrecognised::default(),
        }
    }
}

impl Protocol for CommandProtocol {
    fn start(&mut self) -> Vec<Action> {
        let mut prompt = std::mem::take(&mut self.prompt);
        // At once, because the program may work for long before it prints anything.
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
        let end = self.end(exit);
        let mut actions = self.unrecognised.rest();
        if end == End::Completed {
            // It may have printed nothing.
            actions.extend(self.begin());
        }
        actions.extend(self.last_word_on_session(exit, &end));
        actions.extend(self.end_turn(&end));
        (actions, end)
    }
}

impl CommandProtocol {
    /// Reports the session and the turn at the first sign of life.
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
            let reported = Reported { cost: true, ..Reported::default() };
            let used = Usage { cost, reported, ..Usage::default() };
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

    /// Stores the end of the output. It is cut only now and then, so most lines cost no copy.
    fn keep(&mut self, text: &str) {
        self.printed.push_str(text);
        if self.printed.len() > 2 * MESSAGE_TAIL {
            self.printed = text::tail(&self.printed, MESSAGE_TAIL).to_owned();
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

    /// The session of a program that did not print its id on standard output. Our own id means nothing to it, so
    /// without its own there is no session to resume.
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
        let text = text::tail(self.printed.trim(), MESSAGE_TAIL).to_owned();
        let stop = match end {
            End::Completed => TurnStop::Done,
            End::Crashed { message } => TurnStop::Failed { status: None, reason: message.clone() },
            other => TurnStop::Failed { status: None, reason: other.name().to_owned() },
        };
        let message = (!text.is_empty())
            .then(|| Action::emit(AgentEvent::Message { role: Role::Assistant, text: text.clone() }));
        message.into_iter().chain([Action::turn_ended(stop, text, None)]).collect()
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
        let last_line = if self.in_terminal { self.printed.trim().lines().next_back() } else { None };
        let words = Some(stderr.trim()).filter(|words| !words.is_empty()).or(last_line);
        End::Crashed { message: words.map_or(how.clone(), |words| format!("{how}: {words}")) }
    }
}
