//! One agent cannot go on, and the next one of the goal's list does.

use std::time::Duration;

use crate::fixtures::*;
use crate::{
    AgentEvent, AgentName, End, EscalationReason, Event, Launch, LaunchProblem, Phase, Policy, SessionPlan,
    Work,
};

fn handed_over(from: &str, to: &str, why: &str) -> Event {
    Event::HandedOver { from: AgentName::new(from), to: AgentName::new(to), why: why.into() }
}

/// The goal is queued and gets a slot; gives back the events and the launch that follow.
fn next(story: &mut Story) -> (Vec<Event>, Launch) {
    assert_eq!(story.state.phase, Phase::Queued);
    let moved = story.receive(dispatched());
    (moved.events.clone(), launch_of(moved))
}

fn limited_until(second: i64) -> Event {
    ended(End::RateLimited { until: Some(at(second)) })
}

#[test]
fn a_limited_agent_hands_over_at_once_with_everything_the_next_one_must_know() {
    let mut story = Story::of_two_agents();
    story.receive(agent(AgentEvent::TurnStarted));
    story.receive(turn_ended("I changed the parser."));
    story.fail_checks("t1");
    story.work_in("s1", true);
    story.receive(message_sent("keep it small"));
    let end = End::RateLimited { until: Some(at(3_600)) };
    story.receive(Event::AttemptEnded {
        end,
        exit: exit(),
        work: Work::Nothing,
        changes: " src/parser.rs | 3 ++-".into(),
    });
    let (events, launch) = next(&mut story);
    assert_eq!(events[0], handed_over("claude", "codex", "rate_limited"));
    assert_eq!(launch.agent, AgentName::new("codex"));
    assert_eq!(launch.session, SessionPlan::Fresh(fresh_session(3)));
    let wanted = [
        "# Goal\n\nMake the tests pass.",
        "# What was done before",
        "> I changed the parser.",
        "src/parser.rs | 3 ++-",
        "keep it small",
        "# Checks that failed on your work",
    ];
    assert_prompt(&launch.prompt, &wanted, &["# Interrupted"]);
}

#[test]
fn when_all_are_limited_the_goal_waits_for_the_first_that_can_go_on_again() {
    let mut story = Story::of_two_agents();
    story.receive(limited_until(3_600));
    next(&mut story);
    story.work_in("c1", false);
    story.receive(limited_until(7_200));
    assert_eq!(story.state.phase, Phase::Limited { until: at(3_600), guessed: false });
    story.now = at(3_600);
    story.receive(Event::Woken);
    let (events, launch) = next(&mut story);
    assert_eq!(events[0], handed_over("codex", "claude", "rate_limited"));
    assert_eq!(launch.agent, AgentName::new("claude"));
}

#[test]
fn the_agent_that_took_over_keeps_the_work_while_it_can() {
    let mut story = Story::of_two_agents();
    story.receive(limited_until(60));
    next(&mut story);
    story.work_in("c1", false);
    story.wait(600);
    let launch = story.fail_checks("t1");
    assert_eq!(launch.agent, AgentName::new("codex"));
    assert_eq!(launch.session, SessionPlan::Resume(crate::SessionId::new("c1")));
}

#[test]
fn refused_credentials_and_a_missing_program_hand_over_and_need_a_person_only_when_nobody_is_left() {
    let auth = || End::Auth { message: "not logged in".into() };
    let missing = || End::SpawnFailed { problem: LaunchProblem::NotFound { program: "codex".into() } };
    let mut story = Story::of_two_agents();
    story.receive(ended(auth()));
    let (events, _) = next(&mut story);
    assert_eq!(events[0], handed_over("claude", "codex", "auth"));
    story.receive(ended(missing()));
    assert!(matches!(&story.state.phase, Phase::Escalated { reason: EscalationReason::SpawnFailed { .. } }));
    assert_eq!(story.state.attempts_spent(), 0);
    // Opened again, everybody is asked anew.
    story.receive(retry(&[]));
    assert_eq!(next(&mut story).1.agent, AgentName::new("codex"));
}

#[test]
fn an_agent_that_fails_again_and_again_is_left_alone_for_a_while() {
    let mut story = Story::of_two_agents();
    let failing = || ended(End::ServerError { status: Some(500), message: String::new() });
    for _ in 1..Policy::ERRORS_BEFORE_HANDOVER {
        story.receive(failing());
        assert_eq!(story.go_on().agent, AgentName::new("claude"));
        story.work_in("s1", true);
    }
    story.receive(failing());
    let (events, launch) = next(&mut story);
    assert_eq!(events[0], handed_over("claude", "codex", "server_error"));
    assert_eq!(launch.agent, AgentName::new("codex"));
    let until = story.state.unavailable[&AgentName::new("claude")].until.expect("a time");
    assert_eq!(until, story.now + Policy::FAILING_AGENT_PAUSE);
    assert!(Policy::FAILING_AGENT_PAUSE > Duration::from_secs(60));
}

#[test]
fn an_agent_that_never_starts_hands_over_after_three_tries() {
    let mut story = Story::launched(Story::of_two_agents().goal);
    for _ in 1..Policy::FAILED_STARTS {
        story.receive(ended(crashed()));
        story.go_on();
    }
    story.receive(ended(crashed()));
    let (events, _) = next(&mut story);
    assert_eq!(events[0], handed_over("claude", "codex", "crashed"));
}

#[test]
fn agents_of_one_account_are_limited_together_and_fail_apart() {
    let names = ["claude", "haiku", "codex"].map(AgentName::new);
    let accounts = [(names[0].clone(), "main".to_owned()), (names[1].clone(), "main".to_owned())];
    let goal = crate::Goal { agents: names.to_vec(), accounts: accounts.into(), ..goal() };
    for (end, next_agent) in [
        (End::RateLimited { until: Some(at(3_600)) }, "codex"),
        (End::Auth { message: "expired".into() }, "codex"),
        (End::SpawnFailed { problem: LaunchProblem::NotFound { program: "claude".into() } }, "haiku"),
    ] {
        let mut story = Story::launched(goal.clone());
        story.receive(ended(end.clone()));
        assert_eq!(next(&mut story).1.agent, AgentName::new(next_agent), "{end:?}");
    }
}

#[test]
fn a_goal_whose_agents_share_one_limited_account_waits() {
    let names = ["claude", "haiku"].map(AgentName::new);
    let accounts = names.iter().map(|name| (name.clone(), "main".to_owned())).collect();
    let mut story = Story::launched(crate::Goal { agents: names.to_vec(), accounts, ..goal() });
    story.receive(limited_until(3_600));
    assert_eq!(story.state.phase, Phase::Limited { until: at(3_600), guessed: false });
}
