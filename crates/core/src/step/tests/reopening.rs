//! The operator opens a goal again, takes the work of an ended one, or has it checked once more.

use crate::fixtures::*;
use crate::{
    Axis, Budget, Commit, Effect, End, Event, FailureReason, GoalState, Illegal, Merge, Moved, Outcome,
    Phase, StepOutcome, Timeout,
};

/// A goal that failed because this budget, its only one, is spent.
fn spent(axis: Axis) -> Story {
    let (limit, news) = match axis {
        Axis::Turns => ("turns=1", vec![ended(End::Completed), red_verdict("t1")]),
        Axis::Attempts => ("attempts=1", vec![ended(End::Completed), red_verdict("t1")]),
        Axis::Wall => ("wall=1h", vec![timed_out(Timeout::Wall), ended(crashed())]),
        Axis::Tokens => ("tokens=400", vec![usage(11), ended(crashed())]),
        Axis::Usd => ("usd=0.10", vec![usage(11), ended(crashed())]),
        Axis::Errors => ("errors=1", vec![ended(crashed())]),
        Axis::Denials => ("denials=1", vec![decided(Outcome::Deny), ended(crashed())]),
    };
    let mut budget = Budget::NONE;
    budget.apply(&limit.parse().expect(limit));
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
        let moved = story.receive(dispatched());
        assert_eq!(moved.events, [now_in(Phase::Running { attempt: no(2) })], "{axis}");
    }
}

#[test]
fn failures_in_a_row_need_no_more_budget_to_go_on() {
    for axis in [Axis::Errors, Axis::Denials] {
        let mut story = spent(axis);
        assert_eq!(story.receive(retry(&[])), moved_to(Phase::Queued, &[]));
        assert!(matches!(story.receive(dispatched()).effects[..], [Effect::Launch(_)]), "{axis}");
    }
}

#[test]
fn the_operators_absence_is_no_time_of_the_goals() {
    let mut story = Story::working(goal_limited("wall=1h"));
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
    let effects = vec![Effect::Prepare { round: 2 }];
    assert_eq!(story.receive(dispatched()), Moved { effects, ..moved_to(Phase::Preparing, &[]) });
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
    let mut story = Story::working(goal());
    for _ in 0..2 {
        story.fail_checks("t1");
        story.work_in("s1", true);
    }
    let mut story = story.after(&[ended(End::Completed), red_verdict("t1")]);
    assert_eq!(story.state.phase.name(), "escalated");
    story.receive(retry(&[]));
    let launch = story.go_on();
    assert_prompt(&launch.prompt, &["1 failed"], &[]);
    story.work_in("s1", true);
    story.fail_checks("t1");
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
        assert_eq!(story.receive(dispatched()).effects, [run_checks(2)]);
        assert_eq!(launch_of(story.clone().receive(red_verdict("t1"))).attempt, no(2));
        assert_eq!(story.receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1/2"]));
    }
}

#[test]
fn a_merge_is_remembered_with_its_time_and_changes_nothing_else() {
    let mut story = Story::checking().after(&[green_verdict("t1")]);
    let before = story.state.clone();
    story.wait(60);
    assert_eq!(story.receive(merged("main")), Moved::default());
    let (commit, candidate) = (Commit::new("m"), Commit::new("c-t1"));
    let merge = Merge { into: "main".into(), commit, candidate, at: story.now };
    assert_eq!(story.state, GoalState { merged: Some(merge), ..before });
}

#[test]
fn a_goal_that_is_opened_again_no_longer_counts_as_merged() {
    let mut story = Story::working(goal_without_checks()).after(&[ended(End::Completed), merged("main")]);
    assert_eq!((&story.state.phase, story.state.merged.is_some()), (&Phase::Unproven, true));
    story.receive(retry(&[]));
    assert_eq!((&story.state.phase, &story.state.merged), (&Phase::Queued, &None));
}

#[test]
fn checking_the_work_again_changes_neither_the_phase_nor_the_verdict() {
    let mut story = Story::checking().after(&[green_verdict("t1")]);
    let before = story.state.clone();
    story.wait(60);
    assert_eq!(story.receive(verified("t1")), Moved::default());
    assert_eq!(story.state, before);
}
