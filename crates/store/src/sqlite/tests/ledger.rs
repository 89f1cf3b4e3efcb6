//! Over all goals: found by index, and filled from what earlier versions stored.

use rusqlite::Connection;
use rusqlite::types::Value;
use towline_core::{Attempt, Envelope, Event, Goal, GoalState, MicroUsd, PoolSeq, Seq, Tokens, Usage};

use super::super::ledger::{self, SPENT_DURING, SPENT_IN_ALL, spend_statement};
use super::super::reads::EVENTS_SINCE;
use super::earlier::copy_as_first_version;
use super::pool::{counted, undo_seventh_version};
use super::{Scratch, number, plan, texts};
use crate::conformance::samples::{append, at, attempt, claimed, happened, notice};
use crate::{Append, SpendBy, Store};

const BY: [SpendBy; 6] =
    [SpendBy::Time, SpendBy::Project, SpendBy::Account, SpendBy::Agent, SpendBy::Model, SpendBy::Goal];

#[test]
fn no_sum_reads_the_whole_ledger_and_no_page_of_events_the_whole_log() {
    let scratch = Scratch::new();
    let _store = scratch.store();
    let raw = scratch.raw();
    let time = |text: &str| Value::from(text.to_owned());
    for by in BY {
        let plan = plan(&raw, &spend_statement(by), &[time("2026")]);
        let is_search = plan[0] == "SEARCH ledger USING INDEX ledger_by_time (quarter>?)";
        assert!(is_search && !plan.iter().any(|step| step.starts_with("SCAN")), "{by:?}: {plan:#?}");
    }
    let during = plan(&raw, SPENT_DURING, &[time("2026"), time("2027")]);
    let in_time = "SEARCH spent USING INDEX sqlite_autoindex_spent_1 (quarter>? AND quarter<?)";
    assert_eq!(during, [in_time, "USE TEMP B-TREE FOR GROUP BY"]);
    let in_all = plan(&raw, SPENT_IN_ALL, &[]);
    assert_eq!(in_all, ["SEARCH spent USING INDEX sqlite_autoindex_spent_1 (quarter=?)"]);
    let page = plan(&raw, EVENTS_SINCE, &[1.into()]);
    assert_eq!(page, ["SEARCH events USING INTEGER PRIMARY KEY (rowid>?)"]);
}

/// A goal with two attempts that cost something, and events of it and another goal by turns.
async fn spent(store: &dyn Store) -> Goal {
    let (goal, lease) = claimed(store, 1).await;
    let (other, other_lease) = claimed(store, 2).await;
    let reported = Usage { input: Tokens(10), cost: MicroUsd(90), ..Usage::default() };
    let killed = Usage { output: Tokens(7), estimate: MicroUsd(5), ..Usage::default() };
    let attempts = vec![
        Attempt { usage: reported, ..attempt(goal.id, 1, 0, Some(1)) },
        Attempt { usage: killed, ..attempt(goal.id, 2, 2, Some(4_000)) },
    ];
    let steps = [vec![attempts[0].clone()], attempts];
    for (last, (attempts, second)) in (1..).zip(steps.into_iter().zip([1, 4_000])) {
        let sent = Envelope { at: at(second), ..happened(Event::MessageSent { text: "words".into() }, 1) };
        let state = GoalState { attempts, ..GoalState::new(&goal) };
        let step = Append { state, at: at(second), ..append(&goal, lease.generation, Seq(last), vec![sent]) };
        store.append(step).await.expect("it fits");
        let step = append(&other, other_lease.generation, Seq(last), vec![notice("beside", 1)]);
        store.append(step).await.expect("it fits");
    }
    goal
}

/// Whether its states are in one piece, as the first version had them, or in parts.
#[tokio::test]
async fn an_upgrade_fills_the_sequence_and_the_ledger() {
    let new = Scratch::new();
    let store = new.store();
    spent(&store).await;
    let of_first_version = Scratch::new();
    copy_as_first_version(&new, &of_first_version).await;
    let of_fourth_version = Scratch::new();
    new.raw()
        .execute("VACUUM INTO ?1", [of_fourth_version.database().display().to_string()])
        .expect("a copy");
    undo_fifth_version(&of_fourth_version.raw());
    for old in [of_first_version, of_fourth_version] {
        old.raw().execute_batch("UPDATE events SET kind = 'tell' WHERE kind = 'told'").expect("an old name");
        let upgraded = old.store();
        for by in BY {
            let [was, is] =
                [&store, &upgraded].map(|store| async { store.spending(at(0), by).await.expect("sums") });
            let (was, is) = (was.await, is.await);
            assert!(!is.is_empty());
            assert_eq!(is, was, "{by:?}");
        }
        assert_eq!(upgraded.spent(None).await.expect("sums").in_all(), MicroUsd(95));
        assert_totals(&old.raw());
        let was = store.events_since(PoolSeq(0), 99).await.expect("events");
        assert_eq!(upgraded.events_since(PoolSeq(0), 99).await.expect("events"), was);
        let kinds = "SELECT COUNT(*) FROM events WHERE kind <> json_extract(body, '$.kind')";
        assert_eq!(number(&old.raw(), kinds), 0, "the kind of each event is the tag in its body");
    }
}

/// Those of a day and of all time, counted in SQLite's own instructions.
#[tokio::test]
async fn a_budget_is_looked_up_in_as_many_steps_among_many_rows_as_among_few() {
    let steps = |rows: i64| async move {
        let scratch = Scratch::new();
        let store = scratch.store();
        let mut raw = scratch.raw();
        // Half of them today, by many goals, and half in the years before.
        let fill = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
            INSERT INTO ledger
            SELECT printf('goal %d', n), 1,
                IIF(n % 2, strftime('%Y-%m-%dT%H:%M:00.000000000Z', '2026-11-18', (900 * (n / 2 % 96)) || ' seconds'),
                    strftime('%Y-%m-%dT%H:%M:00.000000000Z', '2026-11-18', (-450 * n) || ' seconds')),
                'project ' || n % 3, 'account', 'agent', NULL, 1, 1, 1, 1, IIF(n % 5, n, NULL), n % 7
            FROM numbers";
        raw.execute(fill, [rows]).expect("rows");
        assert_eq!(number(&raw, "SELECT COUNT(*) FROM ledger"), rows);
        assert_totals(&raw);
        let today =
            ["2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z"].map(|time| time.parse().expect("a time"));
        let today = Some((today[0], today[1]));
        assert!(store.spent(today).await.expect("sums").in_all() > MicroUsd(0));
        [
            counted(&mut raw, |raw| drop(ledger::spent(raw, today).expect("sums"))),
            counted(&mut raw, |raw| drop(ledger::spent(raw, None).expect("sums"))),
        ]
    };
    let (few, many) = (steps(2_000).await, steps(20_000).await);
    assert_eq!(few, many);
    assert!(few[0] < 10_000 && few[1] < 100, "{few:?}");
}

/// The totals are what the ledger adds up to.
fn assert_totals(raw: &Connection) {
    let sums =
        "SELECT quarter, project, SUM(COALESCE(cost, 0) + estimate) AS amount FROM ledger GROUP BY 1, 2
        UNION ALL SELECT '', project, SUM(COALESCE(cost, 0) + estimate) FROM ledger GROUP BY 2";
    let totals = "SELECT quarter, project, amount FROM spent";
    for (one, other) in [(sums, totals), (totals, sums)] {
        let missing = format!(
            "SELECT COUNT(*) FROM (SELECT * FROM ({one}) WHERE amount <> 0 EXCEPT SELECT * FROM ({other}))"
        );
        assert_eq!(
            number(raw, &missing),
            0,
            "{}",
            texts(raw, "SELECT quarter || ' ' || project || ' ' || amount FROM spent").join("\n")
        );
    }
}

/// As a program does that had the database open before it was upgraded, or somebody with the `sqlite3` program.
#[tokio::test]
async fn totals_follow_whatever_changes_the_ledger() {
    let scratch = Scratch::new();
    let store = scratch.store();
    spent(&store).await;
    let raw = scratch.raw();
    for change in [
        "INSERT INTO ledger SELECT goal, attempt + 10, quarter, 'other', account, agent, model, 1, 1, 1, 1, NULL, 3 FROM ledger",
        "INSERT INTO ledger SELECT goal, attempt, quarter, project, account, agent, model, 1, 1, 1, 1, 8, -3 FROM ledger
         WHERE true ON CONFLICT (goal, attempt, quarter) DO UPDATE SET cost = excluded.cost, estimate = excluded.estimate",
        "UPDATE ledger SET cost = IIF(cost IS NULL, 0, cost)",
        "UPDATE ledger SET cost = NULL WHERE attempt = 1",
        "UPDATE ledger SET project = 'renamed', quarter = '2027-01-01T00:00:00.000000000Z' WHERE attempt = 2",
        "DELETE FROM ledger WHERE attempt = 11",
    ] {
        assert!(raw.execute(change, []).expect("a change") > 0, "{change}");
        assert_totals(&raw);
    }
    raw.execute_batch("UPDATE ledger SET cost = 'garbage', estimate = x'ff'").expect("damage");
    assert_eq!(store.spent(None).await.expect("sums").in_all(), MicroUsd(0));
    raw.execute_batch("UPDATE ledger SET cost = 9223372036854775807, estimate = 2").expect("a large number");
    assert!(store.spent(None).await.expect("sums").in_all() > MicroUsd(1 << 60));
    raw.execute_batch("DELETE FROM ledger").expect("an empty ledger");
}

/// Brings the tables to where the eighth version left them.
pub(super) fn undo_ninth_version(raw: &Connection) {
    raw.execute_batch(
        "DROP TABLE spent;
         DROP TRIGGER ledger_row_added;
         DROP TRIGGER ledger_row_changed;
         DROP TRIGGER ledger_row_removed;
         CREATE INDEX ledger_by_project ON ledger (project, quarter);
         CREATE INDEX ledger_by_account ON ledger (account, quarter);
         DELETE FROM refinery_schema_history WHERE version > 8;",
    )
    .expect("the tables of the eighth version");
}

/// Brings the tables to where the fourth version left them.
fn undo_fifth_version(raw: &Connection) {
    undo_seventh_version(raw);
    raw.execute_batch(
        "PRAGMA foreign_keys = OFF;
         DROP TABLE ledger;
         DROP TABLE accounts;
         ALTER TABLE attempts DROP COLUMN account;
         CREATE TABLE old (
             goal TEXT NOT NULL REFERENCES goals (id), seq BIGINT NOT NULL, at TEXT NOT NULL, attempt BIGINT,
             source TEXT NOT NULL, kind TEXT NOT NULL, parent TEXT, raw_offset BIGINT, raw_length BIGINT,
             body TEXT NOT NULL, PRIMARY KEY (goal, seq)
         );
         INSERT INTO old SELECT goal, seq, at, attempt, source, kind, parent, raw_offset, raw_length, body
             FROM events ORDER BY place;
         DROP TABLE events;
         ALTER TABLE old RENAME TO events;
         DELETE FROM refinery_schema_history WHERE version > 4;",
    )
    .expect("the tables of the fourth version");
}
