//! Spend and the state of accounts, as SQL: written with the state and the events that report it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, Row, params, params_from_iter};
use towline_core::{Account, AccountStatus, AgentName, Envelope, GoalState, MicroUsd};

use super::failure::{Failure, readable};
use super::reads::text;
use super::text::{from_json, time_from_text, time_to_text, to_json};
use crate::ledger::{
    AccountReport, Amounts, COSTS_COUNTED, COSTS_LOOKED_AT, SpendBy, Spender, Spending, SpentByProject,
    account_reports, changed_usage, median, quarter,
};

/// Every agent with an attempt that ended. Each takes one step in the index.
pub(super) const AGENTS: &str = "WITH RECURSIVE agents (agent) AS (
        SELECT MIN(agent) FROM attempts WHERE ended_at IS NOT NULL
        UNION ALL
        SELECT (SELECT MIN(agent) FROM attempts WHERE ended_at IS NOT NULL AND agent > agents.agent)
        FROM agents WHERE agent IS NOT NULL
    )
    SELECT agent FROM agents WHERE agent IS NOT NULL";

pub(super) const LAST_COSTS: &str = "SELECT (SELECT MAX(CAST(TOTAL(cost) + TOTAL(estimate) AS INTEGER), 0)
        FROM ledger WHERE ledger.goal = attempts.goal AND ledger.attempt = attempts.n)
    FROM attempts WHERE agent = ?1 AND ended_at IS NOT NULL ORDER BY ended_at DESC, goal, n LIMIT ?2";

/// Triggers on the ledger write what these two read.
pub(super) const SPENT_DURING: &str = "SELECT project, CAST(TOTAL(amount) AS INTEGER) FROM spent
    WHERE quarter >= ?1 AND quarter < ?2 GROUP BY project";

pub(super) const SPENT_IN_ALL: &str = "SELECT project, CAST(amount AS INTEGER) FROM spent WHERE quarter = ''";

/// What earlier rows of an attempt did not know was nothing, if a later one knows all of it.
const KNOWN_LATER: &str = "UPDATE ledger SET
        input = IIF(input IS NULL AND ?3, 0, input), output = IIF(output IS NULL AND ?4, 0, output),
        cache_read = IIF(cache_read IS NULL AND ?5, 0, cache_read),
        cache_write = IIF(cache_write IS NULL AND ?6, 0, cache_write), cost = IIF(cost IS NULL AND ?7, 0, cost)
    WHERE goal = ?1 AND attempt = ?2
        AND (input IS NULL OR output IS NULL OR cache_read IS NULL OR cache_write IS NULL OR cost IS NULL)";

/// The sums of all amounts. Unlike `SUM`, `TOTAL` cannot overflow and takes a value that is no number for nothing.
fn sums() -> String {
    let sum = |column| format!("CASE WHEN COUNT({column}) THEN CAST(TOTAL({column}) AS INTEGER) END, ");
    let known: String = ["input", "output", "cache_read", "cache_write", "cost"].map(sum).concat();
    // Where no tokens are added, no cost is missing.
    known
        + "CAST(TOTAL(estimate) AS INTEGER), COALESCE(MAX(input IS NULL), 0), \
           COALESCE(MAX(cost IS NULL AND estimate = 0 AND (input IS NULL OR input <> 0 OR output <> 0 \
               OR COALESCE(cache_read, 0) <> 0 OR COALESCE(cache_write, 0) <> 0)), 0)"
}

/// What the events of an append report about accounts, put into words before the writer's turn.
pub(super) struct AccountRow {
    agent: String,
    /// None for the one that the goal names for the agent.
    account: Option<String>,
    started_at: String,
    status: String,
    /// What began before a limit was known shows nothing about it.
    is_open: bool,
    at: String,
}

impl AccountRow {
    pub(super) fn of(events: &[Envelope], state: &GoalState) -> Result<Vec<Self>, Failure> {
        let reported = account_reports(events, state);
        reported
            .map(|AccountReport { agent, account, started_at, status, at }| {
                Ok(Self {
                    agent: agent.to_string(),
                    account: account.map(str::to_owned),
                    started_at: time_to_text(started_at),
                    status: to_json("an account", &status)?,
                    is_open: status == AccountStatus::Open,
                    at: time_to_text(at),
                })
            })
            .collect()
    }

    /// Writes it, if it is another than the one that is known.
    pub(super) fn write(&self, connection: &Connection, goal: &str) -> Result<(), Failure> {
        connection
            .prepare_cached(
                "INSERT INTO accounts (name, agent, status, updated_at)
                 SELECT account, ?2, ?4, ?5 FROM (
                     SELECT COALESCE(
                         ?3, (SELECT value FROM json_each(goals.goal, '$.accounts') WHERE key = ?2), ?2
                     ) AS account FROM goals WHERE id = ?1
                 )
                 WHERE NOT (?6 AND EXISTS (SELECT 1 FROM accounts WHERE name = account AND updated_at > ?7))
                 ON CONFLICT (name) DO UPDATE
                 SET agent = excluded.agent, status = excluded.status, updated_at = excluded.updated_at
                 WHERE status <> excluded.status",
            )?
            .execute(params![
                goal,
                self.agent,
                self.account,
                self.status,
                self.at,
                self.is_open,
                self.started_at
            ])?;
        Ok(())
    }
}

/// Brings the rows of attempts and judges in line with what they used, which `before` may have known already.
pub(super) fn follow(
    connection: &Connection,
    goal: &str,
    state: &GoalState,
    before: Option<&GoalState>,
    at: &str,
) -> Result<(), Failure> {
    changed_usage(state, before).try_for_each(|spender| write_usage(connection, goal, spender, at))
}

/// What earlier quarters of an hour have is left alone, so that their rows and this one add up to what was used.
fn write_usage(connection: &Connection, goal: &str, spender: Spender<'_>, at: &str) -> Result<(), Failure> {
    let n = spender.number;
    let sql = format!("SELECT {} FROM ledger WHERE goal = ?1 AND attempt = ?2 AND quarter <> ?3", sums());
    let others = connection.prepare_cached(&sql)?.query_row(params![goal, n, at], |row| amounts(row, 0))?;
    let Amounts { input, output, cache_read, cache_write, cost, estimate, .. } = spender.amounts - others;
    connection.prepare_cached(KNOWN_LATER)?.execute(params![
        goal,
        n,
        input.is_some(),
        output.is_some(),
        cache_read.is_some(),
        cache_write.is_some(),
        cost.is_some()
    ])?;
    connection
        .prepare_cached(
            "INSERT INTO ledger
             SELECT ?1, ?2, ?3, repository,
                 COALESCE(?12, (SELECT account FROM attempts WHERE attempts.goal = ?1 AND n = ?2)),
                 ?11, ?4, ?5, ?6, ?7, ?8, ?9, ?10
             FROM summaries WHERE goal = ?1
             ON CONFLICT (goal, attempt, quarter) DO UPDATE SET model = excluded.model, input = excluded.input,
                 output = excluded.output, cache_read = excluded.cache_read, cache_write = excluded.cache_write,
                 cost = excluded.cost, estimate = excluded.estimate",
        )?
        .execute(params![
            goal,
            n,
            at,
            spender.model,
            input,
            output,
            cache_read,
            cache_write,
            cost,
            estimate,
            spender.agent.as_str(),
            spender.account
        ])?;
    Ok(())
}

/// The quarter of an hour that an append belongs to, as a column has it.
pub(super) fn quarter_of(at: Timestamp) -> String {
    time_to_text(quarter(at))
}

/// A statement that takes the first quarter of an hour.
pub(super) fn spend_statement(by: SpendBy) -> String {
    // The plus keeps SQLite from reading the whole ledger in the order of its sums.
    let key = match by {
        SpendBy::Time => "quarter",
        SpendBy::Project => "+project",
        SpendBy::Account => "+account",
        SpendBy::Agent => "agent",
        SpendBy::Model => "COALESCE(model, '')",
        SpendBy::Goal => "+goal",
    };
    format!("SELECT {key}, {} FROM ledger WHERE quarter >= ?1 GROUP BY 1 ORDER BY 1", sums())
}

pub(super) fn spending(
    connection: &Connection,
    since: Timestamp,
    by: SpendBy,
) -> Result<Vec<Spending>, Failure> {
    let mut statement = connection.prepare_cached(&spend_statement(by))?;
    let sums = statement.query_map([quarter_of(since)], |row| {
        Ok(Spending { key: lossy_text(row, 0)?, amounts: amounts(row, 1)? })
    })?;
    Ok(sums.collect::<Result<_, _>>()?)
}

pub(super) fn spent(
    connection: &Connection,
    during: Option<(Timestamp, Timestamp)>,
) -> Result<SpentByProject, Failure> {
    let mut statement =
        connection.prepare_cached(if during.is_some() { SPENT_DURING } else { SPENT_IN_ALL })?;
    let times = during.map(|(from, until)| [quarter_of(from), time_to_text(until)]);
    let mut rows = statement.query(params_from_iter(times.into_iter().flatten()))?;
    let mut spent = SpentByProject::default();
    while let Some(row) = rows.next()? {
        spent.add(lossy_text(row, 0)?, row.get(1)?);
    }
    Ok(spent)
}

/// A text, whatever its bytes are.
fn lossy_text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

/// The amounts in the eight columns from `first` on.
fn amounts(row: &Row<'_>, first: usize) -> rusqlite::Result<Amounts> {
    Ok(Amounts {
        input: row.get(first)?,
        output: row.get(first + 1)?,
        cache_read: row.get(first + 2)?,
        cache_write: row.get(first + 3)?,
        cost: row.get(first + 4)?,
        estimate: row.get(first + 5)?,
        lacks_tokens: row.get(first + 6)?,
        lacks_cost: row.get(first + 7)?,
    })
}

pub(super) fn accounts(connection: &Connection) -> Result<Vec<Account>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT name, agent, status, updated_at FROM accounts ORDER BY name")?;
    let mut rows = statement.query([])?;
    let mut accounts = Vec::new();
    while let Some(row) = rows.next()? {
        accounts.extend(readable(account(row))?);
    }
    Ok(accounts)
}

pub(super) fn set_account(connection: &Connection, account: &Account) -> Result<(), Failure> {
    let Account { name, agent, status, updated_at } = account;
    connection
        .prepare_cached(
            "INSERT INTO accounts (name, agent, status, updated_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE
             SET agent = excluded.agent, status = excluded.status, updated_at = excluded.updated_at",
        )?
        .execute(params![name, agent.as_str(), to_json("an account", status)?, time_to_text(*updated_at)])?;
    Ok(())
}

pub(super) fn usual_costs(connection: &Connection) -> Result<BTreeMap<AgentName, MicroUsd>, Failure> {
    let mut statement = connection.prepare_cached(AGENTS)?;
    let mut rows = statement.query([])?;
    let mut usual = BTreeMap::new();
    while let Some(row) = rows.next()? {
        if let Some(agent) = readable(text(row, 0))? {
            let mut last = connection.prepare_cached(LAST_COSTS)?;
            let costs = last.query_map(params![agent, COSTS_LOOKED_AT], |row| row.get(0))?;
            let known = costs.filter(|cost| !matches!(cost, Ok(0)));
            usual.insert(AgentName::new(agent), median(known.take(COSTS_COUNTED).collect::<Result<_, _>>()?));
        }
    }
    Ok(usual)
}

fn account(row: &Row<'_>) -> Result<Account, Failure> {
    let what = "an account";
    Ok(Account {
        name: row.get(0)?,
        agent: AgentName::new(text(row, 1)?),
        status: from_json(what, text(row, 2)?)?,
        updated_at: time_from_text(what, text(row, 3)?)?,
    })
}
