//! A judge that gives no verdict keeps its goal waiting, and no agent is started for that.

use std::time::Duration;

use towline_core::{AccountStatus, AgentName, End, Event, NoOpinion, Phase};
use towline_store::Store;

use super::harness::{World, goal_of};
use super::rules::TestRules;
use super::values::{ended, goal, verdict};
use crate::executors::Job;

const WAIT: Duration = Duration::from_secs(1_800);

pub(super) fn started(n: u32, account: &str) -> Event {
    Event::JudgeStarted {
        n,
        check: "review".into(),
        agent: AgentName::new("critic"),
        account: account.to_owned(),
        model: None,
        directory: format!("judges/2-review-{n}"),
        tree: "t1".into(),
    }
}

fn unavailable(account: &str, reason: NoOpinion) -> Event {
    let (check, agent) = ("review".into(), AgentName::new("critic"));
    Event::JudgeUnavailable { check, agent, account: account.to_owned(), reason }
}

#[tokio::test(start_paused = true)]
async fn a_limit_and_an_outage_of_a_judge_are_waited_out_and_the_same_work_is_checked_again() {
    let (world, mut engine, work, handle) = World::at_work().await;
    work.finish(ended(End::Completed)).await;
    let until = world.now() + WAIT;
    let checks = engine.checks().await;
    checks.report(started(1, "critic")).await;
    checks.report(Event::JudgeEnded { n: 1, end: End::RateLimited { until: Some(until) } }).await;
    checks.finish(unavailable("critic", NoOpinion::Limited { until: Some(until), guessed: false })).await;
    let state = world.record(goal(1).id).await.state;
    assert_eq!(state.phase, Phase::Limited { until, guessed: false });

    let again = engine.checks().await;
    assert!(world.now() >= until && world.now() < until + Duration::from_secs(60), "{}", world.now());
    again.finish(unavailable("critic", NoOpinion::Unreachable { message: "overloaded".into() })).await;
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Sleeping { .. }));
    engine.checks().await.finish(verdict("t1", true)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!((&state.phase, state.attempts.len(), state.attempts_spent()), (&Phase::Done, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_an_engine_recorded_before_it_was_killed_is_known_to_the_next_one() {
    let (world, mut engine, work, handle) = World::at_work().await;
    work.finish(ended(End::Completed)).await;
    let until = world.now() + WAIT;
    let checks = engine.checks().await;
    checks.report(started(1, "critic")).await;
    checks.report(Event::JudgeEnded { n: 1, end: End::RateLimited { until: Some(until) } }).await;
    engine.crash(handle).await;
    drop(checks);

    let (mut engine, handle) = world.resumed().await;
    let again = engine.checks().await;
    let state = world.record(goal(1).id).await.state;
    let accounts = world.store.accounts().await.expect("accounts");
    let critic = accounts.iter().find(|account| account.name == "critic").expect("it is known");
    let reason = critic.keeps_from_judging(state.absent_judge.as_ref(), world.now()).expect("it is limited");
    assert_eq!(reason, NoOpinion::Limited { until: Some(until), guessed: false });
    again.finish(unavailable("critic", reason)).await;
    let again = engine.checks().await;
    assert!(world.now() >= until);
    let absent = world.record(goal(1).id).await.state.absent_judge;
    assert_eq!(critic.keeps_from_judging(absent.as_ref(), world.now()), None);
    again.finish(verdict("t1", true)).await;
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Done);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_a_judge_finds_out_holds_the_goals_of_its_account() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    server.attempt_of(1).await.finish(ended(End::Completed)).await;
    let until = world.now() + WAIT;
    let checks = server.checks().await;
    // The judge uses the account of the agent that does the work.
    checks.report(started(1, "agent")).await;
    checks.report(Event::JudgeEnded { n: 1, end: End::RateLimited { until: Some(until) } }).await;
    world.add(goal(2)).await;
    checks.finish(unavailable("agent", NoOpinion::Limited { until: Some(until), guessed: false })).await;
    world.phase(1, "limited").await;
    world.settle().await;
    assert!(server.is_idle(), "the second goal would run into the same limit");
    let status = world.store.accounts().await.expect("accounts")[0].status;
    assert_eq!(status, AccountStatus::Limited { until: Some(until), guessed: false });

    let mut seen = Vec::new();
    while seen.len() < 2 {
        let work = server.next().await;
        assert!(world.now() >= until);
        match &work.job {
            Job::Check(_) if goal_of(&work) == goal(1).id => {
                seen.push(1);
                work.finish(verdict("t1", true)).await;
            }
            Job::Prepare(_) if goal_of(&work) == goal(2).id => seen.push(2),
            Job::Publish(_) => {}
            _ => panic!("an attempt of the goal that is judged"),
        }
    }
}
