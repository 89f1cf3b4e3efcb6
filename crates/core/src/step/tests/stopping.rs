//! What is ended by us: timeouts, refused logins, the operator.

use crate::fixtures::*;
use crate::{
    Attempt, Axis, End, EscalationReason, Event, FailureReason, GoalState, Moved, Outcome, Phase, StopWhy,
    Stopping, Timeout,
};

#[test]
fn a_timeout_stops_the_agent_and_its_session_goes_on_at_once_and_after_a_pause_the_next_time() {
    for timeout in [Timeout::Startup, Timeout::Idle, Timeout::Turn] {
        // The model answered: silence without an answer is an outage.
        let mut story = Story::working(goal()).after(&[usage(1)]);
        let moved = story.receive(timed_out(timeout));
        assert_eq!(moved, stop(stopping(StopWhy::Timeout { timeout }), "launch/1"));
        let before = story.state.clone();

        story.wait(5);
        let moved = story.receive(ended(crashed()));
        let end = End::TimedOut { timeout };
        let running = Phase::Running { attempt: no(2) };
        let expected = moved_after_stop(running.clone(), 1, end.clone());
        assert_eq!(Moved { effects: vec![], ..moved.clone() }, expected);
        let launch = launch_of(moved);
        assert_eq!(launch.session, resumed());
        let prompt = "# Interrupted\n\nThe last turn did not come to its end (timed out). What you changed is still \
                      in the directory. Look at it, then go on.";
        assert_eq!(launch.prompt, prompt);
        let first = Attempt {
            ended_at: Some(at(5)),
            end: Some(end),
            exit: Some(exit()),
            ..before.attempts[0].clone()
        };
        let attempts = vec![first, fresh_attempt(2, at(5))];
        assert_eq!(story.state, GoalState { phase: running, attempts, errors_in_row: 1, ..before });

        story.work_in("s1", true);
        story.receive(usage(1));
        story.receive(timed_out(timeout));
        story.receive(ended(crashed()));
        let reason = "the agent ended badly: timed out".to_owned();
        assert_eq!(story.state.phase, Phase::Sleeping { until: at(9), reason });
    }
}

#[test]
fn an_attempt_that_completed_while_it_timed_out_is_checked() {
    let mut story = Story::working(goal());
    story.receive(timed_out(Timeout::Turn));
    let moved = story.receive(ended(End::Completed));
    let expected = Moved {
        effects: vec![run_checks(1)],
        ..moved_after_stop(Phase::Checking { attempt: no(1) }, 1, End::Completed)
    };
    assert_eq!(moved, expected);
    assert_eq!(story.last().end, Some(End::Completed));
}

#[test]
fn an_agent_that_never_comes_up_in_time_counts_as_a_failed_start() {
    let mut story = Story::launched(goal());
    for _ in 0..2 {
        story.receive(timed_out(Timeout::Startup));
        story.receive(ended(crashed()));
        story.go_on();
    }
    story.receive(timed_out(Timeout::Startup));
    let moved = story.receive(ended(crashed()));
    let reason = EscalationReason::NeverStarted { message: "start-up timeout".into() };
    assert_eq!(
        moved,
        moved_after_stop(Phase::Escalated { reason }, 3, End::TimedOut { timeout: Timeout::Startup })
    );
    assert_eq!(story.state.attempts_spent(), 0);
}

#[test]
fn the_second_refused_login_in_a_row_stops_the_agent_and_escalates_by_its_name_once_its_tree_is_gone() {
    let mut story = Story::working(goal());
    assert_eq!(story.receive(retrying(401)), Moved::default());
    let message = "the provider refused the credentials twice in a row".to_owned();
    let stopping = stopping(StopWhy::Auth { message: message.clone() });
    assert_eq!(story.receive(retrying(403)), stop(stopping, "launch/1"));
    let moved = story.receive(ended(crashed()));
    let reason = EscalationReason::Auth { agent: "claude".into(), message: message.clone() };
    let end = End::Auth { message };
    assert_eq!(moved, moved_after_stop(Phase::Escalated { reason }, 1, end.clone()));
    assert_eq!(story.last().end, Some(end));
}

#[test]
fn what_a_dying_agent_uses_is_counted_and_stops_it_no_second_time() {
    let mut story = Story::working(goal_limited("tokens=40"));
    story.receive(timed_out(Timeout::Idle));
    for news in [usage(1), retrying(401), retrying(401), decided(Outcome::Deny), timed_out(Timeout::Turn)] {
        assert_eq!(story.receive(news), Moved::default());
    }
    assert_eq!(story.state.usage(), used(1));
    let axis = Axis::Tokens;
    let failed = Phase::Failed { reason: FailureReason::Budget { axis } };
    let end = End::TimedOut { timeout: Timeout::Idle };
    assert_eq!(story.receive(ended(crashed())), moved_after_stop(failed, 1, end));
}

#[test]
fn cancelling_ends_at_once_what_only_waits() {
    for mut story in [Story::of(goal()), Story::sleeping(), Story::limited(), Story::escalated()] {
        assert_eq!(story.receive(Event::CancelRequested), moved_to(Phase::Cancelled, &[]));
    }
}

#[test]
fn cancelling_stops_a_setup_and_waits_for_its_end() {
    for end in [prepared(), prepare_failed(), repository_gone(), unconfigured(), Event::Stopped] {
        let mut story = Story::preparing(goal());
        let moved = story.receive(Event::CancelRequested);
        let phase = Phase::Stopping(Stopping { attempt: None, why: StopWhy::Cancel });
        assert_eq!(moved, stop(phase, "prepare/1"));
        let made = matches!(end, Event::Prepared { .. }).then(workspace);
        assert_eq!(story.receive(end), moved_to(Phase::Cancelled, &["stop/prepare/1", "prepare/1"]));
        assert_eq!(story.state.workspace, made);
    }
}

#[test]
fn cancelling_stops_an_agent_and_waits_for_its_end_whatever_that_is() {
    for end in [crashed(), End::Completed, End::RateLimited { until: None }] {
        let mut story = Story::working(goal());
        assert_eq!(story.receive(Event::CancelRequested), stop(stopping(StopWhy::Cancel), "launch/1"));
        assert_eq!(story.receive(ended(end)), moved_after_stop(Phase::Cancelled, 1, End::Cancelled));
        assert_eq!(story.last().end, Some(End::Cancelled));
    }
}

#[test]
fn cancelling_stops_checks_and_waits_for_their_end_whatever_that_is() {
    let failed = Event::ChecksFailed { error: "no space".into() };
    for end in [Event::Stopped, green_verdict("t1"), red_verdict("t1"), failed] {
        let mut story = Story::checking();
        assert_eq!(story.receive(Event::CancelRequested), stop(stopping(StopWhy::Cancel), "checks/1"));
        assert_eq!(story.receive(end), moved_to(Phase::Cancelled, &["stop/checks/1", "checks/1"]));
        assert_eq!(story.last().end, Some(End::Completed));
    }
}

#[test]
fn cancelling_wins_over_every_other_reason_to_stop() {
    let refused = [retrying(401), retrying(401)];
    let denied: Vec<Event> = vec![decided(Outcome::Deny); 5];
    for reasons in [&[timed_out(Timeout::Idle)][..], &[timed_out(Timeout::Wall)], &refused, &denied] {
        let mut story = Story::working(goal()).after(reasons);
        let cancelling = stopping(StopWhy::Cancel);
        assert_ne!(story.state.phase, cancelling);
        assert_eq!(story.receive(Event::CancelRequested), moved_to(cancelling, &[]));
        assert_eq!(story.receive(Event::CancelRequested), Moved::default());
        let expected = moved_after_stop(Phase::Cancelled, 1, End::Cancelled);
        assert_eq!(story.receive(ended(End::Completed)), expected);
        assert_eq!(story.last().end, Some(End::Cancelled));
    }
}

#[test]
fn checks_of_an_attempt_that_was_once_stopped_can_be_stopped_too() {
    let mut story = Story::working(goal());
    let agent = story.receive(timed_out(Timeout::Turn)).effects.remove(0);
    story.receive(ended(End::Completed));
    let checks = story.receive(Event::CancelRequested).effects.remove(0);
    assert_ne!(agent.key(), checks.key(), "the outbox takes each key once");
}
