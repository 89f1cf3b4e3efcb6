//! Lists and lookups: by index, also over goals of the first version and beside goals that cannot be read.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use towline_core::{Event, GoalState, Phase, Seq};

use super::super::lists::Query;
use super::earlier::copy_as_first_version;
use super::{Scratch, plan, texts};
use crate::conformance::samples::{append, at, attempt, claimed, created, goal, goal_id, happened, question};
use crate::{Append, Cursor, GoalSummary, Listed, Listing, Order, Store, StoreError, load_all};

#[test]
fn no_query_reads_every_row_of_a_table() {
    let scratch = Scratch::new();
    let _store = scratch.store();
    let raw = scratch.raw();
    let after = Some(Cursor { created_at: at(1), id: goal_id(1) });
    let page = || Listing { after, ..Listing::first(20) };
    let repository = || Some("repository".to_owned());
    let queries = [
        ("a page", Query::list(&page()), "summaries_by_age"),
        ("the oldest", Query::list(&Listing { order: Order::OldestFirst, ..page() }), "summaries_by_age"),
        ("a repository", Query::list(&Listing { repository: repository(), ..page() }), "by_repository"),
        ("runnable", Query::list(&Listing::runnable(20)), "summaries_by_phase"),
        ("phases", Query::list(&Listing { phases: vec!["done", "failed"], ..page() }), "summaries_by_phase"),
        ("settled", Query::list(&Listing { settled: Some(true), ..page() }), "summaries_by_settled"),
        ("due", Query::list(&Listing::due(at(1), 20)), "summaries_by_wakes_at"),
        ("due in pages", Query::list(&Listing { due: Some(at(1)), ..page() }), "summaries_by_wakes_at"),
        ("held", Query::list(&Listing { held: true, ..page() }), "sqlite_autoindex_summaries_1"),
        ("questions", Query::list(&Listing { asks: true, ..page() }), "summaries_by_asks"),
        ("an id", Query::find("01932f6e", "short", 11), "summaries_by_short_id"),
    ];
    for (what, query, index) in queries {
        let plan = plan(&raw, &query.sql, &query.values);
        let by_index = |step: &String| step.starts_with("SEARCH summaries") && step.contains(index);
        assert!(plan.iter().any(by_index), "{what} is not found by {index}: {plan:#?}");
        let is_scan = |step: &&String| {
            // Leases are few: one for each goal that somebody drives.
            step.starts_with("SCAN") && !step.contains("SCAN leases") && !step.contains("SCAN (subquery")
        };
        assert_eq!(plan.iter().find(is_scan), None, "{what}: {plan:#?}");
    }
    let first = Query::list(&Listing::first(20));
    let first = plan(&raw, &first.sql, &first.values);
    assert!(first[0].contains("SCAN summaries USING INDEX summaries_by_age"), "{first:#?}");
    assert!(!first.iter().any(|step| step.contains("TEMP B-TREE")), "{first:#?}");
}

/// Not only what was created by this version, and not only what was moved since.
#[tokio::test]
async fn goals_of_the_first_version_are_listed_and_found() {
    let (old, new) = (Scratch::new(), Scratch::new());
    let store = new.store();
    let (moved, lease) = claimed(&store, 1).await;
    let state = GoalState {
        phase: Phase::Cancelled,
        attempts: vec![attempt(moved.id, 1, 1, Some(2))],
        questions: vec![question()],
        ..GoalState::new(&moved)
    };
    let step = Append { state, ..append(&moved, lease.generation, Seq(1), vec![]) };
    store.append(step).await.expect("it fits");
    created(&store, 2).await;
    created(&store, 3).await;
    copy_as_first_version(&new, &old).await;
    old.raw().execute_batch("UPDATE goals SET goal = 'damaged' WHERE title = 'goal 3'").expect("damage");

    const GOALS: &str = "SELECT id || goal || state FROM goals ORDER BY id";
    let before = texts(&old.raw(), GOALS);
    let upgraded = old.store();
    let copy = old.0.path().join("towline.db.v1");
    assert_eq!(texts(&Connection::open(&copy).expect("a copy"), GOALS), before);
    assert_eq!(fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777, 0o600);
    let mut files: Vec<_> =
        fs::read_dir(old.0.path()).expect("files").map(|file| file.expect("a file").file_name()).collect();
    files.sort();
    assert_eq!(files, ["towline.db", "towline.db-shm", "towline.db-wal", "towline.db.v1"]);
    let listed = upgraded.list(&Listing::first(9)).await.expect("a list");
    assert!(matches!(&listed[0], Listed::Unreadable(bad) if bad.id == goal_id(3)), "{listed:#?}");
    assert_eq!(listed[1..], store.list(&Listing::first(9)).await.expect("a list")[1..]);
    let done =
        Listing { settled: Some(true), repository: Some("repository".to_owned()), ..Listing::first(9) };
    assert_eq!(upgraded.list(&done).await.expect("a list"), store.list(&done).await.expect("a list"));
    let asking = Listing { asks: true, ..Listing::first(9) };
    assert_eq!(upgraded.list(&asking).await.expect("a list"), store.list(&asking).await.expect("a list"));
    assert_eq!(upgraded.list(&asking).await.expect("a list").len(), 1);
    let found = upgraded.find(&goal_id(1).short(), 9).await.expect("an answer");
    assert_eq!(found, store.find(&goal_id(1).short(), 9).await.expect("an answer"));
    let back = Append { state: GoalState::new(&moved), ..append(&moved, lease.generation, Seq(1), vec![]) };
    upgraded.append(back).await.expect("it can be moved");
    let record = upgraded.load(moved.id).await.expect("it is there");
    let found = upgraded.find(&moved.id.to_string(), 9).await.expect("an answer");
    assert_eq!(found, [Listed::Goal(Box::new(GoalSummary::of(&record)))]);
}

#[tokio::test]
async fn a_goal_that_cannot_be_read_hides_no_other() {
    for damage in [
        "UPDATE parts SET body = '{\"phase\":' WHERE goal = ?1",
        "UPDATE goals SET goal = '' WHERE id = ?1",
        "UPDATE parts SET body = x'00ff' WHERE goal = ?1",
        "INSERT INTO parts (goal, path, body) VALUES (?1, 'attempts/000000000', '?')",
    ] {
        let scratch = Scratch::new();
        let store = scratch.store();
        for number in 1..=3 {
            created(&store, number).await;
        }
        let bad = goal_id(2);
        scratch.raw().execute(damage, [bad.to_string()]).expect("somebody changes it");
        let listed = store.list(&Listing::first(9)).await.expect("a list");
        let [Listed::Goal(_), Listed::Unreadable(row), Listed::Goal(_)] = &*listed else {
            panic!("{damage}: {listed:#?}")
        };
        assert_eq!((row.id, row.created_at), (bad, at(2)));
        assert!(row.why.contains(&bad.to_string()), "{}", row.why);
        assert!(matches!(store.find(&bad.to_string(), 2).await.as_deref(), Ok([Listed::Unreadable(_)])));
        let refused = store.load(bad).await;
        assert!(matches!(refused, Err(StoreError::Unreadable { goal, .. }) if goal == bad), "{refused:?}");
        let all = load_all(&store, Listing::all()).await.expect("the others can be read");
        assert_eq!(all.records.iter().map(|record| record.goal.id).collect::<Vec<_>>(), [3, 1].map(goal_id));
        assert_eq!(all.unreadable.iter().map(|row| row.id).collect::<Vec<_>>(), [bad]);
        store.load(goal_id(1)).await.expect("another goal is as it was");
    }
}

#[tokio::test]
async fn a_summary_that_cannot_be_read_is_made_from_the_goal() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.create(&goal(1), &GoalState::new(&goal(1)), happened(Event::Created, 0)).await.expect("it is new");
    let before = store.list(&Listing::first(9)).await.expect("a list");
    scratch.raw().execute_batch("UPDATE summaries SET about = '{}', standing = '?'").expect("damage");
    assert_eq!(store.list(&Listing::first(9)).await.expect("a list"), before);
}
