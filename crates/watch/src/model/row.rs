//! A goal in the list.

use jiff::Timestamp;
use towline_api::{GoalLine, GoalReport, HoldReport, UsageReport};
use towline_core::show_duration;
use towline_terminal::{Group, Status, brief, mask, reason, short_id, status};

/// What the list shows of a goal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) repository: String,
    pub(crate) phase: String,
    pub(crate) reason: Option<String>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) agent: String,
    pub(crate) attempts: usize,
    pub(crate) cost: String,
    /// Whether a branch has the work.
    pub(crate) is_merged: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl Row {
    /// How its phase is shown.
    pub(crate) fn status(&self) -> Status<'_> {
        status(&self.phase)
    }

    /// The status, with the time that is left where the goal goes on by itself.
    pub(crate) fn label(&self, now: Timestamp) -> String {
        let label = self.status().label;
        match self.until.filter(|_| self.counts_down()) {
            Some(until) => format!("{label} {}", left(until, now)),
            None => self.merged_label().unwrap_or(label).to_owned(),
        }
    }

    fn merged_label(&self) -> Option<&'static str> {
        (self.is_merged && self.phase == "done").then_some("merged")
    }

    /// Whether its label changes with time.
    pub(crate) fn counts_down(&self) -> bool {
        self.until.is_some() && matches!(self.phase.as_str(), "limited" | "sleeping")
    }

    /// Why the goal is where it is; empty where the label is enough.
    pub(crate) fn why(&self, hold: Option<&HoldReport>) -> String {
        brief(&self.whole_reason(hold))
    }

    /// The same with all of its lines.
    pub(crate) fn whole_reason(&self, hold: Option<&HoldReport>) -> String {
        reason(&self.phase, self.reason.as_deref(), hold.map(|hold| hold.text.as_str()))
    }

    /// Whether somebody should look at it: it stopped, and not long ago.
    pub(crate) fn stopped_lately(&self, now: Timestamp) -> bool {
        const LATELY: i64 = 24 * 60 * 60;
        match self.phase.as_str() {
            "failed" => now.as_second() - self.updated_at.as_second() < LATELY,
            _ => self.status().group == Group::Needs,
        }
    }

    /// Another failure of the same goal is another thing to see.
    pub(crate) fn seen_as(&self) -> String {
        format!("{}:{}:{}", self.id, self.phase, self.attempts)
    }

    /// Whether the filter finds it.
    pub(crate) fn matches(&self, filter: &str) -> bool {
        let label = self.status().label;
        let short = short_id(&self.id);
        [&self.title, &self.repository, &self.agent, label, &self.phase, &short]
            .iter()
            .any(|text| text.to_lowercase().contains(filter))
    }
}

/// The time until then, as it counts down.
pub(crate) fn left(until: Timestamp, now: Timestamp) -> String {
    let seconds = u64::try_from(until.as_second() - now.as_second()).unwrap_or(0);
    match seconds {
        0 => "now".to_owned(),
        seconds @ ..10 => format!("{seconds}s"),
        seconds => show_duration(std::time::Duration::from_secs(seconds)),
    }
}

/// A command on one line, in which its line ends can be seen.
pub(crate) fn with_line_ends(command: &str) -> String {
    // Secrets of several lines are found while they have them.
    mask().text(command.trim()).replace("\r\n", "\n").replace('\n', "⏎")
}

/// An amount of money.
pub(crate) fn dollars(usage: &UsageReport) -> String {
    let sign = if usage.estimated { "~" } else { "" };
    match usage.cost_usd {
        None => "unknown".to_owned(),
        Some(0.0) => "–".to_owned(),
        Some(cost) => format!("{sign}${cost:.2}{}", if usage.partial { "+" } else { "" }),
    }
}

impl From<GoalLine> for Row {
    fn from(line: GoalLine) -> Self {
        Self {
            cost: dollars(&line.usage),
            id: line.id,
            title: line.title,
            repository: line.repository.unwrap_or_default(),
            phase: line.phase,
            reason: line.reason,
            until: line.until,
            agent: line.agent.unwrap_or_default(),
            attempts: line.attempts,
            is_merged: line.merged.is_some(),
            created_at: line.created_at,
            updated_at: line.updated_at,
        }
    }
}

impl From<&GoalReport> for Row {
    fn from(report: &GoalReport) -> Self {
        let newer = |merged: &str| report.candidate.as_ref().is_some_and(|candidate| candidate != merged);
        Self {
            cost: dollars(&report.usage),
            id: report.id.clone(),
            title: report.title.clone(),
            repository: report.repository.clone(),
            phase: report.phase.clone(),
            reason: report.reason.clone(),
            until: report.until,
            agent: report.agent.clone().unwrap_or_default(),
            attempts: report.attempts.len(),
            is_merged: report.merged.as_ref().is_some_and(|merged| !newer(&merged.candidate)),
            created_at: report.created_at,
            updated_at: report.updated_at,
        }
    }
}
