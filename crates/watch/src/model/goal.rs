//! The goal that is open: its report, its checks and its log.

use jiff::Timestamp;
use serde_json::Value;
use towline_api::GoalReport;

use super::Transcript;
use super::transcript::PAGE;
use crate::feed::FeedNews;

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckState {
    Running,
    Passed,
    Failed,
}

/// The goal that is open.
pub(crate) struct GoalView {
    pub(crate) id: String,
    pub(crate) report: Option<Box<GoalReport>>,
    /// None until it is known how long the log is.
    pub(crate) transcript: Option<Transcript>,
    /// The message that the agent is writing.
    pub(crate) writing: String,
    /// Its checks as they went last.
    pub(crate) checks: Vec<(String, CheckState)>,
    /// What was searched for last.
    pub(crate) search: String,
}

impl GoalView {
    /// A goal of which nothing was read yet.
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            report: None,
            transcript: None,
            writing: String::new(),
            checks: Vec::new(),
            search: String::new(),
        }
    }

    /// Takes over a report. Returns the place after which to follow the log, once.
    pub(crate) fn know(&mut self, report: &GoalReport, last: Option<u64>) -> Option<u64> {
        if self.report.is_none() {
            let verdict = report.attempts.iter().rev().find_map(|attempt| attempt.verdict.as_ref());
            let of = |met| if met { CheckState::Passed } else { CheckState::Failed };
            let checks = verdict.into_iter().flat_map(|verdict| &verdict.checks);
            self.checks = checks.map(|check| (check.name.clone(), of(check.met))).collect();
        }
        self.report = Some(Box::new(report.clone()));
        let after = last.filter(|_| self.transcript.is_none())?.saturating_sub(PAGE);
        self.transcript = Some(Transcript::after(after));
        Some(after)
    }

    /// Takes what the stream of the log brings.
    pub(crate) fn take(&mut self, news: FeedNews, now: Timestamp) {
        match news {
            FeedNews::Logged(json) => {
                let Ok(entry) = serde_json::from_str::<Value>(&json) else { return };
                self.follow_checks(&entry["event"]);
                if let Some(transcript) = &mut self.transcript {
                    transcript.take(&entry, now);
                }
            }
            FeedNews::Writing(text) => self.writing = text,
            // What was being written is not known any more.
            FeedNews::Opened | FeedNews::Lost(_) => self.writing.clear(),
            // The log comes again from its beginning.
            FeedNews::Restarted => {
                self.writing.clear();
                self.transcript = Some(Transcript::after(0));
            }
            FeedNews::Removed(_) => {}
        }
    }

    fn follow_checks(&mut self, event: &Value) {
        let (name, state) = match event["kind"].as_str() {
            Some("check_started") => (&event["name"], CheckState::Running),
            Some("check_finished") => {
                let result = &event["result"];
                let is_met = result["met"] == true;
                (&result["name"], if is_met { CheckState::Passed } else { CheckState::Failed })
            }
            Some("checks_replaced") => return self.checks.clear(),
            _ => return,
        };
        let name = name.as_str().unwrap_or_default();
        match self.checks.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = state,
            None => self.checks.push((name.to_owned(), state)),
        }
    }
}
