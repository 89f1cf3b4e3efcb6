//! Databases as earlier versions left them.

use refinery::{Migration, Runner};
use rusqlite::params;

use super::super::text::time_to_text;
use super::Scratch;
use crate::conformance::samples::created;
use crate::{GoalRecord, Listing, load_all};

/// A database of the first version with this many goals.
pub(super) async fn of_first_version(goals: u32) -> Scratch {
    let (old, new) = (Scratch::new(), Scratch::new());
    created(&new.store(), 1).await;
    copy_as_first_version(&new, &old).await;
    let more = "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1),
        ids (id) AS (SELECT printf('01932f6e-7c00-7abc-8def-%012x', n) FROM numbers)
        INSERT INTO goals SELECT ids.id, title, created_at, updated_at, phase, wake_at, last_seq, generation,
            replace(goal, goals.id, ids.id), state FROM ids, goals";
    old.raw().execute(more, [goals]).expect("more goals");
    old
}

/// Makes a database as the first version did, with the goals of another one.
pub(super) async fn copy_as_first_version(from: &Scratch, to: &Scratch) {
    let first = include_str!("../../../migrations/sqlite/V1__goals.sql");
    let mut old = to.raw();
    let migrations = [Migration::unapplied("V1__goals", first).expect("a migration")];
    Runner::new(&migrations).set_grouped(true).run(&mut old).expect("the first version");
    for GoalRecord { goal, state, last_seq, updated_at, .. } in
        load_all(&from.store(), Listing::all()).await.expect("goals").records
    {
        let (goal_json, state_json) = (serde_json::to_string(&goal), serde_json::to_string(&state));
        let [created_at, updated_at] = [goal.created_at, updated_at].map(time_to_text);
        let generation = "SELECT generation FROM positions WHERE goal = ?1";
        let generation: i64 =
            from.raw().query_row(generation, [goal.id.to_string()], |row| row.get(0)).expect("a number");
        old.execute(
            "INSERT INTO goals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                goal.id.to_string(),
                goal.title,
                created_at,
                updated_at,
                state.phase.name(),
                state.phase.until().map(time_to_text),
                last_seq.0,
                generation,
                goal_json.expect("JSON"),
                state_json.expect("JSON"),
            ],
        )
        .expect("a goal");
    }
    old.execute("ATTACH ?1 AS new", [from.database().display().to_string()]).expect("the other one");
    for table in ["events", "outbox", "leases", "attempts", "sessions"] {
        let columns = "SELECT group_concat(name) FROM pragma_table_info(?1, 'main')";
        let columns: String = old.query_row(columns, [table], |row| row.get(0)).expect("columns");
        let copied = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}");
        old.execute_batch(&copied).expect("its rows");
    }
}
