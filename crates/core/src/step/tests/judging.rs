//! What judges report while checks run.

use super::pool::shared_budget_spent;
use crate::fixtures::*;
use crate::{AgentName, Axis, End, Event, FailureReason, Phase, StopWhy, Stopping};

pub(super) fn judge_started(n: u32) -> Event {
    Event::JudgeStarted {
        n,
        check: "review".into(),
        agent: AgentName::new("judge"),
        account: "judge".into(),
        model: None,
        directory: format!("2-review-{n}"),
    }
}

/// Everything that it has used so far.
pub(super) fn judge_used(n: u32, times: u64) -> Event {
    Event::JudgeUsed { n, model: Some("model".into()), used: used(times) }
}

fn judge_ended(n: u32) -> Event {
    Event::JudgeEnded { n, end: End::Completed }
}

#[test]
fn what_a_judge_used_is_a_sum_that_counts_once_beside_the_attempts() {
    let mut story = Story::working(goal()).after(&[usage(1), ended(End::Completed), judge_started(1)]);
    for event in [judge_used(1, 1), judge_used(1, 3), judge_used(1, 3), judge_ended(1), judge_ended(1)] {
        story.receive(event);
    }
    // The same judge announced again, and one that nobody knows.
    story.receive(judge_started(1));
    story.receive(judge_used(7, 5));
    assert_eq!(story.state.judges.len(), 1);
    let judge = &story.state.judges[0];
    assert_eq!((judge.attempt, judge.usage, judge.model.as_deref()), (no(1), used(3), Some("model")));
    assert_eq!((judge.end.clone(), judge.ended_at), (Some(End::Completed), Some(story.now)));
    assert_eq!(story.state.usage().tokens(), used(4).tokens());
    assert_eq!(story.state.usage().spent(), used(4).spent());
}

#[test]
fn a_judge_that_used_up_the_budget_ends_the_goal_with_its_red_verdict() {
    let mut story = Story::working(goal_limited("usd=0.03")).after(&[usage(1), ended(End::Completed)]);
    story.receive(judge_started(1));
    story.receive(judge_used(1, 2));
    assert_eq!(story.state.phase, Phase::Checking { attempt: no(1) });
    story.receive(red_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Failed { reason: FailureReason::Budget { axis: Axis::Usd } });
}

#[test]
fn money_of_a_judge_is_counted_although_the_goal_was_cancelled_meanwhile() {
    let mut story = Story::checking().after(&[judge_started(1), Event::CancelRequested, Event::Stopped]);
    assert_eq!(story.state.phase, Phase::Cancelled);
    let before = story.state.usage().tokens();
    story.receive(judge_used(1, 2));
    assert_eq!(story.state.usage().tokens(), before + used(2).tokens());
}

#[test]
fn a_judge_is_stopped_when_shared_money_is_spent_and_the_work_is_judged_later() {
    let mut story = Story::checking().after(&[judge_started(1), judge_used(1, 1)]);
    assert!(story.state.spent_by_running_agent() == used(1).spent().amount);
    story.receive(shared_budget_spent());
    let why = StopWhy::SharedBudget;
    assert_eq!(story.state.phase, Phase::Stopping(Stopping { attempt: Some(no(1)), why }));
    story.receive(Event::Stopped);
    assert_eq!(story.state.phase, Phase::Queued);
    story.receive(dispatched());
    assert_eq!(story.state.phase, Phase::Checking { attempt: no(1) });
}
