//! What a living attempt's own words change.

use crate::fixtures::*;
use crate::{
    AgentEvent, Attempt, End, Event, Limit, LimitStatus, Moved, Outcome, Phase, RawRef, SessionPlan, Stamp,
    StepOutcome, StopWhy, Stopping, Tokens, TurnEnd, TurnStop,
};

fn rate_limit(status: LimitStatus, resets_at: Option<i64>) -> Event {
    let resets_at = resets_at.map(at);
    agent(AgentEvent::RateLimit(Limit { scope: None, status, utilization: None, resets_at }))
}

#[test]
fn what_is_observed_is_stored_with_the_attempt() {
    let mut story = Story::working(goal());
    let before = story.last().clone();
    let context_used = Some(Tokens(900));
    for event in [
        AgentEvent::TurnStarted,
        AgentEvent::Usage { model: None, used: used(1), context_used, context_size: Some(Tokens(1_000)) },
        AgentEvent::Usage { model: None, used: used(2), context_used: None, context_size: None },
        AgentEvent::Unrecognised { what: "frame".into(), raw: "{}".into(), count: 1 },
        AgentEvent::Decided(decision(Outcome::Deny)),
    ] {
        assert_eq!(story.receive(agent(event)), Moved::default());
    }
    let expected = Attempt {
        turns: 2,
        answered: true,
        usage: used(3),
        context: Some((Tokens(900), Some(Tokens(1_000)))),
        unrecognised: 1,
        decisions: vec![decision(Outcome::Deny)],
        ..before
    };
    assert_eq!(*story.last(), expected);
}

#[test]
fn output_that_was_read_is_not_read_again_however_far_it_goes() {
    let mut story = Story::working(goal());
    let stamp = Stamp { generation: story.state.generation, attempt: Some(no(1)) };
    for (offset, length, read_to) in [(0, 10, 10), (2, 3, 10), (10, 5, 15), (u64::MAX, 5, u64::MAX)] {
        let thought = agent(AgentEvent::Thought { text: String::new() });
        let mut news = incoming(stamp, thought);
        news.raw = Some(RawRef { offset, length });
        assert_eq!(story.send(&news), StepOutcome::Moved(Moved::default()));
        assert_eq!(story.last().read_to, read_to);
    }
}

#[test]
fn the_second_refused_login_in_a_row_stops_the_agent() {
    let mut story = Story::working(goal());
    assert_eq!(story.receive(retrying(401)), Moved::default());
    let moved = story.receive(retrying(403));
    let message = "the provider refused the credentials twice in a row".to_owned();
    let stopping = Phase::Stopping(Stopping { attempt: Some(no(1)), why: StopWhy::Auth { message } });
    let expected = Moved {
        events: vec![now_in(stopping)],
        effects: vec![crate::Effect::Stop { work: "launch/1".into() }],
        ..Moved::default()
    };
    assert_eq!(moved, expected);
}

#[test]
fn a_turn_that_ended_by_a_refused_login_is_the_second_in_the_row() {
    for (status, stops) in [(Some(401), true), (Some(403), true), (Some(500), false), (None, false)] {
        let mut story = Story::working(goal());
        story.receive(retrying(401));
        let stop = TurnStop::Failed { status, reason: "error".into() };
        let turn =
            TurnEnd { stop, text: String::new(), structured: None, inner_turns: None, reported_cost: None };
        story.receive(agent(AgentEvent::TurnEnded(turn)));
        assert_eq!(story.state.phase.name() == "stopping", stops, "{status:?}");
    }
}

#[test]
fn logins_refused_with_something_between_them_are_not_in_a_row() {
    for between in [usage(1), retrying(529)] {
        let mut story = Story::working(goal());
        for event in [retrying(401), between, retrying(401)] {
            assert_eq!(story.receive(event), Moved::default());
        }
    }
}

#[test]
fn an_empty_count_of_usage_does_not_prove_that_the_login_worked() {
    let mut story = Story::working(goal());
    story.receive(retrying(401));
    story.receive(usage(0));
    story.receive(retrying(401));
    assert_eq!(story.state.phase.name(), "stopping");
}

#[test]
fn each_attempt_begins_with_no_login_refused() {
    let mut story = Story::working(goal());
    story.receive(retrying(401));
    story.receive(ended(crashed()));
    story.go_on();
    assert_eq!(story.receive(retrying(401)), Moved::default());
}

#[test]
fn a_known_reset_time_is_not_forgotten_for_an_unknown_one() {
    let mut story = Story::working(goal());
    story.receive(rate_limit(LimitStatus::Warning, Some(50)));
    assert_eq!(story.last().limit_until, None);
    story.receive(rate_limit(LimitStatus::Rejected, Some(3_600)));
    story.receive(rate_limit(LimitStatus::Rejected, None));
    assert_eq!(story.last().limit_until, Some(at(3_600)));
    let moved = story.receive(ended(End::RateLimited { until: None }));
    assert_eq!(moved, moved_to(Phase::Limited { until: at(3_600), guessed: false }, &["launch/1"]));
}

#[test]
fn denials_are_counted_in_a_row_and_an_allowance_ends_the_row() {
    let mut story = Story::working(goal());
    for outcome in [Outcome::Deny, Outcome::Deny, Outcome::Allow, Outcome::Deny] {
        story.receive(decided(outcome));
    }
    assert_eq!(story.state.denials_in_row, 1);
}

#[test]
fn a_conversation_that_never_got_the_goal_is_not_continued() {
    let mut story = Story::checking();
    story.receive(red_verdict("t1"));
    story.work_in("s2", false);
    assert_eq!((story.state.session.clone(), story.last().resumed), (None, false));
    story.receive(ended(crashed()));
    let launch = story.go_on();
    assert_eq!(launch.session, SessionPlan::Fresh(fresh_session(3)));
    assert!(launch.prompt.starts_with("# Goal"), "{}", launch.prompt);
}

#[test]
fn a_conversation_that_changes_its_id_on_the_way_is_followed() {
    let mut story = Story::working(goal());
    story.receive(session("s2", false));
    story.receive(ended(crashed()));
    assert_eq!(story.go_on().session, SessionPlan::Resume(crate::SessionId::new("s2")));
}
