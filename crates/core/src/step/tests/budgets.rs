//! What happens when a budget is spent.

use std::time::Duration;

use crate::fixtures::*;
use crate::{
    Axis, Budget, Clock, Effect, End, Event, FailureReason, MicroUsd, Moved, Outcome, Phase, StopWhy,
    Stopping, Tokens,
};

fn failed(axis: Axis) -> Phase {
    Phase::Failed { reason: FailureReason::Budget { axis } }
}

fn stopped_for(axis: Axis) -> Moved {
    let stopping = Stopping { attempt: Some(no(1)), why: StopWhy::Budget { axis } };
    Moved {
        events: vec![now_in(Phase::Stopping(stopping))],
        effects: vec![Effect::Stop { work: "launch/1".into() }],
        ..Moved::default()
    }
}

#[test]
fn spent_attempts_fail_the_goal_and_keep_the_verdict() {
    let budget = Budget { attempts: Some(1), ..Budget::default() };
    let mut story = Story::working(goal_with(budget)).after(&[ended(End::Completed)]);
    assert_eq!(story.tell(red_verdict("t1")), moved_to(failed(Axis::Attempts), &["checks/1"]));
    assert_eq!(story.last().verdict, Some(verdict("t1", vec![red("tests", "1 failed")])));
}

#[test]
fn a_budget_of_nothing_fails_before_the_first_attempt() {
    let mut story = Story::preparing(goal_with(Budget { attempts: Some(0), ..Budget::default() }));
    assert_eq!(story.tell(prepared()), moved_to(failed(Axis::Attempts), &["prepare/1"]));
    assert_eq!(story.state.attempts, []);
}

#[test]
fn attempts_that_cost_none_do_not_spend_the_budget() {
    let mut story = Story::working(goal_with(Budget { attempts: Some(1), ..Budget::default() }));
    for _ in 0..12 {
        story.tell(ended(End::RateLimited { until: None }));
        story.go_on();
        story.work_in("s1", true);
    }
    assert_eq!((story.state.attempts.len(), story.state.attempts_spent()), (13, 1));
}

#[test]
fn usage_that_reaches_a_budget_stops_the_agent_in_the_middle_of_its_turn() {
    for (axis, budget) in [
        (Axis::Tokens, Budget { tokens: Some(Tokens(120)), ..Budget::default() }),
        (Axis::Usd, Budget { usd: Some(MicroUsd(30_000)), ..Budget::default() }),
    ] {
        let mut story = Story::working(goal_with(budget));
        assert_eq!(story.tell(usage(2)), Moved::default());
        assert_eq!(story.tell(usage(1)), stopped_for(axis));
        let moved = story.tell(ended(crashed()));
        assert_eq!(moved, moved_after_stop(failed(axis), 1, End::OverBudget));
        assert_eq!(story.last().end, Some(End::OverBudget));
        assert_eq!((story.state.usage(), story.state.attempts_spent()), (used(3), 1));
    }
}

#[test]
fn usage_adds_up_over_attempts() {
    let mut story = Story::working(goal_with(Budget { usd: Some(MicroUsd(30_000)), ..Budget::default() }));
    story.tell(usage(2));
    story.tell(ended(crashed()));
    story.go_on();
    story.work_in("s1", true);
    story.tell(usage(1));
    let why = StopWhy::Budget { axis: Axis::Usd };
    assert_eq!(story.state.phase, Phase::Stopping(Stopping { attempt: Some(no(2)), why }));
}

#[test]
fn the_wall_clock_stops_the_agent_and_fails_the_goal() {
    let mut story =
        Story::working(goal_with(Budget { wall: Some(Duration::from_secs(60)), ..Budget::default() }));
    story.now = story.state.wall_ends().expect("an end of time");
    assert_eq!(story.tell(ran_out(Clock::Wall)), stopped_for(Axis::Wall));
    let moved = story.tell(ended(crashed()));
    assert_eq!(moved, moved_after_stop(failed(Axis::Wall), 1, End::OverBudget));
    assert_eq!(story.last().end, Some(End::OverBudget));
}

#[test]
fn time_counts_from_the_first_dispatch_and_while_the_goal_waits_by_itself() {
    let mut story =
        Story::of(goal_with(Budget { wall: Some(Duration::from_secs(3_600)), ..Budget::default() }));
    story.wait(10_000);
    let mut story = story.after(&[Event::Dispatched, prepared()]);
    story.work_in("s1", false);
    story.tell(ended(End::RateLimited { until: Some(story.now + Duration::from_secs(3_600)) }));
    story.wait(3_600);
    story.tell(Event::Woken);
    assert_eq!(story.tell(Event::Dispatched), moved_to(failed(Axis::Wall), &[]));
}

#[test]
fn spent_turns_fail_the_goal_before_the_next_one_but_not_within_one() {
    let mut story = Story::working(goal_with(Budget { turns: Some(1), ..Budget::default() }));
    assert_eq!(story.tell(usage(1)), Moved::default());
    story.tell(ended(End::Completed));
    assert_eq!(story.tell(red_verdict("t1")), moved_to(failed(Axis::Turns), &["checks/1"]));
}

#[test]
fn five_bad_endings_in_a_row_fail_the_goal() {
    let mut story = Story::working(goal());
    for _ in 0..4 {
        story.tell(ended(End::ServerError { status: Some(500), message: String::new() }));
        story.go_on();
        story.work_in("s1", true);
    }
    let moved = story.tell(ended(crashed()));
    assert_eq!(moved, moved_to(failed(Axis::Errors), &["launch/5"]));
}

#[test]
fn an_agents_own_caps_are_bad_endings_but_their_work_is_checked() {
    let mut story = Story::working(goal());
    for n in 1..5 {
        story.tell(ended(if n % 2 == 0 { End::MaxTurns } else { End::MaxBudget }));
        story.tell(red_verdict(&format!("t{n}")));
        story.work_in("s1", true);
    }
    story.tell(ended(End::MaxTurns));
    assert_eq!(story.state.phase, Phase::Checking { attempt: no(5) });
    let mut met = story.clone();
    assert_eq!(met.tell(green_verdict("t5")), moved_to(Phase::Done, &["checks/5"]));
    assert_eq!(story.tell(red_verdict("t5")), moved_to(failed(Axis::Errors), &["checks/5"]));
}

#[test]
fn five_refused_permissions_in_a_row_stop_the_agent() {
    let mut story = Story::working(goal());
    for _ in 0..4 {
        assert_eq!(story.tell(decided(Outcome::Deny)), Moved::default());
    }
    assert_eq!(story.tell(decided(Outcome::Deny)), stopped_for(Axis::Denials));
    let moved = story.tell(ended(crashed()));
    assert_eq!(moved, moved_after_stop(failed(Axis::Denials), 1, End::OverBudget));
}

#[test]
fn a_spent_budget_is_the_reason_even_when_there_was_no_progress_either() {
    let mut story = Story::working(goal_with(Budget { attempts: Some(3), ..Budget::default() }));
    for _ in 0..2 {
        story.tell(ended(End::Completed));
        story.tell(red_verdict("t1"));
        story.work_in("s1", true);
    }
    story.tell(ended(End::Completed));
    assert_eq!(story.tell(red_verdict("t1")), moved_to(failed(Axis::Attempts), &["checks/3"]));
}
