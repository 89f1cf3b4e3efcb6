//! A goal's log as a story: a few lines for each thing that matters, nothing for the rest.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use towline_core::{
    AgentEvent, Answerer, AttemptNo, CheckResult, End, EndKind, Envelope, Event, Exit, GoalId, GoalState,
    LastWords, Limit, LimitStatus, NoOpinion, Outcome, Phase, Policy, QuestionNo, Reply, Role,
    SessionStarted, Usage, Verdict, show_duration,
};

use crate::asking::{AnswerBy, Asking};
use crate::text::{brief, printable};
use crate::tools::Tools;
use crate::{Paint, clock_time, spent};

/// How many lines of a message or of evidence are shown in short.
const LINES: usize = 12;

/// How much of the output of agents and checks is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What fits a screen, and where the rest is.
    Short,
    /// All of it.
    Whole,
}

/// Where a goal is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// By this process.
    Here,
    /// By another process, or by none.
    Elsewhere,
}

/// Turns a goal's events into lines for people.
pub struct Story {
    paint: Paint,
    detail: Detail,
    /// The tools at work, and since when.
    tools: Tools,
    /// How the last attempt ended, as it was printed.
    ended_with: String,
    /// What the attempt at hand has used so far.
    used: Usage,
    /// Kinds of output of the attempt at hand that were not understood, and how often.
    not_understood: BTreeMap<String, u64>,
    /// The attempt whose beginning was printed last.
    attempt: Option<AttemptNo>,
    asking: Asking,
    /// Where an answer can be given.
    pub answer_by: AnswerBy,
}

impl Story {
    /// A story in these colours.
    pub fn new(paint: Paint, detail: Detail) -> Self {
        Self {
            paint,
            detail,
            tools: Tools::default(),
            ended_with: String::new(),
            used: Usage::default(),
            not_understood: BTreeMap::new(),
            attempt: None,
            asking: Asking::default(),
            answer_by: AnswerBy::Command,
        }
    }

    /// Begins in the middle of a goal. An attempt that is running gets a line, and another one if this process adopts it.
    pub fn go_on(&mut self, state: &GoalState, place: Place, now: Timestamp) -> Vec<String> {
        let last = state.last_attempt();
        self.attempt = last.map(|attempt| attempt.n);
        self.asking = Asking::of(state, now);
        match (&state.phase, last) {
            (Phase::Running { attempt }, Some(last)) if last.n == *attempt => {
                let head = section(self.paint, &format!("attempt {attempt}"), last.started_at, now);
                let adopted = (place == Place::Here).then(|| self.paint.dim("  adopted while it runs"));
                std::iter::once(head).chain(adopted).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Takes note of a tool that was at work before the story begins.
    pub fn recall(&mut self, envelope: &Envelope) {
        if let Event::Agent { event: AgentEvent::Tool(tool) } = &envelope.event {
            // Its lines were printed then.
            let _ = self.tools.follow(tool, envelope.at, self.paint);
        }
    }

    /// The open question, for a person who has not seen it or does not see it any more.
    pub fn ask_again(&mut self, question: QuestionNo, goal: GoalId) -> Vec<String> {
        self.asking.forget_the_screen();
        self.wait_for(question, goal)
    }

    fn wait_for(&mut self, question: QuestionNo, goal: GoalId) -> Vec<String> {
        let lines = self.asking.wait_for(question, goal, self.answer_by);
        self.warnings(&lines)
    }

    /// The lines that an event adds, for somebody who reads them at this time.
    pub fn lines(&mut self, envelope: &Envelope, now: Timestamp) -> Vec<String> {
        let paint = self.paint;
        self.asking.follow(&envelope.event);
        match &envelope.event {
            Event::Prepared { workspace, warnings, .. } => {
                let mut lines = vec![paint.dim(&format!("  workspace {}", workspace.path))];
                lines.extend(
                    warnings.iter().map(|warning| paint.warn(&format!("  warning: {}", brief(warning)))),
                );
                lines
            }
            Event::PhaseChanged { phase } => self.phase(phase, envelope, now),
            Event::Agent { event: AgentEvent::Asked(_) } => {
                let lines = self.asking.newest(envelope.goal);
                self.warnings(&lines)
            }
            Event::Agent { event } => self.agent(event, envelope),
            Event::AttemptEnded { end, exit, .. } => {
                self.ended_with = in_words(end);
                let mut lines = self.tools.left_behind(paint);
                lines.extend(self.attempt_ended(end, exit));
                lines
            }
            Event::BaselineReached { checks, reused, .. } => {
                self.baseline(checks, reused.is_some(), envelope.goal)
            }
            Event::CheckFinished { result } => self.check(result, envelope.goal),
            Event::VerdictReached { verdict } => verdict_lines(paint, verdict),
            Event::Answered { question, reply, by } => vec![self.answered(*question, reply, *by)],
            Event::MessageSent { text } => {
                self.message(text, &format!("  {} ", paint.bold("operator:")), envelope.goal)
            }
            Event::ChecksReplaced { checks } => {
                let checks = checks
                    .iter()
                    .map(|check| format!("  {}: {}", brief(&check.name), brief(&check.describe())));
                std::iter::once("checks replaced:".to_owned()).chain(checks).collect()
            }
            Event::Verified { verdict } => self.verified(verdict, envelope.goal),
            event => one_line(paint, event).into_iter().collect(),
        }
    }

    fn warnings(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| self.paint.warn(line)).collect()
    }

    fn answered(&self, question: QuestionNo, reply: &Reply, by: Answerer) -> String {
        let what = match by {
            Answerer::Person => format!("answered question {question}:"),
            Answerer::Rule => format!("question {question} is allowed for this goal:"),
            Answerer::Default => {
                format!("nobody answered question {question} in time, so its default is taken:")
            }
        };
        format!("  {} {}", self.paint.bold(&what), brief(&reply.words()))
    }

    fn phase(&mut self, phase: &Phase, envelope: &Envelope, now: Timestamp) -> Vec<String> {
        let paint = self.paint;
        match phase {
            // An agent that was answered continues its attempt.
            Phase::Running { attempt } if self.attempt == Some(*attempt) => Vec::new(),
            Phase::Blocked { question, .. } => self.wait_for(*question, envelope.goal),
            Phase::Running { attempt } => {
                self.attempt = Some(*attempt);
                self.used = Usage::default();
                self.not_understood.clear();
                vec![section(paint, &format!("attempt {attempt}"), envelope.at, now)]
            }
            Phase::Checking { .. } => vec![section(paint, "checks", envelope.at, now)],
            Phase::Sleeping { until, reason } => {
                let (reason, when) = (brief(reason), self.wakes(*until, envelope));
                // An agent that asked for it has just been quoted.
                let reason = Some(reason).filter(|reason| !self.ended_with.contains(reason.as_str()));
                let reason = reason.map(|reason| format!("{reason}; ")).unwrap_or_default();
                vec![paint.warn(&format!("  {reason}continuing {when}"))]
            }
            Phase::Limited { until, guessed } => {
                let guess = if *guessed { " (a guess: the provider named no time)" } else { "" };
                let when = self.wakes(*until, envelope);
                vec![paint.warn(&format!("  the quota is used up; continuing {when}{guess}"))]
            }
            _ => Vec::new(),
        }
    }

    /// When a goal that waits from now on comes back: a little after the time that it waits for.
    fn wakes(&self, until: Timestamp, envelope: &Envelope) -> String {
        let seed = envelope.goal.seed(self.attempt.map_or(0, AttemptNo::get));
        moment(Policy::wakes_at(envelope.at, until, seed), envelope.at)
    }

    fn agent(&mut self, event: &AgentEvent, envelope: &Envelope) -> Vec<String> {
        let paint = self.paint;
        match event {
            AgentEvent::SessionStarted(session) => self.session(session),
            // A request to Towline is printed when it is carried out.
            AgentEvent::Message { role: Role::Assistant, text } if speaks_to_towline(text) => Vec::new(),
            AgentEvent::Message { role: Role::Assistant, text } => self.message(text, "  ", envelope.goal),
            AgentEvent::Tool(tool) => self.tools.follow(tool, envelope.at, paint),
            AgentEvent::Usage { used, .. } => {
                self.used.record(*used);
                Vec::new()
            }
            AgentEvent::RateLimit(limit) => {
                quota(limit).into_iter().map(|words| paint.warn(&format!("  {words}"))).collect()
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
            AgentEvent::Progress { text, percent } => {
                let percent = percent.map(|percent| format!("{percent}% ")).unwrap_or_default();
                vec![format!("  {} {percent}{}", paint.dim("…"), brief(text))]
            }
            AgentEvent::Submitted { summary } => {
                self.message(summary, &format!("  {} ", paint.dim("claims:")), envelope.goal)
            }
            AgentEvent::Withdrawn { .. } => vec![paint.dim("  the agent withdrew its question")],
            AgentEvent::Heard { .. } => vec![paint.dim("  the agent has read the message")],
            AgentEvent::Decided(decision) if decision.outcome == Outcome::Deny => {
                vec![paint.warn(&format!("  {} was not permitted", brief(&decision.tool)))]
            }
            AgentEvent::Notice { text } => vec![paint.dim(&format!("  {}", brief(text)))],
            AgentEvent::Unrecognised { what, count, .. } => self.unrecognised(what, *count),
            _ => Vec::new(),
        }
    }

    /// Printed once for each attempt, when its model is known.
    fn session(&self, session: &SessionStarted) -> Vec<String> {
        let model = session.model.as_deref().map(|model| format!("with {}", brief(model)));
        let words = match (session.resumed, model, &session.agent_version) {
            (true, Some(model), _) => format!("continues its session, {model}"),
            (true, None, Some(_)) => "continues its session".to_owned(),
            (false, Some(model), _) => model,
            (_, None, _) => return Vec::new(),
        };
        vec![self.paint.dim(&format!("  {words}"))]
    }

    /// Each kind of output that is not understood is printed once; the end has how often it came.
    fn unrecognised(&mut self, what: &str, count: u64) -> Vec<String> {
        let known = self.not_understood.contains_key(what);
        *self.not_understood.entry(what.to_owned()).or_default() += count;
        if known {
            return Vec::new();
        }
        vec![self.paint.dim(&format!("  (output that is not understood: {})", brief(what)))]
    }

    /// How it ended. What Towline does about it follows as events of their own.
    fn attempt_ended(&self, end: &End, exit: &Exit) -> Vec<String> {
        let text_of_end = in_words(end);
        let went_well = matches!(end.kind(), EndKind::Completed | EndKind::Asked | EndKind::Slept);
        let by_us = matches!(end.kind(), EndKind::Cancelled | EndKind::OverBudget | EndKind::Interrupted);
        // The end may be about the code, or about something else than a program that exits as it should.
        let is_news = |code: &i32| *code != 0 && !text_of_end.contains(&format!("exit code {code}"));
        let mut text = format!("  {text_of_end}");
        if !went_well && !by_us {
            match (exit.code.filter(is_news), exit.signal) {
                (Some(code), _) => text.push_str(&format!(" (exit code {code})")),
                (None, Some(signal)) => text.push_str(&format!(" (signal {signal})")),
                (None, None) => {}
            }
        }
        if went_well || !self.used.is_empty() {
            text.push_str(&format!(" · {}", spent(&self.used)));
        }
        let unknown: u64 = self.not_understood.values().sum();
        if unknown > 0 {
            let lines = if unknown == 1 { "line" } else { "lines" };
            text.push_str(&format!(" · {unknown} {lines} not understood"));
        }
        vec![if went_well { self.paint.dim(&text) } else { self.paint.warn(&text) }]
    }

    /// A message with a heading.
    fn message(&self, text: &str, heading: &str, goal: GoalId) -> Vec<String> {
        let all: Vec<&str> = text.trim().lines().collect();
        let (most, shown): (_, fn(&str) -> String) = match self.detail {
            Detail::Short => (LINES, brief),
            Detail::Whole => (usize::MAX, printable),
        };
        let further = " ".repeat(2);
        let mut lines = Vec::new();
        for (place, line) in all.iter().take(most).enumerate() {
            lines.push(format!("{}{}", if place == 0 { heading } else { &further }, shown(line)));
        }
        if all.len() > most {
            let rest = format!("{further}… {} more lines: towline logs {}", all.len() - most, goal.short());
            lines.push(self.paint.dim(&rest));
        }
        lines
    }

    /// The results of checks that were run again.
    fn verified(&self, verdict: &Verdict, goal: GoalId) -> Vec<String> {
        let paint = self.paint;
        let found = if verdict.met() { paint.good("met") } else { paint.bad("not met") };
        let head = paint.bold(&format!("checks run again on {}:", verdict.candidate.short()));
        let mut lines = vec![format!("{head} {found}")];
        lines.extend(verdict.checks.iter().flat_map(|result| self.check(result, goal)));
        lines
    }

    /// What failed before any work. That nothing did is a notice of its own.
    fn baseline(&self, checks: &[CheckResult], is_reused: bool, goal: GoalId) -> Vec<String> {
        let failed: Vec<&CheckResult> = checks.iter().filter(|check| !check.met).collect();
        if failed.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = failed.iter().map(|check| check.name.as_str()).collect();
        let reused = if is_reused { " (known from an earlier goal)" } else { "" };
        let head = format!("  failed before any work: {}{reused}", brief(&names.join(", ")));
        let mut lines = vec![self.paint.dim(&head)];
        if self.detail == Detail::Whole {
            lines.extend(failed.into_iter().flat_map(|result| self.check(result, goal)));
        }
        lines
    }

    /// How a check went: a line, and more where it failed.
    pub fn check(&self, result: &CheckResult, goal: GoalId) -> Vec<String> {
        let (paint, name, took) = (self.paint, brief(&result.name), show_duration(result.took));
        if result.met {
            return vec![format!("  {} {name} {}", paint.good("✓"), paint.dim(&format!("· {took}")))];
        }
        let how = match (&result.problem, result.exit_code) {
            (Some(problem), _) => brief(problem),
            (None, Some(code)) => format!("exit code {code}{}", of_the_shell(code)),
            (None, None) => "did not exit".to_owned(),
        };
        let mut lines =
            vec![format!("  {} {name} {how} {}", paint.bad("✗"), paint.dim(&format!("· {took}")))];
        let evidence: Vec<&str> = result.evidence.trim_end().lines().collect();
        let most = if self.detail == Detail::Short { LINES } else { usize::MAX };
        let skipped = evidence.len().saturating_sub(most);
        if skipped > 0 {
            lines.push(paint.dim(&format!("      … {skipped} lines before: towline logs {}", goal.short())));
        }
        lines.extend(evidence.iter().skip(skipped).map(|line| paint.dim(&format!("      {}", brief(line)))));
        lines
    }
}

/// What an event adds that takes no more than a line.
fn one_line(paint: Paint, event: &Event) -> Option<String> {
    Some(match event {
        Event::HandedOver { from, to, why } => {
            let why = EndKind::named(why).map_or_else(|| brief(why), |kind| kind.to_string());
            paint.warn(&format!("{from} cannot go on ({why}): {to} takes over"))
        }
        Event::TimeoutReached { timeout } => paint.warn(&format!("  {timeout} timeout reached")),
        Event::BaselineUnknown { reason, .. } => {
            let reason = brief(reason);
            paint.dim(&format!("  not known whether the checks passed before any work: {reason}"))
        }
        // The wait that follows has the same reason.
        Event::JudgeUnavailable { reason: NoOpinion::Unreachable { .. }, .. } => return None,
        Event::JudgeUnavailable { check, agent, reason, .. } => {
            let (check, reason) = (brief(check), brief(&reason.to_string()));
            paint.warn(&format!("  ? {check}: no verdict from the judge {agent}: {reason}"))
        }
        Event::CancelRequested => paint.warn("cancelling: ending everything that runs for the goal"),
        Event::PauseRequested { .. } => paint.warn("pausing: ending everything that runs for the goal"),
        Event::ResumeRequested => "resumed".to_owned(),
        Event::CompactRequested { focus } => {
            let focus = focus.as_ref().map(|focus| format!(", keeping: {}", brief(focus)));
            let focus = focus.unwrap_or_default();
            format!("the next attempt starts with a summary of the conversation{focus}")
        }
        Event::Continued { by, .. } => format!("goal {} continues the conversation", by.short()),
        Event::Entered { agent, .. } => paint.warn(&format!("a person took over the session of {agent}")),
        Event::Left { code } => {
            let code = code.filter(|code| *code != 0).map(|code| format!(" (exit code {code})"));
            format!("the person left the session{}", code.unwrap_or_default())
        }
        Event::Restored { replaced, .. } => {
            let replaced = replaced.short();
            paint.dim(&format!("  the files were restored; those they replaced are in commit {replaced}"))
        }
        Event::RetryRequested { budget, model, .. } => {
            let raised: String = budget.iter().map(|change| format!(" · {change}")).collect();
            let model = model.as_ref().map(|model| format!(" · model {}", brief(model)));
            format!("reopened{raised}{}", model.unwrap_or_default())
        }
        Event::Merged { into, commit, .. } => {
            paint.good(&format!("merged into {} at {}", brief(into), commit.short()))
        }
        Event::ClockMoved { by_ms } => {
            let by = show_duration(Duration::from_millis(by_ms.unsigned_abs()));
            paint.dim(&if *by_ms < 0 {
                format!("  the clock was set back by {by}")
            } else {
                format!("  the clock moved ahead by {by}: it was set, or the machine was suspended")
            })
        }
        Event::Notice { text } => paint.dim(&format!("  {}", brief(text))),
        _ => return None,
    })
}

/// How an attempt ended, and what is known about it.
pub fn in_words(end: &End) -> String {
    match end.detail() {
        Some(detail) => format!("{}: {}", end.kind(), brief(&detail)),
        None => end.kind().to_string(),
    }
}

/// Whether a message is a request to Towline, which is printed when it is carried out.
pub fn speaks_to_towline(message: &str) -> bool {
    matches!(LastWords::read(message), Some(Ok(_)))
}

/// Why the model is asked again. If the agent's text repeats the status, it is printed once.
fn why_again(status: Option<u16>, error: &str) -> String {
    match (status, error) {
        (None, "") => "the provider gave no whole answer".to_owned(),
        (None, error) if error.starts_with("the provider ") => error.to_owned(),
        (None, error) => format!("the provider gave no whole answer: {error}"),
        (Some(status), "") => format!("the provider answered {status}"),
        (Some(status), error) if error.contains(&status.to_string()) => error.to_owned(),
        (Some(status), error) => format!("the provider answered {status}: {error}"),
    }
}

/// A moment to come, as seen from another: by the clock, and how far off it is.
fn moment(at: Timestamp, from: Timestamp) -> String {
    let rest = std::time::Duration::try_from(at.duration_since(from)).unwrap_or_default();
    format!("at {} (in {})", clock_time(at, from), show_duration(rest))
}

/// What is worth knowing about a quota.
fn quota(limit: &Limit) -> Option<String> {
    let how = match limit.status {
        LimitStatus::Allowed => return None,
        LimitStatus::Warning => "nearly used up",
        LimitStatus::Rejected => "used up",
    };
    let scope = limit.scope.as_deref().map(|scope| format!(" `{}`", brief(scope))).unwrap_or_default();
    let full = limit.utilization.map(|full| format!(" at {:.0}%", full * 100.0)).unwrap_or_default();
    Some(format!("the quota{scope} is {how}{full}"))
}

/// What a shell means by an exit code that is its own word and not the command's.
const fn of_the_shell(code: i32) -> &'static str {
    match code {
        126 => " (a command that cannot be run)",
        127 => " (a command was not found)",
        _ => "",
    }
}

/// A line that begins a part of the story.
fn section(paint: Paint, name: &str, at: Timestamp, now: Timestamp) -> String {
    format!("{} {}", paint.bold(name), paint.dim(&format!("· {}", clock_time(at, now))))
}

/// The text for a verdict whose confirmation failed.
pub const PASSED_ONLY_WARM: &str = "passed warm, failed in a clean checkout";

/// The verdict where the results do not show it, and what was restored before the checks.
fn verdict_lines(paint: Paint, verdict: &Verdict) -> Vec<String> {
    let paths = verdict.restored.iter();
    let mut lines: Vec<String> = paths
        .map(|path| paint.warn(&format!("  protected, checked as in the base: {}", brief(path))))
        .collect();
    lines.extend(verdict.notes.iter().map(|note| paint.dim(&format!("  note: {}", brief(note)))));
    if verdict.passed_only_warm() {
        lines.push(paint.bad(&format!("  {PASSED_ONLY_WARM}")));
    }
    let failed: Vec<&str> = verdict.failed().map(|check| check.name.as_str()).collect();
    match (verdict.checks.len(), failed.len()) {
        (0 | 1, _) | (_, 0) => {}
        (all, count) => {
            lines
                .push(paint.bad(&format!("  {count} of {all} checks failed: {}", brief(&failed.join(", ")))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_spoken_of_once_it_comes_to_its_end() {
        let limit = |status, scope: Option<&str>, utilization| Limit {
            scope: scope.map(str::to_owned),
            status,
            utilization,
            resets_at: None,
        };
        for (limit, wanted) in [
            (limit(LimitStatus::Allowed, Some("five_hour"), Some(0.5)), None),
            (limit(LimitStatus::Warning, None, Some(0.91)), Some("the quota is nearly used up at 91%")),
            (limit(LimitStatus::Rejected, Some("five_hour"), None), Some("the quota `five_hour` is used up")),
        ] {
            assert_eq!(quota(&limit).as_deref(), wanted);
        }
    }

    #[test]
    fn a_retry_shows_the_answer_once() {
        let answer = "host answered 503 Service Unavailable: busy";
        for (status, error, wanted) in [
            (None, "", "the provider gave no whole answer"),
            (None, "the provider at x was not reached", "the provider at x was not reached"),
            (None, "host cannot be reached", "the provider gave no whole answer: host cannot be reached"),
            (Some(529), "", "the provider answered 529"),
            (Some(529), "overloaded", "the provider answered 529: overloaded"),
            (Some(503), answer, answer),
        ] {
            assert_eq!(why_again(status, error), wanted);
        }
    }
}
