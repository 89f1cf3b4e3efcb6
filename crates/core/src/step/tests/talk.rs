//! Questions, answers and the operator's words.

use std::time::Duration;

use crate::fixtures::*;
use crate::{
    About, AgentEvent, Answerer, Ask, Decision, Delivered, Delivery, DeliveryState, Effect, End,
    EscalationReason, Event, Illegal, MessageNo, Moved, Outcome, Phase, QuestionNo, Reply, StepOutcome,
    StopWhy, Timeout, ToolCall, Words,
};

fn blocked_on(question: u32, attempt: Option<u32>) -> Phase {
    Phase::Blocked { question: QuestionNo(question), attempt: attempt.map(no), until: None }
}

fn answer_effect(request: &str, words: &str) -> Effect {
    let what = Delivered::Answer { question: QuestionNo(1), request: request.into(), reply: chosen(words) };
    Effect::Deliver(Delivery { attempt: no(1), what })
}

#[test]
fn a_living_agent_that_asks_blocks_the_goal_and_works_on_once_answered() {
    let mut story = Story::working(goal());
    let moved = story.receive(asked(ask_waiting("r1")));
    assert_eq!(moved, moved_to(blocked_on(1, Some(1)), &[]));

    let moved = story.receive(answered(1, "blue"));
    let running = Phase::Running { attempt: no(1) };
    let expected = Moved { effects: vec![answer_effect("r1", "blue")], ..moved_to(running, &[]) };
    assert_eq!(moved, expected);

    let moved = story.receive(delivered(Words::Sent));
    assert_eq!(moved, Moved { settled: keys(&["answer/1/1"]), ..Moved::default() });
    assert_prompt(&story.fail_checks("t1").prompt, &[], &["blue"]);
}

#[test]
fn several_requests_at_once_are_answered_in_any_order() {
    let mut story = Story::waiting_alive().after(&[asked(ask_waiting("r2"))]);
    story.receive(answered(2, "red"));
    assert_eq!(story.state.phase, blocked_on(1, Some(1)));
    story.receive(answered(1, "blue"));
    assert_eq!(story.state.phase, Phase::Running { attempt: no(1) });
}

#[test]
fn an_answer_that_takes_long_ends_the_agent_and_becomes_the_next_prompt_of_its_session() {
    let mut story = Story::waiting_alive();
    story.receive(timed_out(Timeout::Answer));
    assert_eq!(story.state.phase, stopping(StopWhy::Asked));
    // Ended, the agent lets go of its request; the question stays.
    story.receive(agent(AgentEvent::Withdrawn { request: "r1".into() }));
    let moved = story.receive(ended(crashed()));
    assert_eq!(moved, moved_after_stop(blocked_on(1, None), 1, End::Asked));
    assert_eq!(story.state.usage(), crate::Usage::default(), "what was used is unknown");
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (0, 0));

    assert_eq!(story.receive(answered(1, "blue")), moved_to(Phase::Queued, &[]));
    let launch = story.go_on();
    assert_eq!(launch.session, resumed());
    assert_eq!(launch.prompt, "# Answers to what you asked\n\n- Which colour?\n  blue");
}

#[test]
fn an_answer_that_an_agent_got_too_late_or_could_not_use_is_in_the_next_prompt() {
    let (answer, delivered) = (answered(1, "blue"), delivered(Words::Sent));
    let mut answered_late = Story::waiting_alive();
    let moved = answered_late.receive(ended(crashed()));
    assert_eq!(moved, moved_to(blocked_on(1, None), &["launch/1"]));
    let mut on_its_way = Story::waiting_alive().after(&[answered(1, "blue")]);
    assert_eq!(on_its_way.receive(ended(crashed())).settled, keys(&["launch/1", "answer/1/1"]));
    let unused = Story::waiting_alive().after(&[answer.clone(), delivered, ended(crashed())]);
    for mut story in [answered_late.after(&[answer]), on_its_way, unused] {
        assert_prompt(&story.go_on().prompt, &["- Which colour?\n  blue"], &[]);
    }
}

#[test]
fn a_request_that_the_agent_takes_back_is_no_question_any_more() {
    let mut story = Story::waiting_alive();
    let moved = story.receive(agent(AgentEvent::Withdrawn { request: "r1".into() }));
    assert_eq!(moved, moved_to(Phase::Running { attempt: no(1) }, &[]));
    let late = StepOutcome::Illegal(Illegal::NotAsked { question: QuestionNo(1) });
    assert_eq!(story.offer(answered(1, "blue")), late);
}

#[test]
fn an_answer_that_does_not_fit_its_question_is_refused() {
    let mut story = Story::waiting_alive();
    let before = story.state.clone();
    let two = Reply::Chosen { answers: vec!["a".into(), "b".into()] };
    for wrong in [replied_to(1, Reply::Allowed), replied_to(1, two), answered(2, "blue")] {
        assert!(matches!(story.offer(wrong), StepOutcome::Illegal(Illegal::NotAsked { .. })));
    }
    assert_eq!(story.state, before);
}

#[test]
fn an_answer_that_comes_late_answers_neither_its_own_question_nor_the_next_one() {
    let by_person = Story::waiting_alive().after(&[answered(1, "blue"), asked(ask_waiting("r2"))]);
    let mut by_default = Story::working(goal()).after(&[asked(with_default(ask_waiting("r1")))]);
    by_default.wait(60);
    let by_default = by_default.after(&[Event::Woken, asked(ask_waiting("r2"))]);
    for mut story in [by_person, by_default] {
        let before = story.state.clone();
        let late = StepOutcome::Illegal(Illegal::NotAsked { question: QuestionNo(1) });
        assert_eq!(story.offer(answered(1, "green")), late);
        assert_eq!(story.state, before);
        assert_eq!(story.state.phase, blocked_on(2, Some(1)));
    }
}

#[test]
fn a_last_message_that_asks_blocks_the_goal_and_costs_no_attempt() {
    let mut story = Story::working(goal());
    story.receive(turn_ended(
        r#"{"towline": "ask", "question": "Which colour?", "options": ["red", "blue"]}"#,
    ));
    let moved = story.receive(ended(End::Completed));
    let expected = Moved {
        recorded_as: Some(Box::new(ended(End::Asked))),
        events: vec![asked(ask()), now_in(blocked_on(1, None))],
        settled: keys(&["launch/1"]),
        ..Moved::default()
    };
    assert_eq!(moved, expected);
    assert_eq!(story.last().end, Some(End::Asked));
    assert_eq!(story.state.attempts_spent(), 0);
}

#[test]
fn a_last_message_to_towline_that_cannot_be_read_is_reported() {
    let mut story = Story::working(goal());
    story.receive(turn_ended(r#"{"towline": "ask"}"#));
    let moved = story.receive(ended(End::Completed));
    assert!(notices(&moved)[0].contains("cannot be read"), "{moved:?}");
    assert_eq!(story.state.phase, Phase::Checking { attempt: no(1) });
}

#[test]
fn an_agent_that_wants_to_wait_sleeps_and_goes_on_in_its_session() {
    let mut story = Story::working(goal());
    story.receive(turn_ended(r#"{"towline": "sleep", "seconds": 90, "reason": "CI runs"}"#));
    let moved = story.receive(ended(End::Completed));
    let slept = End::Slept { duration: Duration::from_secs(90), reason: "CI runs".into() };
    let sleeping = Phase::Sleeping { until: at(90), reason: "CI runs".into() };
    let expected = Moved { recorded_as: Some(Box::new(ended(slept))), ..moved_to(sleeping, &["launch/1"]) };
    assert_eq!(moved, expected);
    let launch = story.go_on();
    assert_eq!(launch.session, resumed());
    assert_eq!(launch.prompt, "# Awake\n\nThe wait that you asked for is over (CI runs). Go on.");
}

#[test]
fn the_default_is_taken_at_the_deadline_and_the_log_records_it() {
    let mut story = Story::working(goal()).after(&[asked(with_default(ask())), ended(End::Completed)]);
    assert_eq!(story.state.phase.until(), Some(at(60)));
    story.wait(60);
    let moved = story.receive(Event::Woken);
    let taken = Event::Answered { question: QuestionNo(1), reply: chosen("red"), by: Answerer::Default };
    assert_eq!(moved.events, [taken, now_in(Phase::Queued)]);
    assert!(story.go_on().prompt.contains("- Which colour?\n  red"));
}

#[test]
fn a_default_reaches_an_agent_that_waits() {
    let mut story = Story::working(goal()).after(&[asked(with_default(ask_waiting("r1")))]);
    story.wait(60);
    let moved = story.receive(Event::Woken);
    assert_eq!(moved.effects, [answer_effect("r1", "red")]);
    assert_eq!(story.state.phase, Phase::Running { attempt: no(1) });
}

#[test]
fn a_deadline_without_a_default_escalates_and_a_late_answer_opens_the_goal_again() {
    let mut story = Story::working(goal()).after(&[asked(urgent(ask())), ended(End::Completed)]);
    story.wait(60);
    story.receive(Event::Woken);
    let reason = EscalationReason::Unanswered { question: "Which colour?".into() };
    assert_eq!(story.state.phase, Phase::Escalated { reason });
    story.wait(10_000);
    assert_eq!(story.receive(answered(1, "blue")), moved_to(Phase::Queued, &[]));
    assert!(story.go_on().prompt.contains("- Which colour?\n  blue"));
}

#[test]
fn the_time_that_an_answer_takes_is_not_the_goals() {
    let mut story = Story::working(goal_limited("wall=100s"));
    story.wait(40);
    story.receive(asked(ask_waiting("r1")));
    story.wait(5_000);
    story.receive(answered(1, "blue"));
    assert_eq!(story.state.wall_ends(), Some(at(5_100)));
}

#[test]
fn a_permission_of_a_person_is_a_decision_of_the_attempt() {
    let mut story = Story::working(goal()).after(&[asked(permission())]);
    let moved = story.receive(replied_to(1, Reply::Allowed));
    let what = Delivered::Answer { question: QuestionNo(1), request: "r1".into(), reply: Reply::Allowed };
    assert_eq!(moved.effects, [Effect::Deliver(Delivery { attempt: no(1), what })]);
    let rule = Some("Bash(rm -r out)".into());
    let decision = Decision { by: "person".into(), rule, ..decision(Outcome::Allow) };
    assert_eq!(story.last().decisions, [decision]);
}

#[test]
fn always_allows_every_call_of_the_same_rule_as_long_as_the_goal_lasts() {
    let ask = |request: &str, rule: &str| {
        let call = ToolCall { tool: "Bash".into(), input: request.to_owned() };
        let about = About::Permission { call, title: "make".into(), rule: rule.to_owned() };
        asked(Ask { about, ..ask_waiting(request) })
    };
    let mut story = Story::working(goal());
    for (request, rule) in [("r1", "Bash(make *)"), ("r2", "Bash(rm *)"), ("r3", "Bash(make *)")] {
        story.receive(ask(request, rule));
    }
    let allowed = |question| Event::Answered {
        question: QuestionNo(question),
        reply: Reply::Allowed,
        by: Answerer::Rule,
    };
    let moved = story.receive(replied_to(1, Reply::Always));
    assert_eq!(moved.events, [allowed(3), now_in(blocked_on(2, Some(1)))]);
    assert_eq!(moved.effects.len(), 2, "both answers are delivered: {moved:?}");
    story.receive(replied_to(2, Reply::Allowed));
    let moved = story.receive(ask("r4", "Bash(make *)"));
    assert_eq!((moved.events, moved.effects.len()), (vec![allowed(4)], 1));
    story.receive(ask("r5", "Bash(rm *)"));
    assert_eq!(story.state.phase, blocked_on(5, Some(1)));
    let decided: Vec<&str> =
        story.state.attempts[0].decisions.iter().map(|decision| decision.by.as_str()).collect();
    assert_eq!(decided, ["person", "rule", "person", "rule"]);
}

#[test]
fn a_permission_given_when_the_agent_is_gone_holds_for_that_call_in_the_next_attempt() {
    let mut story = Story::working(goal()).after(&[asked(permission()), ended(crashed())]);
    story.receive(replied_to(1, Reply::Allowed));
    let launch = story.go_on();
    assert_eq!(launch.permitted, [ToolCall { tool: "Bash".into(), input: "beef".into() }]);
    assert_prompt(&launch.prompt, &["- You may use Bash for this once: rm -r out"], &[]);
}

#[test]
fn a_denied_tool_without_which_nothing_was_done_needs_a_person() {
    let denied = Decision { rule: Some("WebFetch".into()), ..decision(Outcome::Deny) };
    let mut story = Story::working(goal()).after(&[agent(AgentEvent::Decided(denied))]);
    let moved = story.receive(ended(End::Completed));
    let end = End::PermissionDenied { tool: "Bash".into(), rule: "WebFetch".into() };
    assert_eq!(moved.recorded_as, Some(Box::new(ended(end))));
    assert_eq!(story.state.phase, Phase::Checking { attempt: no(1) });
    // Nothing may have been left to do.
    assert_eq!(story.clone().receive(green_verdict("t0")), moved_to(Phase::Done, &["checks/1"]));
    let reason = EscalationReason::PermissionDenied { tool: "Bash".into(), rule: "WebFetch".into() };
    assert_eq!(story.receive(red_verdict("t0")), moved_to(Phase::Escalated { reason }, &["checks/1"]));
}

#[test]
fn an_agent_that_found_its_way_around_a_denied_tool_goes_on() {
    let mut story = Story::working(goal()).after(&[decided(Outcome::Deny)]);
    story.receive(ended_with_work(End::Completed));
    assert_eq!(story.last().end, Some(End::Completed));
    story.receive(red_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Running { attempt: no(2) });
}

#[test]
fn the_operators_message_goes_to_the_living_agent_once() {
    let mut story = Story::working(goal());
    let moved = story.receive(message_sent("use the small one"));
    let what = Delivered::Message { n: MessageNo(1), text: "use the small one".into() };
    let effects = vec![Effect::Deliver(Delivery { attempt: no(1), what })];
    assert_eq!(moved, Moved { effects, ..Moved::default() });
    let moved = story.receive(agent(AgentEvent::Heard { message: MessageNo(1) }));
    assert_eq!(moved, Moved { settled: keys(&["tell/1/1"]), ..Moved::default() });
    story.receive(ended(crashed()));
    assert!(!story.go_on().prompt.contains("small one"));
}

#[test]
fn words_that_the_agent_did_not_hear_are_part_of_the_next_prompt_once() {
    let mut story = Story::working(goal());
    story.receive(message_sent("use the small one"));
    let moved = story.receive(ended(crashed()));
    assert_eq!(moved.settled, keys(&["launch/1", "tell/1/1"]));
    let prompt = story.go_on().prompt;
    assert!(prompt.starts_with("# From the operator\n\nuse the small one\n\n# Interrupted"), "{prompt}");
    story.work_in("s1", true);
    story.receive(ended(crashed()));
    assert!(!story.go_on().prompt.contains("small one"));
}

#[test]
fn messages_of_a_prompt_that_was_never_accepted_are_sent_again() {
    let mut story = Story::sleeping();
    story.receive(message_sent("use the small one"));
    for _ in 0..2 {
        let launch = story.go_on();
        assert_prompt(&launch.prompt, &["small one"], &[]);
        story.receive(ended(crashed()));
    }
}

#[test]
fn a_cold_start_gets_every_earlier_message() {
    let mut story = Story::working(goal()).after(&[message_sent("use the small one")]);
    story.receive(agent(AgentEvent::Heard { message: MessageNo(1) }));
    story.receive(asked(ask_waiting("r1")));
    story.receive(answered(1, "blue"));
    story.receive(ended(crashed()));
    story.go_on();
    story.receive(ended(End::ResumeRefused { why: crate::Refusal::NotFound }));
    assert_prompt(&story.go_on().prompt, &["# Goal", "use the small one", "- Which colour?\n  blue"], &[]);
}

#[test]
fn words_wake_a_goal_that_sleeps_and_open_one_that_needs_a_person() {
    let mut story = Story::sleeping();
    assert_eq!(story.receive(message_sent("go on")), moved_to(Phase::Queued, &[]));
    let mut story = Story::escalated();
    story.wait(3_600);
    assert_eq!(story.receive(message_sent("it is allowed")), moved_to(Phase::Queued, &[]));
    assert_eq!(story.state.messages[0].delivery, DeliveryState::Waiting);
    assert!(story.go_on().prompt.starts_with("# From the operator\n\nit is allowed"));
}

#[test]
fn a_goal_that_is_done_before_it_got_a_message_reports_it() {
    let mut story = Story::checking().after(&[message_sent("use the small one")]);
    let moved = story.receive(green_verdict("t1"));
    let unheard = "done before the agent heard this: use the small one".to_owned();
    assert_eq!(moved.events, [Event::Notice { text: unheard }, now_in(Phase::Done)]);
}

#[test]
fn an_answer_that_comes_before_the_asking_turn_has_ended_is_the_next_prompt() {
    let mut story = Story::working(goal()).after(&[asked(ask())]);
    assert_eq!(story.state.phase, blocked_on(1, Some(1)));
    story.receive(answered(1, "blue"));
    assert_eq!(story.state.phase, Phase::Running { attempt: no(1) });
    let moved = story.receive(ended(End::Completed));
    assert_eq!(moved.recorded_as, Some(Box::new(ended(End::Asked))));
    assert_eq!(story.state.phase, Phase::Queued);
    assert_eq!(story.go_on().prompt, "# Answers to what you asked\n\n- Which colour?\n  blue");
}

#[test]
fn a_request_to_wait_is_heard_by_a_tool_and_although_the_timeout_was_reached_in_that_moment() {
    let by_tool = agent(AgentEvent::SleepAsked { duration: Duration::from_secs(60), reason: "CI".into() });
    let in_words = turn_ended(r#"{"towline": "sleep", "seconds": 60, "reason": "CI"}"#);
    for news in [[by_tool, turn_ended("I wait.")], [in_words, timed_out(Timeout::Turn)]] {
        let story = Story::working(goal()).after(&news).after(&[ended(End::Completed)]);
        assert_eq!(story.state.phase, Phase::Sleeping { until: at(60), reason: "CI".into() });
    }
}

#[test]
fn an_agent_that_answers_itself_by_default_spends_its_attempts() {
    let asks = || turn_ended(r#"{"towline": "ask", "question": "Again?", "default": "yes", "deadline": 1}"#);
    let mut story = Story::working(goal_limited("attempts=2"));
    for spent in [1, 2] {
        story.receive(asks());
        story.receive(ended(End::Completed));
        assert_eq!(story.state.attempts_spent(), spent - 1, "a person may still answer");
        story.wait(1);
        story.receive(Event::Woken);
        assert_eq!(story.state.attempts_spent(), spent);
        if spent == 1 {
            story.go_on();
            story.work_in("s1", true);
        }
    }
    story.receive(dispatched());
    story.receive(red_verdict("t1"));
    let reason = crate::FailureReason::Budget { axis: crate::Axis::Attempts };
    assert_eq!(story.state.phase, Phase::Failed { reason });
}

#[test]
fn a_default_that_is_due_at_once_is_taken_at_once() {
    let at_once = Ask { default: Some("red".into()), patience: Some(Duration::ZERO), ..ask() };
    let mut story = Story::working(goal()).after(&[asked(at_once), ended(End::Completed)]);
    assert_eq!(story.state.phase, Phase::Queued);
    assert!(story.go_on().prompt.contains("- Which colour?\n  red"));
}

#[test]
fn a_permission_that_was_used_does_not_hold_in_the_next_attempt() {
    let mut story = Story::working(goal()).after(&[asked(permission())]);
    story.receive(replied_to(1, Reply::Allowed));
    story.receive(delivered(Words::Sent));
    assert_eq!(story.fail_checks("t1").permitted, []);
}

#[test]
fn a_question_that_could_not_be_read_is_sent_back_with_the_failures() {
    let mut story = Story::working(goal());
    story.receive(turn_ended(r#"{"towline": "ask", "question": 7}"#));
    let prompt = story.fail_checks("t1").prompt;
    assert!(prompt.starts_with("# Not understood") && prompt.contains("# Checks that failed"), "{prompt}");
}

#[test]
fn the_wait_for_two_late_answers_is_taken_out_of_the_goals_time_once() {
    let patient = ask();
    let asks = [asked(urgent(ask())), asked(patient), ended(End::Completed)];
    let mut story = Story::working(goal_limited("wall=1000s")).after(&asks);
    story.wait(60);
    story.receive(Event::Woken);
    assert_eq!(story.state.phase.name(), "escalated");
    story.wait(100);
    story.receive(answered(1, "blue"));
    assert_eq!(story.state.phase.name(), "blocked");
    story.wait(200);
    story.receive(answered(2, "red"));
    assert_eq!(story.state.wall_ends(), Some(at(1_360)));
}
