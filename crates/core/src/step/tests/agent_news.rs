//! What a living attempt's own words change.

use crate::fixtures::*;
use crate::{
    AgentEvent, Attempt, End, Event, Limit, LimitStatus, Moved, Outcome, Phase, RawRef, SessionPlan, Stamp,
    StepOutcome, Tokens, TurnStop,
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
fn a_refused_login_is_the_second_in_a_row_unless_the_model_answered_or_something_else_failed_between() {
    let turn_failed = |status| {
        let stop = TurnStop::Failed { status, reason: "error".into() };
        agent(AgentEvent::TurnEnded(turn_end(stop, "")))
    };
    for (news, stops) in [
        (vec![turn_failed(Some(401))], true),
        (vec![turn_failed(Some(403))], true),
        (vec![turn_failed(Some(500))], false),
        (vec![turn_failed(None)], false),
        (vec![usage(1), retrying(401)], false),
        (vec![retrying(529), retrying(401)], false),
        // An empty count of usage does not prove that the login worked.
        (vec![usage(0), retrying(401)], true),
    ] {
        let story = Story::working(goal()).after(&[retrying(401)]).after(&news);
        let expected = if stops { "stopping" } else { "running" };
        assert_eq!(story.state.phase.name(), expected, "{news:?}");
    }
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
    let mut story = Story::checking().after(&[red_verdict("t1")]);
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
