//! What a pool decides about a goal.

use jiff::Timestamp;

use crate::fixtures::*;
use crate::{
    AgentName, Commit, End, Event, Goal, Inherited, MicroUsd, NextSession, PauseReason, Phase, Purse,
    PurseScope, StepOutcome, StopWhy, Stopping, Unavailable,
};

pub(super) fn prerequisites_met() -> Event {
    let (prompt, base) = (Some("Continue after a1b2.".into()), Some(Commit::new("c-before")));
    Event::PrerequisitesMet { inherited: Inherited { prompt, base } }
}

/// Another goal found the account of `claude` limited until then, or closed.
pub(super) fn account_unavailable(until: Option<Timestamp>) -> Event {
    Event::AccountUnavailable { account: "claude".into(), until, guessed: false }
}

/// The pool has no room for `claude`.
pub(super) fn agent_unavailable() -> Event {
    let why = "waits for a slot (cap 1 of agent claude)".into();
    Event::AgentUnavailable { agent: AgentName::new("claude"), why }
}

pub(super) fn shared_budget_spent() -> Event {
    let purse = Purse { scope: PurseScope::Day, limit: MicroUsd(5), spent: MicroUsd(6), renews_at: None };
    Event::SharedBudgetSpent { purse }
}

fn two_agents() -> Goal {
    Goal { agents: ["claude", "codex"].map(AgentName::new).into(), ..goal() }
}

#[test]
fn what_prerequisites_left_is_in_force_before_the_workspace_is_made() {
    let story = Story::of(goal()).after(&[prerequisites_met()]);
    let mut inherits = goal();
    inherits.bring_into_force(&story.state);
    assert_eq!(inherits.prompt, "Continue after a1b2.");
    assert_eq!(inherits.workspace.base, Commit::new("c-before"));
    let mut later = Story::working(goal()).after(&[ended(End::Crashed { message: "gone".into() })]);
    later.state.phase = Phase::Queued;
    assert!(matches!(later.offer(prerequisites_met()), StepOutcome::Illegal(_)));
}

#[test]
fn another_agent_starts_where_the_account_of_the_first_cannot_be_used() {
    for until in [Some(at(600)), None] {
        let story = Story::of(two_agents()).after(&[account_unavailable(until)]);
        assert_eq!(story.state.next_agent(&story.goal, story.now), Some(&AgentName::new("codex")));
        let later = story.state.next_agent(&story.goal, at(600));
        let expected = if until.is_some() { "claude" } else { "codex" };
        assert_eq!(later, Some(&AgentName::new(expected)));
    }
}

fn dispatched_to(agent: &str) -> Event {
    Event::Dispatched { agent: Some(AgentName::new(agent)) }
}

#[test]
fn the_agent_that_has_the_slot_starts_and_stays() {
    let story = Story::of(two_agents()).after(&[agent_unavailable(), dispatched_to("codex")]);
    let next = |story: &Story| story.state.next_agent(&story.goal, at(9_000)).cloned();
    assert_eq!(next(&story), Some(AgentName::new("codex")), "however long its workspace takes");
    let begun = story.after(&[prepared()]);
    assert_eq!(
        (&begun.last().agent, begun.state.dispatched_agent.as_ref()),
        (&AgentName::new("codex"), None)
    );
    assert_eq!(next(&begun), Some(AgentName::new("codex")));
}

#[test]
fn an_agent_that_has_the_slot_and_cannot_go_on_any_more_does_not_start() {
    let mut story = Story::of(two_agents()).after(&[dispatched_to("codex")]);
    let unavailable = Unavailable { end: "auth".into(), until: None, guessed: false };
    story.state.unavailable.insert(AgentName::new("codex"), unavailable);
    assert_eq!(story.after(&[prepared()]).last().agent, AgentName::new("claude"));
    let removed = Story::of(two_agents()).after(&[dispatched_to("gemini"), prepared()]);
    assert_eq!(removed.last().agent, AgentName::new("claude"), "the goal does not list the other one");
}

#[test]
fn a_goal_that_gives_its_slot_back_is_free_to_start_with_any_agent() {
    let pause = Event::PauseRequested { reason: PauseReason::Shutdown };
    let mut story = Story::of(two_agents()).after(&[dispatched_to("codex"), pause, Event::Stopped]);
    story.receive(Event::ResumeRequested);
    assert_eq!((&story.state.phase, &story.state.dispatched_agent), (&Phase::Queued, &None));
}

#[test]
fn a_slot_of_an_earlier_version_names_no_agent() {
    let event: Event = serde_json::from_str(r#"{"kind":"dispatched"}"#).expect("an event");
    assert_eq!(event, dispatched());
    assert_eq!(serde_json::to_string(&event).expect("JSON"), r#"{"kind":"dispatched"}"#);
}

#[test]
fn an_agent_that_is_stopped_for_a_shared_budget_continues_later_at_no_cost() {
    let mut story = Story::working(goal());
    story.receive(shared_budget_spent());
    assert!(matches!(story.state.phase, Phase::Stopping(Stopping { why: StopWhy::SharedBudget, .. })));
    story.receive(ended(End::Crashed { message: "SIGTERM".into() }));
    assert_eq!(story.state.phase, Phase::Queued);
    assert_eq!(story.last().end, Some(End::Interrupted));
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (0, 0));
    assert!(story.state.session.is_some(), "the session is resumed");
}

#[test]
fn a_turn_that_was_complete_when_a_shared_budget_was_spent_is_checked_at_once() {
    let mut story = Story::working(goal());
    story.receive(shared_budget_spent());
    story.receive(ended(End::Completed));
    assert!(matches!(story.state.phase, Phase::Checking { .. }), "{:?}", story.state.phase);
    story.receive(green_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Done);
    assert!(!matches!(story.offer(dispatched()), StepOutcome::Moved(_)));
}

#[test]
fn a_goal_keeps_its_place_in_the_queue_until_it_has_ended_and_is_opened_again() {
    let limited = End::RateLimited { until: Some(at(600)) };
    let comes_back = [
        vec![ended(limited.clone()), Event::ResumeRequested],
        vec![ended(limited), Event::Woken],
        vec![shared_budget_spent(), ended(End::Interrupted)],
        vec![
            Event::PauseRequested { reason: PauseReason::Shutdown },
            ended(End::Interrupted),
            Event::ResumeRequested,
        ],
    ];
    for news in comes_back {
        let mut story = Story::working(goal());
        for event in news {
            story.wait(700);
            story.receive(event);
        }
        assert_eq!((&story.state.phase, story.state.queued_at), (&Phase::Queued, Some(goal().created_at)));
        story.receive(Event::CancelRequested);
        story.receive(Event::RetryRequested { budget: vec![], session: NextSession::Resumed, model: None });
        assert_eq!((&story.state.phase, story.state.queued_at), (&Phase::Queued, Some(story.now)));
    }
}

#[test]
fn a_goal_that_cannot_go_on_because_of_an_account_goes_on_in_its_place_and_has_spent_no_attempt() {
    let refused = End::Auth { message: "401".into() };
    for end in [End::RateLimited { until: Some(at(9_000)) }, refused] {
        let mut story = Story::working(goal());
        story.wait(60);
        story.receive(ended(end));
        assert!(story.state.waits_for_account(&story.goal, "claude"));
        assert!(!story.state.waits_for_account(&story.goal, "codex"));
        story.wait(60);
        story.receive(Event::ResumeRequested);
        assert_eq!((&story.state.phase, story.state.queued_at), (&Phase::Queued, Some(goal().created_at)));
        assert_eq!((story.state.attempts_spent(), story.state.unavailable.len()), (0, 0));
        assert!(!story.state.waits_for_account(&story.goal, "claude"));
    }
    let mut declined = Story::working(goal()).after(&[ended(End::Declined { message: "no".into() })]);
    assert!(!declined.state.waits_for_account(&declined.goal, "claude"));
    assert!(matches!(declined.offer(Event::ResumeRequested), StepOutcome::Illegal(_)));
}
