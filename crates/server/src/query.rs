//! What comes with a request: parameters of the query and of the path, and the body. All of it is parsed into types here.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::body::Bytes;
use axum::http::Uri;
use serde::de::DeserializeOwned;
use serde_json::Value;
use towline_core::{AttemptNo, BudgetChange};

use crate::problem::Problem;

/// How many rows a page has, and how many it may have.
const PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;
/// The length of an id with its dashes.
const LONGEST_ID: usize = 36;

/// The parameters of a query.
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the parameters. Those that the route does not know are refused, so that a mistyped filter does not list everything.
    pub(crate) fn of(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let given: BTreeMap<String, String> =
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                Err(Problem::bad_request(format!("unknown parameter `{name}`")).hint(match known {
                    [] => "this route takes none".to_owned(),
                    known => format!("this route takes: {}", known.join(", ")),
                }))
            }
            None => Ok(Self(given)),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A place in a list. An empty one is the beginning, so that the first page is asked for like the others.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.get("cursor").filter(|cursor| !cursor.is_empty())
    }

    /// A parameter of this type.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        self.get(name).map(|value| parse(name, value)).transpose()
    }

    /// A place in a log.
    pub(crate) fn place(&self) -> Result<Option<u64>, Problem> {
        self.cursor().map(|value| parse("cursor", value)).transpose()
    }

    /// How many rows are wanted.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        match self.parsed("limit")? {
            None => Ok(PAGE),
            Some(limit @ 1..=LARGEST_PAGE) => Ok(limit),
            Some(_) => Err(Problem::bad_request(format!("`limit` is a number from 1 to {LARGEST_PAGE}"))),
        }
    }
}

fn parse<T: FromStr>(name: &str, value: &str) -> Result<T, Problem> {
    value.parse().map_err(|_| Problem::bad_request(format!("`{name}` must be a number")))
}

/// An id of a goal, or a part of one.
pub(crate) fn part_of_id(text: &str) -> Result<&str, Problem> {
    let is_letter = |c: char| c == '-' || c.is_ascii_hexdigit();
    let is_part = text.len() <= LONGEST_ID
        && text.starts_with(|c: char| c.is_ascii_hexdigit())
        && text.chars().all(is_letter);
    is_part.then_some(text).ok_or_else(|| Problem::bad_request("this is not the id of a goal"))
}

/// The attempt that a path names.
pub(crate) fn attempt_number(text: &str) -> Result<AttemptNo, Problem> {
    let number = text.parse().ok().and_then(AttemptNo::new);
    number.ok_or_else(|| Problem::bad_request("this is not the number of an attempt"))
}

/// The body as JSON of this type.
pub(crate) fn json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::bad_request(format!("the body is wrong: {error}")))
}

/// The body as JSON of this type; what is left out has its defaults.
pub(crate) fn json_or_default<T: DeserializeOwned + Default>(body: &Bytes) -> Result<T, Problem> {
    if body.is_empty() { Ok(T::default()) } else { json(body) }
}

/// Limits by the name of their axis.
pub(crate) fn budget(limits: &BTreeMap<String, Value>) -> Result<Vec<BudgetChange>, Problem> {
    let change = |(axis, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{axis}={value}").parse().map_err(|error| Problem::unprocessable(format!("budget: {error}")))
    };
    limits.iter().map(change).collect()
}
