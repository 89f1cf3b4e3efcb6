//! The conversation: the prompt goes in, the input is closed, and the output is one turn.

use towline_core::{
    AgentEvent, End, Reported, SessionId, SessionStarted, Tokens, ToolStatus, ToolUse, Usage,
};

use super::classify::{Evidence, Outcome, classify, refused_words};
use super::speech::GeminiSpeech;
use super::tools;
use super::wire;
use crate::lines::{Conversation, Lines, Reading, Unknown, decode, frame_type};
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol};
use crate::settings::AgentSettings;
use crate::text;

/// The `error` before a successful result when the CLI's own limit of turns was reached.
const TURN_LIMIT: &str = "Maximum session turns exceeded";

/// The state of one conversation.
#[derive(Default)]
pub(super) struct GeminiProtocol {
    prompt: String,
    /// The earlier session to resume.
    asked: Option<SessionId>,
    /// What a person should know before the agent works.
    warnings: Vec<AgentEvent>,
    model: Option<String>,
    speech: GeminiSpeech,
    /// Calls without a result so far.
    calls: Vec<ToolUse>,
    /// Whether the last frame was a tool's result. Results of calls that the model made together are adjacent.
    in_results: bool,
    evidence: Evidence,
    lines: Lines,
}

impl GeminiProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        let first = settings.system_append.as_ref().map(|more| format!("{more}\n\n"));
        Self {
            prompt: first.unwrap_or_default() + context.prompt,
            asked: context.resumed().cloned(),
            warnings: warnings(settings, context),
            evidence: Evidence { asked_to_resume: context.resumed().is_some(), ..Evidence::default() },
            ..Self::default()
        }
    }

    /// After a series of results, calls without a result will never get one.
    fn results_over(&mut self, actions: &mut Vec<Action>) {
        if std::mem::take(&mut self.in_results) {
            self.drop_calls(actions);
        }
    }

    fn drop_calls(&mut self, actions: &mut Vec<Action>) {
        // The answer with such a call broke off and was requested again: the call is never made.
        let dropped = |call| AgentEvent::Tool(ToolUse { status: ToolStatus::Cancelled, ..call });
        actions.extend(self.calls.drain(..).map(dropped).map(Action::emit));
    }

    fn on_init(&mut self, line: wire::Init<'_>, actions: &mut Vec<Action>) {
        self.results_over(actions);
        self.evidence.session_started = true;
        self.model = wire::owned(line.model);
        let native_id = SessionId::new(line.session_id);
        let resumed = self.asked.as_ref() == Some(&native_id);
        let started = SessionStarted { native_id, resumed, model: self.model.clone(), agent_version: None };
        actions.push(Action::emit(AgentEvent::SessionStarted(started)));
        actions.push(Action::emit(AgentEvent::TurnStarted));
    }

    fn on_message(&mut self, line: &wire::Message<'_>, actions: &mut Vec<Action>) {
        self.results_over(actions);
        // Our own messages are echoed, and ignored.
        if line.role.as_str() != "assistant" {
            return;
        }
        if line.delta {
            self.speech.message_piece(&line.content, line.time(), actions);
        } else {
            self.speech.over(actions);
            self.speech.message_piece(&line.content, None, actions);
            self.speech.over(actions);
        }
    }

    fn on_tool_use(&mut self, line: wire::ToolUse<'_>, actions: &mut Vec<Action>) {
        self.results_over(actions);
        self.speech.over(actions);
        let (call, plan) = (tools::begun(&line), tools::plan(&line));
        let input = (!line.parameters.is_null()).then(|| text::clipped(line.parameters));
        actions.push(Action::emit(AgentEvent::Tool(ToolUse { input, ..call.clone() })));
        actions.extend(plan.map(Action::emit));
        self.calls.push(call);
    }

    fn on_tool_result(&mut self, line: &wire::ToolResult<'_>, actions: &mut Vec<Action>) {
        self.in_results = true;
        if let Some(at) = self.calls.iter().position(|call| call.id == *line.tool_id) {
            actions.push(Action::emit(AgentEvent::Tool(tools::ended(self.calls.remove(at), line))));
        }
    }

    fn on_error(&mut self, line: wire::ErrorLine<'_>, actions: &mut Vec<Action>) {
        self.results_over(actions);
        let text = String::from(line.message);
        self.evidence.hit_turn_limit |= text == TURN_LIMIT;
        if line.severity.as_deref() == Some("error") {
            self.evidence.last_error = Some(text.clone());
        }
        self.speech.over(actions);
        actions.push(Action::notice(text));
    }

    fn on_result(&mut self, line: wire::ResultLine<'_>, actions: &mut Vec<Action>) {
        self.results_over(actions);
        self.speech.over(actions);
        self.drop_calls(actions);
        // The counts are of the whole process, which has one turn and reports them once.
        if let Some(stats) = line.stats.filter(|_| self.evidence.outcome.is_none()) {
            actions.extend(usage(&stats, self.model.as_deref()).map(Action::emit));
        }
        let outcome = Outcome { status: line.status, error: line.error };
        let message = self.speech.take_last();
        let (stop, words) = self.evidence.stop(&outcome);
        let text = if message.is_empty() { words } else { message };
        self.evidence.outcome = Some(outcome);
        actions.push(Action::turn_ended(stop, text, None));
    }
}

impl Conversation for GeminiProtocol {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn read(&mut self, line: &str) -> Reading {
        let kind = frame_type(line)?;
        let mut actions = Vec::new();
        match kind.as_str() {
            "init" => self.on_init(decode(line, &kind)?, &mut actions),
            "message" => self.on_message(&decode(line, &kind)?, &mut actions),
            "tool_use" => self.on_tool_use(decode(line, &kind)?, &mut actions),
            "tool_result" => self.on_tool_result(&decode(line, &kind)?, &mut actions),
            "error" => self.on_error(decode(line, &kind)?, &mut actions),
            "result" => self.on_result(decode(line, &kind)?, &mut actions),
            unknown => return Err(Unknown::frame(line, unknown)),
        }
        Ok(actions)
    }
}

impl Protocol for GeminiProtocol {
    fn start(&mut self) -> Vec<Action> {
        let mut prompt = std::mem::take(&mut self.prompt);
        if !prompt.ends_with('\n') {
            prompt.push('\n');
        }
        let warnings = std::mem::take(&mut self.warnings).into_iter().map(Action::emit);
        // It starts only after it has read its whole input.
        warnings.chain([Action::Write(prompt.into_bytes()), Action::CloseStdin]).collect()
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        self.read_frame(frame)
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        self.evidence.exit = exit.clone();
        let end = classify(&self.evidence);
        let mut actions = self.lines.rest();
        self.speech.over(&mut actions);
        let notice = exit.oddity_after(&end).or_else(|| refused_words(&end, exit));
        actions.extend(notice.map(Action::notice));
        (actions, end)
    }
}

fn warnings(settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<AgentEvent> {
    let turns = settings.max_turns.map(|_| AgentEvent::Notice {
        text: "this agent cannot be given `max_turns`: it is set, but has no effect".to_owned(),
    });
    let compact = context.compact.map(|_| AgentEvent::NotCompacted {
        reason: "Gemini CLI cannot summarise a conversation on request in this mode".to_owned(),
    });
    turns.into_iter().chain(compact).collect()
}

/// The usage of each model, or the total if models are not listed.
fn usage<'s>(stats: &'s wire::Stats<'_>, model: Option<&'s str>) -> impl Iterator<Item = AgentEvent> {
    let all = stats.models.is_empty().then(|| (model, stats.all()));
    let each = stats.models.iter().map(|(model, counts)| (Some(model.as_str()), *counts));
    all.into_iter().chain(each).filter_map(|(model, counts)| {
        let used = used(counts);
        let model = model.map(str::to_owned);
        (!used.is_empty()).then_some(AgentEvent::Usage {
            model,
            used,
            context_used: None,
            context_size: None,
        })
    })
}

/// The total includes reasoning, which is billed as output.
fn used(counts: wire::Counts) -> Usage {
    let beyond_input = counts.total_tokens.saturating_sub(counts.input_tokens);
    let cached = counts.cached.unwrap_or_default();
    Usage {
        input: Tokens(counts.input_tokens.saturating_sub(cached)),
        output: Tokens(counts.output_tokens.max(beyond_input)),
        cache_read: Tokens(cached),
        reported: Reported { cache: counts.cached.is_some(), ..Reported::default() },
        ..Usage::default()
    }
}
