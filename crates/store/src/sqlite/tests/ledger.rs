//! Over all goals: found by index, and filled from what earlier versions stored.

use rusqlite::Connection;
use towline_core::{Attempt, Envelope, Event, Goal, GoalState, MicroUsd, PoolSeq, Seq, Tokens, Usage};

use super::super::ledger::spend_statement;
use super::super::reads::EVENTS_SINCE;
use super::earlier::copy_as_first_version;
use super::{Scratch, number, plan};
use crate::conformance::samples::{append, at, attempt, claimed, happened, notice};
use crate::{Append, SpendBy, SpendQuery, Store};

fn all(by: SpendBy) -> SpendQuery {
    SpendQuery { from: at(-100_000), until: at(100_000), project: None, account: None, by }
}

#[test]
fn no_sum_reads_the_whole_ledger_and_no_page_of_events_the_whole_log() {
    let scratch = Scratch::new();
    let _store = scratch.store();
    let raw = scratch.raw();
    let (project, account) = (Some("p".to_owned()), Some("a".to_owned()));
    let queries = [
        (all(SpendBy::Time), "ledger_by_time"),
        (all(SpendBy::Project), "ledger_by_time"),
        (all(SpendBy::Account), "ledger_by_time"),
        (SpendQuery { project, ..all(SpendBy::Time) }, "ledger_by_project"),
        (SpendQuery { account, ..all(SpendBy::Project) }, "ledger_by_account"),
    ];
    for (query, index) in queries {
        let (sql, values) = spend_statement(&query);
        let plan = plan(&raw, &sql, &values);
        let is_search = plan[0].starts_with("SEARCH ledger USING INDEX") && plan[0].contains(index);
        assert!(is_search && !plan.iter().any(|step| step.starts_with("SCAN")), "{query:?}: {plan:#?}");
    }
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
        for by in [SpendBy::Time, SpendBy::Project, SpendBy::Account] {
            let [was, is] =
                [&store, &upgraded].map(|store| async { store.spending(&all(by)).await.expect("sums") });
            let (was, is) = (was.await, is.await);
            assert!(!is.is_empty());
            assert_eq!(is, was, "{by:?}");
        }
        let was = store.events_since(PoolSeq(0), 99).await.expect("events");
        assert_eq!(upgraded.events_since(PoolSeq(0), 99).await.expect("events"), was);
        let kinds = "SELECT COUNT(*) FROM events WHERE kind <> json_extract(body, '$.kind')";
        assert_eq!(number(&old.raw(), kinds), 0, "the kind of each event is the tag in its body");
    }
}

/// Brings the tables to where the fourth version left them.
fn undo_fifth_version(raw: &Connection) {
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
