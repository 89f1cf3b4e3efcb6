//! The rules of a pool, for the engine: limits out of the operator's configuration, and what belongs to the projects of its goals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use towline_config::{Config, PREREQUISITES, fill_in_template};
use towline_core::{AgentName, Goal, Inherited, MicroUsd};
use towline_engine::{Limits, PoolRules, ProjectRules, Reads};
use towline_store::GoalRecord;

use crate::context::{Context, LayerFile, PROJECT_FILE, project_folders};
use crate::error::Error;
use crate::inspect::sign_in;
use crate::steady::AtFirst;
use crate::trust::record_for;

/// How many characters of a prerequisite's last message a prompt can quote.
const LONGEST_SUMMARY: usize = 8_000;

/// The rules of a pool. The configuration is read again for each decision; while the operator's file is broken, what was read last
/// counts.
pub struct Rules {
    context: Context,
    /// How many goals may run at once, whatever the configuration has.
    slots: Option<usize>,
    /// The budgets of projects as they were read last without an error: what runs there is still stopped by them.
    budgets: Mutex<BTreeMap<String, Option<MicroUsd>>>,
}

impl Rules {
    /// The rules that hold for this operator. Fails when the configuration is broken already.
    pub fn new(context: &Context, slots: Option<usize>) -> Result<Self, Error> {
        let rules = Self::of(context.steady(AtFirst::Fail), slots);
        rules.context.operators_configuration()?;
        Ok(rules)
    }

    /// The rules for a report. Of a configuration that is broken, what can be understood counts.
    pub(crate) fn for_report(context: &Context, slots: Option<usize>) -> Self {
        Self::of(context.steady(AtFirst::LeaveOut), slots)
    }

    fn of(context: Context, slots: Option<usize>) -> Self {
        Self { context, slots, budgets: Mutex::default() }
    }

    /// The operator's configuration.
    fn operators(&self) -> Config {
        let read = self.context.operators_configuration();
        match read.ok().filter(|_| self.problem().is_none() || self.context.was_read()) {
            Some(operators) => operators,
            None => {
                let files: Vec<LayerFile> = self.context.users_file().into_iter().collect();
                self.context.inspection(&self.context.directory, &files).config
            }
        }
    }

    fn budgets(&self) -> MutexGuard<'_, BTreeMap<String, Option<MicroUsd>>> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolRules for Rules {
    fn limits(&self, now: Timestamp) -> Limits {
        let Config { mut caps, shared_budgets, free_space, .. } = self.operators();
        caps.pool = self.slots.unwrap_or(caps.pool);
        Limits {
            caps,
            day: shared_budgets.day,
            pool: shared_budgets.pool,
            today: day_around(now, &TimeZone::system()),
            free_space,
        }
    }

    fn project(&self, project: &str, agents: &BTreeSet<AgentName>) -> ProjectRules {
        let context = self.context.current();
        let config = match context.configuration(Path::new(project)) {
            Ok(loaded) => loaded.config,
            Err(error) => {
                let budget = self.last_budget(project);
                return ProjectRules { problem: Some(error.why_held()), budget, ..ProjectRules::default() };
            }
        };
        let budget = config.shared_budgets.project;
        self.budgets().insert(project.to_owned(), budget);
        let missing = |agent: &AgentName| {
            let settings = config.agents.get(agent.as_str())?;
            Some((agent.clone(), sign_in::missing_variables(settings, &context.environment)?))
        };
        ProjectRules {
            problem: None,
            budget,
            without_credentials: agents.iter().filter_map(missing).collect(),
        }
    }

    fn last_budget(&self, project: &str) -> Option<MicroUsd> {
        let last = self.budgets().get(project).copied();
        last.unwrap_or_else(|| self.operators().shared_budgets.project)
    }

    fn files(&self, project: Option<&str>) -> BTreeSet<PathBuf> {
        let own = || [self.context.users_file_path(), self.context.environment_file()];
        let Some(project) = project else { return own().into_iter().flatten().collect() };
        let mut files = project_files(project);
        let record = files.iter().find_map(|file| record_for(&self.context, file).filter(|_| file.exists()));
        files.extend(record);
        files
    }

    fn reads(&self) -> &Reads {
        &self.context.reads
    }

    fn problem(&self) -> Option<String> {
        self.context.problem()
    }

    fn inherited(&self, goal: &Goal, prerequisites: &[GoalRecord]) -> Result<Inherited, String> {
        let prompt = match &goal.scheduling.template {
            Some(values) => {
                let mut values = values.clone();
                let about = prerequisites.iter().map(|record| self.quotable(record)).collect();
                values.insert(PREREQUISITES.to_owned(), Value::Array(about));
                Some(fill_in_template(&goal.prompt, &values)?)
            }
            None => None,
        };
        let base = match prerequisites {
            _ if !goal.scheduling.base_is_prerequisite => None,
            [only] => {
                let candidate = only.state.candidate.clone();
                Some(candidate.ok_or_else(|| format!("goal {} has left no commit", only.goal.id.short()))?)
            }
            _ => return Err("its base is its prerequisite, and it has not exactly one".to_owned()),
        };
        Ok(Inherited { prompt, base })
    }
}

impl Rules {
    /// What a template can quote of a goal. All of it is data: nothing in it is taken for a template.
    fn quotable(&self, record: &GoalRecord) -> Value {
        let GoalRecord { goal, state, .. } = record;
        let message = state.last_attempt().map(|attempt| attempt.text.as_str()).unwrap_or_default();
        let summary: String =
            self.context.secrets.mask().text(message).chars().take(LONGEST_SUMMARY).collect();
        json!({
            "id": goal.id.to_string(),
            "title": goal.title,
            "summary": summary,
            "candidate": state.candidate.as_ref().map(ToString::to_string),
            "branch": state.branch,
        })
    }
}

/// The files that the configuration of a project may be in: that of the folder itself, and those above it in its repository, up
/// to the first one that exists.
fn project_files(project: &str) -> BTreeSet<PathBuf> {
    let files = || project_folders(Path::new(project)).map(|folder| folder.join(PROJECT_FILE));
    let found = files().position(|file| file.symlink_metadata().is_ok());
    files().take(found.unwrap_or(0) + 1).collect()
}

/// When the calendar day of this moment began, and when the next one begins.
pub(crate) fn day_around(now: Timestamp, time_zone: &TimeZone) -> (Timestamp, Timestamp) {
    let today = now.to_zoned(time_zone.clone()).date();
    let begins = |date: jiff::civil::Date| date.to_zoned(time_zone.clone()).map(|zoned| zoned.timestamp());
    let tomorrow = today.tomorrow().and_then(begins);
    // Only at the end of all time is there no next day.
    (begins(today).unwrap_or(now), tomorrow.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By its rules, so that no database of time zones is needed.
    fn zone(rules: &str) -> TimeZone {
        TimeZone::posix(rules).expect("a time zone")
    }

    #[test]
    fn a_day_is_as_long_as_the_calendar_has_it_and_made_of_whole_quarters_of_an_hour() {
        let (berlin, havana) = ("CET-1CEST,M3.5.0,M10.5.0/3", "CST5CDT,M3.2.0/0,M11.1.0/1");
        let cases = [
            ("UTC0", "2026-11-18T12:00:00Z", "2026-11-18T00:00:00Z", 24 * 60),
            ("<+0545>-5:45", "2026-11-18T12:00:00Z", "2026-11-17T18:15:00Z", 24 * 60),
            (berlin, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", 23 * 60),
            (berlin, "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", 25 * 60),
            // Half an hour of daylight saving.
            (
                "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
                "2026-10-04T03:00:00Z",
                "2026-10-03T13:30:00Z",
                24 * 60 - 30,
            ),
            // A day that begins at one o'clock, and one whose first hour comes twice.
            (havana, "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", 23 * 60),
            (havana, "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", 25 * 60),
        ];
        for (rules, now, begins, minutes) in cases {
            let at = |text: &str| text.parse::<Timestamp>().expect("a time");
            let (begun, ends) = day_around(at(now), &zone(rules));
            assert_eq!(begun, at(begins), "{rules} {now}");
            assert_eq!(ends.duration_since(begun).as_mins(), minutes, "{rules} {now}");
            assert!([begun, ends].iter().all(|time| time.as_second() % (15 * 60) == 0), "{rules} {now}");
            // Every moment belongs to one day.
            assert_eq!(day_around(ends, &zone(rules)).0, ends, "{rules} {now}");
            let last = ends - jiff::SignedDuration::from_nanos(1);
            assert_eq!(day_around(last, &zone(rules)), (begun, ends), "{rules} {now}");
        }
    }
}
