//! The operator opens a goal again.

use std::time::Duration;

use crate::fixtures::*;
use crate::{
    Axis, Budget, Effect, End, Event, FailureReason, GoalState, Illegal, Moved, Outcome, Phase, StepOutcome,
    Timeout,
};

/// A goal that failed because this budget, its only one, is spent.
fn spent(axis: Axis) -> Story {
    let (budget, news) = match axis {
        Axis::Turns => {
            (Budget { turns: Some(1), ..Budget::NONE }, vec![ended(End::Completed), red_verdict("t1")])
        }
        Axis::Attempts => {
            (Budget { attempts: Some(1), ..Budget::NONE }, vec![ended(End::Completed), red_verdict("t1")])
        }
        Axis::Wall => {
            let wall = Some(Duration::from_secs(3_600));
            (Budget { wall, ..Budget::NONE }, vec![timed_out(Timeout::Wall), ended(crashed())])
        }
        Axis::Tokens => {
            (Budget { tokens: Some(used(10).tokens()), ..Budget::NONE }, vec![usage(11), ended(crashed())])
        }
        Axis::Usd => (Budget { usd: Some(used(10).cost), ..Budget::NONE }, vec![usage(11), ended(crashed())]),
        Axis::Errors => (Budget { errors: Some(1), ..Budget::NONE }, vec![ended(crashed())]),
        Axis::Denials => {
            (Budget { denials: Some(1), ..Budget::NONE }, vec![decided(Outcome::Deny), ended(crashed())])
        }
    };
    let mut story = Story::working(goal_with(budget));
    story.wait(3_600);
    let story = story.after(&news);
    assert_eq!(story.state.phase, Phase::Failed { reason: FailureReason::Budget { axis } });
    story
}

#[test]
fn a_reopened_goal_is_queued_with_its_rows_of_failures_forgotten() {
    let mut story = Story::escalated();
    story.state.errors_in_row = 1;
    story.state.failed_starts_in_row = 2;
    story.state.same_failure_in_row = 3;
    story.state.denials_in_row = 4;
    let before = story.state.clone();
    story.wait(60);
    let moved = story.receive(retry(&["attempts=+5", "usd=2.50"]));
    assert_eq!(moved, moved_to(Phase::Queued, &[]));
    let expected = GoalState {
        phase: Phase::Queued,
        budget: Budget { attempts: Some(15), usd: Some(crate::MicroUsd(2_500_000)), ..Budget::default() },
        first_started_at: Some(at(60)),
        queued_at: Some(at(60)),
        settled_at: None,
        errors_in_row: 0,
        failed_starts_in_row: 0,
        same_failure_in_row: 0,
        denials_in_row: 0,
        ..before
    };
    assert_eq!(story.state, expected);
}

#[test]
fn a_goal_whose_budget_is_still_spent_stays_closed_and_names_the_budget() {
    for axis in [Axis::Turns, Axis::Attempts, Axis::Wall, Axis::Tokens, Axis::Usd] {
        let mut story = spent(axis);
        let before = story.state.clone();
        // However late the operator comes, what is suggested must do.
        story.wait(7 * 3_600);
        let StepOutcome::Illegal(illegal) = story.offer(retry(&["errors=+1"])) else {
            panic!("a spent {axis} was opened again");
        };
        assert_eq!(illegal, Illegal::StillSpent { axis });
        assert_eq!(story.state, before);

        assert_eq!(story.receive(retry(&[axis.suggestion()])), moved_to(Phase::Queued, &[]));
        let moved = story.receive(Event::Dispatched);
        assert_eq!(moved.events, [now_in(Phase::Running { attempt: no(2) })], "{axis}");
    }
}

#[test]
fn failures_in_a_row_need_no_more_budget_to_go_on() {
    for axis in [Axis::Errors, Axis::Denials] {
        let mut story = spent(axis);
        assert_eq!(story.receive(retry(&[])), moved_to(Phase::Queued, &[]));
        assert!(matches!(story.receive(Event::Dispatched).effects[..], [Effect::Launch(_)]), "{axis}");
    }
}

#[test]
fn the_operators_absence_is_no_time_of_the_goals() {
    let wall = Some(Duration::from_secs(3_600));
    let mut story = Story::working(goal_with(Budget { wall, ..Budget::default() }));
    story.wait(1_000);
    story.receive(ended(End::Declined { message: String::new() }));
    story.wait(100_000);
    story.receive(Event::CancelRequested);
    story.wait(100_000);
    story.receive(retry(&[]));
    let left = story.state.wall_ends().map(|ends| ends.duration_since(story.now).as_secs());
    assert_eq!(left, Some(2_600));
}

#[test]
fn a_setup_that_failed_is_tried_again_under_another_key() {
    let mut story = Story::preparing(goal()).after(&[prepare_failed(), retry(&[])]);
    let expected = Moved {
        events: vec![now_in(Phase::Preparing)],
        effects: vec![Effect::Prepare { round: 2 }],
        ..Moved::default()
    };
    assert_eq!(story.receive(Event::Dispatched), expected);
    let moved = story.receive(prepared());
    assert_eq!(moved.settled, keys(&["prepare/2"]));
    assert_eq!(launch_of(moved).attempt, no(1));
}

#[test]
fn a_cancelled_goal_goes_on_in_its_session_and_hears_that_it_was_interrupted() {
    let story = Story::working(goal()).after(&[Event::CancelRequested, ended(crashed()), retry(&[])]);
    let launch = story.clone().go_on();
    assert_eq!(launch.session, resumed());
    assert_prompt(&launch.prompt, &["did not come to its end (cancelled)"], &[]);
}

#[test]
fn an_agent_that_ended_well_gets_no_note_of_an_interruption() {
    let unproven = Story::working(goal_without_checks()).after(&[ended(End::Completed)]);
    let unchecked = Story::checking().after(&[Event::ChecksFailed { error: "no space".into() }]);
    for mut story in [unproven, unchecked] {
        story.receive(retry(&[]));
        let launch = story.go_on();
        assert_eq!(launch.session, resumed());
        let prompt = "# Opened again\n\nYour last turn came to its end, but it is not proven that the goal is \
                      reached, and it was opened again. Look at what is in the directory, then finish what is missing.";
        assert_eq!(launch.prompt, prompt);
    }
}

#[test]
fn no_progress_is_counted_anew_after_a_reopening() {
    let mut story = Story::checking();
    for _ in 0..2 {
        story.receive(red_verdict("t1"));
        story.work_in("s1", true);
        story.receive(ended(End::Completed));
    }
    story.receive(red_verdict("t1"));
    assert_eq!(story.state.phase.name(), "escalated");
    story.receive(retry(&[]));
    let launch = story.go_on();
    assert_prompt(&launch.prompt, &["1 failed"], &[]);
    story.work_in("s1", true);
    story.receive(ended(End::Completed));
    story.receive(red_verdict("t1"));
    assert_eq!((story.state.phase.name(), story.state.same_failure_in_row), ("running", 1));
}

#[test]
fn a_goal_that_needs_a_person_goes_on_after_a_message_and_a_retry() {
    let mut story = Story::checking().after(&[Event::ChecksFailed { error: "no space".into() }]);
    assert_eq!(story.state.phase.name(), "escalated");
    assert_eq!(story.receive(message_sent("look at the disk")), moved_to(Phase::Queued, &[]));
    story.receive(retry(&["attempts=+3"]));
    assert_eq!(story.state.phase, Phase::Queued);
    let prompt = story.go_on().prompt;
    assert!(prompt.contains("look at the disk"), "{prompt}");
}

#[test]
fn work_whose_checks_were_cancelled_is_checked_first() {
    for news in [Event::Stopped, green_verdict("t1")] {
        let mut story = Story::checking().after(&[Event::CancelRequested, news]);
        assert_eq!(story.state.phase, Phase::Cancelled);
        story.receive(retry(&[]));
        let moved = story.receive(Event::Dispatched);
        assert_eq!(moved.effects, [Effect::RunChecks { attempt: no(1), round: 2 }]);
        assert_eq!(launch_of(story.clone().receive(red_verdict("t1"))).attempt, no(2));
        assert_eq!(story.receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1/2"]));
    }
}
