//! How long a conversation may continue: age, disuse, and a context that fills up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fixtures::*;
use crate::{
    AgentEvent, AgentName, Event, Goal, Launch, Policy, SessionId, SessionLimits, SessionPlan, StepOutcome,
    Tokens, Usage,
};

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn goal_with_limits(limits: SessionLimits) -> Goal {
    Goal { sessions: BTreeMap::from([(AgentName::new("claude"), limits)]), ..goal() }
}

/// The context holds this much of 200 tokens.
fn context(used: u64) -> Event {
    agent(AgentEvent::Usage {
        model: None,
        used: Usage::default(),
        context_used: Some(Tokens(used)),
        context_size: Some(Tokens(200)),
    })
}

fn launch_after(used: u64, limits: SessionLimits) -> (Story, Launch) {
    let mut story = Story::working(goal_with_limits(limits)).after(&[context(used)]);
    let launch = story.fail_checks("t1");
    (story, launch)
}

#[test]
fn a_conversation_that_lay_too_long_or_is_too_old_is_not_continued() {
    for (limits, wait, continues) in [
        (SessionLimits { idle: DAY, age: DAY * 30, ..SessionLimits::default() }, DAY, false),
        (SessionLimits { idle: DAY, age: DAY * 30, ..SessionLimits::default() }, DAY / 2, true),
        (SessionLimits { idle: DAY, age: DAY / 2, ..SessionLimits::default() }, DAY / 2, false),
    ] {
        let mut story = Story::working(goal_with_limits(limits)).after(&[ended(crashed())]);
        story.wait(wait.as_secs());
        story.receive(Event::Woken);
        let moved = story.receive(dispatched());
        let is_noticed = matches!(&moved.events[0], Event::Notice { text } if text.contains("not continued"));
        assert_eq!(is_noticed, !continues, "{moved:?}");
        let launch = launch_of(moved);
        let wanted = if continues { resumed() } else { SessionPlan::Fresh(fresh_session(2)) };
        assert_eq!(launch.session, wanted);
        assert_eq!(launch.prompt.contains("# Goal"), !continues);
    }
}

#[test]
fn a_context_at_its_threshold_is_summarised_before_the_next_prompt() {
    let limits = SessionLimits { context_threshold: 0.5, ..SessionLimits::default() };
    assert_eq!(launch_after(99, limits.clone()).1.compact, None);
    let (mut story, launch) = launch_after(100, limits);
    assert_eq!((launch.session, launch.compact.as_deref()), (resumed(), Some(Policy::COMPACTION_FOCUS)));
    // Summarised, it is not summarised again; the context in use decides, not what was ever used.
    story.receive(session("s1", true));
    story.receive(agent(AgentEvent::Compacted { before: Some(Tokens(100)), after: Some(Tokens(20)) }));
    story.receive(agent(AgentEvent::TurnStarted));
    assert_eq!(story.fail_checks("t2").compact, None);
    assert_eq!(story.state.turns(), 2);
}

#[test]
fn a_conversation_that_cannot_be_summarised_is_left_for_a_new_one() {
    let (mut story, mut launch) = launch_after(190, SessionLimits::default());
    for n in 0..Policy::FAILED_COMPACTIONS {
        assert_eq!((launch.session, launch.compact.is_some()), (resumed(), true), "{n}");
        story.receive(session("s1", true));
        story.receive(agent(AgentEvent::NotCompacted { reason: "Not enough messages to compact.".into() }));
        story.receive(agent(AgentEvent::TurnStarted));
        story.receive(context(190));
        launch = story.fail_checks(&format!("t{n}"));
    }
    assert!(matches!(launch.session, SessionPlan::Fresh(_)), "{launch:?}");
    assert_eq!(launch.compact, None);
    assert_prompt(&launch.prompt, &["# Goal"], &[]);
}

/// A goal whose next attempt is started after this request.
fn launch_on_request(limits: SessionLimits, focus: Option<&str>) -> (Story, Launch) {
    let request = Event::CompactRequested { focus: focus.map(str::to_owned) };
    let mut story = Story::working(goal_with_limits(limits)).after(&[request]);
    let launch = story.fail_checks("t1");
    (story, launch)
}

#[test]
fn the_focus_of_a_summary_is_the_operators_then_that_of_the_settings_then_towlines() {
    let configured =
        || SessionLimits { compact_focus: Some("the schema".into()), ..SessionLimits::default() };
    for (limits, focus, wanted) in [
        (SessionLimits::default(), Some("the API"), "the API"),
        (configured(), Some("the API"), "the API"),
        (configured(), None, "the schema"),
        (SessionLimits::default(), None, Policy::COMPACTION_FOCUS),
    ] {
        let (_, launch) = launch_on_request(limits, focus);
        assert_eq!((launch.session, launch.compact.as_deref()), (resumed(), Some(wanted)));
    }
    let (_, full) = launch_after(190, configured());
    assert_eq!(full.compact.as_deref(), Some("the schema"));
}

#[test]
fn a_requested_summary_is_made_once_and_again_where_the_agent_never_got_its_prompt() {
    let (mut story, _) = launch_on_request(SessionLimits::default(), None);
    story.receive(ended(crashed()));
    assert!(story.go_on().compact.is_some(), "its prompt never arrived");
    story.work_in("s1", true);
    assert_eq!(story.state.compaction, None);
    assert_eq!(story.fail_checks("t2").compact, None);
}

#[test]
fn a_new_conversation_has_nothing_to_summarise_and_the_log_has_a_notice() {
    let mut story = Story::of(goal()).after(&[compact_requested("the API"), dispatched()]);
    let moved = story.receive(prepared());
    assert!(matches!(&moved.events[0], Event::Notice { text } if text.contains("nothing to summarise")));
    assert_eq!((launch_of(moved).compact, story.state.compaction), (None, None));
}

#[test]
fn an_agent_whose_conversations_end_with_its_process_hears_everything_each_time() {
    let limits = SessionLimits { outlives_process: false, ..SessionLimits::default() };
    let (story, launch) = launch_after(190, limits);
    assert_eq!((launch.session, launch.compact), (SessionPlan::Fresh(fresh_session(2)), None));
    assert_prompt(&launch.prompt, &["# Goal", "# Checks that failed"], &[]);
    assert_eq!(story.state.attempts.len(), 2);
}

/// A goal that continues the conversation of an earlier one in this directory.
fn continuing(directory: &str) -> Goal {
    let session = crate::SessionBinding {
        agent: AgentName::new("claude"),
        native_id: SessionId::new("s1"),
        model: None,
        directory: directory.to_owned(),
        since: at(0),
        asked_model: crate::ModelChoice::Unknown,
        origin: None,
    };
    let earlier = "01932f6e-7c00-7abc-8def-0123456789ac".parse().expect("a goal id");
    let used = Usage { input: Tokens(5), ..Usage::default() };
    Goal {
        continues: Some(crate::Continuation { goal: earlier, place: earlier, session, used, confined: None }),
        ..goal()
    }
}

#[test]
fn a_goal_continues_the_conversation_of_an_earlier_one_and_hears_that_it_is_another() {
    let mut story = Story::preparing(continuing("/workspace"));
    let launch = launch_of(story.receive(prepared()));
    assert_eq!(launch.session, resumed());
    assert_prompt(&launch.prompt, &["# A new goal", "# Goal", "# How it will be checked"], &[]);
    let used = story.state.used_in_session(&story.goal, &SessionId::new("s1"), None);
    assert_eq!(used.input, Tokens(5), "the agent may report it again");
    assert_eq!(story.goal.place(), story.goal.continues.as_ref().expect("it does").goal);

    let launch = launch_of(Story::preparing(continuing("/elsewhere")).receive(prepared()));
    assert!(matches!(launch.session, SessionPlan::Fresh(_)), "{launch:?}");
    assert!(!launch.prompt.contains("# A new goal"), "{}", launch.prompt);
}

#[test]
fn a_goal_that_another_one_continues_is_never_opened_again() {
    let mut story = Story::escalated();
    story.receive(continued());
    assert_eq!(story.state.workspace.as_ref().map(|workspace| workspace.path.as_str()), Some("/left"));
    let by = story.state.continued_by.expect("recorded");
    for request in [retry(&[]), message_sent("go on"), continued(), entered(), compact_requested("it")] {
        let illegal = StepOutcome::Illegal(crate::Illegal::Continued { by });
        assert_eq!(story.offer(request.clone()), illegal, "{request:?}");
    }
    // The other one is gone: one of two that want its place gets it.
    let again = Event::Continued { by: story.goal.id, workspace: None, instead_of: Some(by) };
    story.receive(again.clone());
    let illegal = StepOutcome::Illegal(crate::Illegal::Continued { by: story.goal.id });
    assert_eq!(story.offer(again), illegal);
}
