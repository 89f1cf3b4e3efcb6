//! Models that cannot be reached, and sessions that cannot be continued.

use std::time::Duration;

use crate::fixtures::*;
use crate::{
    AgentEvent, AgentName, Axis, End, EscalationReason, Event, FailureReason, Goal, Launch, ModelChoice,
    Moved, NextSession, Origin, Phase, Policy, SessionId, SessionPlan, Timeout, Work,
};

fn server_error() -> End {
    End::ServerError { status: None, message: "connection refused".into() }
}

/// The only notice among what followed.
fn notice(moved: &Moved) -> &str {
    let [notice] = notices(moved)[..] else { panic!("{moved:?}") };
    notice
}

fn assert_gets_everything(launch: &Launch) {
    assert!(matches!(launch.session, SessionPlan::Fresh(_)), "{launch:?}");
    let wanted = ["# Goal", "# How it will be checked", "# Checks that failed", "keep it small"];
    assert_prompt(&launch.prompt, &wanted, &[]);
}

/// A goal with a red verdict and a word of the operator, whose second attempt was launched.
fn second_attempt() -> Story {
    let mut story = Story::working(goal());
    story.receive(message_sent("keep it small"));
    story.receive(agent(AgentEvent::Heard { message: crate::MessageNo(1) }));
    story.receive(usage(1));
    assert_eq!(story.fail_checks("t1").session, resumed());
    story
}

#[test]
fn an_outage_of_hours_costs_neither_attempts_nor_errors_and_is_tried_every_five_minutes() {
    let mut story = Story::working(goal());
    let mut pauses = Vec::new();
    for _ in 0..40 {
        story.receive(ended(server_error()));
        let Phase::Sleeping { until, reason } = &story.state.phase else { panic!("{:?}", story.state.phase) };
        assert_eq!(reason, "the model cannot be reached: server error");
        pauses.push(until.duration_since(story.now).as_secs());
        let launch = story.go_on();
        assert_eq!(launch.session, resumed());
        story.work_in("s1", true);
    }
    assert_eq!(pauses[..10], [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    // The attempt that runs now counts until it turns out that it did not reach the model either.
    let spent = (story.state.attempts_spent(), story.state.errors_in_row, story.state.turns());
    assert_eq!(spent, (1, 0, 1));
    story.receive(usage(1));
    assert_eq!(story.state.outage, crate::Outage::default());
    story.receive(ended(End::Completed));
    assert_eq!(story.state.phase.name(), "checking");
}

#[test]
fn a_server_error_after_an_answer_is_an_error() {
    let mut story = Story::working(goal());
    story.receive(usage(1));
    story.receive(ended(server_error()));
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (1, 1));
    // The next one does not reach the model.
    story.go_on();
    story.work_in("s1", true);
    story.receive(ended(server_error()));
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (1, 1));
}

#[test]
fn an_outage_ends_with_the_wall_time_or_needs_a_person_after_twelve_hours() {
    let spent = Phase::Failed { reason: FailureReason::Budget { axis: Axis::Wall } };
    let message = "connection refused".to_owned();
    let unreachable = Phase::Escalated { reason: EscalationReason::Unreachable { message } };
    for (goal, hours, expected) in [(goal_limited("wall=1h"), 1, spent), (goal(), 12, unreachable)] {
        let mut story = Story::working(goal);
        while !story.state.phase.is_settled() {
            story.receive(ended(server_error()));
            if let Some(until) = story.state.phase.until() {
                story.now = until;
                story = story.after(&[Event::Woken, dispatched()]);
            }
        }
        assert_eq!(story.state.phase, expected);
        let passed = story.now.duration_since(at(0)).as_secs();
        assert!((hours * 3_600..hours * 3_600 + 310).contains(&passed), "{passed}");
        assert_eq!(story.state.errors_in_row, 0);
    }
    let reason = EscalationReason::Unreachable { message: "connection refused".into() };
    assert_eq!(reason.to_string(), "the provider did not answer for 12 hours: connection refused");
}

#[test]
fn an_outage_hands_over_to_the_next_agent_and_back_to_the_first() {
    let mut story = Story::of_two_agents();
    let mut agents = Vec::new();
    for _ in 0..16 {
        story.receive(ended(server_error()));
        let launch = story.go_on();
        agents.push(launch.agent.to_string());
        story.work_in("s", true);
    }
    assert_eq!(agents[..4], ["claude", "claude", "codex", "codex"]);
    assert!(agents[4..].contains(&"claude".to_owned()), "{agents:?}");
    assert_eq!(story.state.errors_in_row, 0);
}

#[test]
fn silence_without_an_answer_waits_like_an_outage() {
    let silence = || [timed_out(Timeout::Idle), ended(crashed())];
    let mut story = Story::working(goal());
    // At once the first time.
    story = story.after(&silence());
    assert_eq!(story.state.phase, Phase::Running { attempt: no(2) });
    for pause in [4, 8, 16, 32, 64, 128] {
        story.work_in("s1", true);
        story = story.after(&silence());
        let until = story.now + Duration::from_secs(pause);
        let reason = "the model does not answer".to_owned();
        assert_eq!(story.state.phase, Phase::Sleeping { until, reason });
        assert_eq!((story.state.errors_in_row, story.state.attempts_spent()), (0, 0));
        story.go_on();
    }
}

#[test]
fn silence_after_an_answer_is_an_error() {
    let mut story = Story::working(goal());
    for errors in [1, 2] {
        story.receive(usage(1));
        story = story.after(&[timed_out(Timeout::Idle), ended(crashed())]);
        assert_eq!(story.state.errors_in_row, errors);
        if errors == 1 {
            story.work_in("s1", true);
        }
    }
    assert_eq!((story.state.phase.name(), story.state.attempts_spent()), ("sleeping", 2));
}

#[test]
fn a_quota_that_the_agent_waits_for_is_a_limit_and_no_silence() {
    let limited = Story::working(goal()).after(&[retrying(429), timed_out(Timeout::Idle), ended(crashed())]);
    assert_eq!(limited.last().end, Some(End::RateLimited { until: None }));
    assert_eq!(limited.state.phase, Phase::Limited { until: at(60), guessed: true });
    assert_eq!((limited.state.errors_in_row, limited.state.attempts_spent()), (0, 0));
    // What it announced is over as soon as the model answers or something else is in the way.
    for over in [usage(1), retrying(500)] {
        let silent =
            Story::working(goal()).after(&[retrying(429), over, timed_out(Timeout::Idle), ended(crashed())]);
        assert_eq!(silent.state.attempts[0].end, Some(End::TimedOut { timeout: Timeout::Idle }));
    }
}

#[test]
fn a_guessed_reset_doubles_until_the_model_answers() {
    let mut story = Story::working(goal());
    for minutes in [1, 2, 4, 8, 16, 30, 30] {
        story.receive(ended(End::RateLimited { until: None }));
        let until = story.now + Duration::from_secs(minutes * 60);
        assert_eq!(story.state.phase, Phase::Limited { until, guessed: true });
        story.go_on();
        story.work_in("s1", true);
    }
    let story = story.after(&[usage(1), ended(End::RateLimited { until: None })]);
    let until = story.now + Duration::from_secs(60);
    assert_eq!(story.state.phase, Phase::Limited { until, guessed: true });
}

#[test]
fn a_person_can_end_every_wait() {
    for (request, errors) in [(Event::ResumeRequested, 1), (retry(&[]), 0)] {
        for story in [Story::sleeping(), Story::limited()] {
            let mut story = story;
            story.state.errors_in_row = 1;
            assert_eq!(story.receive(request.clone()), moved_to(Phase::Queued, &[]));
            assert_eq!(story.state.errors_in_row, errors);
            assert_eq!(launch_of(story.receive(dispatched())).session, resumed());
        }
    }
}

#[test]
fn the_second_refusal_in_a_row_starts_a_new_session_that_gets_everything() {
    let mut story = second_attempt();
    story.work_in("s1", true);
    story.receive(ended(refused()));
    assert_eq!(story.go_on().session, resumed());
    // What never reached the model is no evidence about the conversation.
    story.work_in("s1", true);
    story.go_on_after(server_error());
    let moved = story.receive(ended(refused()));
    let expected = "the session is not continued: the provider refused the conversation twice in a row; the next attempt \
                starts a new one";
    assert_eq!(notice(&moved), expected);
    assert_eq!((story.state.errors_in_row, story.state.attempts_spent()), (2, 3));
    assert_gets_everything(&story.go_on());
}

#[test]
fn an_answer_ends_the_row_of_refusals() {
    let mut story = second_attempt();
    story.work_in("s1", true);
    story.go_on_after(refused());
    story.receive(usage(1));
    story.fail_checks("t2");
    story.work_in("s1", true);
    story.receive(ended(refused()));
    assert_eq!(story.go_on().session, resumed());
}

#[test]
fn a_provider_that_refuses_everything_spends_errors() {
    let mut story = Story::working(goal());
    let mut sessions = 0;
    while !story.state.phase.is_settled() {
        story.receive(ended(refused()));
        if !story.state.phase.is_settled() {
            match story.go_on().session {
                SessionPlan::Resume(id) => story.work_in(id.as_str(), true),
                SessionPlan::Fresh(_) => {
                    sessions += 1;
                    story.work_in(&format!("n{sessions}"), false);
                }
            }
        }
    }
    assert_eq!(story.state.phase, Phase::Failed { reason: FailureReason::Budget { axis: Axis::Errors } });
    assert_eq!((story.state.attempts.len(), sessions), (5, 2));
}

#[test]
fn a_session_that_the_agent_lost_is_left_after_two_resumes() {
    // Some name the session before they fail, some do not.
    for names_session in [true, false] {
        let mut story = second_attempt();
        for _ in 1..Policy::FAILED_RESUMES {
            if names_session {
                story.work_in("s1", true);
            }
            story.receive(ended(crashed()));
            assert_eq!(story.go_on().session, resumed());
        }
        if names_session {
            story.work_in("s1", true);
        }
        let moved = story.receive(ended(crashed()));
        assert!(notice(&moved).contains("it was resumed twice in a row"), "{moved:?}");
        assert_gets_everything(&story.go_on());
    }
}

#[test]
fn a_session_in_which_work_was_done_is_resumed_after_every_crash() {
    for work in [Work::Nothing, Work::Unchecked] {
        let mut story = second_attempt();
        for n in 0..4 {
            story.work_in("s1", true);
            if work == Work::Nothing {
                story.receive(usage(1));
                story.receive(ended(crashed()));
            } else {
                story.receive(ended_with_work(crashed()));
                story.receive(red_verdict(&format!("w{n}")));
            }
            assert_eq!(story.go_on().session, resumed(), "{work:?}");
        }
    }
}

#[test]
fn the_operator_can_ask_for_a_new_session() {
    let mut story = second_attempt();
    story.work_in("s1", true);
    story.receive(Event::CancelRequested);
    story.receive(ended(crashed()));
    let moved = story.receive(retry_fresh());
    assert!(notice(&moved).contains("the operator asked for it"), "{moved:?}");
    assert_gets_everything(&story.go_on());
    // Without a session there is nothing to report.
    let mut fresh = Story::of(goal()).after(&[Event::CancelRequested]);
    assert_eq!(fresh.receive(retry_fresh()), moved_to(Phase::Queued, &[]));
}

#[test]
fn a_changed_model_starts_a_new_session_that_gets_everything() {
    let named = |model: &str| ModelChoice::Named(model.to_owned());
    let chosen = |model: &str| {
        let model = Some(model.to_owned());
        Event::RetryRequested { budget: vec![], session: NextSession::Resumed, model }
    };
    for (change, model, launched_with) in [
        (vec![claimed(Some("haiku")), retry(&[])], named("haiku"), None),
        (vec![chosen("opus")], named("opus"), Some("opus")),
        (vec![claimed(Some("haiku")), chosen("opus")], named("opus"), Some("opus")),
    ] {
        let mut story = second_attempt();
        assert_eq!(
            story.state.session.as_ref().map(|bound| &bound.asked_model),
            Some(&ModelChoice::AgentDefault)
        );
        story = story.after(&[Event::CancelRequested, ended(crashed())]).after(&change);
        let moved = story.receive(dispatched());
        assert!(notice(&moved).contains("the model changed from the agent's own to"), "{moved:?}");
        let launch = launch_of(moved);
        assert_gets_everything(&launch);
        assert_eq!(launch.model.as_deref(), launched_with);
        story.work_in("s2", false);
        assert_eq!(story.state.session.as_ref().map(|bound| bound.asked_model.clone()), Some(model));
        // From then on it stays.
        story.receive(ended(crashed()));
        assert_eq!(story.go_on().session, SessionPlan::Resume(SessionId::new("s2")));
    }
}

#[test]
fn a_model_that_is_the_same_or_was_not_recorded_keeps_its_session() {
    let goal = Goal { model: Some("opus".into()), ..goal() };
    let mut same = Story::working(goal).after(&[ended(crashed()), claimed(Some("haiku"))]);
    assert_eq!(same.go_on().session, resumed());
    let mut unknown = Story::sleeping();
    unknown.state.session.as_mut().expect("a session").asked_model = ModelChoice::Unknown;
    unknown.receive(claimed(Some("haiku")));
    assert_eq!(unknown.go_on().session, resumed());
}

#[test]
fn a_session_carries_the_origin_of_its_goal() {
    let origin = Origin { channel: "slack".into(), thread: Some("T1".into()), by: Some("ann".into()) };
    let story = Story::working(Goal { origin: origin.clone(), ..goal() });
    assert_eq!(story.state.session.as_ref().and_then(|bound| bound.origin.clone()), Some(origin));
    // A session that an earlier version stored has neither.
    let mut stored = serde_json::to_value(story.state.session.expect("a session")).expect("JSON");
    for field in ["origin", "asked_model"] {
        stored.as_object_mut().expect("an object").remove(field).expect(field);
    }
    let read: crate::SessionBinding = serde_json::from_value(stored).expect("readable");
    assert_eq!((read.origin, read.asked_model), (None, ModelChoice::Unknown));
    assert_eq!(read.agent, AgentName::new("claude"));
}
