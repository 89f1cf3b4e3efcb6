//! A goal's log as a story: a few lines for each thing that matters, nothing for the rest.

use std::collections::BTreeMap;

use towline_core::{
    AgentEvent, Answerer, AttemptNo, CheckResult, End, EndKind, Envelope, Event, Exit, GoalId, GoalState,
    LastWords, LimitStatus, Outcome, Phase, QuestionNo, Reply, Role, ToolKind, ToolStatus, ToolUse, Usage,
    Verdict, show_duration,
};

use super::asking::{AnswerBy, Asking};
use super::{Paint, spent};
use crate::output::brief;

/// How many lines of a message or of evidence are shown.
const LINES: usize = 12;

/// Tells a goal's story.
pub(crate) struct Story {
    paint: Paint,
    /// What the attempt at hand has used so far.
    used: Usage,
    /// Kinds of output of the attempt at hand that were not understood, and how often.
    not_understood: BTreeMap<String, u64>,
    /// Whether checks that run now are those of the base.
    preparing: bool,
    /// The attempt whose beginning was told last.
    attempt: Option<AttemptNo>,
    asking: Asking,
    answer_by: AnswerBy,
}

impl Story {
    /// A story in these colours.
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            paint,
            used: Usage::default(),
            not_understood: BTreeMap::new(),
            preparing: false,
            attempt: None,
            asking: Asking::default(),
            answer_by: AnswerBy::Command,
        }
    }

    /// Goes on with a goal that has been told about up to here.
    pub(super) fn go_on(&mut self, state: &GoalState) {
        self.attempt = state.last_attempt().map(|attempt| attempt.n);
        self.asking = Asking::of(state);
    }

    /// Takes note of where an answer can be given.
    pub(super) const fn answer_by(&mut self, by: AnswerBy) {
        self.answer_by = by;
    }

    /// What is asked, for somebody who has not seen it or does not see it any more.
    pub(super) fn ask_again(&mut self, question: QuestionNo, goal: GoalId) -> Vec<String> {
        self.asking.forget_the_screen();
        self.wait_for(question, goal)
    }

    fn wait_for(&mut self, question: QuestionNo, goal: GoalId) -> Vec<String> {
        let lines = self.asking.wait_for(question, goal, self.answer_by);
        self.warnings(&lines)
    }

    /// The lines that an event adds.
    pub(crate) fn lines(&mut self, envelope: &Envelope) -> Vec<String> {
        let paint = self.paint;
        self.asking.follow(&envelope.event);
        match &envelope.event {
            Event::Prepared { workspace, warnings, .. } => {
                let branch: String = workspace.branch.iter().map(|branch| format!(" on {branch}")).collect();
                let mut lines = vec![paint.dim(&format!("  workspace {}{branch}", workspace.path))];
                lines.extend(
                    warnings.iter().map(|warning| paint.warn(&format!("  warning: {}", brief(warning)))),
                );
                lines
            }
            Event::PhaseChanged { phase } => self.phase(phase, envelope.goal),
            Event::Agent { event: AgentEvent::Asked(_) } => {
                let lines = self.asking.newest(envelope.goal);
                self.warnings(&lines)
            }
            Event::Agent { event } => self.agent(event),
            Event::AttemptEnded { end, exit, .. } => self.attempt_ended(end, exit),
            Event::HandedOver { from, to, why } => {
                let why = EndKind::named(why).map_or_else(|| brief(why), |kind| kind.to_string());
                vec![paint.warn(&format!("{from} cannot go on ({why}): {to} takes over"))]
            }
            Event::ClockRanOut { clock } => vec![paint.warn(&format!("  the {clock} clock ran out"))],
            Event::CheckStarted { .. } if std::mem::take(&mut self.preparing) => {
                vec![paint.bold("checks before any work: they must fail")]
            }
            Event::CheckFinished { result } => check(paint, result),
            Event::VerdictReached { verdict } => restored(paint, verdict),
            Event::CancelRequested => {
                vec![paint.warn("cancelling: ending everything that runs for the goal")]
            }
            Event::Answered { question, reply, by } => vec![self.answered(*question, reply, *by)],
            Event::Told { text } => indented(text, &format!("  {} ", paint.bold("operator:"))),
            Event::RetryRequested { budget } => {
                let raised: String = budget.iter().map(|change| format!(" · {change}")).collect();
                vec![format!("opened again{raised}")]
            }
            Event::Notice { text } => vec![paint.dim(&format!("  {}", brief(text)))],
            _ => Vec::new(),
        }
    }

    fn warnings(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| self.paint.warn(line)).collect()
    }

    fn answered(&self, question: QuestionNo, reply: &Reply, by: Answerer) -> String {
        let what = match by {
            Answerer::Person => format!("answered question {question}:"),
            Answerer::Default => {
                format!("nobody answered question {question} in time, so its default is taken:")
            }
        };
        format!("  {} {}", self.paint.bold(&what), brief(&reply.words()))
    }

    fn phase(&mut self, phase: &Phase, goal: GoalId) -> Vec<String> {
        let paint = self.paint;
        self.preparing = *phase == Phase::Preparing;
        match phase {
            // An agent that was answered goes on in the attempt that it was in.
            Phase::Running { attempt } if self.attempt == Some(*attempt) => Vec::new(),
            Phase::Blocked { question, .. } => self.wait_for(*question, goal),
            Phase::Running { attempt } => {
                self.attempt = Some(*attempt);
                self.used = Usage::default();
                self.not_understood.clear();
                vec![paint.bold(&format!("attempt {attempt}"))]
            }
            Phase::Checking { .. } => vec![paint.bold("checks")],
            Phase::Sleeping { until, reason } => {
                vec![paint.warn(&format!("  {}; going on at {until:.0}", brief(reason)))]
            }
            Phase::Limited { until, guessed } => {
                let guess = if *guessed { " (a guess: the provider named no time)" } else { "" };
                vec![paint.warn(&format!("  the quota is used up; going on at {until:.0}{guess}"))]
            }
            _ => Vec::new(),
        }
    }

    fn agent(&mut self, event: &AgentEvent) -> Vec<String> {
        let paint = self.paint;
        match event {
            // Told a second time once it is known on which model it runs.
            AgentEvent::SessionStarted(session)
                if session.model.is_none() && session.agent_version.is_none() =>
            {
                Vec::new()
            }
            AgentEvent::SessionStarted(session) => {
                let model =
                    session.model.as_deref().map(|model| format!(" with {model}")).unwrap_or_default();
                let resumed = if session.resumed { "resumed " } else { "" };
                vec![paint.dim(&brief(&format!("  {resumed}session {}{model}", session.native_id)))]
            }
            // What it says to Towline is told in words when it is done.
            AgentEvent::Message { role: Role::Assistant, text } if speaks_to_towline(text) => Vec::new(),
            AgentEvent::Message { role: Role::Assistant, text } => indented(text, "  "),
            AgentEvent::Tool(tool) => tool_lines(paint, tool),
            AgentEvent::Usage { used, .. } => {
                self.used += *used;
                Vec::new()
            }
            AgentEvent::RateLimit(limit) if limit.status != LimitStatus::Allowed => {
                let scope = brief(limit.scope.as_deref().unwrap_or("the quota"));
                let full =
                    limit.utilization.map(|full| format!(" at {:.0}%", full * 100.0)).unwrap_or_default();
                vec![paint.warn(&format!("  {scope} is nearly used up{full}"))]
            }
            AgentEvent::Retrying { status, attempt, delay_ms, error } => {
                let pause = *delay_ms as f64 / 1_000.0;
                let why = why_again(*status, &brief(error));
                vec![paint.warn(&format!("  {why}; retry {attempt} in {pause:.1}s"))]
            }
            AgentEvent::Compacted { .. } => vec![paint.dim("  the conversation was summarised")],
            AgentEvent::NotCompacted { reason } => {
                vec![paint.warn(&format!("  the conversation was not summarised: {}", brief(reason)))]
            }
            AgentEvent::SleepAsked { duration, reason } => {
                let reason = brief(reason);
                vec![paint.dim(&format!("  wants to wait for {}: {reason}", show_duration(*duration)))]
            }
            AgentEvent::Progress { text, percent } => {
                let percent = percent.map(|percent| format!("{percent}% ")).unwrap_or_default();
                vec![format!("  {} {percent}{}", paint.dim("…"), brief(text))]
            }
            AgentEvent::Submitted { summary } => indented(summary, &format!("  {} ", paint.dim("claims:"))),
            AgentEvent::Withdrawn { .. } => vec![paint.dim("  the agent took its question back")],
            AgentEvent::Heard { .. } => vec![paint.dim("  the agent has heard the operator")],
            AgentEvent::Decided(decision) if decision.outcome == Outcome::Deny => {
                vec![paint.warn(&format!("  {} was not permitted", brief(&decision.tool)))]
            }
            AgentEvent::Notice { text } => vec![paint.dim(&format!("  {}", brief(text)))],
            AgentEvent::Unrecognised { what, count, .. } => self.unrecognised(what, *count),
            _ => Vec::new(),
        }
    }

    /// Each kind of output that is not understood is told of once; how often it came stands at the end.
    fn unrecognised(&mut self, what: &str, count: u64) -> Vec<String> {
        let known = self.not_understood.contains_key(what);
        *self.not_understood.entry(what.to_owned()).or_default() += count;
        if known {
            return Vec::new();
        }
        vec![self.paint.dim(&format!("  (output that is not understood: {})", brief(what)))]
    }

    /// How it ended, and what Towline does about it where that is not plain to see.
    fn attempt_ended(&self, end: &End, exit: &Exit) -> Vec<String> {
        let went_well = matches!(end.kind(), EndKind::Completed | EndKind::Asked | EndKind::Slept);
        let by_us = matches!(end.kind(), EndKind::Cancelled | EndKind::OverBudget);
        let mut text = format!("  {}", in_words(end));
        if !went_well && end.kind() != EndKind::Cancelled {
            match (exit.code, exit.signal) {
                (Some(code), _) => text.push_str(&format!(" (exit code {code})")),
                (None, Some(signal)) => text.push_str(&format!(" (signal {signal})")),
                (None, None) => {}
            }
        }
        if !self.used.is_empty() {
            text.push_str(&format!(" · {}", spent(&self.used)));
        }
        let unknown: u64 = self.not_understood.values().sum();
        if unknown > 0 {
            text.push_str(&format!(" · {unknown} lines not understood"));
        }
        if went_well {
            return vec![self.paint.dim(&text)];
        }
        let mut lines = vec![self.paint.warn(&text)];
        if !by_us {
            lines.push(self.paint.dim(&format!("    Towline {}", end.kind().class().follows.words())));
        }
        lines
    }
}

/// How an attempt ended, and what is known about it.
pub(crate) fn in_words(end: &End) -> String {
    match end.detail() {
        Some(detail) => format!("{}: {}", end.kind(), brief(&detail)),
        None => end.kind().to_string(),
    }
}

/// Whether a message is an order to Towline, which is told in words when it is carried out.
pub(crate) fn speaks_to_towline(message: &str) -> bool {
    matches!(LastWords::read(message), Some(Ok(_)))
}

/// Why the model is asked again. Some agents repeat the status in their words, where it is said once.
fn why_again(status: Option<u16>, error: &str) -> String {
    match (status, error) {
        (None, "") => "the provider gave no whole answer".to_owned(),
        (None, error) => format!("the provider gave no whole answer: {error}"),
        (Some(status), "") => format!("the provider answered {status}"),
        (Some(status), error) if error.contains(&status.to_string()) => error.to_owned(),
        (Some(status), error) => format!("the provider answered {status}: {error}"),
    }
}

fn tool_lines(paint: Paint, tool: &ToolUse) -> Vec<String> {
    let title = brief(&tool.title);
    let sign = match tool.tool {
        ToolKind::Execute => "$",
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => "±",
        _ => "·",
    };
    match tool.status {
        ToolStatus::Running => vec![format!("  {} {title}", paint.dim(sign))],
        ToolStatus::Failed => {
            let code = tool.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            vec![paint.warn(&format!("  {sign} {title} failed{code}"))]
        }
        ToolStatus::Denied => vec![paint.warn(&format!("  {sign} {title} was not permitted"))],
        ToolStatus::Cancelled => vec![paint.warn(&format!("  {sign} {title} was ended"))],
        ToolStatus::Pending | ToolStatus::Ok => Vec::new(),
    }
}

fn check(paint: Paint, result: &CheckResult) -> Vec<String> {
    let (name, took) = (brief(&result.name), show_duration(result.took));
    if result.met {
        return vec![format!("  {} {name} {}", paint.good("✓"), paint.dim(&took))];
    }
    let how = match (&result.problem, result.exit_code) {
        (Some(problem), _) => brief(problem),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "did not exit".to_owned(),
    };
    let mut lines = vec![format!("  {} {name} {how} {}", paint.bad("✗"), paint.dim(&format!("· {took}")))];
    lines.extend(last_lines(&result.evidence).map(|line| paint.dim(&format!("      {}", brief(line)))));
    lines
}

fn restored(paint: Paint, verdict: &Verdict) -> Vec<String> {
    let paths = verdict.restored.iter();
    paths.map(|path| paint.warn(&format!("  protected, put back as it was: {}", brief(path)))).collect()
}

/// A text's lines, at most so many of them, from its beginning.
fn indented(text: &str, indent: &str) -> Vec<String> {
    let all: Vec<&str> = text.trim().lines().collect();
    let mut lines: Vec<String> =
        all.iter().take(LINES).map(|line| format!("{indent}{}", brief(line))).collect();
    if all.len() > LINES {
        lines.push(format!("{indent}… {} more lines", all.len() - LINES));
    }
    lines
}

/// The end of a text.
fn last_lines(text: &str) -> impl Iterator<Item = &str> {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let skip = all.len().saturating_sub(LINES);
    all.into_iter().skip(skip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_says_once_what_was_answered() {
        let told = "host answered 503 Service Unavailable: busy";
        for (status, error, wanted) in [
            (None, "", "the provider gave no whole answer"),
            (None, "host cannot be reached", "the provider gave no whole answer: host cannot be reached"),
            (Some(529), "", "the provider answered 529"),
            (Some(529), "overloaded", "the provider answered 529: overloaded"),
            (Some(503), told, told),
        ] {
            assert_eq!(why_again(status, error), wanted);
        }
    }
}
