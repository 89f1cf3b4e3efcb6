//! Pausing ends what runs and costs nothing; resuming continues where the goal was.

use crate::fixtures::*;
use crate::{
    AgentEvent, Commit, Effect, End, Event, Outcome, PauseReason, Phase, QuestionNo, StepOutcome, StopWhy,
    Timeout, Usage,
};

const PAUSED: Phase = Phase::Paused { reason: PauseReason::Operator };

fn pausing() -> Phase {
    stopping(StopWhy::Pause { reason: PauseReason::Operator })
}

#[test]
fn pausing_a_goal_that_only_waits_takes_effect_at_once() {
    for mut story in [Story::of(goal()), Story::sleeping(), Story::limited(), Story::blocked()] {
        assert_eq!(story.receive(pause()), moved_to(PAUSED, &[]));
    }
}

#[test]
fn a_paused_agent_is_interrupted_and_its_session_continues_without_cost() {
    let mut story = Story::working(goal());
    story.state.errors_in_row = 1;
    assert_eq!(story.receive(pause()), stop(pausing(), "launch/1"));
    assert_eq!(story.receive(ended_with_work(crashed())).effects, []);
    assert_eq!((&story.state.phase, &story.last().end), (&PAUSED, &Some(End::Interrupted)));
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (0, 1));

    assert_eq!(story.receive(Event::ResumeRequested), moved_to(Phase::Queued, &[]));
    let launch = story.go_on();
    assert_eq!(launch.session, resumed());
    assert_prompt(&launch.prompt, &["did not come to its end (interrupted)"], &[]);
}

#[test]
fn a_shutdown_is_recorded_as_the_reason() {
    let mut story = Story::working(goal());
    let reason = PauseReason::Shutdown;
    story.receive(Event::PauseRequested { reason });
    story.receive(ended(crashed()));
    assert_eq!(
        (story.state.phase.clone(), story.state.phase.reason()),
        (Phase::Paused { reason }, Some("shutdown".into()))
    );
}

#[test]
fn a_pause_by_a_person_wins_over_a_shutdown_whichever_comes_first() {
    let shutdown = Event::PauseRequested { reason: PauseReason::Shutdown };
    for events in [
        [pause(), shutdown.clone(), ended(crashed())],
        [shutdown.clone(), pause(), ended(crashed())],
        [shutdown.clone(), ended(crashed()), pause()],
    ] {
        let mut story = Story::working(goal()).after(&events);
        assert_eq!(story.state.phase, PAUSED);
        assert!(matches!(story.offer(pause()), StepOutcome::Illegal(_)), "it is paused already");
        assert!(matches!(story.offer(shutdown.clone()), StepOutcome::Illegal(_)));
    }
}

#[test]
fn a_supervisor_that_got_the_signal_pauses_the_goal() {
    for end in [ended(End::Interrupted), ended_with_work(End::Interrupted)] {
        let mut story = Story::working(goal());
        story.receive(end);
        assert_eq!(story.state.phase, Phase::Paused { reason: PauseReason::Shutdown });
        assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (0, 0));
    }
}

#[test]
fn a_turn_that_finished_while_it_was_paused_is_checked_first() {
    let mut story = Story::working(goal()).after(&[pause(), ended(End::Completed)]);
    assert_eq!((&story.state.phase, &story.last().end), (&PAUSED, &Some(End::Completed)));
    story.receive(Event::ResumeRequested);
    assert_eq!(story.receive(dispatched()).effects, [run_checks(1)]);
    assert_eq!(story.receive(green_verdict("t1")), moved_to(Phase::Done, &["checks/1"]));
}

#[test]
fn paused_checks_run_again_first() {
    let mut story = Story::checking();
    story.receive(pause());
    assert_eq!(story.receive(Event::Stopped), moved_to(PAUSED, &["stop/checks/1", "checks/1"]));
    story.receive(Event::ResumeRequested);
    assert_eq!(story.receive(dispatched()).effects, [run_checks(2)]);
    assert_eq!(launch_of(story.receive(red_verdict("t1"))).attempt, no(2));
}

#[test]
fn a_paused_setup_is_begun_again() {
    let mut story = Story::preparing(goal());
    story.receive(pause());
    assert_eq!(story.receive(Event::Stopped), moved_to(PAUSED, &["stop/prepare/1", "prepare/1"]));
    story.receive(Event::ResumeRequested);
    assert_eq!(story.receive(dispatched()).effects, [Effect::Prepare { round: 2 }]);
}

#[test]
fn an_open_question_is_asked_again_when_the_goal_is_resumed() {
    let alive = Story::waiting_alive().after(&[pause(), ended(crashed())]);
    for mut story in [alive, Story::blocked().after(&[pause()])] {
        let blocked = Phase::Blocked { question: QuestionNo(1), attempt: None, until: None };
        assert_eq!(story.clone().receive(Event::ResumeRequested), moved_to(blocked, &[]));
        story.receive(answered(1, "blue"));
        assert_eq!(story.state.phase, PAUSED);
        story.receive(Event::ResumeRequested);
        assert!(story.go_on().prompt.contains("- Which colour?\n  blue"));
    }
}

#[test]
fn a_wait_that_the_agent_asked_for_goes_on_after_a_pause() {
    let mut story = Story::working(goal());
    story.receive(turn_ended(r#"{"towline": "sleep", "seconds": 90, "reason": "CI"}"#));
    story.receive(ended(End::Completed));
    story.receive(pause());
    story.wait(30);
    story.receive(Event::ResumeRequested);
    assert_eq!(story.state.phase, Phase::Sleeping { until: at(90), reason: "CI".into() });
}

#[test]
fn a_quota_that_is_used_up_is_waited_for_after_a_pause() {
    let mut story = Story::limited().after(&[pause(), Event::ResumeRequested]);
    story.receive(dispatched());
    assert_eq!(story.state.phase.until(), Some(at(3_600)));
}

#[test]
fn the_time_of_a_pause_is_not_the_goals_also_if_nobody_lives_to_carry_it_out() {
    let mut working = Story::working(goal_limited("wall=1h"));
    working.wait(1_000);
    // It ends at once, after the time, or not before the goal is resumed.
    for (before, after) in [
        (vec![pause(), ended(crashed())], vec![Event::ResumeRequested]),
        (vec![pause()], vec![ended(End::Lost), Event::ResumeRequested]),
        (vec![pause()], vec![Event::ResumeRequested]),
    ] {
        let mut story = working.clone().after(&before);
        story.wait(100_000);
        let story = story.after(&after);
        let left = story.state.wall_ends().map(|ends| ends.duration_since(story.now).as_secs());
        assert_eq!(left, Some(2_600));
    }
}

#[test]
fn a_goal_that_is_resumed_before_its_pause_began_goes_on_when_its_tree_is_gone() {
    let mut story = Story::working(goal()).after(&[pause(), Event::ResumeRequested]);
    story.receive(ended(crashed()));
    assert_eq!((&story.state.phase, &story.last().end), (&Phase::Queued, &Some(End::Interrupted)));
    let mut asking = Story::waiting_alive().after(&[pause(), Event::ResumeRequested]);
    asking.receive(ended(crashed()));
    assert_eq!(asking.state.phase.name(), "blocked");
}

#[test]
fn a_pause_wins_over_every_reason_to_stop_but_cancelling() {
    let denied: Vec<Event> = vec![decided(Outcome::Deny); 5];
    for reasons in [&[timed_out(Timeout::Idle)][..], &[timed_out(Timeout::Wall)], &denied] {
        let mut story = Story::working(goal()).after(reasons);
        assert_eq!(story.receive(pause()), moved_to(pausing(), &[]));
        assert_eq!(story.receive(ended(crashed())), moved_after_stop(PAUSED, 1, End::Interrupted));
    }
    let mut story = Story::working(goal()).after(&[Event::CancelRequested, pause()]);
    assert_eq!(story.receive(ended(crashed())), moved_after_stop(Phase::Cancelled, 1, End::Cancelled));
}

#[test]
fn what_an_agent_used_without_a_report_stays_unknown_after_a_pause() {
    let mut story = Story::working(goal());
    story.receive(agent(AgentEvent::TurnStarted));
    assert_eq!(story.state.usage(), Usage::default());
    let story = story.after(&[pause(), ended(crashed())]);
    assert_eq!((story.state.attempts_spent(), story.state.usage()), (0, Usage::default()));
}

#[test]
fn files_that_were_restored_are_so_until_the_next_attempt() {
    let restored = |paths: &[&str]| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        Event::Restored { replaced: Commit::new("c0"), paths }
    };
    let mut story = Story::working(goal()).after(&[pause(), ended(crashed()), restored(&["a"])]);
    assert!(!story.state.restored, "only a part of them");
    story.receive(restored(&[]));
    assert!(story.state.restored);
    story.receive(Event::ResumeRequested);
    story.go_on();
    assert!(!story.state.restored);
}

#[test]
fn an_agent_hears_once_that_a_person_worked_in_its_workspace() {
    for visit in [&[entered(), Event::Left { code: Some(0) }][..], &[entered()]] {
        let mut story = Story::working(goal()).after(&[pause(), ended(crashed())]);
        story.wait(1);
        let mut story = story.after(visit);
        assert_eq!(story.state.phase, PAUSED);
        story.wait(1);
        story.receive(Event::ResumeRequested);
        let launch = story.go_on();
        assert_eq!(launch.session, resumed());
        assert_prompt(&launch.prompt, &["# A person worked here"], &[]);
        story.work_in("s1", true);
        assert!(!story.fail_checks("t1").prompt.contains("A person"));
    }
}

#[test]
fn a_paused_goal_can_be_cancelled_and_sent_a_message() {
    let mut story =
        Story::working(goal()).after(&[pause(), ended(crashed()), message_sent("use the small one")]);
    assert_eq!(story.clone().receive(Event::CancelRequested), moved_to(Phase::Cancelled, &[]));
    story.receive(Event::ResumeRequested);
    assert!(story.go_on().prompt.starts_with("# From the operator\n\nuse the small one"));
}
