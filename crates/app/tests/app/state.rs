//! What is stored: how it is counted, and how leftovers are found.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use towline_api::CheckoutFacts;
use towline_app::inspect::{Mark, diagnose};
use towline_app::remove_leftovers;
use towline_core::{FailureReason, Phase};

use crate::desk::Desk;

#[tokio::test]
async fn workspaces_count_as_state() {
    let desk = Desk::new("");
    let goal = desk.store_goal().await;
    assert_eq!(diagnose(&desk.context()).await.report.store.workspaces, CheckoutFacts::default());

    let workspace = desk.home.towline().join("workspaces").join(goal.id.to_string());
    fs::create_dir_all(workspace.join("src")).expect("a workspace");
    fs::write(workspace.join("src/large"), vec![0_u8; 3 << 20]).expect("a file");
    let diagnosis = diagnose(&desk.context()).await;
    assert_eq!(diagnosis.report.store.workspaces, CheckoutFacts { goals: 1, bytes: 3 << 20 });
    let (_, rows) = diagnosis.sections.iter().find(|(name, _)| *name == "store").expect("a section");
    let row = rows.iter().find(|row| row.label == "workspaces").expect("a row");
    assert!(row.mark == Mark::Plain && row.text.starts_with("3.1 MB in 1"), "{row:?}");
}

#[tokio::test]
async fn a_search_for_leftovers_reports_how_many_goals_it_has_looked_at() {
    let desk = Desk::new("");
    for _ in 0..3 {
        desk.store_goal().await;
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let seen = Arc::clone(&seen);
        move |done, all| seen.lock().expect("unharmed").push((done, all))
    };
    let now = Timestamp::UNIX_EPOCH;
    let found = remove_leftovers(&desk.context(), Some(Duration::ZERO), true, now, progress).await;
    let report = found.expect("found").report();
    assert_eq!((report.dry_run, report.bytes, report.removed), (true, 0, Vec::new()));
    assert_eq!(*seen.lock().expect("unharmed"), [(0, 3), (1, 3), (2, 3), (3, 3)]);
}

#[tokio::test]
async fn a_goal_whose_checks_passed_before_any_work_keeps_its_workspace_for_a_retry() {
    let desk = Desk::new("");
    let goal = desk
        .store_goal_as(|state| {
            state.phase = Phase::Failed { reason: FailureReason::GreenBefore };
            state.settled_at = Some(Timestamp::UNIX_EPOCH);
        })
        .await;
    let workspace = desk.home.towline().join("workspaces").join(goal.id.to_string());
    fs::create_dir_all(&workspace).expect("a workspace");
    let found = remove_leftovers(&desk.context(), None, false, Timestamp::UNIX_EPOCH, |_, _| {}).await;
    let report = found.expect("found").report();
    assert_eq!((report.removed, report.spared.len()), (Vec::new(), 1));
    assert!(workspace.exists() && report.spared[0].why.contains("towline retry"), "{:?}", report.spared);
}

#[tokio::test]
async fn without_a_state_directory_there_are_no_leftovers_and_nothing_is_made() {
    let desk = Desk::new("");
    let now = Timestamp::UNIX_EPOCH;
    let found = remove_leftovers(&desk.context(), None, false, now, |_, _| {}).await.expect("found");
    assert_eq!((found.retention, found.notices), (Duration::from_secs(30 * 24 * 3_600), vec![]));
    assert!(found.findings.waste.is_empty() && !desk.home.towline().join("towline.db").exists());
}
