//! What judges report while checks run.

use std::time::Duration;

use super::pool::shared_budget_spent;
use crate::fixtures::*;
use crate::{
    AbsentJudge, Account, AccountStatus, AgentName, Axis, Check, CheckKind, End, EscalationReason, Event,
    FailureReason, GoalState, Illegal, NoOpinion, Phase, Policy, StepOutcome, StopWhy, Stopping, Timeout,
};

pub(super) fn judge_started(n: u32) -> Event {
    Event::JudgeStarted {
        n,
        check: "review".into(),
        agent: AgentName::new("judge"),
        account: "judge".into(),
        model: None,
        directory: format!("judges/2-review-{n}"),
        tree: "t1".into(),
    }
}

/// Everything that it has used so far.
pub(super) fn judge_used(n: u32, times: u64) -> Event {
    Event::JudgeUsed { n, model: Some("model".into()), used: used(times) }
}

pub(super) fn judge_unavailable(reason: NoOpinion) -> Event {
    Event::JudgeUnavailable {
        check: "review".into(),
        agent: AgentName::new("judge"),
        account: "judge".into(),
        reason,
    }
}

pub(super) fn judge_unreachable() -> Event {
    judge_unavailable(NoOpinion::Unreachable { message: "overloaded".into() })
}

fn judge_limited(until: Option<i64>) -> Event {
    judge_unavailable(NoOpinion::Limited { until: until.map(at), guessed: false })
}

fn judge_unusable() -> Event {
    judge_unavailable(NoOpinion::Unusable { message: "run `judge login`".into() })
}

/// The goal goes on when its time has come, and checks the first attempt's work again.
#[track_caller]
fn checked_again(story: &mut Story, round: u32) {
    if let Some(until) = story.state.phase.until() {
        story.now = until;
        story.receive(Event::Woken);
    }
    assert_eq!(story.state.phase, Phase::Queued);
    assert_eq!(story.receive(dispatched()).effects, [run_checks(round)]);
    assert_eq!((story.state.attempts.len(), story.state.errors_in_row), (1, 0));
}

fn judge_ended(n: u32) -> Event {
    Event::JudgeEnded { n, end: End::Completed }
}

#[test]
fn what_a_judge_used_is_a_sum_that_counts_once_beside_the_attempts() {
    let mut story = Story::working(goal()).after(&[usage(1), ended(End::Completed), judge_started(1)]);
    for event in [judge_used(1, 1), judge_used(1, 3), judge_used(1, 2), judge_ended(1), judge_ended(1)] {
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

#[test]
fn a_limited_judge_is_waited_for_and_the_same_work_is_checked_again() {
    let mut story = Story::checking();
    let limited = Phase::Limited { until: at(3_600), guessed: false };
    assert_eq!(story.receive(judge_limited(Some(3_600))), moved_to(limited, &["checks/1"]));
    checked_again(&mut story, 2);
    assert_eq!(story.now, at(3_600));
    story.receive(green_verdict("t1"));
    assert_eq!((&story.state.phase, story.state.attempts_spent()), (&Phase::Done, 1));
    assert_eq!(story.state.absent_judge, None);
}

#[test]
fn a_limit_of_a_judge_without_a_time_is_guessed_longer_each_time() {
    let mut story = Story::checking();
    for (round, minutes) in (2..).zip([1, 2, 4, 8, 16, 30, 30]) {
        story.receive(judge_limited(None));
        let until = story.now + Duration::from_secs(minutes * 60);
        assert_eq!(story.state.phase, Phase::Limited { until, guessed: true });
        checked_again(&mut story, round);
    }
    story.receive(red_verdict("t1"));
    assert_eq!((story.state.phase.name(), story.state.attempts.len()), ("running", 2), "the agent goes on");
}

#[test]
fn a_judge_that_does_not_answer_is_asked_with_growing_pauses_until_a_person_is_needed() {
    let mut story = Story::checking();
    let (begun, mut pauses, mut round) = (story.now, Vec::new(), 1);
    loop {
        story.receive(judge_unreachable());
        let Phase::Sleeping { until, reason } = &story.state.phase else { break };
        assert_eq!(reason, "the judge `judge` does not answer: overloaded");
        pauses.push(until.duration_since(story.now).as_secs());
        round += 1;
        checked_again(&mut story, round);
    }
    let minutes: Vec<i64> = pauses.iter().map(|pause| pause / 60).collect();
    assert_eq!(minutes[..7], [1, 2, 4, 8, 16, 30, 30]);
    let waited = Duration::try_from(story.now.duration_since(begun)).expect("later");
    assert!(waited >= Policy::LONGEST_OUTAGE && waited < Policy::LONGEST_OUTAGE + Duration::from_secs(1_801));
    let words = story.state.phase.reason().expect("a reason");
    let expected = "the judge `judge` gave no verdict for the check `review`: it did not answer for 12 hours: overloaded";
    assert_eq!((story.state.phase.name(), words.as_str()), ("escalated", expected));
    assert_eq!((story.state.attempts_spent(), story.state.errors_in_row), (1, 0));
    // A person gives it as long again.
    story.receive(retry(&[]));
    checked_again(&mut story, round + 1);
    story.receive(judge_unreachable());
    assert_eq!(story.state.phase.until(), Some(story.now + Duration::from_secs(60)));
}

#[test]
fn a_judge_that_a_person_must_repair_is_asked_again_by_retry_and_by_resume() {
    for request in [retry(&[]), Event::ResumeRequested] {
        let mut story = Story::checking();
        let (check, agent) = ("review".to_owned(), "judge".to_owned());
        let reason = EscalationReason::JudgeUnavailable { check, agent, problem: "run `judge login`".into() };
        let escalated = Phase::Escalated { reason };
        assert_eq!(story.receive(judge_unusable()), moved_to(escalated, &["checks/1"]));
        story.wait(60);
        story.receive(request);
        checked_again(&mut story, 2);
        story.receive(green_verdict("t1"));
        assert_eq!((&story.state.phase, story.state.attempts_spent()), (&Phase::Done, 1));
    }
}

#[test]
fn a_judge_without_money_ends_the_goal_and_judges_the_same_work_when_there_is_more() {
    let mut story = Story::working(goal_limited("usd=0.01")).after(&[usage(1), ended(End::Completed)]);
    story.receive(judge_unavailable(NoOpinion::Budget { axis: Axis::Usd }));
    let failed = Phase::Failed { reason: FailureReason::Budget { axis: Axis::Usd } };
    assert_eq!((&story.state.phase, story.last().verdict.clone()), (&failed, None));
    story.receive(retry(&["usd=+1"]));
    checked_again(&mut story, 2);
    story.receive(green_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Done);
}

#[test]
fn the_last_attempt_of_a_goal_is_judged_after_the_limit_as_well() {
    let mut story = Story::working(goal_limited("attempts=1")).after(&[ended(End::Completed)]);
    story.receive(judge_limited(Some(600)));
    checked_again(&mut story, 2);
    story.receive(judge_unreachable());
    checked_again(&mut story, 3);
    story.receive(green_verdict("t1"));
    assert_eq!(story.state.phase, Phase::Done);
}

#[test]
fn what_the_operator_wants_meanwhile_comes_before_the_judge() {
    let cancelled = Story::checking().after(&[Event::CancelRequested, judge_limited(None)]);
    assert_eq!(cancelled.state.phase, Phase::Cancelled);
    let paused = Story::checking().after(&[pause(), judge_unreachable()]);
    assert_eq!(paused.state.phase.name(), "paused");
    for story in [cancelled.after(&[retry(&[])]), paused.after(&[Event::ResumeRequested])] {
        let mut story = story;
        checked_again(&mut story, 2);
    }
    let mut waiting = Story::checking().after(&[judge_limited(Some(600)), Event::ResumeRequested]);
    checked_again(&mut waiting, 2);
}

#[test]
fn an_account_that_is_known_to_be_limited_or_closed_keeps_a_judge_from_being_asked_once() {
    let mut story = Story::checking();
    let account =
        |status| Account { name: "judge".into(), agent: AgentName::new("judge"), status, updated_at: at(0) };
    let limited = |until| account(AccountStatus::Limited { until, guessed: false });
    let keeps = |story: &Story, account: &Account| {
        account.keeps_from_judging(story.state.absent_judge.as_ref(), at(30))
    };
    for usable in [account(AccountStatus::Open), account(AccountStatus::Trial), limited(Some(at(30)))] {
        assert_eq!(keeps(&story, &usable), None, "{usable:?}");
    }
    let until = |second, guessed| Some(NoOpinion::Limited { until: Some(at(second)), guessed });
    assert_eq!(keeps(&story, &limited(Some(at(600)))), until(600, false));
    assert_eq!(keeps(&story, &limited(None)), until(60, true), "one is let through after a while");
    let closed = account(AccountStatus::Closed);
    let Some(reason @ NoOpinion::Unusable { .. }) = keeps(&story, &closed) else { panic!("it is asked") };
    story.receive(judge_unavailable(reason));
    assert!(story.state.phase.reason().expect("a reason").contains("`towline accounts open judge`"));
    assert!(story.state.waits_for_account(&story.goal, "judge"));
    assert!(!story.state.waits_for_account(&story.goal, "claude"));
    // A person has opened the goal again: the judge finds out.
    story.receive(retry(&[]));
    assert_eq!(keeps(&story, &closed), None);
    assert!(keeps(&story, &Account { updated_at: at(600), ..closed }).is_some(), "found out since then");
}

/// A judge has used something, and ended without an answer.
fn judge_failed(n: u32, end: End, times: u64) -> Vec<Event> {
    let used = (times > 0).then(|| judge_used(n, times));
    [judge_started(n)].into_iter().chain(used).chain([Event::JudgeEnded { n, end }]).collect()
}

fn paid(story: &Story) -> Option<u32> {
    story.state.absent_judge.as_ref().map(|absent| absent.paid)
}

#[test]
fn a_judge_that_is_paid_and_does_not_answer_needs_a_person_sooner() {
    let mut story = Story::checking();
    for n in 1..=Policy::JUDGE_FAILURES {
        story = story.after(&judge_failed(n, End::Lost, 1)).after(&[judge_unreachable()]);
        if n < Policy::JUDGE_FAILURES {
            checked_again(&mut story, n + 1);
        }
    }
    let words = story.state.phase.reason().expect("a reason");
    assert!(words.ends_with("it used the model 5 times in a row and did not answer: overloaded"), "{words}");
}

#[test]
fn every_conversation_that_was_paid_counts_once_also_if_a_later_one_of_the_same_round_was_not() {
    let turn = End::TimedOut { timeout: Timeout::Turn };
    let mut story = Story::checking();
    story = story.after(&judge_failed(1, End::Lost, 1)).after(&judge_failed(2, End::Lost, 0));
    assert_eq!(paid(&story.clone().after(&[judge_unreachable()])), Some(1));
    // Its agent reports what it used at the end of a turn alone.
    story = story.after(&judge_failed(3, turn, 0)).after(&[judge_unreachable()]);
    assert_eq!(paid(&story), Some(2));
    checked_again(&mut story, 2);
    let silent = story.clone().after(&judge_failed(4, End::TimedOut { timeout: Timeout::Idle }, 0));
    assert_eq!(paid(&silent.after(&[judge_unreachable()])), Some(0), "an outage ends the row");
    let stopped = story.clone().after(&judge_failed(4, End::Interrupted, 1));
    assert_eq!(paid(&stopped.after(&[judge_unreachable()])), Some(0), "it did not fail");
    assert_eq!(paid(&story.after(&judge_failed(4, End::Lost, 1)).after(&[judge_unreachable()])), Some(3));
}

#[test]
fn an_outage_of_a_judge_makes_no_guess_of_its_limit_longer() {
    let mut story = Story::checking();
    for round in 2..5 {
        story.receive(judge_unreachable());
        checked_again(&mut story, round);
    }
    for (round, seconds) in (5..).zip([60, 120]) {
        story.receive(judge_limited(None));
        assert_eq!(story.state.phase.until(), Some(story.now + Duration::from_secs(seconds)));
        checked_again(&mut story, round);
    }
    story.receive(judge_unreachable());
    assert_eq!(
        story.state.phase.until(),
        Some(story.now + Duration::from_secs(60)),
        "nor the other way round"
    );
}

#[test]
fn a_guess_about_the_account_of_a_judge_is_a_guess_and_makes_the_next_one_longer() {
    let mut story = Story::checking();
    for (round, minutes) in (2..).zip([1, 2, 4]) {
        // An engine was killed before it could report the limit, and the next one found the account.
        let until = Some(story.now + Duration::from_secs(60));
        story.receive(judge_unavailable(NoOpinion::Limited { until, guessed: true }));
        let until = story.now + Duration::from_secs(minutes * 60);
        assert_eq!(story.state.phase, Phase::Limited { until, guessed: true });
        checked_again(&mut story, round);
    }
    let until = story.now + Duration::from_secs(3_600);
    story.receive(judge_unavailable(NoOpinion::Limited { until: Some(until), guessed: true }));
    assert_eq!(story.state.phase, Phase::Limited { until, guessed: true }, "the later of the two");
}

#[test]
fn an_absent_judge_of_an_earlier_version_can_be_read() {
    let stored =
        r#"{"account": "judge", "at": "2027-01-15T08:00:00Z", "tries": 3, "paid": 1, "since": null}"#;
    let read: AbsentJudge = serde_json::from_str(stored).expect("it is read");
    let expected =
        AbsentJudge { account: "judge".into(), at: at(0), tries: 3, paid: 1, ..AbsentJudge::default() };
    assert_eq!(read, expected);
}

#[test]
fn the_oldest_judges_leave_the_state_and_what_they_used_stays() {
    let rounds = u32::try_from(Policy::JUDGES_LISTED).expect("few") + 10;
    let mut story = Story::checking().after(&[judge_started(1), judge_ended(1)]);
    story.receive(Event::CheckFinished { result: green("review") });
    for n in 2..=rounds {
        story = story.after(&judge_failed(n, End::Lost, 1));
    }
    let listed: Vec<u32> = story.state.judges.iter().map(|judge| judge.n).collect();
    let newest = rounds - u32::try_from(listed.len()).expect("few") + 2;
    assert_eq!(listed.len(), Policy::JUDGES_LISTED);
    // The first has accepted.
    assert_eq!(listed, [1].into_iter().chain(newest..=rounds).collect::<Vec<_>>());
    let times = u64::from(rounds - 1);
    assert_eq!(story.state.usage().tokens(), used(times).tokens());
    assert_eq!(story.state.usage().spent().amount, used(times).spent().amount);
    let stored = serde_json::to_string(&story.state).expect("it is stored");
    assert_eq!(serde_json::from_str::<GoalState>(&stored).expect("it is read"), story.state);
}

#[test]
fn work_without_the_money_for_its_judge_is_not_opened_again() {
    let judged = |limit: &str| {
        let kind = CheckKind::Judge { rubric: "r".into(), agent: None };
        let review = Check::new("review", kind, Duration::from_secs(60));
        let mut goal = goal_limited(limit);
        goal.checks.push(review);
        Story::working(goal).after(&[usage(1), ended(End::Completed)])
    };
    let still_spent = |axis| StepOutcome::Illegal(Illegal::StillSpent { axis });
    let no_money = || judge_unavailable(NoOpinion::Budget { axis: Axis::Usd });
    let mut spent = judged("usd=0.01").after(&[no_money()]);
    assert_eq!(spent.offer(retry(&[])), still_spent(Axis::Usd));
    let mut tokens = judged("tokens=1").after(&[judge_unavailable(NoOpinion::Budget { axis: Axis::Tokens })]);
    assert_eq!(tokens.offer(retry(&[])), still_spent(Axis::Tokens));
    spent.receive(retry(&["usd=+1"]));
    checked_again(&mut spent, 2);

    // A judge that has accepted needs none.
    let accepted = [judge_started(1), judge_ended(1), Event::CheckFinished { result: green("review") }];
    let mut accepted = judged("usd=0.01").after(&accepted).after(&[Event::CancelRequested, Event::Stopped]);
    accepted.receive(retry(&[]));
    checked_again(&mut accepted, 2);
}

#[test]
fn what_one_judge_accepted_counts_while_another_is_waited_for_and_until_there_is_a_verdict() {
    let accepted = |story: &Story| story.state.judges[0].accepted.clone();
    let finished = |result| Event::CheckFinished { result };
    let mut story = Story::checking().after(&[judge_started(1), judge_ended(1)]);
    story.receive(finished(green("tests")));
    assert_eq!(accepted(&story), None);
    story.receive(finished(green("review")));
    assert_eq!(accepted(&story), Some(green("review")));
    story.receive(judge_limited(Some(600)));
    checked_again(&mut story, 2);
    assert_eq!((accepted(&story), &*story.state.judges[0].tree), (Some(green("review")), "t1"));
    for event in [green_verdict("t1"), red_verdict("t1")] {
        assert_eq!(accepted(&story.clone().after(&[event])), None);
    }
    let replaced = Event::ChecksReplaced { checks: vec![check("lint", "make lint")] };
    let story = story.after(&[judge_limited(Some(9_000)), replaced]);
    assert_eq!(accepted(&story), None);
    let rejected =
        Story::checking().after(&[judge_started(1), judge_ended(1), finished(red("review", "no"))]);
    assert_eq!(accepted(&rejected), None);
}

#[test]
fn an_acceptance_that_counts_again_is_not_taken_for_one_of_another_tree() {
    let finished = || Event::CheckFinished { result: green("review") };
    let mut story = Story::checking().after(&[judge_started(1), judge_ended(1), finished()]);
    // Another judge was waited for, a person changed the work, and then changed it back.
    let mut other = judge_started(2);
    if let Event::JudgeStarted { tree, .. } = &mut other {
        "t2".clone_into(tree);
    }
    story = story.after(&[other, judge_ended(2), finished()]);
    let accepted: Vec<bool> = story.state.judges.iter().map(|judge| judge.accepted.is_some()).collect();
    assert_eq!(accepted, [true, false]);
}

#[test]
fn what_a_judge_accepts_while_its_checks_are_stopped_counts_when_the_goal_is_resumed() {
    for (request, resume) in [(pause(), Event::ResumeRequested), (Event::CancelRequested, retry(&[]))] {
        let mut story = Story::checking().after(&[judge_started(1), request, judge_ended(1)]);
        story.receive(Event::CheckFinished { result: green("review") });
        story.receive(Event::Stopped);
        assert_eq!(story.state.judges[0].accepted, Some(green("review")));
        story.receive(resume);
        checked_again(&mut story, 2);
        assert_eq!(story.state.judges[0].accepted, Some(green("review")));
    }
}
