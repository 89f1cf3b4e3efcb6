//! Requests and replies that only HTTP has. What the command line prints, too, is beside it.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use crate::{GoalLine, OriginReport};

/// A goal to be created. What is left out comes from the configuration of its repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewGoal {
    /// What is to be done.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub prompt: String,
    /// The directory of the repository, as an absolute path.
    pub repository: String,
    /// Commands that must succeed.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Names of agents, in order of preference: at least one.
    #[serde(default)]
    pub agents: Option<Vec<String>>,
    #[serde(default)]
    pub model: Option<String>,
    /// Limits by the name of their axis, such as `{"usd": 5, "wall": "4h"}`.
    #[serde(default)]
    pub budget: BTreeMap<String, Value>,
    /// The commit that the work starts from, or `prerequisite`: the verified commit of the one goal in `after`.
    #[serde(default)]
    pub base: Option<String>,
    /// Whether the checks must fail before any work.
    #[serde(default)]
    pub red_first: bool,
    /// Protected paths that the goal may change.
    #[serde(default)]
    pub unprotect: Vec<String>,
    /// Goals that must come to their end first.
    #[serde(default)]
    pub after: Vec<NewPrerequisite>,
    /// Each step counts as an hour of waiting.
    #[serde(default, deserialize_with = "integer")]
    #[cfg_attr(test, schemars(range(min = -1_000, max = 1_000)))]
    pub priority: i32,
    #[serde(default)]
    pub labels: Vec<String>,
    /// Globs of the files that it changes. Goals of one repository whose globs overlap do not run at the same time.
    #[serde(default)]
    pub touches: Vec<String>,
    /// Anything that only other programs read.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// Where the goal came from.
    #[serde(default)]
    pub origin: Option<OriginReport>,
}

/// A goal that must come to its end first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewPrerequisite {
    /// The goal's id.
    #[cfg_attr(test, schemars(extend("format" = "uuid")))]
    pub goal: String,
    /// `done` or `merged`.
    #[serde(default = "done")]
    #[cfg_attr(test, schemars(extend("enum" = ["done", "merged"])))]
    pub need: String,
}

/// An integer. In JSON that is a number without a fraction, however it is written: some clients send `2.0`.
fn integer<'de, D: Deserializer<'de>, T: TryFrom<i64>>(deserializer: D) -> Result<T, D::Error> {
    let number = Number::deserialize(deserializer)?;
    of_number(&number).ok_or_else(|| D::Error::custom(format!("{number} is out of range")))
}

/// The same for one that may be left out.
fn optional_integer<'de, D: Deserializer<'de>, T: TryFrom<i64>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    let read = |number: Number| {
        of_number(&number).ok_or_else(|| D::Error::custom(format!("{number} is out of range")))
    };
    number.map(read).transpose()
}

#[expect(clippy::cast_possible_truncation, reason = "it is small and has no fraction")]
fn of_number<T: TryFrom<i64>>(number: &Number) -> Option<T> {
    let small = |float: &f64| float.fract() == 0.0 && float.abs() < f64::from(u32::MAX) * 2.0;
    let whole = number.as_i64().or_else(|| number.as_f64().filter(small).map(|float| float as i64));
    T::try_from(whole?).ok()
}

fn done() -> String {
    "done".to_owned()
}

/// A page of goals, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GoalPage {
    pub goals: Vec<GoalLine>,
    /// What to pass as `cursor` for the next page; null on the last one.
    pub cursor: Option<String>,
}

/// A page of a goal's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventPage {
    /// Entries as `logs --json` prints them.
    pub events: Vec<Value>,
    /// What to pass as `cursor` for what follows; null when nothing follows yet: a client that asks again later sends
    /// the last one that it got.
    pub cursor: Option<String>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAnswer {
    pub text: String,
    /// The number of the question; the first open one without it.
    #[serde(default, deserialize_with = "optional_integer")]
    #[cfg_attr(test, schemars(range(max = u32::MAX)))]
    pub question: Option<u32>,
}

/// A message to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub text: String,
}

/// How a goal that has ended is opened again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRetry {
    /// Limits to set (`{"usd": 5}`) or to raise (`{"usd": "+5"}`).
    #[serde(default)]
    pub budget: BTreeMap<String, Value>,
    /// Commands that replace the goal's checks.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Whether a new session is started.
    #[serde(default)]
    pub fresh: bool,
    #[serde(default)]
    pub model: Option<String>,
}

/// How a goal's work is merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMerge {
    /// The branch that gets the work; the one that is checked out without it.
    #[serde(default)]
    pub into: Option<String>,
    /// The goal's commit that is to be merged, from the reply to a dry run. If the goal's work is another one by now, nothing is merged.
    #[serde(default)]
    pub candidate: Option<String>,
    /// The message of the commit.
    #[serde(default)]
    pub message: Option<String>,
    /// Whether one commit with all of the work is made.
    #[serde(default)]
    pub squash: bool,
    /// Whether a merge commit is made in any case.
    #[serde(default)]
    pub no_ff: bool,
    /// Whether work without checks is merged.
    #[serde(default)]
    pub unproven: bool,
    /// Whether nothing is to be changed.
    #[serde(default)]
    pub dry_run: bool,
}

/// The code of a link to the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSignIn {
    /// It works once, for ten minutes.
    pub code: String,
}

/// A session of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageSession {
    /// What to send as `Authorization: Bearer`.
    pub session: String,
}

/// Sessions that have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndedSessions {
    pub sessions: u64,
}

/// A repository or folder with goals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProjectLine {
    pub repository: String,
    /// How many goals it has, by the name of their phase.
    pub goals: BTreeMap<String, u64>,
}

/// Whether the server works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthReport {
    /// `ok`; a server that does not work replies with a problem.
    pub status: String,
    pub version: String,
}

/// A request that failed (RFC 9457), as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem {
    /// The class of the failure, as a URI reference.
    #[serde(rename = "type")]
    pub kind: String,
    /// The class in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What failed, and why.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_may_be_written_with_a_fraction_of_nothing() {
        let question =
            |json: &str| serde_json::from_str::<NewAnswer>(json).map(|answer| answer.question).ok();
        for (json, wanted) in [
            (r#"{"text": "x"}"#, Some(None)),
            (r#"{"text": "x", "question": null}"#, Some(None)),
            (r#"{"text": "x", "question": 2}"#, Some(Some(2))),
            (r#"{"text": "x", "question": 2.0}"#, Some(Some(2))),
            (r#"{"text": "x", "question": 4294967295.0}"#, Some(Some(u32::MAX))),
            (r#"{"text": "x", "question": 4294967296}"#, None),
            (r#"{"text": "x", "question": 2.5}"#, None),
            (r#"{"text": "x", "question": -1}"#, None),
            (r#"{"text": "x", "question": 1e300}"#, None),
            (r#"{"text": "x", "question": "2"}"#, None),
        ] {
            assert_eq!(question(json), wanted, "{json}");
        }
        let goal: NewGoal =
            serde_json::from_str(r#"{"prompt": "x", "repository": "/", "priority": -3.0}"#).expect("a goal");
        assert_eq!(goal.priority, -3);
    }
}
