//! News of what is over changes nothing.

use crate::fixtures::*;
use crate::{AgentEvent, AttemptNo, End, Event, Generation, Moved, Stale, Stamp, StepOutcome, Timeout};

fn attempt_news() -> [Event; 5] {
    [
        Event::AttemptStarted { sandbox: None },
        agent(AgentEvent::TurnStarted),
        usage(1),
        timed_out(Timeout::Idle),
        ended(End::Completed),
    ]
}

fn assert_stale(
    mut story: Story,
    generation: Generation,
    attempt: Option<AttemptNo>,
    event: Event,
    stale: Stale,
) {
    let before = story.state.clone();
    let outcome = story.send(&incoming(Stamp { generation, attempt }, event.clone()));
    assert_eq!(outcome, StepOutcome::Stale(stale), "{event:?}");
    assert_eq!(story.state, before, "{event:?}");
}

/// A goal under its second lease.
fn taken_over(mut story: Story) -> Story {
    let stamp = Stamp { generation: Generation(2), attempt: None };
    let claimed = incoming(stamp, claimed(None));
    let before = story.state.clone();
    assert_eq!(story.send(&claimed), StepOutcome::Moved(Moved::default()));
    assert_eq!(story.state, crate::GoalState { generation: Generation(2), ..before });
    story
}

#[test]
fn a_new_holder_of_the_lease_takes_over_in_any_phase() {
    for story in
        [Story::of(goal()), Story::working(goal()), Story::checking(), Story::limited(), Story::escalated()]
    {
        taken_over(story);
    }
}

#[test]
fn news_under_another_lease_is_stale_whatever_it_is() {
    let story = taken_over(Story::working(goal()));
    let claim = claimed(None);
    let requests = [Event::CancelRequested, Event::Notice { text: String::new() }, claim];
    for event in attempt_news().into_iter().chain(requests) {
        for generation in [Generation(0), Generation(1)] {
            assert_stale(story.clone(), generation, Some(no(1)), event.clone(), Stale::Generation);
        }
    }
    // Only a claim can bring a newer lease.
    for event in attempt_news() {
        assert_stale(story.clone(), Generation(3), Some(no(1)), event, Stale::Generation);
    }
}

#[test]
fn news_of_another_attempt_is_stale() {
    let mut story = Story::checking();
    story.receive(red_verdict("t1"));
    let generation = story.state.generation;
    let started = Event::CheckStarted { name: "tests".into(), process: None };
    for event in attempt_news().into_iter().chain([started, green_verdict("t1"), Event::Stopped]) {
        for other in [1, 3] {
            assert_stale(story.clone(), generation, Some(no(other)), event.clone(), Stale::Attempt);
        }
    }
}

#[test]
fn news_of_an_attempt_that_has_ended_is_stale() {
    let cancelling_checks = Story::checking().after(&[Event::CancelRequested]);
    for story in
        [Story::sleeping(), Story::limited(), Story::checking(), Story::escalated(), cancelling_checks]
    {
        let generation = story.state.generation;
        for event in attempt_news() {
            assert_stale(story.clone(), generation, Some(no(1)), event, Stale::Attempt);
        }
    }
}

#[test]
fn a_lease_taken_over_while_an_agent_is_being_stopped_still_ends_it() {
    let mut story = taken_over(Story::working(goal()).after(&[Event::CancelRequested]));
    let moved = story.receive(ended(crashed()));
    assert_eq!(moved, moved_after_stop(crate::Phase::Cancelled, 1, End::Cancelled));
}
