//! Money that is estimated while a turn goes on.

use crate::fixtures::*;
use crate::{
    AgentEvent, Axis, Budget, Effect, Event, MicroUsd, Moved, Phase, StopWhy, Stopping, Tokens, Usage,
};

/// A message of two cents that the agent has not reported the cost of.
fn message() -> Event {
    agent(AgentEvent::Usage {
        model: None,
        used: Usage { input: Tokens(10), estimate: MicroUsd(20_000), ..Usage::default() },
        context_used: None,
        context_size: None,
    })
}

fn story() -> Story {
    Story::working(goal_with(Budget { usd: Some(MicroUsd(50_000)), ..Budget::default() }))
}

#[test]
fn the_message_that_crosses_the_limit_is_the_last_one() {
    let mut story = story();
    assert_eq!(story.receive(message()), Moved::default());
    assert_eq!(story.receive(message()), Moved::default());
    let stopping = Stopping { attempt: Some(no(1)), why: StopWhy::Budget { axis: Axis::Usd } };
    let stops = Moved {
        events: vec![now_in(Phase::Stopping(stopping))],
        effects: vec![Effect::Stop { work: "launch/1".into() }],
        ..Moved::default()
    };
    assert_eq!(story.receive(message()), stops);
}

#[test]
fn a_turn_that_was_killed_is_charged_by_its_estimate() {
    let mut story = story();
    story.receive(message());
    story.receive(ended(crashed()));
    assert_eq!(story.state.usage().spent().to_string(), "~$0.02");
    story.go_on();
    story.work_in("s1", true);
    story.receive(usage(1));
    assert_eq!(story.state.usage().spent().to_string(), "~$0.03", "of another attempt");
}

#[test]
fn the_agents_own_figure_replaces_the_estimate_of_its_attempt() {
    let mut story = story();
    story.receive(message());
    story.receive(message());
    story.receive(usage(1));
    assert_eq!(story.state.usage().spent().to_string(), "$0.01");
    assert_eq!(story.state.over_budget(), None);
}
