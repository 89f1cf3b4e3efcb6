//! Spend and the state of accounts, as SQL: written with the state and the events that report it.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use towline_core::{Account, AgentName, AttemptNo, Envelope, GoalState};

use super::failure::{Failure, readable};
use super::reads::text;
use super::text::{from_json, time_from_text, time_to_text, to_json};
use crate::ledger::{AccountReport, Amounts, SpendBy, SpendQuery, Spending, account_reports, quarter};

/// The sums of all amounts. Unlike `SUM`, `TOTAL` cannot overflow and takes a value that is no number for nothing.
fn sums() -> String {
    let sum = |column| format!("CASE WHEN COUNT({column}) THEN CAST(TOTAL({column}) AS INTEGER) END, ");
    let known: String = ["input", "output", "cache_read", "cache_write", "cost"].map(sum).concat();
    known + "CAST(TOTAL(estimate) AS INTEGER)"
}

/// What the events of an append report about accounts, put into words before the writer's turn.
pub(super) struct AccountRow {
    attempt: AttemptNo,
    status: String,
    at: String,
}

impl AccountRow {
    pub(super) fn of(events: &[Envelope], state: &GoalState) -> Result<Vec<Self>, Failure> {
        let reported = account_reports(events, state);
        reported
            .map(|AccountReport { attempt, status, at }| {
                Ok(Self { attempt: attempt.n, status: to_json("an account", &status)?, at: time_to_text(at) })
            })
            .collect()
    }

    /// Writes it, if it is another than the one that is known.
    pub(super) fn write(&self, connection: &Connection, goal: &str) -> Result<(), Failure> {
        connection
            .prepare_cached(
                "INSERT INTO accounts (name, agent, status, updated_at)
                 SELECT account, agent, ?3, ?4 FROM attempts WHERE goal = ?1 AND n = ?2
                 ON CONFLICT (name) DO UPDATE
                 SET agent = excluded.agent, status = excluded.status, updated_at = excluded.updated_at
                 WHERE status <> excluded.status",
            )?
            .execute(params![goal, self.attempt.get(), self.status, self.at])?;
        Ok(())
    }
}

/// Brings the rows of the newest attempt in line with what it used, which `before` may have known already. What earlier
/// quarters of an hour have is left alone, so that their rows and this one add up to it.
pub(super) fn follow(
    connection: &Connection,
    goal: &str,
    state: &GoalState,
    before: Option<&GoalState>,
    at: &str,
) -> Result<(), Failure> {
    let Some(attempt) = state.last_attempt().filter(|attempt| !attempt.usage.is_empty()) else {
        return Ok(());
    };
    let known = before.and_then(|before| before.attempt(attempt.n));
    if known.is_some_and(|known| (known.usage, &known.model) == (attempt.usage, &attempt.model)) {
        return Ok(());
    }
    let n = attempt.n.get();
    let sql = format!("SELECT {} FROM ledger WHERE goal = ?1 AND attempt = ?2 AND quarter <> ?3", sums());
    let others = connection.prepare_cached(&sql)?.query_row(params![goal, n, at], |row| amounts(row, 0))?;
    let Amounts { input, output, cache_read, cache_write, cost, estimate } =
        Amounts::from(attempt.usage) - others;
    connection
        .prepare_cached(
            "INSERT INTO ledger
             SELECT ?1, ?2, ?3, repository, account, agent, ?4, ?5, ?6, ?7, ?8, ?9, ?10
             FROM attempts JOIN summaries ON summaries.goal = attempts.goal WHERE attempts.goal = ?1 AND n = ?2
             ON CONFLICT (goal, attempt, quarter) DO UPDATE SET model = excluded.model, input = excluded.input,
                 output = excluded.output, cache_read = excluded.cache_read, cache_write = excluded.cache_write,
                 cost = excluded.cost, estimate = excluded.estimate",
        )?
        .execute(params![goal, n, at, attempt.model, input, output, cache_read, cache_write, cost, estimate])?;
    Ok(())
}

/// The quarter of an hour that an append belongs to, as a column has it.
pub(super) fn quarter_of(at: jiff::Timestamp) -> String {
    time_to_text(quarter(at))
}

/// A statement and the values of its placeholders.
pub(super) fn spend_statement(query: &SpendQuery) -> (String, Vec<Value>) {
    // The plus keeps SQLite from reading the whole ledger in the order of its sums.
    let key = match query.by {
        SpendBy::Time => "quarter",
        SpendBy::Project => "+project",
        SpendBy::Account => "+account",
    };
    let mut values: Vec<Value> = vec![quarter_of(query.from).into(), time_to_text(query.until).into()];
    let mut conditions = "quarter >= ?1 AND quarter < ?2".to_owned();
    for (column, wanted) in [("project", &query.project), ("account", &query.account)] {
        if let Some(wanted) = wanted {
            values.push(wanted.clone().into());
            conditions += &format!(" AND {column} = ?{}", values.len());
        }
    }
    (format!("SELECT {key}, {} FROM ledger WHERE {conditions} GROUP BY 1 ORDER BY 1", sums()), values)
}

pub(super) fn spending(connection: &Connection, query: &SpendQuery) -> Result<Vec<Spending>, Failure> {
    let (sql, values) = spend_statement(query);
    let mut statement = connection.prepare_cached(&sql)?;
    let sums = statement.query_map(params_from_iter(values), |row| {
        let key = String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned();
        Ok(Spending { key, amounts: amounts(row, 1)? })
    })?;
    Ok(sums.collect::<Result<_, _>>()?)
}

/// The amounts in the six columns from `first` on.
fn amounts(row: &Row<'_>, first: usize) -> rusqlite::Result<Amounts> {
    Ok(Amounts {
        input: row.get(first)?,
        output: row.get(first + 1)?,
        cache_read: row.get(first + 2)?,
        cache_write: row.get(first + 3)?,
        cost: row.get(first + 4)?,
        estimate: row.get(first + 5)?,
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

fn account(row: &Row<'_>) -> Result<Account, Failure> {
    let what = "an account";
    Ok(Account {
        name: row.get(0)?,
        agent: AgentName::new(text(row, 1)?),
        status: from_json(what, text(row, 2)?)?,
        updated_at: time_from_text(what, text(row, 3)?)?,
    })
}
