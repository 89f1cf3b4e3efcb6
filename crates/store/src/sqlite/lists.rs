//! Finding and listing goals, as SQL. Each filter has an index; goals and their states are parsed only where a summary is missing.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use serde::{Deserialize, Serialize};
use towline_core::{AgentName, Goal, GoalId, GoalState, Merge, Phase, Usage};

use super::failure::{Failure, readable};
use super::reads::{self, lease_at, text};
use super::text::{from_json, time_from_text, time_to_text};
use crate::summary::{asks, spent};
use crate::{GoalSummary, Listed, Listing, Order, StoreError, UnreadableGoal};

/// After every character that an id can have.
const BEYOND: char = '~';

/// The dashes of an id are before these of its digits.
const DASHES: [usize; 4] = [8, 12, 16, 20];

/// The digits of a short id.
const SHORT: usize = 8;

const SUMMARY: &str = "SELECT summaries.goal, summaries.created_at, summaries.repository, summaries.about,
        summaries.standing, positions.updated_at,
        COALESCE(json_valid(goals.goal) AND CASE goals.state WHEN '' THEN EXISTS (
            SELECT 1 FROM parts WHERE parts.goal = summaries.goal AND parts.path = '.'
        ) AND NOT EXISTS (
            SELECT 1 FROM parts WHERE parts.goal = summaries.goal AND NOT json_valid(parts.body)
        ) ELSE json_valid(goals.state) END, 0),
        leases.worker, leases.generation, leases.until, positions.last_seq
    FROM summaries LEFT JOIN goals ON goals.id = summaries.goal
        LEFT JOIN positions ON positions.goal = summaries.goal
        LEFT JOIN leases ON leases.goal = summaries.goal";

/// The part of a summary that a goal's creation settles.
#[derive(Serialize, Deserialize)]
pub(super) struct About {
    title: String,
    in_place: bool,
    agent: Option<AgentName>,
}

/// The part of a summary that follows the state.
#[derive(Serialize, Deserialize)]
pub(super) struct Standing {
    phase: Phase,
    agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spent: Option<String>,
    attempts: usize,
    usage: Usage,
    merged: Option<Merge>,
    #[serde(default)]
    asks: bool,
}

impl About {
    pub(super) fn of(goal: &Goal) -> Self {
        Self {
            title: goal.title.clone(),
            in_place: goal.workspace.mode.is_in_place(),
            agent: goal.agents.first().cloned(),
        }
    }
}

impl Standing {
    pub(super) fn of(state: &GoalState) -> Self {
        Self {
            phase: state.phase.clone(),
            agent: state.last_attempt().map(|attempt| attempt.agent.clone()),
            spent: spent(state),
            attempts: state.attempts.len(),
            usage: state.usage(),
            merged: state.merged.clone(),
            asks: asks(state),
        }
    }
}

/// A statement and the values of its placeholders.
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
    limit: usize,
}

impl Query {
    /// Goals by what a person typed: the beginning of an id, or of its last digits, which are in the column `short`.
    pub(super) fn find(given: &str, short_id: &str, limit: usize) -> Self {
        let given = given.to_ascii_lowercase();
        let (id, short) = (dashed(&given), &given);
        let sql = format!(
            "{SUMMARY} WHERE summaries.goal IN (
                SELECT * FROM (SELECT goal FROM summaries WHERE goal >= ?1 AND goal < ?2 ORDER BY goal LIMIT ?5)
                UNION
                SELECT * FROM (SELECT goal FROM summaries WHERE {short_id} >= ?3 AND {short_id} < ?4 ORDER BY {short_id} LIMIT ?5)
            ) ORDER BY summaries.goal"
        );
        let texts = [id.clone(), format!("{id}{BEYOND}"), short.clone(), format!("{short}{BEYOND}")];
        let mut values: Vec<Value> = texts.into_iter().map(Value::from).collect();
        values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        Self { sql, values, limit }
    }

    /// The goals that a listing names.
    pub(super) fn list(listing: &Listing) -> Self {
        let mut query = Self { sql: SUMMARY.to_owned(), values: Vec::new(), limit: listing.limit };
        let mut conditions = Vec::new();
        if let Some(repository) = &listing.repository {
            conditions.push(format!("summaries.repository = {}", query.take(repository.clone())));
        }
        if !listing.phases.is_empty() {
            let names: Vec<String> =
                listing.phases.iter().map(|name| query.take((*name).to_owned())).collect();
            conditions.push(format!("summaries.phase IN ({})", names.join(", ")));
        }
        if let Some(settled) = listing.settled {
            conditions.push(format!("summaries.settled = {}", query.take(i64::from(settled))));
        }
        if let Some(due) = listing.due {
            conditions.push(format!("summaries.wakes_at <= {}", query.take(time_to_text(due))));
        }
        if listing.held {
            conditions.push("summaries.goal IN (SELECT goal FROM leases)".to_owned());
        }
        if listing.asks {
            conditions.push("summaries.asks = 1".to_owned());
        }
        let (direction, past) = match listing.order {
            Order::NewestFirst => ("DESC", '<'),
            Order::OldestFirst => ("ASC", '>'),
        };
        // Few goals are due or held: the plus keeps SQLite from reading all goals in order to find them.
        let plus = if listing.due.is_some() || listing.held { "+" } else { "" };
        let (created_at, goal) = (format!("{plus}summaries.created_at"), format!("{plus}summaries.goal"));
        if let Some(after) = listing.after {
            let (time, id) = (query.take(time_to_text(after.created_at)), query.take(after.id.to_string()));
            // The stored time is the one that the order has, also when it is none.
            let place =
                format!("COALESCE((SELECT created_at FROM summaries AS last WHERE goal = {id}), {time})");
            conditions.push(format!("({created_at}, {goal}) {past} ({place}, {id})"));
        }
        if !conditions.is_empty() {
            query.sql += &format!(" WHERE {}", conditions.join(" AND "));
        }
        query.sql += &format!(" ORDER BY {created_at} {direction}, {goal} {direction}");
        query
    }

    /// Adds a value and returns its placeholder.
    fn take(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    fn read(self, connection: &Connection) -> Result<Vec<Listed>, Failure> {
        let mut statement = connection.prepare_cached(&self.sql)?;
        let mut rows = statement.query(params_from_iter(self.values))?;
        let mut listed = Vec::new();
        while listed.len() < self.limit
            && let Some(row) = rows.next()?
        {
            listed.extend(readable(list_row(connection, row))?);
        }
        Ok(listed)
    }
}

pub(super) fn find(connection: &Connection, given: &str, limit: usize) -> Result<Vec<Listed>, Failure> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let found = Query::find(given, "short", limit).read(connection)?;
    if !found.is_empty() {
        return Ok(found);
    }
    // No index helps where the column is damaged.
    Query::find(given, "substr(goal, -8)", limit).read(connection)
}

pub(super) fn list(connection: &Connection, listing: &Listing) -> Result<Vec<Listed>, Failure> {
    Query::list(listing).read(connection)
}

/// The beginning of an id as it is stored, for digits without dashes; anything else as it is.
fn dashed(given: &str) -> String {
    if given.contains('-') {
        return given.to_owned();
    }
    let mut dashed = String::new();
    for (place, digit) in given.chars().enumerate() {
        if DASHES.contains(&place) {
            dashed.push('-');
        }
        dashed.push(digit);
    }
    dashed
}

/// The last digits of an id.
pub(super) fn short(id: &str) -> &str {
    &id[id.len() - SHORT..]
}

/// The row of a goal, whatever can be read of it but its id.
fn list_row(connection: &Connection, row: &Row<'_>) -> Result<Listed, Failure> {
    let id: GoalId = text(row, 0)?.parse().map_err(|why| Failure::unreadable("a goal's id", why))?;
    let cached = if row.get(6)? { summary(id, row).ok() } else { None };
    if let Some(summary) = cached {
        return Ok(Listed::Goal(Box::new(summary)));
    }
    match reads::load(connection, id).map_err(|failure| failure.of_goal(id)) {
        Ok(record) => Ok(Listed::Goal(Box::new(GoalSummary::of(&record)))),
        Err(Failure::Refused(StoreError::Unreadable { goal, why })) => {
            let created_at = text(row, 1).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
            Ok(Listed::Unreadable(UnreadableGoal { id: goal, created_at, why }))
        }
        Err(failure) => Err(failure),
    }
}

/// The summary as it is stored. Failing is no harm: it can be made from the goal.
fn summary(id: GoalId, row: &Row<'_>) -> Result<GoalSummary, Failure> {
    let what = "the summary";
    let about: About = from_json(what, text(row, 3)?)?;
    let standing: Standing = from_json(what, text(row, 4)?)?;
    // Without the end of its log the goal cannot be loaded, and is not to be listed as if it could.
    row.get::<_, u64>(10)?;
    Ok(GoalSummary {
        id,
        title: about.title,
        repository: row.get(2)?,
        in_place: about.in_place,
        phase: standing.phase,
        agent: standing.agent.or(about.agent),
        spent: standing.spent,
        attempts: standing.attempts,
        usage: standing.usage,
        merged: standing.merged,
        asks: standing.asks,
        created_at: time_from_text(what, text(row, 1)?)?,
        updated_at: time_from_text(what, text(row, 5)?)?,
        lease: lease_at(id, row, 7)?,
    })
}
