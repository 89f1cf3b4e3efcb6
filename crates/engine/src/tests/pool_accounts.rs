//! One attempt finds out that an account cannot be used, and no goal of the account spends another one.

use std::collections::BTreeSet;
use std::time::Duration;

use towline_core::{Account, AccountStatus, AgentName, End, Event, Goal, Phase};
use towline_store::Store;

use super::harness::{World, attempt_of, goal_of};
use super::rules::TestRules;
use super::values::{ended, goal, prepared};
use crate::executors::Job;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn goals_of_a_limited_account_spend_no_attempt_and_go_on_after_the_reset_spread_over_time() {
    const GOALS: u32 = 20;
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    for number in 1..=GOALS {
        world.add(goal(number)).await;
    }
    let until = world.now() + HOUR;
    server.attempt_of(1).await.finish(ended(End::RateLimited { until: Some(until) })).await;
    tokio::time::sleep(Duration::from_secs(3_000)).await;
    assert!(server.is_idle());
    for number in 2..=GOALS {
        let state = world.record(goal(number).id).await.state;
        assert_eq!((state.phase, state.attempts.len()), (Phase::Queued, 0));
    }

    let mut starts = BTreeSet::new();
    for _ in 1..=GOALS {
        let attempt = loop {
            let work = server.next().await;
            match &work.job {
                Job::Prepare(_) => work.finish(prepared()).await,
                Job::Attempt(_) => break work,
                _ => {}
            }
        };
        assert!(world.now() >= until);
        starts.insert((goal_of(&attempt), world.now()));
        attempt.report(Event::AttemptStarted { sandbox: None }).await;
        server.complete(attempt).await;
    }
    assert_eq!(starts.len(), usize::try_from(GOALS).expect("few"), "each once");
    let times: BTreeSet<_> = starts.iter().map(|(_, at)| *at).collect();
    assert!(times.len() > 10, "{times:?}");
    assert!(world.now() < until + Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn another_agent_starts_where_the_account_of_the_first_is_limited() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(1)).await;
    let until = world.now() + HOUR;
    server.attempt_of(1).await.finish(ended(End::RateLimited { until: Some(until) })).await;
    let agents = vec![AgentName::new("agent"), AgentName::new("other")];
    world.add(Goal { agents, ..goal(2) }).await;
    let work = server.attempt_of(2).await;
    assert_eq!(attempt_of(&work).launch.agent, AgentName::new("other"));
    let log = world.log(goal(2).id).await;
    assert!(log.iter().any(|event| matches!(event, Event::AccountUnavailable { .. })), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_the_operator_opens_is_tried_by_one_goal_first() {
    let world = World::new();
    let account = |status| {
        let (name, agent) = ("agent".to_owned(), AgentName::new("agent"));
        Account { name, agent, status, updated_at: world.now() }
    };
    world.store.set_account(&account(AccountStatus::Closed)).await.expect("stored");
    for number in [1, 2] {
        world.add(goal(number)).await;
    }
    let mut server = world.pool(&TestRules::capped(4));
    world.settle().await;
    assert!(server.is_idle());
    world.store.set_account(&account(AccountStatus::Trial)).await.expect("stored");
    world.write();
    let work = server.attempt_of(1).await;
    world.settle().await;
    assert!(server.is_idle(), "one is enough to find out");
    work.finish(ended(End::Completed)).await;
    assert_eq!(goal_of(&server.checks().await), goal(1).id);
    server.attempt_of(2).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_pool_wakes_when_an_agent_of_a_queued_goal_becomes_available() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.caps.agents.extend([(AgentName::new("other"), 0)]));
    let mut server = world.pool(&rules);
    let agents = vec![AgentName::new("agent"), AgentName::new("other")];
    world.add(Goal { agents, ..goal(1) }).await;
    let until = world.now() + HOUR;
    server.attempt_of(1).await.finish(ended(End::RateLimited { until: Some(until) })).await;
    world.settle().await;
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Queued, "another agent could continue");
    let before = world.store.calls();
    tokio::time::sleep(HOUR / 2).await;
    assert!(server.is_idle());
    assert_eq!(world.store.calls(), before, "nothing is looked at meanwhile");
    let work = server.attempt_of(1).await;
    assert_eq!(attempt_of(&work).launch.agent, AgentName::new("agent"));
    assert!(until <= world.now() && world.now() < until + Duration::from_secs(60));
}
