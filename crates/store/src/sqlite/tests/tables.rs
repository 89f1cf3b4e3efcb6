//! The tables that repeat part of the state, and the settings that every connection has.

use rusqlite::Connection;
use towline_core::{Generation, Goal, GoalState, Seq};

use super::{Scratch, number, texts};
use crate::conformance::samples::{append, at, attempt, claimed, notice, session};
use crate::{Append, Store};

#[tokio::test]
async fn attempts_and_sessions_follow_the_state_and_are_written_only_when_they_change() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, lease) = claimed(&store, 1).await;
    let raw = scratch.raw();
    count_writes(&raw);
    let running = |n| attempt(goal.id, n, n.into(), None);
    let ended = |n| attempt(goal.id, n, n.into(), Some(50));
    let steps = [
        (vec![], None, 0),
        (vec![running(1)], None, 1),
        (vec![running(1)], None, 1),
        (vec![running(1)], Some(session("first")), 2),
        (vec![running(1)], Some(session("first")), 2),
        (vec![ended(1), running(2)], Some(session("first")), 4),
        (vec![ended(1), ended(2)], None, 5),
        (vec![ended(1), ended(2), running(3)], Some(session("second")), 7),
    ];
    for (last, (attempts, session, writes)) in (1..).zip(steps) {
        let state = GoalState { attempts, session, generation: Generation(last), ..GoalState::new(&goal) };
        let step = Append { state, ..append(&goal, lease.generation, Seq(last), vec![notice("on", 1)]) };
        store.append(step).await.expect("it fits");
        assert_eq!(number(&raw, "SELECT COUNT(*) FROM writes"), writes, "after step {last}");
    }
    let expected = [(1, 2, Some(50)), (2, 6, Some(50)), (3, 8, None)]
        .map(|(n, generation, ended)| attempt_row(&goal, n, generation, ended));
    let attempts = "SELECT n || ' ' || id || ' ' || agent || ' ' || generation || ' ' || started_at || ' '
        || COALESCE(ended_at, 'runs') FROM attempts ORDER BY n";
    assert_eq!(texts(&raw, attempts), expected);
    let since = format!("{:.9}", at(3));
    let sessions = "SELECT agent || ' ' || native_id || ' ' || model || ' ' || directory || ' ' || since
        FROM sessions ORDER BY native_id";
    let expected = ["first", "second"].map(|id| format!("scripted {id} a-model /somewhere {since}"));
    assert_eq!(texts(&raw, sessions), expected);
}

#[tokio::test]
async fn every_write_is_synced_and_references_are_checked() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let settings = store
        .write(|connection| {
            let setting = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok([setting("synchronous")?, setting("foreign_keys")?, setting("busy_timeout")?])
        })
        .await;
    let full = 2;
    assert_eq!(settings.expect("settings"), [full, 1, 10_000]);
    assert_eq!(texts(&scratch.raw(), "PRAGMA journal_mode"), ["wal"]);
}

fn attempt_row(goal: &Goal, n: u32, generation: u64, ended: Option<i64>) -> String {
    let attempt = attempt(goal.id, n, n.into(), ended);
    let ended = attempt.ended_at.map_or_else(|| "runs".to_owned(), |at| format!("{at:.9}"));
    format!("{n} {} scripted {generation} {:.9} {ended}", attempt.id, attempt.started_at)
}

/// Counts what is written to the two tables from now on.
fn count_writes(raw: &Connection) {
    let mut sql = "CREATE TABLE writes (n INTEGER);".to_owned();
    for table in ["attempts", "sessions"] {
        for change in ["INSERT", "UPDATE", "DELETE"] {
            sql += &format!(
                "CREATE TRIGGER {table}_{change} AFTER {change} ON {table} BEGIN INSERT INTO writes VALUES (1); END;"
            );
        }
    }
    raw.execute_batch(&sql).expect("triggers");
}
