//! The straight ways through a goal's life, in whole values.

use crate::fixtures::*;
use crate::{
    AgentName, Attempt, AttemptId, Commit, Effect, End, EscalationReason, Event, GoalState, Launch,
    ModelChoice, Moved, Phase, Policy, SessionBinding, SessionId, SessionPlan,
};

fn launch(number: u32, session: SessionPlan, prompt: &str) -> Effect {
    Effect::Launch(Launch {
        attempt: no(number),
        id: AttemptId::of(goal().id, no(number)),
        agent: AgentName::new("claude"),
        model: None,
        session,
        compact: None,
        prompt: prompt.to_owned(),
        permitted: vec![],
    })
}

const FIRST_PROMPT: &str =
    "# Goal\n\nMake the tests pass.\n\n# How it will be checked\n\n- tests: `cargo test`";

#[test]
fn dispatch_makes_the_workspace_first() {
    let mut story = Story::of(goal());
    story.wait(7);
    let before = story.state.clone();
    let moved = story.receive(dispatched());
    let effects = vec![Effect::Prepare { round: 1 }];
    assert_eq!(moved, Moved { effects, ..moved_to(Phase::Preparing, &[]) });
    let expected =
        GoalState { phase: Phase::Preparing, first_started_at: Some(at(7)), preparations: 1, ..before };
    assert_eq!(story.state, expected);
}

#[test]
fn a_ready_workspace_launches_the_first_prompt_in_a_fresh_session() {
    let mut story = Story::preparing(goal());
    let before = story.state.clone();
    story.wait(3);
    let moved = story.receive(prepared());
    let running = Phase::Running { attempt: no(1) };
    let effects = vec![launch(1, SessionPlan::Fresh(fresh_session(1)), FIRST_PROMPT)];
    assert_eq!(moved, Moved { effects, ..moved_to(running.clone(), &["prepare/1"]) });
    let expected = GoalState {
        phase: running,
        workspace: Some(workspace()),
        attempts: vec![fresh_attempt(1, at(3))],
        ..before
    };
    assert_eq!(story.state, expected);
}

#[test]
fn a_goals_model_reaches_its_launch() {
    let story = Story::preparing(crate::Goal { model: Some("opus".into()), ..goal() });
    let launch = launch_of(story.clone().receive(prepared()));
    assert_eq!(launch.model.as_deref(), Some("opus"));
}

#[test]
fn a_session_is_bound_by_the_first_word_of_it() {
    let mut story = Story::launched(goal());
    let before = story.state.clone();
    story.wait(2);
    assert_eq!(story.receive(Event::AttemptStarted { sandbox: None }), Moved::default());
    assert_eq!(story.receive(session("s1", false)), Moved::default());
    let expected = GoalState {
        session: Some(SessionBinding {
            agent: AgentName::new("claude"),
            native_id: SessionId::new("s1"),
            model: Some("opus".into()),
            directory: "/workspace".into(),
            since: at(2),
            asked_model: ModelChoice::AgentDefault,
            origin: Some(goal().origin),
        }),
        attempts: vec![Attempt {
            session: Some(SessionId::new("s1")),
            model: Some("opus".into()),
            started: true,
            ..fresh_attempt(1, at(0))
        }],
        ..before
    };
    assert_eq!(story.state, expected);
}

#[test]
fn a_finished_turn_is_checked() {
    let mut story = Story::working(goal());
    assert_eq!(story.receive(turn_ended("It works.")), Moved::default());
    let before = story.state.clone();
    story.wait(60);
    let moved = story.receive(ended(End::Completed));
    let checking = Phase::Checking { attempt: no(1) };
    let effects = vec![run_checks(1)];
    assert_eq!(moved, Moved { effects, ..moved_to(checking.clone(), &["launch/1"]) });
    let attempt = Attempt {
        ended_at: Some(at(60)),
        end: Some(End::Completed),
        exit: Some(exit()),
        text: "It works.".into(),
        check_rounds: 1,
        ..before.attempts[0].clone()
    };
    assert_eq!(story.state, GoalState { phase: checking, attempts: vec![attempt], ..before });
}

#[test]
fn a_green_verdict_is_done() {
    let mut story = Story::checking();
    let before = story.state.clone();
    story.wait(9);
    let moved = story.receive(green_verdict("t1"));
    assert_eq!(moved, moved_to(Phase::Done, &["checks/1"]));
    let verdict = verdict("t1", vec![green("tests")]);
    let expected = GoalState {
        phase: Phase::Done,
        settled_at: Some(at(9)),
        candidate: Some(Commit::new("c-t1")),
        same_failure_in_row: 1,
        attempts: vec![Attempt { verdict: Some(verdict), ..before.attempts[0].clone() }],
        ..before
    };
    assert_eq!(story.state, expected);
}

#[test]
fn a_verdict_without_a_single_check_is_not_done() {
    let mut story = Story::checking();
    let moved = story.receive(Event::VerdictReached { verdict: verdict("t1", vec![]) });
    assert_eq!(moved.events, [now_in(Phase::Running { attempt: no(2) })]);
}

#[test]
fn a_goal_without_checks_is_unproven_and_never_done() {
    let mut story = Story::working(goal_without_checks());
    assert_eq!(story.receive(ended(End::Completed)), moved_to(Phase::Unproven, &["launch/1"]));
}

#[test]
fn a_red_verdict_goes_on_in_the_same_session_with_the_failures_and_without_the_goal() {
    let mut story = Story::checking();
    let before = story.state.clone();
    story.wait(5);
    let moved = story.receive(red_verdict("t1"));
    let prompt = "# Checks that failed on your work\n\n## tests\n\nCommand: `cargo test`\nResult: exit code 101\n\n\
                  ```\n1 failed\n```";
    let running = Phase::Running { attempt: no(2) };
    let effects = vec![launch(2, resumed(), prompt)];
    assert_eq!(moved, Moved { effects, ..moved_to(running.clone(), &["checks/1"]) });
    let verdict = verdict("t1", vec![red("tests", "1 failed")]);
    let expected = GoalState {
        phase: running,
        candidate: Some(Commit::new("c-t1")),
        same_failure_in_row: 1,
        attempts: vec![
            Attempt { verdict: Some(verdict), ..before.attempts[0].clone() },
            fresh_attempt(2, at(5)),
        ],
        ..before
    };
    assert_eq!(story.state, expected);
}

#[test]
fn a_resumed_session_keeps_the_time_it_began() {
    let mut story = Story::checking();
    let bound = story.state.session.clone();
    story.wait(100);
    story.receive(red_verdict("t1"));
    story.work_in("s1", true);
    assert_eq!(story.state.session, bound);
    assert!(story.last().resumed);
}

#[test]
fn the_same_failure_on_the_same_files_three_times_in_a_row_escalates() {
    let mut story = Story::working(goal());
    for _ in 1..Policy::NO_PROGRESS {
        story.fail_checks("t1");
        story.work_in("s1", true);
    }
    story.receive(ended(End::Completed));
    let moved = story.receive(red_verdict("t1"));
    let reason = EscalationReason::NoProgress { times: 3 };
    assert_eq!(moved, moved_to(Phase::Escalated { reason }, &["checks/3"]));
}

#[test]
fn other_files_or_other_failures_are_progress() {
    let mut story = Story::checking();
    let other_failure =
        Event::VerdictReached { verdict: verdict("t2", vec![green("tests"), red("lint", "no")]) };
    for verdict in [red_verdict("t1"), red_verdict("t1"), red_verdict("t2"), red_verdict("t2"), other_failure]
    {
        story.receive(verdict);
        assert!(matches!(story.state.phase, Phase::Running { .. }), "{:?}", story.state.phase);
        story.work_in("s1", true);
        story.receive(ended(End::Completed));
    }
    assert_eq!(story.state.same_failure_in_row, 1);
}

#[test]
fn a_failed_setup_fails_the_goal_with_its_words() {
    let mut story = Story::preparing(goal());
    let reason = crate::FailureReason::Setup { error: "npm ci failed; run it by hand".into() };
    assert_eq!(story.receive(prepare_failed()), moved_to(Phase::Failed { reason }, &["prepare/1"]));
}

#[test]
fn a_claim_from_a_copied_state_directory_moves_the_workspace_and_begins_a_new_session() {
    let mut story = Story::sleeping();
    let (worker, models) = ("w".into(), Default::default());
    story.receive(Event::Claimed { worker, models, workspace: Some("/copy".into()) });
    assert_eq!(story.state.workspace.as_ref().map(|workspace| workspace.path.as_str()), Some("/copy"));
    assert_eq!(story.go_on().session, SessionPlan::Fresh(fresh_session(2)));
}

#[test]
fn a_session_of_another_agent_or_directory_is_not_resumed() {
    let bound = Story::sleeping().state.session.expect("a session");
    for foreign in [
        SessionBinding { agent: AgentName::new("codex"), ..bound.clone() },
        SessionBinding { directory: "/elsewhere".into(), ..bound },
    ] {
        let mut story = Story::sleeping();
        story.state.session = Some(foreign);
        assert_eq!(story.go_on().session, SessionPlan::Fresh(fresh_session(2)));
    }
}
