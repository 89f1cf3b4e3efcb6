//! The checks on the base run beside an attempt, and never beside a verdict.

use std::time::Duration;

use towline_core::{Baseline, BaselineMode, End, Event, FailureReason, Goal, Phase};

use super::harness::{PlayedEngine, Work, World, cancel, notices};
use super::values::{check_result, ended, goal, retry, verdict};
use crate::baseline;
use crate::error::EngineError;
use crate::executors::Job;
use crate::handle::Handle;
use crate::news::StopLevel;

/// A goal whose checks begin to run on its base.
async fn with_baseline(mode: BaselineMode) -> (World, PlayedEngine, Handle, Work) {
    let (world, mut engine, handle) = World::with(Goal { baseline: mode, ..goal(1) }).await;
    engine.prepare().await;
    let base = baseline(&mut engine).await;
    (world, engine, handle, base)
}

/// The checks on the base, as soon as they are to run.
async fn baseline(engine: &mut PlayedEngine) -> Work {
    let work = engine.next().await;
    assert!(matches!(work.job, Job::Baseline(_)), "not a baseline");
    work
}

fn job_of(work: &Work) -> &baseline::BaselineJob {
    let Job::Baseline(job) = &work.job else { panic!("not a baseline") };
    job
}

fn reached(round: u32, met: bool) -> Event {
    let checks = vec![check_result("tests", met)];
    Event::BaselineReached { round, checks, reused: None, missing: None }
}

#[tokio::test(start_paused = true)]
async fn an_agent_starts_as_soon_as_the_checks_have_run_on_the_base() {
    let (world, mut engine, handle, base) = with_baseline(BaselineMode::Auto).await;
    assert!(engine.is_idle(), "no agent has begun");
    let before = world.now();
    base.finish(reached(1, true)).await;
    let attempt = engine.attempt().await;
    assert_eq!(notices(&world.log(goal(1).id).await), ["checks passed before any work"]);
    assert!(world.now().duration_since(before).as_secs() < 10);
    engine.judge(attempt, "base-tree", true).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!((state.phase.clone(), state.baseline.met()), (Phase::Done, Some(true)));
    assert_eq!(state.changed(), Some(false), "the candidate has the files of the base");
}

#[tokio::test(start_paused = true)]
async fn an_agent_starts_beside_the_checks_after_ten_seconds_and_a_verdict_waits_until_they_are_gone() {
    let (world, mut engine, handle, mut base) = with_baseline(BaselineMode::Auto).await;
    let before = world.now();
    let attempt = engine.attempt().await;
    let waited = world.now().duration_since(before).as_secs();
    assert!((10..12).contains(&waited), "{waited}");
    attempt.finish(ended(End::Completed)).await;
    assert_eq!(base.stopped().await, StopLevel::Stop);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(engine.is_idle(), "nothing is judged beside them");
    // They were about to report, which is of no use any more.
    base.finish(reached(1, true)).await;
    engine.checks().await.finish(verdict("t1", true)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!((state.phase.clone(), state.baseline.clone()), (Phase::Done, Baseline::Unknown));
    let log = world.log(goal(1).id).await;
    assert_eq!((state.changed(), notices(&log)), (Some(true), Vec::new()));
    assert!(log.iter().any(|event| matches!(event, Event::BaselineUnknown { .. })), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn where_the_base_must_be_red_no_agent_starts_before_it_is_known_to_be() {
    let (_world, mut engine, handle, base) = with_baseline(BaselineMode::Red).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(engine.is_idle(), "no agent has begun");
    base.finish(reached(1, true)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!(state.phase, Phase::Failed { reason: FailureReason::GreenBefore });
    assert_eq!(state.attempts, []);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_goal_leaves_nothing_running_on_its_base() {
    for beside_an_agent in [false, true] {
        let (_world, mut engine, handle, mut base) = with_baseline(BaselineMode::Auto).await;
        let attempt = if beside_an_agent { Some(engine.attempt().await) } else { None };
        cancel(&handle).await;
        assert_eq!(base.stopped().await, StopLevel::Stop);
        if let Some(attempt) = attempt {
            attempt.finish(ended(End::Cancelled)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(engine.is_idle(), "the goal does not end before they are gone");
        drop(base);
        assert_eq!(engine.end_of(handle).await.state.phase, Phase::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_takes_a_goal_up_runs_the_checks_on_its_base_again() {
    let (world, mut engine, handle, base) = with_baseline(BaselineMode::Auto).await;
    let attempt = engine.attempt().await;
    engine.crash(handle).await;
    drop((base, attempt));

    let (mut engine, handle) = world.resumed().await;
    let base = baseline(&mut engine).await;
    assert_eq!(job_of(&base).round, 1);
    let attempt = engine.next().await;
    assert!(matches!(attempt.job, Job::Attempt(_)), "not an attempt");
    base.finish(reached(1, false)).await;
    assert_eq!(engine.pass(attempt, handle).await.state.baseline.met(), Some(false));
}

#[tokio::test(start_paused = true)]
async fn replaced_checks_are_those_of_the_next_verdict_and_of_the_base() {
    let (world, mut engine, handle, base) = with_baseline(BaselineMode::Auto).await;
    base.finish(reached(1, false)).await;
    let mut attempt = engine.attempt().await;
    cancel(&handle).await;
    attempt.stopped().await;
    attempt.finish(ended(End::Cancelled)).await;
    engine.end_of(handle).await;

    let mut checks = goal(1).checks;
    checks[0].name = "lint".into();
    let replaced = Event::ChecksReplaced { checks: checks.clone() };
    let refused = engine.engine.resume(goal(1).id, [replaced.clone(), Event::ResumeRequested]).await.err();
    assert!(matches!(refused, Some(EngineError::Illegal { .. })), "{refused:?}");
    assert_eq!(world.record(goal(1).id).await.state.replaced_checks, None, "all of it or nothing");
    let handle = engine.engine.resume(goal(1).id, [replaced, retry()]).await.expect("it goes on");
    let base = baseline(&mut engine).await;
    assert_eq!((job_of(&base).round, &job_of(&base).goal.checks), (2, &checks));
    base.finish(reached(2, false)).await;
    engine.attempt().await.finish(ended(End::Completed)).await;
    let work = engine.checks().await;
    let Job::Check(job) = &work.job else { panic!("not checks") };
    assert_eq!(job.goal.checks, checks);
    work.finish(verdict("t1", true)).await;
    let record = engine.end_of(handle).await;
    assert_eq!(record.goal.checks, checks);
}
