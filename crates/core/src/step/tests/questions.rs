//! Questions outlive the attempt that asked: cancelling, failing and opening a goal again lose none.

use crate::fixtures::*;
use crate::{
    AgentEvent, Answerer, Axis, Delivered, DeliveryState, Effect, End, EscalationReason, Event, Illegal,
    MessageNo, PauseReason, Phase, QuestionNo, Reply, StepOutcome, Timeout, ToolStatus, Words,
};

fn blocked_until(until: Option<jiff::Timestamp>) -> Phase {
    Phase::Blocked { question: QuestionNo(1), attempt: None, until }
}

/// Goals with an open question that were cancelled, by what ran for them.
fn cancelled_stories() -> [Story; 2] {
    [
        Story::blocked().after(&[Event::CancelRequested]),
        Story::waiting_alive().after(&[Event::CancelRequested, ended(crashed())]),
    ]
}

#[test]
fn a_cancelled_goal_asks_its_question_again_when_it_is_retried() {
    for mut story in cancelled_stories() {
        assert_eq!(story.state.phase, Phase::Cancelled);
        assert_eq!(story.receive(retry(&[])), moved_to(blocked_until(None), &[]));
        assert_eq!(story.receive(answered(1, "blue")), moved_to(Phase::Queued, &[]));
        let prompt = story.go_on().prompt;
        assert!(prompt.starts_with("# Answers to what you asked\n\n- Which colour?\n  blue"), "{prompt}");
    }
}

#[test]
fn an_answer_to_a_cancelled_goal_is_used_when_it_is_retried() {
    for mut story in cancelled_stories() {
        story.receive(answered(1, "blue"));
        assert_eq!(story.state.phase, Phase::Cancelled);
        assert_eq!(story.receive(retry(&[])), moved_to(Phase::Queued, &[]));
        assert_prompt(&story.go_on().prompt, &["- Which colour?\n  blue"], &[]);
    }
}

#[test]
fn the_time_for_an_answer_starts_anew_when_the_goal_is_retried() {
    let mut story = Story::working(goal()).after(&[asked(with_default(ask())), ended(End::Completed)]);
    story.receive(Event::CancelRequested);
    story.wait(10_000);
    story.receive(retry(&[]));
    assert_eq!(story.state.phase, blocked_until(Some(at(10_060))));
    story.wait(60);
    let moved = story.receive(Event::Woken);
    let taken = Event::Answered { question: QuestionNo(1), reply: chosen("red"), by: Answerer::Default };
    assert_eq!(moved.events, [taken, now_in(Phase::Queued)]);
}

#[test]
fn a_question_that_nobody_answered_in_time_is_asked_again_when_the_goal_is_retried() {
    let mut story = Story::working(goal()).after(&[asked(urgent(ask())), ended(End::Completed)]);
    story.wait(60);
    story.receive(Event::Woken);
    story.receive(retry(&[]));
    assert_eq!(story.state.phase, blocked_until(Some(at(120))));
}

#[test]
fn a_question_of_a_goal_whose_budget_is_spent_is_asked_again_when_it_is_retried() {
    let mut story = Story::working(goal_limited("tokens=40")).after(&[asked(ask_waiting("r1")), usage(1)]);
    story.receive(ended(crashed()));
    let reason = crate::FailureReason::Budget { axis: Axis::Tokens };
    assert_eq!(story.state.phase, Phase::Failed { reason });
    story.receive(retry(&["tokens=+100"]));
    assert_eq!(story.state.phase, blocked_until(None));
}

#[test]
fn an_answer_to_a_goal_that_needs_a_person_for_something_else_leaves_it_there() {
    let auth = End::Auth { message: "not logged in".into() };
    let mut story = Story::waiting_alive().after(&[ended(auth)]);
    let before = story.state.phase.clone();
    assert!(matches!(&before, Phase::Escalated { reason: EscalationReason::Auth { .. } }), "{before:?}");
    story.receive(answered(1, "blue"));
    assert_eq!(story.state.phase, before);
    story.receive(retry(&[]));
    assert!(story.go_on().prompt.contains("- Which colour?\n  blue"));
}

/// An agent that ends lets go of what it waits for, before Towline knows why it ends.
fn letting_go() -> Story {
    let withdrawn = agent(AgentEvent::Withdrawn { request: "r1".into() });
    Story::waiting_alive().after(&[withdrawn, agent(tool("t1", ToolStatus::Failed)), usage(1)])
}

#[test]
fn a_question_that_an_agent_withdraws_as_it_is_cut_off_stays_open() {
    let shutdown = PauseReason::Shutdown;
    let paused = Phase::Paused { reason: shutdown };
    let stopped = Event::PauseRequested { reason: shutdown };
    let timed_out = End::TimedOut { timeout: Timeout::Idle };
    let table: [(&[Event], Phase, Event); 7] = [
        (&[ended(End::Interrupted)], paused.clone(), Event::ResumeRequested),
        (&[stopped.clone(), ended(End::Interrupted)], paused.clone(), Event::ResumeRequested),
        (&[stopped, ended(crashed())], paused, Event::ResumeRequested),
        (&[Event::CancelRequested, ended(crashed())], Phase::Cancelled, retry(&[])),
        (&[ended(crashed())], blocked_until(None), Event::CancelRequested),
        (&[ended(End::Lost)], blocked_until(None), Event::CancelRequested),
        (&[ended(timed_out)], blocked_until(None), Event::CancelRequested),
    ];
    for (events, phase, reopening) in table {
        let story = letting_go().after(events);
        assert_eq!(story.state.phase, phase, "{events:?}");
        let mut asked_again = story.clone();
        if phase != blocked_until(None) {
            asked_again.receive(reopening.clone());
            assert_eq!(asked_again.state.phase, blocked_until(None), "{events:?}");
        }
        asked_again.receive(answered(1, "blue"));
        assert_prompt(&asked_again.go_on().prompt, &["- Which colour?\n  blue"], &[]);
        let mut answered_meanwhile = story.after(&[answered(1, "blue")]);
        if phase != blocked_until(None) {
            answered_meanwhile.receive(reopening);
        }
        assert_prompt(&answered_meanwhile.go_on().prompt, &["- Which colour?\n  blue"], &[]);
    }
}

#[test]
fn a_question_that_an_agent_withdraws_and_works_on_without_stays_closed() {
    for sign in [tool("t2", ToolStatus::Running), AgentEvent::TurnStarted] {
        let story = letting_go().after(&[agent(sign.clone()), ended(crashed())]);
        assert_eq!(story.state.open_question(), None, "{sign:?}");
    }
    let completed = letting_go().after(&[ended(End::Completed)]);
    assert_eq!(completed.state.open_question(), None);
    assert_eq!(completed.state.phase, Phase::Checking { attempt: no(1) });
}

#[test]
fn a_goal_that_is_done_takes_no_answers() {
    let mut story = Story::working(goal_limited("tokens=40")).after(&[asked(ask_waiting("r1")), usage(1)]);
    story.receive(ended_with_work(crashed()));
    story.receive(green_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Done);
    let refused = Illegal::NotAsked { question: QuestionNo(1) };
    assert_eq!(story.offer(answered(1, "blue")), StepOutcome::Illegal(refused));
}

#[test]
fn a_default_is_never_replaced_by_a_free_choice() {
    for (ask, expected) in [
        (ask(), "- Which colour?\n  Nobody answered. Decide yourself, and write what you assumed."),
        (with_default(ask()), "- Which colour?\n  Nobody answered. Your default holds: red"),
        (permission(), "- You may not use Bash for this: rm -r out\n  Nobody answered. Go on without it."),
    ] {
        let mut story = Story::of_two_agents().after(&[asked(urgent(ask))]);
        story.receive(ended(End::Auth { message: "not logged in".into() }));
        assert_prompt(&story.go_on().prompt, &[expected], &[]);
    }
}

/// A permission that a person refused with these words, as its agent got it.
fn refused(message: &str, words: Words) -> (Story, crate::Moved) {
    let mut story = Story::working(goal()).after(&[asked(permission())]);
    story.receive(replied_to(1, Reply::Denied { message: message.into() }));
    let moved = story.receive(delivered(words));
    (story, moved)
}

#[test]
fn words_of_a_refusal_that_the_protocol_has_no_place_for_follow_as_a_message() {
    let (mut story, moved) = refused("rather mv it", Words::Dropped);
    let text = "You may not use Bash for this: rm -r out\nrather mv it".to_owned();
    let what = Delivered::Message { n: MessageNo(1), text: text.clone() };
    assert_eq!(moved.effects, [Effect::Deliver(crate::Delivery { attempt: no(1), what })]);
    assert_eq!(story.state.messages[0].delivery, DeliveryState::OnItsWay(no(1)));
    assert_prompt(&story.fail_checks("t1").prompt, &[&text], &[]);
}

#[test]
fn a_refusal_that_the_agent_has_in_full_is_not_repeated() {
    for (message, words) in [("rather mv it", Words::Sent), ("", Words::Dropped)] {
        let (story, moved) = refused(message, words);
        assert_eq!((moved.effects, story.state.messages), (vec![], vec![]));
    }
}
