//! The pool: found by index in the same number of steps however many goals wait, filled from what earlier versions stored, and whole
//! beside rows that are damaged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::types::Value;
use towline_core::{
    AgentName, AttemptNo, Baseline, Event, Goal, GoalId, GoalState, MicroUsd, Need, Phase, PoolGoal,
    Prerequisite, Scheduling,
};

use super::super::{ledger, notices, pool, prerequisites};
use super::damage::DAMAGES;
use super::earlier::copy_as_first_version;
use super::ledger::undo_ninth_version;
use super::{Scratch, SqliteStore, number, plan};
use crate::conformance::samples::{append, at, attempt, goal, goal_id, happened, notice, worker};
use crate::{Append, Listed, Listing, Store, StoredReply};

#[test]
fn no_question_of_a_pool_reads_all_goals() {
    let scratch = Scratch::new();
    let _store = scratch.store();
    let raw = scratch.raw();
    let text = |text: &str| Value::from(text.to_owned());
    let queries: [(&str, Vec<Value>, &str); 10] = [
        // Only those that hold a slot are in the index.
        (pool::WORKING, vec![], "SCAN pool USING INDEX pool_at_work"),
        (pool::NEXT_LANE, vec![text("")], "SEARCH pool USING COVERING INDEX pool_by_lane (lane>?)"),
        (
            pool::READY,
            vec![text("2026"), text("0193")],
            "SEARCH pool USING INDEX pool_ready ((rank,goal)>(?,?))",
        ),
        (pool::FIRST_OF_LANE, vec![text("{}")], "SEARCH pool USING INDEX pool_by_lane (lane=?)"),
        (
            pool::QUEUE,
            vec![text("2026"), text("0193")],
            "SEARCH pool USING INDEX pool_by_rank ((rank,goal)>(?,?))",
        ),
        (
            prerequisites::UNMET,
            vec![text("0193")],
            "SEARCH prerequisites USING INDEX sqlite_autoindex_prerequisites_1 (goal=?)",
        ),
        (pool::WAKES, vec![], "SEARCH summaries USING INDEX summaries_by_wakes_at (wakes_at>?)"),
        (notices::DUE, vec![text("2026")], "SEARCH notices USING INDEX notices_by_due (due<?)"),
        (ledger::AGENTS, vec![], "SEARCH attempts USING COVERING INDEX attempts_by_end (agent>?)"),
        (
            ledger::LAST_COSTS,
            vec![text("a"), 500.into()],
            "SEARCH attempts USING COVERING INDEX attempts_by_end (agent=? AND ended_at>?)",
        ),
    ];
    for (sql, values, expected) in queries {
        let plan = plan(&raw, sql, &values);
        assert!(plan.iter().any(|step| step == expected), "{sql}: {plan:#?}");
        let few = ["SCAN agents", "SCAN pool USING INDEX pool_at_work"];
        let is_slow = |step: &&String| {
            step.contains("TEMP B-TREE") || (step.starts_with("SCAN") && !few.contains(&step.as_str()))
        };
        assert_eq!(plan.iter().find(is_slow), None, "{sql}: {plan:#?}");
    }
}

/// Counted in SQLite's own instructions, of which each reads one row at most.
#[tokio::test]
async fn the_next_goal_is_found_in_as_many_steps_among_many_as_among_few() {
    let steps = |goals| async move {
        let scratch = Scratch::new();
        let store = scratch.store();
        for (number, project, after) in [(1, "a", None), (2, "b", None), (3, "c", None), (4, "a", Some(1))] {
            create(&store, number, project, after).await;
        }
        let running = create(&store, 5, "a", None).await;
        move_to(&store, &running, GoalState { phase: Phase::Preparing, ..GoalState::new(&running) }).await;
        let mut raw = scratch.raw();
        queue_more(&raw, goals);
        assert_eq!(number(&raw, "SELECT COUNT(*) FROM pool WHERE standing = 'queued'"), 4 * (goals + 1));
        let view = store.pool(4).await.expect("a pool");
        assert_eq!((view.working.len(), view.queued.len()), (1, 3 * 4));
        [
            counted(&mut raw, |raw| drop(pool::view(raw, 4).expect("a pool"))),
            counted(&mut raw, |raw| drop(pool::queue(raw, None, 20).expect("a queue"))),
        ]
    };
    let (few, many) = (steps(20).await, steps(2_500).await);
    assert_eq!(few, many);
    assert!(few.iter().all(|steps| (10..3_000).contains(steps)), "{few:?}");
}

/// Each with files of its own, and all of them before the only goal of another project.
#[tokio::test]
async fn goals_that_are_all_different_hide_no_other_project_and_cost_no_more_the_more_they_are() {
    let steps = |goals| async move {
        let scratch = Scratch::new();
        let store = scratch.store();
        create(&store, 1, "a", None).await;
        let mut raw = scratch.raw();
        queue_more(&raw, goals);
        give_files_of_their_own(&raw);
        let last = create(&store, 2, "b", None).await;
        let view = store.pool(4).await.expect("a pool");
        assert!(view.queued.iter().any(|goal| goal.goal == last.id));
        let first = store.queue(None, 1).await.expect("a queue");
        assert_eq!(view.queued[0], first[0].goal, "whoever waits longest is there");
        assert!(view.queued.len() <= 64 + 1_024 + 1, "{}", view.queued.len());
        let rest = view.rest.expect("more goals");
        let mut found: BTreeSet<GoalId> = view.queued.iter().map(|goal| goal.goal).collect();
        let mut after = Some(rest);
        while let Some(place) = after {
            let page = store.ready(place, 1_000).await.expect("a page");
            after = page.last().map(|last| (last.rank, last.goal));
            found.extend(page.iter().map(|goal| goal.goal));
        }
        assert_eq!(found.len(), usize::try_from(goals).expect("few") + 2, "none is left out");
        [
            counted(&mut raw, |raw| drop(pool::view(raw, 4).expect("a pool"))),
            counted(&mut raw, |raw| drop(pool::ready(raw, Some(rest), 500).expect("a page"))),
        ]
    };
    let (few, many) = (steps(2_000).await, steps(20_000).await);
    assert_eq!(few, many);
}

/// Those that wait for others come first in the queue, and the ready goal is in the last of too many lanes.
#[tokio::test]
async fn goals_that_wait_for_others_hide_no_ready_one_and_cost_nothing() {
    let steps = |unmet: i64| async move {
        let scratch = Scratch::new();
        let store = scratch.store();
        create(&store, 1, "a", None).await;
        let mut raw = scratch.raw();
        queue_more(&raw, 100 + unmet);
        let waits = "UPDATE pool SET unmet = 1 WHERE rowid > 101";
        assert_eq!(raw.execute(waits, []).expect("an update"), usize::try_from(unmet).expect("few"));
        give_files_of_their_own(&raw);
        let last = create(&store, 2, "a", None).await;
        let behind = "UPDATE pool SET rank = '2030-01-01T00:00:00.000000000Z',
            lane = replace(lane, '\"agent\":\"', '\"agent\":\"zzz') WHERE goal = ?1";
        assert_eq!(raw.execute(behind, [last.id.to_string()]), Ok(1));
        let view = store.pool(4).await.expect("a pool");
        assert!(view.queued.iter().any(|goal| goal.goal == last.id), "{unmet}");
        assert_eq!(view.queued.len(), 102);
        counted(&mut raw, |raw| drop(pool::view(raw, 4).expect("a pool")))
    };
    let (few, many) = (steps(2_000).await, steps(20_000).await);
    assert_eq!(few, many);
}

fn give_files_of_their_own(raw: &Connection) {
    raw.execute(
        "UPDATE pool SET lane = substr(lane, 1, length(lane) - 1) || printf(',\"touches\":[\"src/%s/**\"]}', goal)",
        [],
    )
    .expect("files of their own");
}

/// As many copies of each queued goal, behind it in the queue.
fn queue_more(raw: &Connection, copies: i64) {
    raw.execute_batch("PRAGMA foreign_keys = OFF").expect("only the queue is looked at");
    let more = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
        INSERT INTO pool
        SELECT printf('11932f6e-7c00-7abc-8def-%012x', pool.rowid * 100000 + n), standing, lane, rank, usd_left, unmet
        FROM numbers, pool WHERE standing = 'queued'";
    raw.execute(more, [copies]).expect("more goals");
}

/// How many instructions of SQLite some work takes.
pub(super) fn counted(raw: &mut Connection, work: impl Fn(&Connection)) -> u64 {
    // Statements are prepared before, which is work, too.
    work(raw);
    let steps = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&steps);
    let step = move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    raw.progress_handler(1, Some(step)).expect("a counter");
    work(raw);
    raw.progress_handler(0, None::<fn() -> bool>).expect("no counter");
    steps.load(Ordering::Relaxed)
}

/// Whether its states are in one piece, as the first version had them, or in parts.
#[tokio::test]
async fn an_upgrade_gives_goals_their_places_and_their_times() {
    let new = Scratch::new();
    let store = new.store();
    fill(&store).await;
    let of_first_version = Scratch::new();
    copy_as_first_version(&new, &of_first_version).await;
    let of_sixth_version = Scratch::new();
    let copy = of_sixth_version.database().display().to_string();
    new.raw().execute("VACUUM INTO ?1", [copy]).expect("a copy");
    undo_seventh_version(&of_sixth_version.raw());
    for old in [of_first_version, of_sixth_version] {
        let damage = "UPDATE goals SET goal = 'damaged' WHERE title = 'goal 1'";
        old.raw().execute_batch(damage).expect("damage");
        let upgraded = old.store();
        assert_same(&store, &upgraded).await;
        assert_eq!(number(&old.raw(), "SELECT COUNT(*) FROM unplaced"), 0);
        // As a kill after the change of the tables leaves it.
        let killed =
            "DELETE FROM pool; INSERT INTO unplaced SELECT id FROM goals; INSERT INTO unplaced VALUES ('?');
            UPDATE summaries SET wakes_at = '2020' WHERE wakes_at IS NOT NULL;";
        old.raw().execute_batch(killed).expect("a kill");
        assert_same(&store, &old.store()).await;
        assert_same(&store, &upgraded).await;
    }
}

/// All but the first goal are in the same places of both stores.
async fn assert_same(was: &SqliteStore, is: &SqliteStore) {
    let [mut was_view, is_view] = [was.pool(9).await.expect("a pool"), is.pool(9).await.expect("a pool")];
    was_view.queued.retain(|goal| goal.goal != goal_id(1));
    assert!(!is_view.queued.is_empty() && !is_view.working.is_empty(), "{is_view:#?}");
    assert_eq!(is_view, was_view);
    let wake = is.next_wake().await.expect("an answer");
    assert_eq!(wake, was.next_wake().await.expect("an answer"));
    let due = Listing::due(wake.expect("a time"), 9);
    let listed = is.list(&due).await.expect("a list");
    assert_eq!(listed.iter().map(Listed::id).collect::<Vec<_>>(), [goal_id(5)]);
}

/// Goals that are queued, hold a slot, or wait for a time, and one that is done.
async fn fill(store: &SqliteStore) {
    for number in 1..=2 {
        create(store, number, "a", None).await;
    }
    let mut budgeted = goal(3);
    budgeted.budget.usd = Some(MicroUsd(70));
    budgeted.agents = ["scripted", "other"].map(AgentName::new).to_vec();
    budgeted.labels = vec!["label".to_owned()];
    store
        .create(&budgeted, &GoalState::new(&budgeted), happened(Event::Created, 0))
        .await
        .expect("it is new");
    let running = create(store, 4, "b", None).await;
    let attempts = vec![attempt(running.id, 1, 1, None)];
    let phase = Phase::Running { attempt: AttemptNo::FIRST };
    move_to(store, &running, GoalState { phase, attempts, ..GoalState::new(&running) }).await;
    for (number, until) in [(5, 100_000), (6, 200_000)] {
        let limited = create(store, number, "c", None).await;
        let attempts = vec![attempt(limited.id, 1, 1, Some(2))];
        let phase = Phase::Limited { until: at(until), guessed: false };
        move_to(store, &limited, GoalState { phase, attempts, ..GoalState::new(&limited) }).await;
    }
    let done = create(store, 7, "c", None).await;
    move_to(store, &done, GoalState { phase: Phase::Done, ..GoalState::new(&done) }).await;
}

/// Brings the tables to where the sixth version left them.
pub(super) fn undo_seventh_version(raw: &Connection) {
    undo_ninth_version(raw);
    raw.execute_batch(
        "DROP TABLE pool;
         DROP TABLE prerequisites;
         DROP TABLE notices;
         DROP TABLE replies;
         DROP TABLE unplaced;
         DROP INDEX attempts_by_end;
         DROP INDEX summaries_by_wakes_at;
         ALTER TABLE summaries RENAME COLUMN wakes_at TO wake_at;
         CREATE INDEX summaries_by_wake_at ON summaries (wake_at) WHERE wake_at IS NOT NULL;
         UPDATE summaries SET wake_at = json_extract(standing, '$.phase.until');
         DELETE FROM refinery_schema_history WHERE version > 6;",
    )
    .expect("the tables of the sixth version");
}

#[test]
fn a_sixth_version_that_has_the_database_open_can_move_no_goal() {
    let scratch = Scratch::new();
    let _store = scratch.store();
    let raw = scratch.raw();
    for statement in [
        "INSERT INTO summaries
             (goal, short, repository, created_at, phase, settled, asks, wake_at, about, standing)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        "UPDATE summaries SET phase = ?2, settled = ?3, asks = ?4, wake_at = ?5, standing = ?6
         WHERE goal = ?1 AND standing IS NOT ?6",
    ] {
        let refused = raw.prepare(statement).expect_err("it is refused").to_string();
        assert!(refused.contains("wake_at"), "{refused}");
    }
}

/// The damaged goal is the first of its lane, and its place is as it was after its next change.
#[tokio::test]
async fn a_damaged_place_in_the_queue_hides_no_other_and_is_repaired_by_the_next_change() {
    let columns = [
        ("pool", &["goal", "standing", "lane", "rank", "usd_left", "unmet"][..]),
        ("prerequisites", &["goal", "place", "needs", "need", "met"][..]),
    ];
    for damage in DAMAGES {
        for (table, column) in
            columns.iter().flat_map(|(table, columns)| columns.iter().map(move |column| (table, column)))
        {
            let case = format!("UPDATE {table} SET {column} = {damage} WHERE goal = '{}'", goal_id(2));
            assert_others_wait(&case).await;
        }
    }
}

async fn assert_others_wait(damage: &str) {
    let scratch = Scratch::new();
    let store = scratch.store();
    let needed = create(&store, 1, "a", None).await;
    let done = GoalState { phase: Phase::Done, ..GoalState::new(&needed) };
    move_to(&store, &needed, done).await;
    let bad = create(&store, 2, "a", Some(1)).await;
    for (number, after) in [(3, Some(1)), (4, None), (5, Some(4))] {
        create(&store, number, "a", after).await;
    }
    let raw = scratch.raw();
    raw.execute_batch("PRAGMA foreign_keys = OFF").expect("as the sqlite3 program has it");
    let view = store.pool(9).await.expect("a pool");
    if raw.execute(damage, []).is_err() {
        // The table refuses such a value.
        return;
    }
    let others = |goals: Vec<PoolGoal>| -> Vec<GoalId> {
        goals.iter().map(|goal| goal.goal).filter(|id| *id != bad.id).collect()
    };
    assert_eq!(others(store.pool(9).await.expect("a pool").queued), [3, 4].map(goal_id), "{damage}");
    let first = store.pool(1).await.expect("a pool").queued;
    let is_there = |number| first.iter().any(|goal| goal.goal == goal_id(number));
    assert!(is_there(3) || (is_there(2) && view.queued.contains(&first[0])), "{damage}: {first:?}");
    let queue = store.queue(None, 9).await.expect("a queue");
    assert_eq!(others(queue.into_iter().map(|queued| queued.goal).collect()), [3, 4, 5].map(goal_id));
    assert_eq!(store.unmet(goal_id(3)).await.expect("it is there"), []);
    assert_eq!(store.unmet(goal_id(5)).await.expect("it is there").len(), 1);
    if damage.contains(" pool ") {
        let queued_at = Some(at(-5));
        let again = GoalState { queued_at, ..GoalState::new(&bad) };
        move_to(&store, &bad, again.clone()).await;
        let first = store.pool(1).await.expect("a pool").queued;
        assert_eq!(first, [PoolGoal::of(&bad, &again)], "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_reply_hides_no_other_and_is_not_taken_for_none() {
    let scratch = Scratch::new();
    let (store, raw) = (scratch.store(), scratch.raw());
    let reply = StoredReply { request: "r".into(), status: Some(200), body: "b".into(), at: at(5) };
    for column in ["request", "status", "body", "at"] {
        let mut damaged = 0;
        for damage in DAMAGES {
            for key in ["bad", "good"] {
                store.finish_reply(key, Some(&reply)).await.expect("it is stored");
            }
            let update = format!("UPDATE replies SET {column} = {damage} WHERE key = 'bad'");
            damaged += raw.execute(&update, []).unwrap_or(0);
            let good = store.begin_reply("good", &reply, at(0)).await.expect("it can be read");
            assert_eq!(good, Some(reply.clone()), "{update}");
            let bad = store.begin_reply("bad", &reply, at(0)).await;
            // A time that cannot be read may be too old.
            assert!(column == "at" || !matches!(bad, Ok(None)), "{update}");
        }
        assert!(damaged > 0, "no value could be put in place of {column}");
    }
}

/// What its place depends on is read from the goal only when it has changed.
#[tokio::test]
async fn an_append_that_changes_nothing_about_its_place_leaves_it_alone() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let goal = create(&store, 1, "a", None).await;
    let state = |errors_in_row| GoalState {
        phase: Phase::Preparing,
        baseline: Baseline::Pending,
        errors_in_row,
        ..GoalState::new(&goal)
    };
    let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("free");
    let append_one = |state, last| {
        let step = append(&goal, lease.generation, last, vec![notice("on", 1)]);
        store.append(Append { state, ..step })
    };
    let last = append_one(state(1), towline_core::Seq(1)).await.expect("it fits").last_seq;
    scratch.raw().execute_batch("UPDATE pool SET rank = 'marked'").expect("a mark");
    let last = append_one(state(2), last).await.expect("it fits").last_seq;
    assert_eq!(number(&scratch.raw(), "SELECT COUNT(*) FROM pool WHERE rank = 'marked'"), 1);
    append_one(GoalState { phase: Phase::Queued, ..state(2) }, last).await.expect("it fits");
    assert_eq!(number(&scratch.raw(), "SELECT COUNT(*) FROM pool WHERE rank = 'marked'"), 0);
}

async fn create(store: &SqliteStore, number: u64, project: &str, after: Option<u64>) -> Goal {
    let after = after.map(|number| Prerequisite { goal: goal_id(number), need: Need::Done });
    let after = after.into_iter().collect();
    let mut goal = Goal { scheduling: Scheduling { after, ..Scheduling::default() }, ..goal(number) };
    goal.workspace.repository = project.to_owned();
    store.create(&goal, &GoalState::new(&goal), happened(Event::Created, 0)).await.expect("it is new");
    goal
}

/// Records a state of a goal that nobody holds before or after.
async fn move_to(store: &SqliteStore, goal: &Goal, state: GoalState) {
    let last = store.load(goal.id).await.expect("it is there").last_seq;
    let lease = store.claim(goal.id, &worker("mover"), at(0), at(1), None).await.expect("free");
    let step = append(goal, lease.generation, last, vec![notice("moved", 1)]);
    store.append(Append { state, ..step }).await.expect("it fits");
    store.release(&lease).await.expect("ours");
}
