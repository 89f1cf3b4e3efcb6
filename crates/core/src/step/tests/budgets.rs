//! What happens when a budget is spent.

use std::time::Duration;

use jiff::SignedDuration;

use crate::fixtures::*;
use crate::{
    Axis, Budget, Effect, End, Event, FailureReason, Goal, Illegal, MicroUsd, Moved, Outcome, Phase, Stamp,
    StepOutcome, StopWhy, Stopping, Timeout, Tokens,
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
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Attempts), &["checks/1"]));
    assert_eq!(story.last().verdict, Some(verdict("t1", vec![red("tests", "1 failed")])));
}

#[test]
fn a_budget_of_nothing_fails_before_the_first_attempt() {
    let mut story = Story::preparing(goal_with(Budget { attempts: Some(0), ..Budget::default() }));
    assert_eq!(story.receive(prepared()), moved_to(failed(Axis::Attempts), &["prepare/1"]));
    assert_eq!(story.state.attempts, []);
}

#[test]
fn attempts_that_cost_none_do_not_spend_the_budget() {
    let mut story = Story::working(goal_with(Budget { attempts: Some(1), ..Budget::default() }));
    for _ in 0..12 {
        story.receive(ended(End::RateLimited { until: None }));
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
        assert_eq!(story.receive(usage(2)), Moved::default());
        assert_eq!(story.receive(usage(1)), stopped_for(axis));
        let moved = story.receive(ended(crashed()));
        assert_eq!(moved, moved_after_stop(failed(axis), 1, End::OverBudget));
        assert_eq!(story.last().end, Some(End::OverBudget));
        assert_eq!((story.state.usage(), story.state.attempts_spent()), (used(3), 1));
    }
}

#[test]
fn usage_adds_up_over_attempts() {
    let mut story = Story::working(goal_with(Budget { usd: Some(MicroUsd(30_000)), ..Budget::default() }));
    story.receive(usage(2));
    story.receive(ended(crashed()));
    story.go_on();
    story.work_in("s1", true);
    story.receive(usage(1));
    let why = StopWhy::Budget { axis: Axis::Usd };
    assert_eq!(story.state.phase, Phase::Stopping(Stopping { attempt: Some(no(2)), why }));
}

#[test]
fn the_wall_timeout_stops_the_agent_and_fails_the_goal() {
    let mut story = Story::working(goal_with(wall(60)));
    story.now = story.state.wall_ends().expect("an end of time");
    assert_eq!(story.receive(timed_out(Timeout::Wall)), stopped_for(Axis::Wall));
    let moved = story.receive(ended(crashed()));
    assert_eq!(moved, moved_after_stop(failed(Axis::Wall), 1, End::OverBudget));
    assert_eq!(story.last().end, Some(End::OverBudget));
}

#[test]
fn time_counts_from_the_first_dispatch_and_while_the_goal_waits_by_itself() {
    let mut story = Story::of(goal_with(wall(3_600)));
    story.wait(10_000);
    let mut story = story.after(&[Event::Dispatched, prepared()]);
    story.work_in("s1", false);
    story.receive(ended(End::RateLimited { until: Some(story.now + Duration::from_secs(3_600)) }));
    story.wait(3_600);
    story.receive(Event::Woken);
    assert_eq!(story.receive(Event::Dispatched), moved_to(failed(Axis::Wall), &[]));
}

#[test]
fn spent_turns_fail_the_goal_before_the_next_one_but_not_within_one() {
    let mut story = Story::working(goal_with(Budget { turns: Some(1), ..Budget::default() }));
    assert_eq!(story.receive(usage(1)), Moved::default());
    story.receive(ended(End::Completed));
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Turns), &["checks/1"]));
}

#[test]
fn five_bad_endings_in_a_row_fail_the_goal() {
    let mut story = Story::working(goal());
    for _ in 0..4 {
        story.receive(usage(1));
        story.receive(ended(End::ServerError { status: Some(500), message: String::new() }));
        story.go_on();
        story.work_in("s1", true);
    }
    let moved = story.receive(ended(crashed()));
    assert_eq!(moved, moved_to(failed(Axis::Errors), &["launch/5"]));
}

#[test]
fn an_agents_own_caps_are_bad_endings_but_their_work_is_checked() {
    let mut story = Story::working(goal());
    for n in 1..5 {
        story.receive(ended(if n % 2 == 0 { End::MaxTurns } else { End::MaxBudget }));
        story.receive(red_verdict(&format!("t{n}")));
        story.work_in("s1", true);
    }
    story.receive(ended(End::MaxTurns));
    assert_eq!(story.state.phase, Phase::Checking { attempt: no(5) });
    let mut met = story.clone();
    assert_eq!(met.receive(green_verdict("t5")), moved_to(Phase::Done, &["checks/5"]));
    assert_eq!(story.receive(red_verdict("t5")), moved_to(failed(Axis::Errors), &["checks/5"]));
}

#[test]
fn five_refused_permissions_in_a_row_stop_the_agent() {
    let mut story = Story::working(goal());
    for _ in 0..4 {
        assert_eq!(story.receive(decided(Outcome::Deny)), Moved::default());
    }
    assert_eq!(story.receive(decided(Outcome::Deny)), stopped_for(Axis::Denials));
    let moved = story.receive(ended(crashed()));
    assert_eq!(moved, moved_after_stop(failed(Axis::Denials), 1, End::OverBudget));
}

#[test]
fn a_spent_budget_is_the_reason_even_when_there_was_no_progress_either() {
    let mut story = Story::working(goal_with(Budget { attempts: Some(3), ..Budget::default() }));
    for _ in 0..2 {
        story.receive(ended(End::Completed));
        story.receive(red_verdict("t1"));
        story.work_in("s1", true);
    }
    story.receive(ended(End::Completed));
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Attempts), &["checks/3"]));
}

/// A budget that is spent in the middle of a turn, and the news that spends it.
fn spent_while_working() -> [(Axis, Budget, Vec<Event>); 3] {
    [
        (Axis::Tokens, Budget { tokens: Some(Tokens(40)), ..Budget::default() }, vec![usage(1)]),
        (Axis::Usd, Budget { usd: Some(MicroUsd(10_000)), ..Budget::default() }, vec![usage(1)]),
        (Axis::Denials, Budget::default(), vec![decided(Outcome::Deny); 5]),
    ]
}

fn checking(story: &Story) -> Phase {
    Phase::Checking { attempt: story.last().n }
}

#[test]
fn a_turn_that_finished_over_budget_gets_its_verdict() {
    for (axis, budget, news) in spent_while_working() {
        let mut story = Story::working(goal_with(budget)).after(&news);
        story.receive(turn_ended("done"));
        let moved = story.receive(ended_with_work(End::Completed));
        assert_eq!(moved.effects, [Effect::RunChecks { attempt: no(1), round: 1 }], "{axis}");
        assert_eq!((story.last().end.clone(), &story.state.phase), (Some(End::Completed), &checking(&story)));
        assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1"]));
        assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(axis), &["checks/1"]));
        assert_eq!(story.last().verdict, Some(verdict("t1", vec![red("tests", "1 failed")])));
    }
}

#[test]
fn work_of_an_attempt_that_was_stopped_over_budget_gets_its_verdict() {
    for (axis, budget, news) in spent_while_working() {
        let mut story = Story::working(goal_with(budget)).after(&news);
        // What it does while it is being ended does not give the budget back.
        story.receive(decided(Outcome::Allow));
        story.receive(ended_with_work(crashed()));
        assert_eq!(
            (story.last().end.clone(), &story.state.phase),
            (Some(End::OverBudget), &checking(&story))
        );
        assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1"]));
        assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(axis), &["checks/1"]));
    }
}

#[test]
fn work_of_a_last_attempt_that_ended_badly_gets_its_verdict() {
    for (axis, budget) in [
        (Axis::Turns, Budget { turns: Some(1), ..Budget::default() }),
        (Axis::Attempts, Budget { attempts: Some(1), ..Budget::default() }),
        (Axis::Errors, Budget { errors: Some(1), ..Budget::default() }),
    ] {
        let mut story = Story::working(goal_with(budget)).after(&[ended_with_work(crashed())]);
        assert_eq!(story.state.phase, checking(&story), "{axis}");
        assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1"]));
        assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(axis), &["checks/1"]));
    }
}

#[test]
fn work_of_a_turn_that_ended_to_wait_is_checked_when_nothing_is_left_for_another() {
    let mut story = Story::working(goal_with(Budget { turns: Some(1), ..Budget::default() }));
    story.receive(turn_ended(r#"{"towline": "sleep", "seconds": 60, "reason": "CI"}"#));
    story.receive(ended(End::Completed));
    story.wait(60);
    story.receive(Event::Woken);
    story.receive(Event::Dispatched);
    assert_eq!(story.state.phase, checking(&story));
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Turns), &["checks/1"]));
}

#[test]
fn a_turn_that_finished_over_budget_without_checks_is_unproven() {
    let budget = Budget { tokens: Some(Tokens(40)), ..Budget::default() };
    let goal = Goal { budget, ..goal_without_checks() };
    let mut story = Story::working(goal).after(&[usage(1), ended(End::Completed)]);
    assert_eq!(story.state.phase, Phase::Unproven);
    story = Story::working(story.goal).after(&[usage(1), ended_with_work(crashed())]);
    assert_eq!(story.state.phase, failed(Axis::Tokens));
}

#[test]
fn a_prompt_after_a_finished_turn_over_budget_does_not_claim_an_interruption() {
    let budget = Budget { tokens: Some(Tokens(40)), ..Budget::default() };
    let mut story = Story::working(goal_with(budget));
    for event in [usage(1), ended(End::Completed), red_verdict("t1"), retry(&["tokens=+100"])] {
        story.receive(event);
    }
    let prompt = story.go_on().prompt;
    assert!(prompt.starts_with("# Checks that failed on your work"), "{prompt}");
}

fn with_an_hour() -> Goal {
    goal_with(wall(3_600))
}

/// The goal's time is up, as its driver reports it.
fn time_is_up(story: &mut Story) -> Moved {
    story.now = story.state.wall_ends().expect("an end of time");
    let stamp = Stamp { attempt: None, ..story.stamp(&Event::Woken) };
    match story.send(&incoming(stamp, timed_out(Timeout::Wall))) {
        StepOutcome::Moved(moved) => moved,
        other => panic!("{other:?}"),
    }
}

#[test]
fn time_that_is_up_ends_the_setup() {
    let mut story = Story::preparing(with_an_hour());
    let moved = time_is_up(&mut story);
    assert_eq!(moved.effects, [Effect::Stop { work: "prepare/1".into() }]);
    assert_eq!(story.receive(Event::Stopped), moved_to(failed(Axis::Wall), &["stop/prepare/1", "prepare/1"]));
    story.receive(retry(&["wall=+1h"]));
    assert_eq!(story.receive(Event::Dispatched).effects, [Effect::Prepare { round: 2 }]);
}

#[test]
fn time_that_is_up_ends_the_checks_and_a_retry_runs_them_first() {
    let mut story = Story::working(with_an_hour()).after(&[ended(End::Completed)]);
    let moved = time_is_up(&mut story);
    assert_eq!(moved.effects, [Effect::Stop { work: "checks/1".into() }]);
    assert_eq!(story.receive(Event::Stopped), moved_to(failed(Axis::Wall), &["stop/checks/1", "checks/1"]));
    story.receive(retry(&["wall=+1h"]));
    let moved = story.receive(Event::Dispatched);
    assert_eq!(moved.effects, [Effect::RunChecks { attempt: no(1), round: 2 }]);
    assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1/2"]));
    let launch = launch_of(story.receive(red_verdict("t1")));
    assert!(launch.prompt.starts_with("# Checks that failed on your work"), "{}", launch.prompt);
}

#[test]
fn a_verdict_that_is_reached_as_time_runs_out_counts() {
    let mut story = Story::working(with_an_hour()).after(&[ended(End::Completed)]);
    time_is_up(&mut story);
    let settled = &["stop/checks/1", "checks/1"];
    assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, settled));
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Wall), settled));
    story.receive(retry(&["wall=+1h"]));
    assert_eq!(story.go_on().attempt, no(2));
}

#[test]
fn work_of_an_agent_that_ran_out_of_time_is_checked_first_on_retry() {
    for end in [End::Completed, crashed()] {
        let mut story = Story::working(with_an_hour());
        time_is_up(&mut story);
        story.receive(ended_with_work(end));
        assert_eq!(story.state.phase, failed(Axis::Wall));
        story.receive(retry(&["wall=+1h"]));
        let moved = story.receive(Event::Dispatched);
        assert_eq!(moved.effects, [Effect::RunChecks { attempt: no(1), round: 1 }]);
        assert_eq!(launch_of(story.receive(red_verdict("t1"))).attempt, no(2));
    }
}

#[test]
fn checks_of_a_spent_budget_that_were_cancelled_run_first_on_retry() {
    let budget = Budget { tokens: Some(Tokens(40)), ..Budget::default() };
    let mut story = Story::working(goal_with(budget)).after(&[usage(1), ended(End::Completed)]);
    for event in [Event::CancelRequested, Event::Stopped, retry(&["tokens=+100"])] {
        story.receive(event);
    }
    let moved = story.receive(Event::Dispatched);
    assert_eq!(moved.effects, [Effect::RunChecks { attempt: no(1), round: 2 }]);
    assert_eq!(launch_of(story.receive(red_verdict("t1"))).attempt, no(2));
}

#[test]
fn a_clock_that_was_set_moves_neither_the_work_nor_the_wait() {
    let wall = wall(600);
    for by_ms in [7_200_000, -7_200_000] {
        let set = |story: &mut Story| {
            story.now = story.now.checked_add(SignedDuration::from_millis(by_ms)).expect("in range");
            assert_eq!(story.receive(Event::ClockMoved { by_ms }), Moved::default());
        };
        let mut working = Story::working(goal_with(wall.clone()));
        let left = |story: &Story| story.state.wall_ends().map(|ends| ends.duration_since(story.now));
        let before = left(&working);
        set(&mut working);
        assert_eq!(left(&working), before);

        let mut blocked = Story::blocked();
        blocked.state.budget = wall.clone();
        let before = left(&blocked);
        blocked.wait(100);
        set(&mut blocked);
        blocked.wait(100);
        blocked.receive(answered(1, "blue"));
        assert_eq!(left(&blocked), before, "the wait is not the goal's");
    }
}

#[test]
fn an_attempt_without_a_session_counts_when_it_left_work() {
    for end in [crashed(), End::TimedOut { timeout: Timeout::Startup }] {
        let mut story = Story::launched(goal_with(Budget { attempts: Some(1), ..Budget::default() }));
        story.receive(ended_with_work(end));
        assert_eq!(story.state.phase, Phase::Checking { attempt: no(1) });
        assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Attempts), &["checks/1"]));
    }
}

#[test]
fn work_whose_checks_ran_out_of_time_is_checked_without_another_attempt() {
    let wall = Some(Duration::from_secs(3_600));
    let budget = Budget { attempts: Some(1), wall, ..Budget::default() };
    let mut story = Story::working(goal_with(budget)).after(&[ended(End::Completed)]);
    time_is_up(&mut story);
    story.receive(Event::Stopped);
    assert_eq!(story.state.phase, failed(Axis::Wall));
    let refused = story.offer(retry(&["attempts=+1"]));
    assert_eq!(refused, StepOutcome::Illegal(Illegal::StillSpent { axis: Axis::Wall }));
    story.receive(retry(&["wall=+1h"]));
    let moved = story.receive(Event::Dispatched);
    assert_eq!(moved.effects, [Effect::RunChecks { attempt: no(1), round: 2 }]);
    assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1/2"]));
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Attempts), &["checks/1/2"]));
}
