//! The checks on the base: before the first attempt for a moment, then beside it, never in the way of a verdict.

use crate::fixtures::*;
use crate::prompt::{Conversation, next_prompt};
use crate::{
    Axis, Baseline, BaselineCheck, BaselineMode, Effect, End, EscalationReason, Event, FailureReason, Goal,
    Illegal, MissingProgram, Moved, Phase, ReplacedChecks, Stale, StepOutcome, StopWhy, Timeout,
};

/// A goal whose first attempt waits for the checks on the base since second 0.
fn waiting(mode: BaselineMode) -> Story {
    Story::launched(goal_with_baseline(mode))
}

/// A goal whose first attempt works while the checks run on the base.
fn beside() -> Story {
    let mut story = waiting(BaselineMode::Auto);
    story.wait(10);
    story.receive(Event::Woken);
    story.work_in("s1", false);
    story
}

fn known(met: bool) -> Baseline {
    let exit_code = Some(if met { 0 } else { 101 });
    Baseline::Known { checks: vec![BaselineCheck { name: "tests".into(), met, exit_code, tests: None }] }
}

fn unknown(reason: &str) -> Event {
    Event::BaselineUnknown { round: 1, reason: reason.into() }
}

fn missing() -> MissingProgram {
    MissingProgram { check: "tests".into(), program: "carog".into() }
}

fn reached_without_program() -> Event {
    let checks = vec![red("tests", "carog: not found")];
    Event::BaselineReached { round: 1, checks, reused: None, missing: Some(missing()) }
}

#[test]
fn the_checks_run_on_the_base_before_the_first_attempt() {
    let mut story = Story::preparing(goal_with_baseline(BaselineMode::Auto));
    let moved = story.receive(prepared());
    let effects = vec![Effect::RunBaseline { round: 1 }];
    assert_eq!(moved, Moved { effects, settled: keys(&["prepare/1"]), ..Moved::default() });
    assert_eq!(story.state.phase, Phase::Preparing);
    assert_eq!(story.state.baseline, Baseline::Running { round: 1, since: at(0), until: Some(at(10)) });
    assert_eq!(story.state.wakes_at(story.goal.id), Some(at(10)));
    for goal in [goal(), Goal { checks: vec![], ..goal_with_baseline(BaselineMode::Red) }] {
        assert_eq!(Story::launched(goal).state.phase, Phase::Running { attempt: no(1) });
    }
}

#[test]
fn a_red_base_starts_the_agent_at_once_and_is_remembered() {
    for mode in [BaselineMode::Auto, BaselineMode::Red] {
        let mut story = waiting(mode);
        let moved = story.receive(baseline_reached(1, vec![red("tests", "1 failed")]));
        assert_eq!(notices(&moved), Vec::<&str>::new());
        assert_eq!(moved.settled, keys(&["baseline/1"]));
        assert_eq!(launch_of(moved).attempt, no(1));
        assert_eq!(story.state.baseline, known(false));
        assert_eq!(story.state.baseline.met(), Some(false));
    }
}

#[test]
fn a_green_base_is_a_notice_or_where_it_must_be_red_the_end() {
    let mut auto = waiting(BaselineMode::Auto);
    let moved = auto.receive(baseline_reached(1, vec![green("tests")]));
    assert_eq!(notices(&moved), ["checks passed before any work"]);
    assert_eq!(auto.state.phase, Phase::Running { attempt: no(1) });
    assert_eq!(auto.state.baseline, known(true));

    let mut red = waiting(BaselineMode::Red);
    let moved = red.receive(baseline_reached(1, vec![green("tests")]));
    assert_eq!(moved.effects, []);
    assert_eq!(red.state.phase, Phase::Failed { reason: FailureReason::GreenBefore });
    assert_eq!(red.state.attempts, []);
    let illegal = Illegal::WrongPhase { phase: "failed", event: "retry" };
    assert_eq!(red.offer(retry(&[])), StepOutcome::Illegal(illegal));
}

#[test]
fn the_agent_starts_after_ten_seconds_unless_the_base_must_be_red() {
    let mut story = waiting(BaselineMode::Auto);
    story.wait(9);
    assert!(matches!(story.offer(Event::Woken), StepOutcome::Illegal(_)));
    story.wait(1);
    assert_eq!(launch_of(story.receive(Event::Woken)).attempt, no(1));
    assert!(story.state.baseline.is_running());

    let mut red = waiting(BaselineMode::Red);
    assert_eq!(red.state.wakes_at(red.goal.id), None);
    red.wait(100_000);
    assert!(matches!(red.offer(Event::Woken), StepOutcome::Illegal(_)));
    assert_eq!(red.state.phase, Phase::Preparing);
}

#[test]
fn a_result_beside_the_agent_changes_nothing_but_what_is_known() {
    let mut story = beside();
    let moved = story.receive(baseline_reached(1, vec![green("tests")]));
    let events = vec![Event::Notice { text: "checks passed before any work".into() }];
    assert_eq!(moved, Moved { events, settled: keys(&["baseline/1"]), ..Moved::default() });
    assert_eq!(story.state.phase, Phase::Running { attempt: no(1) });
    assert_eq!(story.state.baseline, known(true));
}

#[test]
fn a_verdict_that_is_due_stops_the_checks_on_the_base() {
    let mut story = beside();
    let moved = story.receive(ended(End::Completed));
    let reason = "the work was ready to be checked first";
    let checking = Phase::Checking { attempt: no(1) };
    assert_eq!(moved.events, [unknown(reason), now_in(checking)]);
    assert_eq!(moved.settled, keys(&["launch/1", "baseline/1"]));
    assert_eq!(story.state.baseline, Baseline::Unknown);
    // What they report after that is of no use to anybody.
    let late = baseline_reached(1, vec![green("tests")]);
    assert_eq!(story.offer(late), StepOutcome::Stale(Stale::Baseline));
    story.receive(red_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Running { attempt: no(2) }, "it does not run again");
}

#[test]
fn a_stop_ends_the_checks_on_the_base_and_they_run_again_when_the_goal_goes_on() {
    for (stop, settled) in [
        (Event::CancelRequested, Phase::Cancelled),
        (pause(), Phase::Paused { reason: crate::PauseReason::Operator }),
    ] {
        let mut story = waiting(BaselineMode::Auto);
        assert_eq!(story.receive(stop.clone()), moved_to(settled.clone(), &["baseline/1"]));
        assert_eq!(story.state.baseline, Baseline::Pending);
        story.receive(if stop == pause() { Event::ResumeRequested } else { retry(&[]) });
        assert_eq!(story.receive(dispatched()).effects, [Effect::RunBaseline { round: 2 }]);

        let mut working = beside();
        let moved = working.receive(stop);
        assert_eq!(moved.effects, [Effect::Stop { work: "launch/1".into() }]);
        assert_eq!(moved.settled, keys(&["baseline/1"]), "at once, not when the agent is gone");
    }
}

#[test]
fn other_stops_of_the_agent_leave_the_checks_on_the_base_running() {
    let mut story = beside();
    story.receive(timed_out(Timeout::Idle));
    assert_eq!(story.state.phase, stopping(StopWhy::Timeout { timeout: Timeout::Idle }));
    assert!(story.state.baseline.is_running());
    story.receive(ended(End::Lost));
    assert_eq!(story.state.phase, Phase::Running { attempt: no(2) });
    story.receive(baseline_reached(1, vec![red("tests", "1 failed")]));
    assert_eq!(story.state.baseline, known(false));
}

#[test]
fn the_wait_does_not_count_against_wall() {
    let mut story = Story::launched(Goal { baseline: BaselineMode::Red, ..goal_limited("wall=5s") });
    story.wait(3_600);
    let reached = story.clone().after(&[baseline_reached(1, vec![red("tests", "1 failed")])]).state;
    assert_eq!((&reached.phase, reached.wall_ends()), (&Phase::Running { attempt: no(1) }, Some(at(3_605))));

    let mut cancelled = story.after(&[Event::CancelRequested]);
    assert_eq!(cancelled.state.wall_ends(), Some(at(3_605)));
    cancelled.receive(retry(&[]));
    assert_ne!(cancelled.state.spent_axis(cancelled.now), Some(Axis::Wall));
}

#[test]
fn a_clock_that_was_set_does_not_shorten_the_wait() {
    let mut story = waiting(BaselineMode::Auto);
    story.wait(3_600);
    story.receive(Event::ClockMoved { by_ms: 3_600_000 });
    assert!(matches!(story.offer(Event::Woken), StepOutcome::Illegal(_)));
    assert_eq!(story.state.wakes_at(story.goal.id), Some(at(3_610)));
}

#[test]
fn a_program_that_is_not_on_path_ends_the_goal_before_an_agent_starts() {
    let mut story = waiting(BaselineMode::Auto);
    let failed = Phase::Failed { reason: FailureReason::MissingProgram(missing()) };
    assert_eq!(story.receive(reached_without_program()), moved_to(failed, &["baseline/1"]));
    assert_eq!(
        story.state.phase.reason().as_deref(),
        Some("the check `tests` runs `carog`, which is not on PATH")
    );
    // It may have been installed meanwhile.
    story.receive(retry(&[]));
    assert_eq!(story.receive(dispatched()).effects, [Effect::RunBaseline { round: 2 }]);

    let mut late = beside();
    let moved = late.receive(reached_without_program());
    assert_eq!(notices(&moved), ["the check `tests` runs `carog`, which is not on PATH"]);
    assert_eq!(late.state.phase, Phase::Running { attempt: no(1) });
}

#[test]
fn checks_that_cannot_run_on_the_base_stop_only_a_goal_whose_base_must_be_red() {
    let mut auto = waiting(BaselineMode::Auto);
    assert_eq!(launch_of(auto.receive(unknown("no space"))).attempt, no(1));
    assert_eq!(auto.state.baseline, Baseline::Unknown);

    let mut red = waiting(BaselineMode::Red);
    red.receive(unknown("no space"));
    let reason = EscalationReason::ChecksFailed { error: "no space".into() };
    assert_eq!(red.state.phase, Phase::Escalated { reason });
    red.receive(retry(&[]));
    assert_eq!(red.receive(dispatched()).effects, [Effect::RunBaseline { round: 2 }]);
}

#[test]
fn goals_of_earlier_versions_know_nothing_of_their_base() {
    let mut stored = serde_json::to_value(goal()).expect("JSON");
    let fields = stored.as_object_mut().expect("an object");
    fields.remove("baseline");
    for (red_first, mode) in
        [(None, BaselineMode::Auto), (Some(false), BaselineMode::Auto), (Some(true), BaselineMode::Red)]
    {
        let mut stored = stored.clone();
        if let Some(red_first) = red_first {
            stored["red_first"] = red_first.into();
        }
        assert_eq!(serde_json::from_value::<Goal>(stored).expect("a goal").baseline, mode);
    }
    let mut state = serde_json::to_value(Story::working(goal()).state).expect("JSON");
    for field in ["baseline", "baseline_rounds", "replaced_checks"] {
        state.as_object_mut().expect("an object").remove(field).expect(field);
    }
    let state: crate::GoalState = serde_json::from_value(state).expect("a state");
    assert_eq!((state.baseline, state.baseline_rounds), (Baseline::Unknown, 0));
}

#[test]
fn replaced_checks_judge_the_work_that_is_there_before_an_agent_goes_on() {
    let lint = vec![check("lint", "make lint")];
    let replaced = Event::ChecksReplaced { checks: lint.clone() };
    let mut story = Story::working(goal_without_checks()).after(&[ended(End::Completed)]);
    assert_eq!(story.state.phase, Phase::Unproven);
    story.wait(60);
    story.receive(replaced);
    story.receive(retry(&[]));
    assert_eq!(story.state.replaced_checks, Some(ReplacedChecks { checks: lint.clone(), since: at(60) }));
    assert_eq!(story.state.checks(&story.goal), lint);
    assert_eq!(story.receive(dispatched()).effects, [run_checks(1)]);
    let moved = story.receive(Event::VerdictReached { verdict: verdict("t1", vec![red("lint", "line 3")]) });
    let prompt = launch_of(moved).prompt;
    assert!(prompt.contains("make lint") && prompt.contains("line 3"), "{prompt}");
}

#[test]
fn replaced_checks_run_on_the_base_and_give_a_goal_that_proved_nothing_another_chance() {
    let mut story = waiting(BaselineMode::Red).after(&[baseline_reached(1, vec![green("tests")])]);
    story.receive(Event::ChecksReplaced { checks: vec![check("lint", "make lint")] });
    story.receive(retry(&[]));
    assert_eq!(story.receive(dispatched()).effects, [Effect::RunBaseline { round: 2 }]);
    let launch = launch_of(story.receive(baseline_reached(2, vec![red("lint", "line 3")])));
    assert_prompt(&launch.prompt, &["make lint"], &["cargo test"]);
}

#[test]
fn a_session_that_goes_on_hears_of_replaced_checks_once() {
    let mut story = Story::checking().after(&[red_verdict("t1")]);
    story.work_in("s1", true);
    story.receive(ended(crashed()));
    story.wait(1);
    story.receive(Event::ChecksReplaced { checks: vec![check("lint", "make lint")] });
    story.wait(1);
    let launch = story.go_on();
    assert_prompt(&launch.prompt, &["make lint"], &["cargo test"]);
    story.work_in("s1", true);
    let next = next_prompt(&story.goal, &story.state, Conversation::Resumed);
    assert!(!next.contains("make lint"), "{next}");
}

#[test]
fn a_candidate_with_the_files_of_the_base_changes_nothing() {
    let changed = |base_tree: Option<&str>, candidate: &str, tree: &str| {
        let mut story = Story::checking();
        story.state.workspace.as_mut().expect("a workspace").base_tree = base_tree.map(str::to_owned);
        let mut verdict = verdict(tree, vec![green("tests")]);
        verdict.candidate = crate::Commit::new(candidate);
        story.receive(Event::VerdictReached { verdict });
        story.state.changed()
    };
    assert_eq!(Story::working(goal()).state.changed(), None, "there is no candidate");
    for (base_tree, candidate, tree, expected) in [
        (Some("t0"), "base", "t0", false),
        // Commits that undo each other.
        (Some("t0"), "c1", "t0", false),
        (Some("t0"), "c1", "t1", true),
        // Of an earlier version, which did not record it.
        (None, "base", "t0", false),
        (None, "c1", "t1", true),
    ] {
        assert_eq!(changed(base_tree, candidate, tree), Some(expected), "{candidate} {tree}");
    }
}
