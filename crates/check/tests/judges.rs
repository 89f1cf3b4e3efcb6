//! Judges in a verdict: when they are asked, and what their answers mean.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Bench, PATIENCE, check, result};
use towline_check::{Asking, CheckError, Judge, JudgeAnswer, JudgeQuestion, Progress};
use towline_core::{AgentName, Axis, Check, CheckKind, CheckResult, NoOpinion, Opinion, Verdict};

/// Gives these answers, one after the other, and remembers the names of its logs.
#[derive(Clone, Default)]
struct Answers {
    answers: Arc<Mutex<VecDeque<JudgeAnswer>>>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Answers {
    fn of(answers: impl IntoIterator<Item = JudgeAnswer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(rubric, _)| rubric.clone()).collect()
    }
}

impl Judge for Answers {
    fn ask<'a>(&'a self, question: JudgeQuestion<'a>) -> Asking<'a> {
        Box::pin(async move {
            self.asked.lock().unwrap().push((question.rubric.to_owned(), question.run));
            Ok(self.answers.lock().unwrap().pop_front().unwrap())
        })
    }
}

fn judge(name: &str, rubric: &str) -> Check {
    let kind = CheckKind::Judge { rubric: rubric.into(), agent: Some(AgentName::new("critic")) };
    Check::new(name, kind, PATIENCE)
}

fn accepts(reasons: &[&str]) -> JudgeAnswer {
    let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
    JudgeAnswer::Opinion(Opinion { accepts: true, reasons })
}

fn rejects(reasons: &[&str]) -> JudgeAnswer {
    let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
    JudgeAnswer::Opinion(Opinion { accepts: false, reasons })
}

fn not_now() -> JudgeAnswer {
    JudgeAnswer::NotNow { why: "the model is overloaded".into(), paid: false }
}

/// The judge comes first in the list, and is asked last.
fn bench(command: &str, answers: &Answers) -> Bench {
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    bench.goal.checks = vec![judge("review", "It fixes the cause."), check("tests", command)];
    bench.judge = Some(Box::new(answers.clone()));
    bench
}

fn of<'a>(verdict: &'a Verdict, name: &str) -> &'a CheckResult {
    verdict.checks.iter().find(|result| result.name == name).unwrap()
}

#[tokio::test]
async fn a_judge_is_asked_last_and_its_acceptance_makes_nothing_green_that_is_red() {
    let answers = Answers::of([accepts(&["It is fine."])]);
    let red = bench("false", &answers).verdict().await;
    assert_eq!(red.checks.iter().map(|result| &result.name).collect::<Vec<_>>(), ["tests"]);
    assert_eq!((red.met(), answers.asked()), (false, vec![]));

    let bench = bench("true", &answers);
    let mut seen = Vec::new();
    let green = bench.run(pending(), |progress| seen.push(progress)).await.unwrap();
    assert!(green.met());
    assert_eq!(answers.asked(), ["It fixes the cause."]);
    assert_eq!(of(&green, "review").evidence, "- It is fine.\n");
    let names: Vec<String> = seen
        .into_iter()
        .filter_map(|progress| match progress {
            Progress::Started { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["tests", "review"]);
    let (_, run) = answers.asked.lock().unwrap().remove(0);
    assert!(run.starts_with("1-review-"), "{run}");
}

#[tokio::test]
async fn a_rejection_is_red_with_the_judges_own_words_bounded_and_without_what_steers_a_terminal() {
    let long = "x".repeat(100_000);
    let reasons = ["a.txt is a special case\nfor the test", "\u{1b}[2Jgone", &long];
    let verdict = bench("true", &Answers::of([rejects(&reasons)])).verdict().await;
    let review = of(&verdict, "review");
    assert!(!verdict.met());
    assert_eq!(
        review.problem.as_deref(),
        Some("the judge rejects the work; its reasons, in its own words, are below")
    );
    assert!(
        review.evidence.starts_with("- a.txt is a special case for the test\n- gone\n"),
        "{}",
        review.evidence
    );
    assert!(review.evidence.len() <= towline_check::EVIDENCE_BYTES);
    let silent = bench("true", &Answers::of([rejects(&[])])).verdict().await;
    assert_eq!(
        of(&silent, "review").problem.as_deref(),
        Some("the judge rejects the work, and gives no reason")
    );
}

/// Why there is no verdict.
async fn reason(bench: &Bench) -> NoOpinion {
    match bench.run(pending(), |_| ()).await {
        Err(CheckError::NoOpinion { check, agent, reason }) => {
            assert_eq!((check.as_str(), agent), ("review", AgentName::new("critic")));
            reason
        }
        other => panic!("{other:?}"),
    }
}

fn unclear() -> JudgeAnswer {
    JudgeAnswer::Unclear { why: "its last message is empty".into() }
}

#[tokio::test]
async fn an_answer_that_is_no_opinion_is_asked_for_once_more_and_is_never_a_verdict() {
    let answers = Answers::of([unclear(), unclear()]);
    let message = "its last message is empty; retry the goal, or let another model judge".to_owned();
    assert_eq!(reason(&bench("true", &answers)).await, NoOpinion::Unusable { message });
    assert_eq!(answers.asked().len(), 2);
    // One that has no time left is asked when the work is checked again.
    let mut late = bench("true", &Answers::of([unclear()]));
    late.goal.checks[0].timeout = Duration::from_nanos(1);
    assert_eq!(reason(&late).await, NoOpinion::Unreachable { message: "its last message is empty".into() });
    let corrected = Answers::of([unclear(), rejects(&["no"])]);
    let verdict = bench("true", &corrected).verdict().await;
    assert_eq!(of(&verdict, "review").evidence, "- no\n");
}

#[tokio::test]
async fn what_asking_again_cannot_cure_is_no_verdict_at_once() {
    for no in [
        NoOpinion::Limited { until: None, guessed: false },
        NoOpinion::Budget { axis: Axis::Usd },
        NoOpinion::Unusable { message: "sign in".into() },
    ] {
        let answers = Answers::of([JudgeAnswer::No(no.clone())]);
        assert_eq!(reason(&bench("true", &answers)).await, no);
        assert_eq!(answers.asked().len(), 1);
    }
}

#[tokio::test]
async fn what_a_judge_accepted_before_counts_as_it_was_found_then() {
    let before = result("review", 0, "- fine\n");
    let verdict = bench("true", &Answers::of([JudgeAnswer::Accepted(before.clone())])).verdict().await;
    assert!(verdict.met());
    assert_eq!(of(&verdict, "review"), &before);
}

#[tokio::test]
async fn a_judge_that_cannot_answer_now_is_asked_again_with_other_logs() {
    let answers = Answers::of([not_now(), accepts(&[])]);
    assert!(bench("true", &answers).verdict().await.met());
    let asked = answers.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert_ne!(asked[0].1, asked[1].1);
}

#[tokio::test]
async fn a_judge_that_has_used_something_without_an_answer_is_not_asked_again_at_once() {
    let paid = JudgeAnswer::NotNow { why: "no answer within 30m".into(), paid: true };
    let answers = Answers::of([paid]);
    let message = "no answer within 30m".to_owned();
    assert_eq!(reason(&bench("true", &answers)).await, NoOpinion::Unreachable { message });
    assert_eq!(answers.asked().len(), 1);
}

#[tokio::test]
async fn a_judge_is_not_asked_again_when_less_than_a_quarter_of_its_time_would_be_left() {
    // The pause before the second question takes two seconds.
    for (seconds, asked) in [(1, 1), (2, 1), (60, 2)] {
        let answers = Answers::of([not_now(), accepts(&[])]);
        let mut bench = bench("true", &answers);
        bench.goal.checks[0].timeout = Duration::from_secs(seconds);
        match bench.run(pending(), |_| ()).await {
            Err(CheckError::NoOpinion { reason: NoOpinion::Unreachable { message }, .. }) => {
                assert_eq!(message, "the model is overloaded");
            }
            reached => assert!(reached.unwrap().met()),
        }
        assert_eq!(answers.asked().len(), asked, "{seconds}");
    }
}

#[tokio::test]
async fn the_goals_first_agent_judges_where_the_check_names_none() {
    let mut bench = bench("true", &Answers::of([JudgeAnswer::No(NoOpinion::Budget { axis: Axis::Usd })]));
    bench.goal.checks[0].kind = CheckKind::Judge { rubric: "r".into(), agent: None };
    bench.goal.agents = vec![AgentName::new("critic"), AgentName::new("other")];
    assert_eq!(reason(&bench).await, NoOpinion::Budget { axis: Axis::Usd });
    bench.goal.agents.clear();
    let refused = bench.run(pending(), |_| ()).await.unwrap_err().to_string();
    assert!(refused.contains("names no agent"), "{refused}");
}

#[tokio::test]
async fn a_request_to_stop_ends_the_wait_for_a_judge() {
    let answers = Answers::of([not_now()]);
    let bench = bench("true", &answers);
    let asked = answers.clone();
    let stop = async move {
        while asked.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(matches!(bench.run(stop, |_| ()).await, Err(CheckError::Stopped)));
}

#[tokio::test]
async fn after_the_first_judge_that_does_not_accept_none_is_asked() {
    let answers = Answers::of([accepts(&[]), rejects(&["no"])]);
    let mut bench = bench("true", &answers);
    bench.goal.checks.extend([judge("second", "b"), judge("third", "c")]);
    let verdict = bench.verdict().await;
    assert_eq!(answers.asked(), ["It fixes the cause.", "b"]);
    assert_eq!(verdict.checks.len(), 3);
}

#[tokio::test]
async fn recorded_results_count_where_no_judge_is_asked() {
    let answers = Answers::default();
    let mut bench = bench("true", &answers);
    bench.recorded = Some(vec![result("review", 0, "- fine\n")]);
    let again = bench.verdict().await;
    assert!(again.met());
    assert_eq!(of(&again, "review").evidence, "- fine\n");
    assert!(again.notes.iter().any(|note| note.contains("not asked again") && note.contains("review")));
    bench.recorded = Some(Vec::new());
    let never = bench.verdict().await;
    assert!(!never.met(), "a judge that was never asked has accepted nothing");
    assert_eq!(answers.asked(), [""; 0]);
}

#[tokio::test]
async fn where_judges_have_no_part_the_verdict_has_no_result_of_theirs() {
    let mut bench = bench("true", &Answers::default());
    bench.judge = None;
    assert_eq!(bench.verdict().await.checks.len(), 1);
}

#[tokio::test]
async fn a_goal_with_judges_alone_gets_no_verdict() {
    let answers = Answers::default();
    let mut bench = bench("true", &answers);
    bench.goal.checks.truncate(1);
    let refused = bench.run(pending(), |_| ()).await.unwrap_err().to_string();
    assert!(refused.contains("can only reject"), "{refused}");
}
