//! Every pair of phase and event, in one table.

use super::each::some_of_each;
use super::judging::{judge_started, judge_unreachable, judge_used};
use super::pool::{account_unavailable, agent_unavailable, prerequisites_met, shared_budget_spent};
use crate::fixtures::*;
use crate::{
    AgentEvent, AgentName, BaselineMode, End, Event, Illegal, Phase, StepOutcome, Stopping, Timeout, Words,
};

/// Rows are events, columns are phases; `stopping` is there once for each thing that can be stopped.
///
/// A cell is the phase that follows, `.` when the event is taken in and the phase stays, `stale` when it is
/// ignored, and `-` when it is refused.
const TABLE: &str = "\
event               queue prep  base  run   check stp:s stp:a stp:c sleep limit blk:a block pause escal done  unprv fail  cancl
created             -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
claimed             .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
prerequisites_met   .     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
account_unavailable .     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
agent_unavailable   .     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
dispatched          prep  -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
shared_budget_spent -     -     -     stop  -     -     .     -     -     -     stop  -     -     -     -     -     -     -
prepared            -     run   -     -     -     cancl -     -     -     -     -     -     -     -     -     -     -     -
prepare_failed      -     fail  -     -     -     cancl -     -     -     -     -     -     -     -     -     -     -     -
repository_gone     -     escal -     -     -     cancl -     -     -     -     -     -     -     -     -     -     -     -
unconfigured        -     escal -     -     escal cancl -     cancl -     -     -     -     -     -     -     -     -     -
baseline_reached    stale stale run   stale stale stale stale stale stale stale stale stale stale stale stale stale stale stale
baseline_unknown    stale stale run   stale stale stale stale stale stale stale stale stale stale stale stale stale stale stale
attempt_started     stale stale stale .     stale stale .     stale stale stale .     stale stale stale stale stale stale stale
agent               stale stale stale .     stale stale .     stale stale stale .     stale stale stale stale stale stale stale
attempt_ended       stale stale stale check stale stale cancl stale stale stale block stale stale stale stale stale stale stale
handed_over         -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
clock_ran_out       stale stale stale stop  stale stale .     stale stale stale stop  stale stale stale stale stale stale stale
check_started       stale -     -     -     .     -     -     .     -     -     -     -     stale -     -     -     stale stale
check_finished      stale -     -     -     .     -     -     .     -     -     -     -     stale -     -     -     stale stale
judge_started       stale stale stale -     .     stale -     .     -     -     -     -     stale -     -     -     stale stale
judge_used          .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
judge_ended         .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
judge_unavailable   stale stale stale -     sleep stale -     cancl -     -     -     -     stale -     -     -     stale stale
verdict_reached     stale stale stale -     done  stale -     cancl -     -     -     -     stale -     -     -     stale stale
checks_failed       stale stale stale -     escal stale -     cancl -     -     -     -     stale -     -     -     stale stale
stopped             stale -     -     -     -     cancl -     cancl -     -     -     -     stale -     -     -     stale stale
woken               -     -     run   -     -     -     -     -     queue queue -     -     -     -     -     -     -     -
cancel_requested    cancl stop  cancl stop  stop  .     .     .     cancl cancl stop  cancl cancl cancl -     -     -     -
pause_requested     pause stop  pause stop  stop  .     .     .     pause pause stop  pause -     -     -     -     -     -
resume_requested    -     -     -     -     -     -     -     -     queue queue -     -     queue -     -     -     -     -
answered            -     -     -     -     -     -     -     -     -     -     run   queue -     -     -     -     -     -
told                .     .     .     .     .     .     .     .     queue .     .     .     .     queue -     -     -     -
compact_requested   .     .     .     .     .     .     .     .     .     .     .     .     .     .     -     .     .     .
entered             -     -     -     -     -     -     -     -     -     -     -     -     .     .     -     .     .     .
left                -     -     -     -     -     -     -     -     -     -     -     -     .     .     -     .     .     .
restored            -     -     -     -     -     -     -     -     -     -     -     -     .     .     .     .     .     .
continued           -     -     -     -     -     -     -     -     -     -     -     -     -     .     .     .     .     .
answer_delivered    stale stale stale -     stale stale -     stale stale stale -     stale stale stale stale stale stale stale
retry_requested     .     -     -     -     -     -     -     -     queue queue -     -     -     queue -     queue queue queue
checks_replaced     .     -     -     -     -     -     -     -     .     .     -     .     .     .     -     .     .     .
merged              -     -     -     -     -     -     -     -     -     -     -     -     -     -     .     .     -     -
published           -     -     -     -     -     -     -     -     -     -     -     -     .     .     .     .     .     .
verified            -     -     -     -     -     -     -     -     -     -     -     -     .     .     .     .     .     .
phase_changed       -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -     -
clock_moved         .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
notice              .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .     .
";

some_of_each! { events: Event, by Event of |event| event => {
    Event::Created => Event::Created;
    Event::Claimed { .. } => claimed(None);
    Event::PrerequisitesMet { .. } => prerequisites_met();
    Event::AccountUnavailable { .. } => account_unavailable(Some(at(600)));
    Event::AgentUnavailable { .. } => agent_unavailable();
    Event::Dispatched { .. } => dispatched();
    Event::SharedBudgetSpent { .. } => shared_budget_spent();
    Event::Prepared { .. } => prepared();
    Event::PrepareFailed { .. } => prepare_failed();
    Event::RepositoryGone { .. } => repository_gone();
    Event::Unconfigured { .. } => unconfigured();
    Event::BaselineReached { .. } => baseline_reached(1, vec![red("tests", "1 failed")]);
    Event::BaselineUnknown { .. } => Event::BaselineUnknown { round: 1, reason: "no space".into() };
    Event::AttemptStarted { .. } => Event::AttemptStarted { sandbox: None };
    Event::Agent { .. } => agent(AgentEvent::Thought { text: "hm".into() });
    Event::AttemptEnded { .. } => ended(End::Completed);
    Event::HandedOver { .. } => Event::HandedOver { from: AgentName::new("a"), to: AgentName::new("b"), why: "auth".into() };
    Event::TimeoutReached { .. } => timed_out(Timeout::Idle);
    Event::CheckStarted { .. } => Event::CheckStarted { name: "tests".into(), process: None };
    Event::CheckFinished { .. } => Event::CheckFinished { result: green("tests") };
    Event::JudgeStarted { .. } => judge_started(1);
    Event::JudgeUsed { .. } => judge_used(1, 1);
    Event::JudgeEnded { .. } => Event::JudgeEnded { n: 1, end: End::Completed };
    Event::JudgeUnavailable { .. } => judge_unreachable();
    Event::VerdictReached { .. } => green_verdict("t1");
    Event::ChecksFailed { .. } => Event::ChecksFailed { error: "no space".into() };
    Event::Stopped => Event::Stopped;
    Event::Woken => Event::Woken;
    Event::CancelRequested => Event::CancelRequested;
    Event::PauseRequested { .. } => pause();
    Event::ResumeRequested => Event::ResumeRequested;
    Event::Answered { .. } => answered(1, "blue");
    Event::MessageSent { .. } => message_sent("use the small one");
    Event::CompactRequested { .. } => compact_requested("the API");
    Event::Entered { .. } => entered();
    Event::Left { .. } => Event::Left { code: Some(0) };
    Event::Restored { .. } => Event::Restored { replaced: crate::Commit::new("c0"), paths: Vec::new() };
    Event::Continued { .. } => continued();
    Event::AnswerDelivered { .. } => delivered(Words::Sent);
    Event::RetryRequested { .. } => retry(&[]);
    Event::ChecksReplaced { .. } => Event::ChecksReplaced { checks: vec![check("lint", "make lint")] };
    Event::Merged { .. } => merged("main");
    Event::Published { .. } => Event::Published { branch: "towline/x".into(), commit: crate::Commit::new("c-t1") };
    Event::Verified { .. } => verified("t1");
    Event::PhaseChanged { .. } => now_in(Phase::Done);
    Event::ClockMoved { .. } => Event::ClockMoved { by_ms: 7_200_000 };
    Event::Notice { .. } => Event::Notice { text: "by the way".into() };
}}

some_of_each! { stories: Story, by Phase of |story| &story.state.phase => {
    Phase::Queued => Story::of(goal());
    Phase::Preparing => Story::preparing(goal()), Story::launched(goal_with_baseline(BaselineMode::Auto));
    Phase::Running { .. } => Story::working(goal());
    Phase::Checking { .. } => Story::checking();
    Phase::Stopping(_) =>
        Story::preparing(goal()).after(&[Event::CancelRequested]),
        Story::working(goal()).after(&[Event::CancelRequested]),
        Story::checking().after(&[Event::CancelRequested]);
    Phase::Sleeping { .. } => Story::sleeping();
    Phase::Limited { .. } => Story::limited();
    Phase::Blocked { .. } => Story::waiting_alive(), Story::blocked();
    Phase::Paused { .. } => Story::of(goal()).after(&[pause()]);
    Phase::Escalated { .. } => Story::escalated();
    Phase::Done => Story::checking().after(&[green_verdict("t1")]);
    Phase::Unproven => Story::working(goal_without_checks()).after(&[ended(End::Completed)]);
    Phase::Failed { .. } => Story::preparing(goal()).after(&[prepare_failed()]);
    Phase::Cancelled => Story::of(goal()).after(&[Event::CancelRequested]);
}}

/// The phase in at most five letters.
fn short(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued => "queue",
        Phase::Preparing => "prep",
        Phase::Running { .. } => "run",
        Phase::Stopping(_) => "stop",
        Phase::Checking { .. } => "check",
        Phase::Sleeping { .. } => "sleep",
        Phase::Limited { .. } => "limit",
        Phase::Blocked { .. } => "block",
        Phase::Paused { .. } => "pause",
        Phase::Escalated { .. } => "escal",
        Phase::Done => "done",
        Phase::Unproven => "unprv",
        Phase::Failed { .. } => "fail",
        Phase::Cancelled => "cancl",
    }
}

/// A column's head; a stop is distinguished by what is being stopped (setup, agent or checks), a question by whether the
/// agent waits for the answer alive, and the wait for the checks on the base from the making of the workspace.
fn head(story: &Story) -> &'static str {
    match &story.state.phase {
        Phase::Stopping(Stopping { attempt: None, .. }) => "stp:s",
        Phase::Stopping(_) if story.last().end.is_none() => "stp:a",
        Phase::Stopping(_) => "stp:c",
        Phase::Blocked { attempt: Some(_), .. } => "blk:a",
        Phase::Preparing if story.state.waits_for_baseline() => "base",
        phase => short(phase),
    }
}

/// What comes of the event, as the table writes it.
fn cell(mut story: Story, event: Event) -> &'static str {
    let before = story.state.clone();
    // Late enough for every timer: early ones are looked at elsewhere.
    story.wait(10_000);
    match story.offer(event) {
        StepOutcome::Moved(_) if story.state.phase == before.phase => ".",
        StepOutcome::Moved(_) => short(&story.state.phase),
        StepOutcome::Stale(_) => {
            assert_eq!(story.state, before, "stale news changes nothing");
            "stale"
        }
        StepOutcome::Illegal(_) => {
            assert_eq!(story.state, before, "illegal news changes nothing");
            "-"
        }
    }
}

fn line(name: &str, cells: impl Iterator<Item = &'static str>) -> String {
    let cells: String = cells.map(|cell| format!("{cell:<6}")).collect();
    format!("{}\n", format!("{name:<20}{cells}").trim_end())
}

#[test]
fn every_pair_of_phase_and_event_is_decided() {
    let stories = stories();
    let mut found = line("event", stories.iter().map(head));
    for event in events() {
        found += &line(event.name(), stories.iter().map(|story| cell(story.clone(), event.clone())));
    }
    assert_eq!(found, TABLE, "\nfound:\n{found}\nexpected:\n{TABLE}");
}

#[test]
fn a_timer_that_rings_early_is_refused() {
    for mut story in [Story::sleeping(), Story::limited()] {
        let before = story.state.clone();
        let until = before.phase.until().expect("a timer");
        story.now = until - std::time::Duration::from_nanos(1);
        let phase = before.phase.name();
        assert_eq!(
            story.offer(Event::Woken),
            StepOutcome::Illegal(Illegal::WrongPhase { phase, event: "woken" })
        );
        assert_eq!(story.state, before);
        story.now = until;
        assert_eq!(story.offer(Event::Woken), StepOutcome::Moved(moved_to(Phase::Queued, &[])));
    }
}
