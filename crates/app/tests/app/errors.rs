//! Errors of all layers: their class, their message and their hint.

use std::io;

use towline_api::ErrorKind;
use towline_app::{Action, Error, Hint};
use towline_core::{Axis, Commit, GoalId, Illegal, Phase};
use towline_engine::{EngineError, RemovalError};
use towline_store::StoreError;
use towline_workspace::{Unmerged, WorkKind, WorkspaceError};

fn goal() -> GoalId {
    "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("a goal id")
}

fn wrong_phase(phase: &'static str, event: &'static str) -> Error {
    EngineError::Illegal { goal: goal(), illegal: Illegal::WrongPhase { phase, event } }.into()
}

#[test]
fn a_request_in_the_wrong_phase_names_what_can_be_done_instead() {
    let goal = goal();
    let unfinished: Hint =
        [("follow it", Action::Follow(goal)), ("when no engine is running it", Action::Continue(goal))]
            .into();
    for (phase, event, hint) in [
        ("done", "retry", Some([("see what was proven", Action::Show(goal))].into())),
        ("failed", "run", Some([("reopen it", Action::Retry(goal))].into())),
        ("failed", "tell", Some([("reopen it", Action::Retry(goal))].into())),
        ("failed", "retry", Some([("give a check that fails today", Action::RetryWithChecks(goal))].into())),
        ("cancelled", "resume", Some([("reopen it", Action::Retry(goal))].into())),
        ("cancelled", "cancel", None),
        ("paused", "run", Some([("continue it", Action::Resume(Some(goal)))].into())),
        ("paused", "pause", None),
        ("running", "retry", Some(unfinished)),
    ] {
        let error = wrong_phase(phase, event);
        assert_eq!((error.kind(), error.way_out()), (ErrorKind::Usage, hint), "{phase} {event}");
        let message = match (phase, event) {
            ("paused", "pause") | ("cancelled", "cancel") => format!("is already {phase}"),
            ("failed", "tell") => "has failed: no agent will read a message".to_owned(),
            ("failed", _) => format!("has failed: there is nothing to {event}"),
            _ => format!("is {phase}: there is nothing to {event}"),
        };
        assert_eq!(error.message(), format!("goal 456789ab {message}"));
    }
    let replaced = wrong_phase("running", "checks_replaced").message();
    assert_eq!(replaced, "goal 456789ab is running: its checks cannot be replaced now");
}

#[test]
fn a_spent_budget_names_its_axis() {
    let illegal = Illegal::StillSpent { axis: Axis::Usd };
    let error = Error::from(EngineError::Illegal { goal: goal(), illegal });
    assert_eq!(error.message(), "goal 456789ab has spent its budget `usd`");
    assert_eq!(error.way_out(), Some(Action::RaiseBudget(goal(), Axis::Usd).into()));
}

#[test]
fn the_error_for_a_goal_that_is_not_removed_has_the_reason() {
    let commit = Commit::new("0123456789abcdef");
    let work = vec![Unmerged { kind: WorkKind::Branch, commit }];
    let unmerged = Error::not_removed(goal(), Some(&Phase::Done), RemovalError::Unmerged { work });
    assert_eq!(unmerged.kind(), ErrorKind::Person);
    assert!(
        unmerged.message().ends_with(": commits on its branch (up to 0123456789ab)"),
        "{}",
        unmerged.message()
    );
    let Some(Hint::Actions(actions)) = unmerged.way_out() else { panic!("actions") };
    let actions: Vec<Action> = actions.into_iter().map(|(_, action)| action).collect();
    assert_eq!(actions, [Action::Merge(goal()), Action::Diff(goal()), Action::RemoveByForce(goal())]);

    // What is not proven would not be merged.
    let work = vec![Unmerged { kind: WorkKind::Branch, commit: Commit::new("0123456789abcdef") }];
    let failed = Error::not_removed(goal(), Some(&Phase::Cancelled), RemovalError::Unmerged { work });
    let Some(Hint::Actions(actions)) = failed.way_out() else { panic!("actions") };
    let actions: Vec<Action> = actions.into_iter().map(|(_, action)| action).collect();
    assert_eq!(actions, [Action::Diff(goal()), Action::RemoveByForce(goal())]);

    let busy = Error::not_removed(
        goal(),
        Some(&Phase::Done),
        RemovalError::Engine(EngineError::Busy { goal: goal() }),
    );
    assert_eq!(busy.message(), "goal 456789ab was not removed: something works on it");
    assert_eq!(busy.way_out(), Some([("end it first", Action::Cancel(goal()))].into()));

    let gone = Error::not_removed(
        goal(),
        Some(&Phase::Done),
        RemovalError::Engine(StoreError::NotFound(goal()).into()),
    );
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[test]
fn git_and_the_disk_are_not_the_users_fault_and_the_repository_is_theirs() {
    let disk = WorkspaceError::Io { action: "read", path: "x".into(), source: io::Error::other("broken") };
    assert_eq!(Error::from(disk).kind(), ErrorKind::Internal);
    let none = WorkspaceError::NotARepository { path: "x".into() };
    assert_eq!(Error::from(none).kind(), ErrorKind::Usage);
}
