//! The board as lines for a screen of a given size: at most a third of it, and one line where there is little room.

use jiff::Timestamp;
use towline_app::report::level_words;
use towline_core::{AttemptNo, EndKind, Phase, StopWhy, Stopping};
use towline_terminal::{
    Paint, Tone, clock_time, columns, cut, how_to_answer, named, printable, sign, wrapped,
};

use super::{Board, RunningCheck};

/// A screen with fewer columns gets one line.
const NARROW: usize = 40;
/// Between facts of one line.
const BETWEEN: &str = " · ";
/// How many columns of a check's name are shown.
const NAME: usize = 24;
/// How many lines of the message that is being written are shown.
const WRITING: usize = 3;
/// How many verdicts of a check are shown.
const HISTORY: usize = 8;

/// What is drawn upon.
#[derive(Debug, Clone, Copy)]
pub struct Canvas {
    pub width: usize,
    pub height: usize,
    /// The time that everything is counted from.
    pub now: Timestamp,
    pub paint: Paint,
}

/// How important a line is when there is no room for all: the first stays longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    State,
    Doing,
    Checks,
    Budget,
    Title,
    Output,
}

impl Board {
    /// The block: from the title down to the budget, or a single line.
    pub fn lines(&self, canvas: &Canvas) -> Vec<String> {
        let room = canvas.height / 3;
        // A tab is as wide as it likes.
        let fit = |line: String| cut(&line.replace(['\t', '\n'], " "), canvas.width);
        if canvas.width < NARROW || room < 3 {
            return vec![fit(self.single_line(canvas))];
        }
        let mut lines =
            vec![(Weight::Title, self.title_line(canvas)), (Weight::State, self.state_line(canvas))];
        lines.extend(self.doing_lines(canvas).into_iter().map(|line| (Weight::Doing, line)));
        let output = self.check_output_line(canvas.paint).into_iter().chain(self.writing_lines(canvas));
        lines.extend(output.map(|line| (Weight::Output, line)));
        lines.push((Weight::Checks, self.checks_line(canvas)));
        lines.push((Weight::Budget, self.budget_line(canvas)));
        while lines.len() > room {
            let Some(least) = lines.iter().map(|(weight, _)| *weight).max() else { break };
            let place = lines.iter().rposition(|(weight, _)| *weight == least).unwrap_or(0);
            lines.remove(place);
        }
        lines.into_iter().map(|(_, line)| fit(line)).collect()
    }

    fn single_line(&self, canvas: &Canvas) -> String {
        let mut line = canvas.paint.with(self.tone(), self.phase.name());
        if let Some(attempt) = self.attempt() {
            let limit = self.state.budget.attempts.map(|limit| format!("/{limit}")).unwrap_or_default();
            line.push_str(&format!(" {attempt}{limit}"));
        }
        let rest = canvas.width.saturating_sub(columns(&line) + columns(BETWEEN));
        let doing = self.doing_lines(&Canvas { width: rest, ..*canvas }).into_iter().next();
        if let Some(doing) = doing.filter(|doing| !doing.is_empty()) {
            line.push_str(&canvas.paint.dim(BETWEEN));
            line.push_str(&doing);
        }
        line
    }

    fn title_line(&self, canvas: &Canvas) -> String {
        let paint = canvas.paint;
        let mut right = self.goal.id.short();
        // Before an agent has started, there is nothing to trust.
        if self.state.attempts.iter().any(|attempt| attempt.started) {
            right = format!("{}{BETWEEN}{right}", level_words(self.state.confined_by()));
        }
        let title = paint.bold(self.goal.title.lines().next().unwrap_or_default());
        let title = cut(&title, canvas.width.saturating_sub(columns(&right) + 10));
        let line = format!("{} {title} {}", paint.dim("──"), paint.dim(&format!("── {right} ")));
        let left = canvas.width.saturating_sub(columns(&line));
        format!("{line}{}", paint.dim(&"─".repeat(left)))
    }

    fn state_line(&self, canvas: &Canvas) -> String {
        let mut facts = vec![format!(" {}", ticking(self.since, canvas.now))];
        if let Some(attempt) = self.attempt() {
            facts.push(format!("attempt {attempt}"));
        }
        let last = self.state.last_attempt();
        if let Some(turn) = last.map(|attempt| attempt.turns).filter(|turns| *turns > 0) {
            facts.push(format!("turn {turn}"));
        }
        let agent = last.map(|attempt| &attempt.agent).or_else(|| self.goal.agents.first());
        if let Some(agent) = agent {
            let model = last.and_then(|attempt| attempt.model.as_deref()).or(self.goal.model.as_deref());
            let model = model.map(|model| format!(" ({model})")).unwrap_or_default();
            facts.push(format!("{agent}{model}"));
        }
        format!("{}{}", canvas.paint.with(self.tone(), self.phase.name()), printable(&facts.join(BETWEEN)))
    }

    /// The attempt that it is all about now.
    fn attempt(&self) -> Option<AttemptNo> {
        match &self.phase {
            Phase::Running { attempt } | Phase::Checking { attempt } => Some(*attempt),
            _ => self.state.last_attempt().map(|attempt| attempt.n),
        }
    }

    const fn tone(&self) -> Tone {
        match &self.phase {
            Phase::Queued | Phase::Preparing | Phase::Running { .. } | Phase::Checking { .. } => Tone::Bold,
            Phase::Done => Tone::Good,
            Phase::Failed { .. } => Tone::Bad,
            _ => Tone::Warn,
        }
    }

    fn doing_lines(&self, canvas: &Canvas) -> Vec<String> {
        let wakes = || self.state.wakes_at(self.goal.id).or_else(|| self.phase.until());
        match &self.phase {
            Phase::Queued => vec![printable(self.hold.as_deref().unwrap_or("about to start"))],
            Phase::Preparing if self.is_prepared => vec!["running the checks before any work".to_owned()],
            Phase::Preparing => vec!["creating the workspace".to_owned()],
            Phase::Running { .. } => vec![self.work_line(canvas)],
            Phase::Checking { .. } => vec![self.check_line(canvas)],
            Phase::Sleeping { reason, .. } => vec![goes_on(wakes(), canvas, reason)],
            Phase::Limited { guessed, .. } => {
                let whose = if self.state.absent_judge.is_some() { " of a judge" } else { "" };
                let guess = if *guessed { "; the time is a guess" } else { "" };
                vec![goes_on(wakes(), canvas, &format!("the quota{whose} is used up{guess}"))]
            }
            Phase::Blocked { .. } => self.question_lines(canvas),
            Phase::Stopping(stopping) => vec![printable(&why_stopping(stopping))],
            phase => {
                let why = self.state.why(phase);
                let why = why.trim_start_matches([':', ' ']);
                vec![printable(why.lines().next().unwrap_or_default())]
            }
        }
    }

    /// What the agent does: its newest tool, or its message.
    fn work_line(&self, canvas: &Canvas) -> String {
        let since = |since: Timestamp| format!("{BETWEEN}{}", ticking(since, canvas.now));
        let Some((tool, begun)) = self.tools.newest() else {
            let doing = if self.writing.is_empty() { "thinking" } else { "writing" };
            let note = printable(self.note.as_deref().unwrap_or(doing));
            return format!("{note}{}", canvas.paint.dim(&since(self.heard)));
        };
        let mut tail = since(*begun);
        match self.tools.count() {
            1 => {}
            count => tail.push_str(&format!("{BETWEEN}{} more at work", count - 1)),
        }
        let title = named(tool.tool, &tool.name, tool.title.lines().next().unwrap_or_default());
        let title = cut(&printable(&title), canvas.width.saturating_sub(columns(&tail) + 2));
        format!("{} {title}{}", canvas.paint.dim(&sign(tool.tool).to_string()), canvas.paint.dim(&tail))
    }

    fn check_line(&self, canvas: &Canvas) -> String {
        let Some(RunningCheck { name, since, .. }) = &self.check else {
            return "creating a clean checkout".to_owned();
        };
        let tail = format!("{BETWEEN}{}", ticking(*since, canvas.now));
        let check = self.goal.checks.iter().find(|check| check.name == *name);
        let what = check.map(|check| check.describe()).filter(|what| !what.contains(name.as_str()));
        let what = what.map(|what| format!(": {what}")).unwrap_or_default();
        let line = format!("check {}{}", printable(name), canvas.paint.dim(&what));
        let room = canvas.width.saturating_sub(columns(&tail));
        format!("{}{}", cut(&line, room), canvas.paint.dim(&tail))
    }

    /// The end of the message that the agent is writing.
    fn writing_lines(&self, canvas: &Canvas) -> Vec<String> {
        let room = canvas.width.saturating_sub(2);
        let lines: Vec<String> =
            self.writing.lines().flat_map(|line| wrapped(line.trim_end(), room)).collect();
        let shown = lines.iter().skip(lines.len().saturating_sub(WRITING));
        shown.map(|line| printable(&format!("  {line}"))).collect()
    }

    /// The last line that the running check has printed.
    fn check_output_line(&self, paint: Paint) -> Option<String> {
        let check = self.check.as_ref().filter(|_| matches!(self.phase, Phase::Checking { .. }))?;
        Some(paint.dim(&format!("  {}", check.last_line.as_ref()?)))
    }

    /// What is asked, how to answer it, and what happens otherwise.
    fn question_lines(&self, canvas: &Canvas) -> Vec<String> {
        let Phase::Blocked { question, until, .. } = &self.phase else { return Vec::new() };
        let asked = self.state.question(*question).map(|question| &question.ask);
        let title = asked.map(|ask| ask.title()).unwrap_or_default();
        let mut lines = title.lines();
        let first = lines.next().unwrap_or_default();
        let more = if lines.next().is_some() { " …" } else { "" };
        let is_one_of_several = self.state.open_questions().nth(1).is_some();
        let command = how_to_answer(self.goal.id, is_one_of_several.then_some(*question));
        let mut how = format!("answer with: {command}");
        if let Some(until) = until {
            let default = asked.and_then(|ask| ask.default.as_deref());
            let otherwise = default.map_or_else(
                || "then it gives up".to_owned(),
                |default| format!("then it takes `{default}`"),
            );
            let rest = ticking(canvas.now, *until);
            how.push_str(&canvas.paint.dim(&format!("{BETWEEN}{rest} left, {otherwise}")));
        }
        vec![canvas.paint.warn(&format!("? {first}{more}")), how]
    }

    /// Each check with how it went, verdict by verdict.
    fn checks_line(&self, canvas: &Canvas) -> String {
        let paint = canvas.paint;
        if self.goal.checks.is_empty() {
            return paint.dim("no checks: the goal can end as unproven at best");
        }
        let mut line = paint.dim("checks");
        for (place, check) in self.goal.checks.iter().enumerate() {
            let left = self.goal.checks.len() - place;
            let more = format!("  +{left} more");
            let cell = self.check_cell(paint, &check.name);
            let reserve = if left == 1 { 0 } else { more.len() };
            if place > 0 && columns(&line) + 2 + columns(&cell) + reserve > canvas.width {
                line.push_str(&paint.dim(&more));
                break;
            }
            line.push_str(if place == 0 { " " } else { "  " });
            line.push_str(&cell);
        }
        line
    }

    fn check_cell(&self, paint: Paint, name: &str) -> String {
        let mut cell = format!("{} ", cut(&printable(name), NAME));
        let history = self.history(name);
        if history.len() > HISTORY {
            cell.push_str(&paint.dim("…"));
        }
        for met in history.iter().skip(history.len().saturating_sub(HISTORY)) {
            cell.push_str(&if *met { paint.good("✓") } else { paint.bad("✗") });
        }
        let runs = self.check.as_ref().is_some_and(|running| running.name == name);
        let word = match history.last() {
            _ if runs => "running",
            None => "not run yet",
            Some(true) => "passed",
            Some(false) => "failed",
        };
        let gap = if history.is_empty() { "" } else { " " };
        format!("{cell}{gap}{}", if runs { paint.warn(word) } else { paint.dim(word) })
    }

    /// Whether the check held, in each verdict so far.
    fn history(&self, name: &str) -> Vec<bool> {
        let being_reached = match &self.phase {
            Phase::Checking { attempt } => Some(*attempt),
            _ => None,
        };
        let before = self.state.attempts.iter().filter(|attempt| Some(attempt.n) != being_reached);
        let results = before.filter_map(|attempt| attempt.verdict.as_ref());
        let results = results.filter_map(|verdict| verdict.checks.iter().find(|check| check.name == name));
        let mut history: Vec<bool> = results.map(|result| result.met).collect();
        if being_reached.is_some() {
            history.extend(self.results.iter().filter(|(known, _)| known == name).map(|(_, met)| *met));
        }
        history
    }
}

fn why_stopping(stopping: &Stopping) -> String {
    match &stopping.why {
        StopWhy::Cancel => {
            "cancelling: stopping everything that runs; Ctrl-C again stops it at once".to_owned()
        }
        StopWhy::Pause { .. } => "pausing: stopping everything that runs".to_owned(),
        StopWhy::Resume => "resuming: first stopping what the pause interrupted".to_owned(),
        StopWhy::SharedBudget => "stopping: a budget that goals share is spent".to_owned(),
        StopWhy::Auth { .. } => format!("{}: stopping the agent", EndKind::Auth),
        StopWhy::Budget { axis } => format!("budget {axis} spent: stopping everything that runs"),
        StopWhy::Asked => {
            "waiting for an answer that may take long: stopping the agent until then".to_owned()
        }
        StopWhy::Timeout { timeout } => format!("{timeout} timeout reached: stopping the agent"),
    }
}

/// When it continues by itself, counted down, and why not now.
fn goes_on(at: Option<Timestamp>, Canvas { now, paint, .. }: &Canvas, why: &str) -> String {
    let when = match at {
        Some(at) if at > *now => format!("in {}, at {}", ticking(*now, at), clock_time(at, *now)),
        _ => "now".to_owned(),
    };
    format!("continues {when}{}", paint.dim(&format!("{BETWEEN}{why}")))
}

/// The time between two moments in whole seconds, by its two largest units. All that is shown changes with the second
/// of the clock, so that it changes at once.
pub(super) fn ticking(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.as_second().saturating_sub(from.as_second()).max(0);
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m {rest:02}s"),
        (..24, _) => format!("{hours}h {minutes:02}m"),
        _ => format!("{}d {:02}h", hours / 24, hours % 24),
    }
}
