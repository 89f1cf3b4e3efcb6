//! One damaged value of one goal, in every column in turn: the other goals are as they were, and the damaged one can be
//! found and removed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::Connection;
use towline_core::{
    Attempt, Baseline, Event, Goal, GoalId, GoalState, MicroUsd, Need, Phase, PoolSeq, Prerequisite,
    Scheduling, Seq, Tokens, Usage,
};

use super::{Scratch, SqliteStore};
use crate::conformance::samples::{
    append, at, attempt, everything, goal, goal_id, happened, launch, question, session, worker,
};
use crate::{Append, Listed, Listing, Order, SpendBy, Store, StoreError, list_all, load_all};

/// Values that no column expects. The row's number keeps keys apart.
pub(super) const DAMAGES: [&str; 5] =
    ["'garbage' || rowid", "CAST(x'ff' || rowid AS BLOB)", "CAST(x'ff' || rowid AS TEXT)", "-5", "NULL"];

/// A number is JSON, too: lists show such a goal as its summary has it.
const JSON: [(&str, &str); 2] = [("goals", "goal"), ("parts", "body")];

/// Its row is the only one that lists have of a goal.
const LISTED_BY: (&str, &str) = ("summaries", "goal");

const GOOD: u64 = 3;

#[tokio::test]
async fn a_text_in_place_of_any_value_of_one_goal_hides_no_other() {
    damage_each_column(DAMAGES[0]).await;
}

#[tokio::test]
async fn bytes_in_place_of_any_value_of_one_goal_hide_no_other() {
    damage_each_column(DAMAGES[1]).await;
}

#[tokio::test]
async fn a_broken_text_in_place_of_any_value_of_one_goal_hides_no_other() {
    damage_each_column(DAMAGES[2]).await;
}

#[tokio::test]
async fn a_number_in_place_of_any_value_of_one_goal_hides_no_other() {
    damage_each_column(DAMAGES[3]).await;
}

#[tokio::test]
async fn nothing_in_place_of_any_value_of_one_goal_hides_no_other() {
    damage_each_column(DAMAGES[4]).await;
}

async fn damage_each_column(damage: &str) {
    let scratch = Scratch::new();
    let (store, raw) = (scratch.store(), scratch.raw());
    raw.execute_batch("PRAGMA foreign_keys = OFF").expect("as the sqlite3 program has it");
    for number in 1..=GOOD {
        fill(&store, number).await;
    }
    let before = others(&store, None).await;
    let (mut number, mut cases) = (1_000, 0);
    fill(&store, number).await;
    for (table, column) in columns(&raw) {
        let bad = goal_id(number);
        let key = if table == "goals" { "id" } else { "goal" };
        let sql = format!("UPDATE {table} SET {column} = {damage} WHERE {key} = '{bad}'");
        match raw.execute(&sql, []) {
            Ok(rows) => assert!(rows > 0, "{sql}: the goal has no such row"),
            // The table refuses such a value, so nobody has to read it.
            Err(_) => continue,
        }
        assert_eq!(others(&store, Some(bad)).await, before, "{sql}");
        assert_named(&store, bad, (&table, &column), &sql).await;
        assert_removable(&store, bad, &sql).await;
        number += 1;
        cases += 1;
        fill(&store, number).await;
    }
    assert!(cases >= 5, "{cases} columns were damaged");
}

/// Tables that belong to no goal: what cannot be read is left out, and the rest is there.
#[tokio::test]
async fn a_damaged_account_hides_no_other() {
    let scratch = Scratch::new();
    let (store, raw) = (scratch.store(), scratch.raw());
    for column in ["name", "agent", "status", "updated_at"] {
        let mut damaged = 0;
        for damage in DAMAGES {
            raw.execute_batch(
                "DELETE FROM accounts;
                 INSERT INTO accounts VALUES ('bad', 'a', '{\"state\":\"open\"}', '2026-01-01T00:00:00Z');
                 INSERT INTO accounts VALUES ('good', 'a', '{\"state\":\"open\"}', '2026-01-01T00:00:00Z');",
            )
            .expect("accounts");
            // A value that the table refuses is no damage.
            let update = format!("UPDATE accounts SET {column} = {damage} WHERE name = 'bad'");
            damaged += raw.execute(&update, []).unwrap_or(0);
            let accounts = store.accounts().await.expect("accounts");
            assert!(accounts.iter().any(|account| account.name == "good"), "{column} {damage}: {accounts:?}");
        }
        assert!(damaged > 0, "no value could be put in place of {column}");
    }
}

/// The next amount is added to a damaged total as to any other.
#[tokio::test]
async fn a_damaged_total_hides_no_other_and_stops_no_goal() {
    let columns = ["quarter", "project", "amount"];
    for (column, damage) in columns.iter().flat_map(|column| DAMAGES.map(|damage| (column, damage))) {
        let scratch = Scratch::new();
        let (store, raw) = (scratch.store(), scratch.raw());
        fill(&store, 1).await;
        raw.execute("INSERT INTO spent VALUES ('', 'good', 5)", []).expect("a total");
        // A value that the table refuses is no damage.
        let _ = raw.execute(&format!("UPDATE spent SET {column} = {damage} WHERE project <> 'good'"), []);
        for during in [None, Some((Timestamp::MIN, Timestamp::MAX))] {
            let spent = store.spent(during).await.expect("sums");
            assert!(during.is_some() || spent.of("good") == MicroUsd(5), "{column} {damage}");
        }
        fill(&store, 2).await;
    }
}

/// A goal that has a row in every table: it holds a slot, goes on by itself at second 50, needs another goal, is held, asks something, has
/// spent something, and somebody is to be notified.
async fn fill(store: &SqliteStore, number: u64) {
    let after = vec![Prerequisite { goal: goal_id(0), need: Need::Done }];
    let goal = Goal { scheduling: Scheduling { after, ..Scheduling::default() }, ..goal(number) };
    store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
    let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("free");
    let usage = Usage { input: Tokens(7), ..Usage::default() };
    let state = GoalState {
        phase: Phase::Preparing,
        baseline: Baseline::Running { round: 1, since: at(1), until: Some(at(50)) },
        attempts: vec![Attempt { usage, ..attempt(goal.id, 1, 1, Some(2)) }],
        questions: vec![question()],
        session: Some(session(&goal.id.to_string())),
        ..GoalState::new(&goal)
    };
    let effects = vec![launch(goal.id, 1, "go")];
    let events = vec![happened(Event::PhaseChanged { phase: Phase::Done }, 1)];
    let step = Append { state, effects, notifies: true, ..append(&goal, lease.generation, Seq(1), events) };
    store.append(step).await.expect("it fits");
}

/// Every column of the tables that have rows of a goal.
fn columns(raw: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'
            AND tables.name NOT IN ('accounts', 'baselines', 'replies', 'spent', 'unplaced', 'refinery_schema_history')";
    let mut statement = raw.prepare(sql).expect("a query");
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("columns");
    columns.collect::<Result<_, _>>().expect("names")
}

fn listings() -> [Listing; 9] {
    let paged = || Listing::first(1);
    [
        Listing::first(2_000),
        paged(),
        Listing { order: Order::OldestFirst, ..paged() },
        Listing { repository: Some(goal(1).workspace.repository), ..paged() },
        Listing { settled: Some(false), ..paged() },
        Listing { phases: vec!["preparing"], ..paged() },
        Listing { held: true, ..paged() },
        Listing { asks: true, ..paged() },
        Listing::due(at(50), 1),
    ]
}

/// What every query gives of the other goals.
async fn others(store: &SqliteStore, bad: Option<GoalId>) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for listing in listings() {
        let listed = list_all(store, listing.clone()).await.expect("a list");
        let listed: Vec<Listed> = listed.into_iter().filter(|row| Some(row.id()) != bad).collect();
        assert_eq!(listed.len(), usize::try_from(GOOD).expect("few"), "{listing:?}");
        seen.insert(format!("{listing:?}"), format!("{listed:?}"));
    }
    let all = load_all(store, Listing::all()).await.expect("the others can be read");
    for record in all.records.iter().filter(|record| Some(record.goal.id) != bad) {
        let found = store.find(&record.goal.id.short(), 9).await.expect("an answer");
        seen.insert(
            record.goal.id.to_string(),
            format!("{:?} {found:?}", everything(store, record.goal.id).await),
        );
    }
    let events = store.events_since(PoolSeq(0), 9_999).await.expect("events");
    let events: Vec<_> = events.iter().filter(|(_, event)| before_the_bad(event.goal)).collect();
    seen.insert("events".to_owned(), format!("{events:?}"));
    let mut view = store.pool(9).await.expect("a pool");
    view.working.retain(|goal| before_the_bad(goal.goal));
    seen.insert("pool".to_owned(), format!("{view:?}"));
    let mut notices = store.notices(at(60), 9_999).await.expect("notices");
    notices.retain(|notice| before_the_bad(notice.goal));
    seen.insert("notices".to_owned(), format!("{notices:?}"));
    for number in 1..=GOOD {
        let unmet = store.unmet(goal_id(number)).await.expect("it is there");
        seen.insert(format!("unmet {number}"), format!("{unmet:?}"));
    }
    store.next_wake().await.expect("an answer");
    store.usual_costs().await.expect("costs");
    let by =
        [SpendBy::Time, SpendBy::Project, SpendBy::Account, SpendBy::Agent, SpendBy::Model, SpendBy::Goal];
    for by in by {
        store.spending(Timestamp::MIN, by).await.expect("sums");
    }
    for during in [None, Some((Timestamp::MIN, Timestamp::MAX))] {
        store.spent(during).await.expect("sums");
    }
    seen
}

fn before_the_bad(goal: GoalId) -> bool {
    (1..=GOOD).any(|number| goal_id(number) == goal)
}

/// Lists show the damaged goal, whole or as one that cannot be read, and no error about it is about anything else.
async fn assert_named(store: &SqliteStore, bad: GoalId, damaged: (&str, &str), case: &str) {
    let about_bad = |error: &StoreError| matches!(error, StoreError::Unreadable { goal, why } if *goal == bad && why.contains(&bad.to_string()));
    let loaded = store.load(bad).await.map(drop);
    assert!(loaded.as_ref().err().is_none_or(about_bad), "{case}: {loaded:?}");
    for read in [store.events(bad, Seq(0), 9).await.map(drop), store.pending(bad).await.map(drop)] {
        let is_gone = matches!(read, Err(StoreError::NotFound(_))) && damaged == ("goals", "id");
        assert!(is_gone || read.as_ref().err().is_none_or(about_bad), "{case}: {read:?}");
    }
    if damaged == LISTED_BY {
        return;
    }
    for listing in &listings()[..3] {
        let listed = list_all(store, listing.clone()).await.expect("a list");
        let [row] = &listed.iter().filter(|row| row.id() == bad).collect::<Vec<_>>()[..] else {
            panic!("{case}: it is not listed once: {listed:#?}")
        };
        let is_whole = matches!(row, Listed::Goal(_));
        assert!(is_whole == loaded.is_ok() || JSON.contains(&damaged), "{case}: {row:?}");
    }
    for given in [bad.to_string(), bad.short()] {
        let found = store.find(&given, 9).await.expect("an answer");
        assert_eq!(found.iter().map(Listed::id).collect::<Vec<_>>(), [bad], "{case}");
    }
}

async fn assert_removable(store: &SqliteStore, bad: GoalId, case: &str) {
    let lease = store.claim(bad, &worker("two"), at(61), at(90), None).await;
    let lease = lease.unwrap_or_else(|error| panic!("{case}: {error}"));
    store.remove(&lease).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(matches!(store.load(bad).await, Err(StoreError::NotFound(_))), "{case}");
    assert_eq!(store.find(&bad.short(), 9).await.expect("an answer"), [], "{case}");
}
