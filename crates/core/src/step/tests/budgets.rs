//! What happens when a budget is spent.

use std::time::Duration;

use jiff::SignedDuration;

use crate::fixtures::*;
use crate::{
    Axis, Budget, Effect, End, Event, FailureReason, Goal, Illegal, MicroUsd, Moved, Outcome, Phase, Stamp,
    StepOutcome, StopWhy, Stopping, Timeout, Tokens, Usage,
};

fn failed(axis: Axis) -> Phase {
    Phase::Failed { reason: FailureReason::Budget { axis } }
}

fn stopped_for(axis: Axis) -> Moved {
    stop(stopping(StopWhy::Budget { axis }), "launch/1")
}

/// Work that is being checked although this budget is spent: a green verdict is done, and a red one ends the goal.
#[track_caller]
fn assert_verdict_decides(story: &Story, axis: Axis, settled: &[&str]) {
    assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, settled), "{axis}");
    let mut not_met = story.clone();
    assert_eq!(not_met.receive(red_verdict("t1")), moved_to(failed(axis), settled), "{axis}");
    assert_eq!(not_met.last().verdict, Some(verdict("t1", vec![red("tests", "1 failed")])));
}

#[test]
fn a_budget_of_nothing_fails_before_the_first_attempt() {
    let mut story = Story::preparing(goal_limited("attempts=0"));
    assert_eq!(story.receive(prepared()), moved_to(failed(Axis::Attempts), &["prepare/1"]));
    assert_eq!(story.state.attempts, []);
}

#[test]
fn attempts_that_cost_none_do_not_spend_the_budget() {
    let mut story = Story::working(goal_limited("attempts=1"));
    for _ in 0..12 {
        story.go_on_after(End::RateLimited { until: None });
    }
    assert_eq!((story.state.attempts.len(), story.state.attempts_spent()), (13, 1));
}

#[test]
fn a_budget_that_is_reached_in_the_middle_of_a_turn_stops_the_agent_and_fails_the_goal() {
    let (denied, nothing) = (decided(Outcome::Deny), Usage::default());
    for (axis, goal, before, last, counted) in [
        (Axis::Tokens, goal_limited("tokens=120"), vec![usage(2)], usage(1), used(3)),
        (Axis::Usd, goal_limited("usd=0.03"), vec![usage(2)], usage(1), used(3)),
        (Axis::Wall, goal_limited("wall=60s"), vec![], timed_out(Timeout::Wall), nothing),
        // Five in a row, where nothing else is set.
        (Axis::Denials, goal(), vec![denied.clone(); 4], denied, nothing),
    ] {
        let mut story = Story::working(goal);
        for news in before {
            assert_eq!(story.receive(news), Moved::default(), "{axis}");
        }
        story.now = if axis == Axis::Wall { story.state.wall_ends().expect("an end") } else { story.now };
        assert_eq!(story.receive(last), stopped_for(axis));
        let moved = story.receive(ended(crashed()));
        assert_eq!(moved, moved_after_stop(failed(axis), 1, End::OverBudget));
        assert_eq!(story.last().end, Some(End::OverBudget));
        assert_eq!((story.state.usage(), story.state.attempts_spent()), (counted, 1), "{axis}");
    }
}

#[test]
fn output_that_is_only_estimated_spends_the_tokens() {
    let mut story = Story::working(goal_limited("tokens=1000"));
    let written = || usage_of(Usage { written: Tokens(500), ..Usage::default() });
    assert_eq!(story.receive(written()), Moved::default());
    assert_eq!(story.receive(written()), stopped_for(Axis::Tokens));
}

#[test]
fn usage_adds_up_over_attempts() {
    let mut story = Story::working(goal_limited("usd=0.03")).after(&[usage(2)]);
    story.go_on_after(crashed());
    story.receive(usage(1));
    let why = StopWhy::Budget { axis: Axis::Usd };
    assert_eq!(story.state.phase, Phase::Stopping(Stopping { attempt: Some(no(2)), why }));
}

#[test]
fn time_counts_from_the_first_dispatch_and_while_the_goal_waits_by_itself() {
    let mut story = Story::of(goal_limited("wall=1h"));
    story.wait(10_000);
    let mut story = story.after(&[dispatched(), prepared()]);
    story.work_in("s1", false);
    story.receive(ended(End::RateLimited { until: Some(story.now + Duration::from_secs(3_600)) }));
    story.wait(3_600);
    story.receive(Event::Woken);
    assert_eq!(story.receive(dispatched()), moved_to(failed(Axis::Wall), &[]));
}

#[test]
fn spent_turns_fail_the_goal_before_the_next_one_but_not_within_one() {
    let mut story = Story::working(goal_limited("turns=1"));
    assert_eq!(story.receive(usage(1)), Moved::default());
    story.receive(ended(End::Completed));
    assert_eq!(story.receive(red_verdict("t1")), moved_to(failed(Axis::Turns), &["checks/1"]));
}

#[test]
fn five_bad_endings_in_a_row_fail_the_goal() {
    let mut story = Story::working(goal());
    for _ in 0..4 {
        story.receive(usage(1));
        story.go_on_after(End::ServerError { status: Some(500), message: String::new() });
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
    assert_verdict_decides(&story, Axis::Errors, &["checks/5"]);
}

#[test]
fn a_spent_budget_is_the_reason_even_when_there_was_no_progress_either() {
    let mut story = Story::working(goal_limited("attempts=3"));
    for _ in 0..2 {
        story.fail_checks("t1");
        story.work_in("s1", true);
    }
    story.receive(ended(End::Completed));
    assert_verdict_decides(&story, Axis::Attempts, &["checks/3"]);
}

#[test]
fn work_is_checked_before_a_spent_budget_ends_the_goal() {
    let denied = || vec![decided(Outcome::Deny); 5];
    // What it does while it is being ended does not give the budget back.
    let denied_and_allowed = || [denied(), vec![decided(Outcome::Allow)]].concat();
    for (axis, limit, news, end, named) in [
        // A turn that finished over budget.
        (Axis::Tokens, "tokens=40", vec![usage(1), turn_ended("done")], End::Completed, End::Completed),
        (Axis::Usd, "usd=0.01", vec![usage(1), turn_ended("done")], End::Completed, End::Completed),
        (Axis::Denials, "denials=5", denied(), End::Completed, End::Completed),
        (Axis::Attempts, "attempts=1", vec![], End::Completed, End::Completed),
        // An attempt that was stopped over budget.
        (Axis::Tokens, "tokens=40", vec![usage(1)], crashed(), End::OverBudget),
        (Axis::Usd, "usd=0.01", vec![usage(1)], crashed(), End::OverBudget),
        (Axis::Denials, "denials=5", denied_and_allowed(), crashed(), End::OverBudget),
        // The last attempt, which ended badly.
        (Axis::Turns, "turns=1", vec![], crashed(), crashed()),
        (Axis::Attempts, "attempts=1", vec![], crashed(), crashed()),
        (Axis::Errors, "errors=1", vec![], crashed(), crashed()),
    ] {
        let mut story = Story::working(goal_limited(limit)).after(&news);
        let moved = story.receive(ended_with_work(end));
        assert_eq!(moved.effects, [run_checks(1)], "{axis}");
        assert_eq!(story.last().end, Some(named), "{axis}");
        assert_verdict_decides(&story, axis, &["checks/1"]);
    }
}

#[test]
fn work_of_a_turn_that_ended_to_wait_is_checked_when_nothing_is_left_for_another() {
    let mut story = Story::working(goal_limited("turns=1"));
    story.receive(turn_ended(r#"{"towline": "sleep", "seconds": 60, "reason": "CI"}"#));
    story.receive(ended(End::Completed));
    story.wait(60);
    let story = story.after(&[Event::Woken, dispatched()]);
    assert_verdict_decides(&story, Axis::Turns, &["checks/1"]);
}

#[test]
fn a_turn_that_finished_over_budget_without_checks_is_unproven() {
    let goal = Goal { checks: vec![], ..goal_limited("tokens=40") };
    let mut story = Story::working(goal).after(&[usage(1), ended(End::Completed)]);
    assert_eq!(story.state.phase, Phase::Unproven);
    story = Story::working(story.goal).after(&[usage(1), ended_with_work(crashed())]);
    assert_eq!(story.state.phase, failed(Axis::Tokens));
}

#[test]
fn a_prompt_after_a_finished_turn_over_budget_does_not_claim_an_interruption() {
    let news = [usage(1), ended(End::Completed), red_verdict("t1"), retry(&["tokens=+100"])];
    let mut story = Story::working(goal_limited("tokens=40")).after(&news);
    let prompt = story.go_on().prompt;
    assert!(prompt.starts_with("# Checks that failed on your work"), "{prompt}");
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
    let mut story = Story::preparing(goal_limited("wall=1h"));
    assert_eq!(time_is_up(&mut story).effects, [Effect::Stop { work: "prepare/1".into() }]);
    assert_eq!(story.receive(Event::Stopped), moved_to(failed(Axis::Wall), &["stop/prepare/1", "prepare/1"]));
    story.receive(retry(&["wall=+1h"]));
    assert_eq!(story.receive(dispatched()).effects, [Effect::Prepare { round: 2 }]);
}

#[test]
fn time_that_is_up_ends_the_checks_and_a_retry_runs_them_first() {
    let mut story = Story::working(goal_limited("wall=1h")).after(&[ended(End::Completed)]);
    assert_eq!(time_is_up(&mut story).effects, [Effect::Stop { work: "checks/1".into() }]);
    assert_eq!(story.receive(Event::Stopped), moved_to(failed(Axis::Wall), &["stop/checks/1", "checks/1"]));
    story.receive(retry(&["wall=+1h"]));
    assert_eq!(story.receive(dispatched()).effects, [run_checks(2)]);
    assert_eq!(story.clone().receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1/2"]));
    let launch = launch_of(story.receive(red_verdict("t1")));
    assert!(launch.prompt.starts_with("# Checks that failed on your work"), "{}", launch.prompt);
}

#[test]
fn a_verdict_that_is_reached_as_time_runs_out_counts() {
    let mut story = Story::working(goal_limited("wall=1h")).after(&[ended(End::Completed)]);
    time_is_up(&mut story);
    assert_verdict_decides(&story, Axis::Wall, &["stop/checks/1", "checks/1"]);
    let mut story = story.after(&[red_verdict("t1"), retry(&["wall=+1h"])]);
    assert_eq!(story.go_on().attempt, no(2));
}

#[test]
fn work_of_an_agent_that_ran_out_of_time_is_checked_first_on_retry() {
    for end in [End::Completed, crashed()] {
        let mut story = Story::working(goal_limited("wall=1h"));
        time_is_up(&mut story);
        story.receive(ended_with_work(end));
        assert_eq!(story.state.phase, failed(Axis::Wall));
        story.receive(retry(&["wall=+1h"]));
        assert_eq!(story.receive(dispatched()).effects, [run_checks(1)]);
        assert_eq!(launch_of(story.receive(red_verdict("t1"))).attempt, no(2));
    }
}

#[test]
fn checks_of_a_spent_budget_that_were_cancelled_run_first_on_retry() {
    let cancelled = [Event::CancelRequested, Event::Stopped, retry(&["tokens=+100"])];
    let story = Story::working(goal_limited("tokens=40")).after(&[usage(1), ended(End::Completed)]);
    let mut story = story.after(&cancelled);
    assert_eq!(story.receive(dispatched()).effects, [run_checks(2)]);
    assert_eq!(launch_of(story.receive(red_verdict("t1"))).attempt, no(2));
}

#[test]
fn a_clock_that_was_set_moves_neither_the_work_nor_the_wait() {
    let goal = goal_limited("wall=600s");
    for by_ms in [7_200_000, -7_200_000] {
        let set = |story: &mut Story| {
            story.now = story.now.checked_add(SignedDuration::from_millis(by_ms)).expect("in range");
            assert_eq!(story.receive(Event::ClockMoved { by_ms }), Moved::default());
        };
        let mut working = Story::working(goal.clone());
        let left = |story: &Story| story.state.wall_ends().map(|ends| ends.duration_since(story.now));
        let before = left(&working);
        set(&mut working);
        assert_eq!(left(&working), before);

        let mut blocked = Story::blocked();
        blocked.state.budget = goal.budget.clone();
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
        let story = Story::launched(goal_limited("attempts=1")).after(&[ended_with_work(end)]);
        assert_verdict_decides(&story, Axis::Attempts, &["checks/1"]);
    }
}

#[test]
fn work_whose_checks_ran_out_of_time_is_checked_without_another_attempt() {
    let budget = Budget { attempts: Some(1), ..goal_limited("wall=1h").budget };
    let mut story = Story::working(goal_with(budget)).after(&[ended(End::Completed)]);
    time_is_up(&mut story);
    story.receive(Event::Stopped);
    assert_eq!(story.state.phase, failed(Axis::Wall));
    let refused = story.offer(retry(&["attempts=+1"]));
    assert_eq!(refused, StepOutcome::Illegal(Illegal::StillSpent { axis: Axis::Wall }));
    story.receive(retry(&["wall=+1h"]));
    assert_eq!(story.receive(dispatched()).effects, [run_checks(2)]);
    assert_verdict_decides(&story, Axis::Attempts, &["checks/1/2"]);
}

/// A message of two cents that the agent has not reported the cost of.
fn estimated() -> Event {
    usage_of(Usage { input: Tokens(10), estimate: MicroUsd(20_000), ..Usage::default() })
}

#[test]
fn the_message_that_crosses_the_limit_is_the_last_one() {
    let mut story = Story::working(goal_limited("usd=0.05"));
    assert_eq!(story.receive(estimated()), Moved::default());
    assert_eq!(story.receive(estimated()), Moved::default());
    assert_eq!(story.receive(estimated()), stopped_for(Axis::Usd));
}

#[test]
fn a_turn_that_was_killed_is_charged_by_its_estimate() {
    let mut story = Story::working(goal_limited("usd=0.05"));
    story.receive(estimated());
    story.receive(ended(crashed()));
    assert_eq!(story.state.usage().spent().to_string(), "~$0.02");
    story.go_on();
    story.work_in("s1", true);
    story.receive(usage(1));
    assert_eq!(story.state.usage().spent().to_string(), "~$0.03", "of another attempt");
}

#[test]
fn the_agents_own_figure_replaces_the_estimate_of_its_attempt() {
    let mut story = Story::working(goal_limited("usd=0.05"));
    story.receive(estimated());
    story.receive(estimated());
    story.receive(usage(1));
    assert_eq!(story.state.usage().spent().to_string(), "$0.01");
    assert_eq!(story.state.over_budget(story.now), None);
}
