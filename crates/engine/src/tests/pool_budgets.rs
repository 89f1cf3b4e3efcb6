//! Money that goals share.

use std::time::Duration;

use towline_core::{
    AgentEvent, AgentName, Budget, End, Event, Goal, MicroUsd, Phase, Tokens, Usage, WorkspaceSpec,
};

use super::harness::{Work, World};
use super::judges::started as judge_started;
use super::rules::{Rules, TestRules};
use super::values::{ended, goal, verdict};
use crate::news::StopLevel;

const DAY: Duration = Duration::from_secs(24 * 3_600);
const DOLLAR: u64 = 1_000_000;

fn in_project(number: u32, repository: &str) -> Goal {
    let workspace = WorkspaceSpec { repository: repository.into(), ..goal(number).workspace };
    Goal { workspace, ..goal(number) }
}

/// The agent has spent so much more.
async fn spend(work: &Work, dollars: u64) {
    report(work, Usage { cost: MicroUsd(dollars * DOLLAR), ..Usage::default() }).await;
}

/// The agent has used so much more, and only its tokens are known.
async fn estimate(work: &Work, dollars: u64) {
    report(work, Usage { input: Tokens(1), estimate: MicroUsd(dollars * DOLLAR), ..Usage::default() }).await;
}

async fn report(work: &Work, used: Usage) {
    work.emit(AgentEvent::Usage { model: None, used, context_used: None, context_size: None }).await;
}

fn is_running(work: &Work) -> bool {
    *work.control.stop.borrow() == StopLevel::Run
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_spent_stops_the_agent_which_continues_when_there_is_money_again() {
    let budgets: [fn(&mut Rules, Option<MicroUsd>); 3] = [
        |rules, limit| rules.day = limit,
        |rules, limit| rules.pool = limit,
        |rules, limit| {
            rules.projects = limit.map(|limit| ("/repository".to_owned(), limit)).into_iter().collect()
        },
    ];
    for set in budgets {
        let world = World::new();
        let rules = TestRules::capped(4);
        rules.set(|rules| set(rules, Some(MicroUsd(5 * DOLLAR))));
        let mut server = world.pool(&rules);
        world.add(goal(1)).await;
        let mut work = server.attempt_of(1).await;
        spend(&work, 4).await;
        world.settle().await;
        assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Running { .. }));
        spend(&work, 6).await;
        work.stopped().await;
        work.finish(ended(End::Interrupted)).await;
        world.add(goal(2)).await;
        world.settle().await;
        for number in [1, 2] {
            assert_eq!(world.record(goal(number).id).await.state.phase, Phase::Queued);
        }
        rules.set(|rules| set(rules, None));
        world.write();
        let again = server.attempt_of(1).await;
        let state = world.record(goal(1).id).await.state;
        assert_eq!((state.attempts.len(), state.attempts_spent()), (2, 1), "the stop cost no attempt");
        drop(again);
    }
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_spends_what_goals_share_is_stopped_without_anything_else_happening() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.day = Some(MicroUsd(5 * DOLLAR)));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    server.attempt_of(1).await.finish(ended(End::Completed)).await;
    let mut checks = server.checks().await;
    checks.report(judge_started(1, "critic")).await;
    let used = |dollars| Usage { cost: MicroUsd(dollars * DOLLAR), ..Usage::default() };
    checks.report(Event::JudgeUsed { n: 1, model: None, used: used(4) }).await;
    world.settle().await;
    assert!(is_running(&checks));
    let begun = world.now();
    checks.report(Event::JudgeUsed { n: 1, model: None, used: used(6) }).await;
    checks.stopped().await;
    let took = world.now().duration_since(begun);
    assert!(took.as_secs() < 2, "{took}: it is seen when it is spent");
    checks.finish(Event::Stopped).await;
    world.phase(1, "queued").await;
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_stops_an_agent_that_spends_what_goals_share() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.day = Some(MicroUsd(5 * DOLLAR)));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let mut work = server.attempt_of(1).await;
    let spends = async {
        world.settle().await;
        spend(&work, 6).await;
        work.stopped().await;
        work.finish(ended(End::Interrupted)).await;
    };
    let begun = world.now();
    tokio::join!(server.engine.drain(Duration::from_secs(600)), spends);
    let took = world.now().duration_since(begun);
    assert!(took.as_secs() < 60, "{took}: nothing runs any more");
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_day_budget_is_whole_again_on_the_next_day() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.day = Some(MicroUsd(DOLLAR)));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let mut work = server.attempt_of(1).await;
    spend(&work, 2).await;
    work.stopped().await;
    work.finish(ended(End::Interrupted)).await;
    let before = world.now();
    tokio::time::sleep(DAY - Duration::from_secs(600)).await;
    assert!(server.is_idle());
    server.attempt_of(1).await;
    assert!(world.now() < before + DAY + Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_project_that_has_spent_its_budget_holds_up_no_other() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.projects = [("/one".to_owned(), MicroUsd(DOLLAR))].into());
    let mut server = world.pool(&rules);
    world.add(in_project(1, "/one")).await;
    let mut one = server.attempt_of(1).await;
    world.add(in_project(2, "/two")).await;
    let two = server.attempt_of(2).await;
    spend(&one, 1).await;
    spend(&two, 1).await;
    one.stopped().await;
    world.settle().await;
    assert!(is_running(&two));
    let log = world.log(goal(1).id).await;
    let stops = log.iter().filter(|event| event.name() == "shared_budget_spent").count();
    assert_eq!(stops, 1, "it is recorded once");
}

#[tokio::test(start_paused = true)]
async fn goals_that_a_shared_budget_stopped_go_on_in_the_order_in_which_they_were_queued() {
    let world = World::new();
    let rules = TestRules::capped(3);
    rules.set(|rules| rules.day = Some(MicroUsd(DOLLAR)));
    let mut server = world.pool(&rules);
    let mut works = Vec::new();
    for number in 1..=3 {
        world.add(goal(number)).await;
        works.push(server.attempt_of(number).await);
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let waiting = Goal { created_at: world.now(), ..goal(4) };
    world.add(waiting).await;
    spend(&works[0], 2).await;
    // The last one that was queued is gone first.
    for mut work in works.into_iter().rev() {
        work.stopped().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        work.finish(ended(End::Interrupted)).await;
        world.settle().await;
    }
    rules.set(|rules| {
        rules.day = None;
        rules.caps.pool = 1;
    });
    world.write();
    for number in 1..=4 {
        let work = server.attempt_of(number).await;
        work.report(Event::AttemptStarted { sandbox: None }).await;
        server.complete(work).await;
    }
}

/// The engine's day ends 24 hours after it began.
async fn wait_for_midnight(world: &World) {
    let passed = world.now().duration_since(super::values::beginning());
    let left = DAY - Duration::try_from(passed).expect("it began before");
    tokio::time::sleep(left + Duration::from_secs(60)).await;
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_runs_over_midnight_spends_the_budget_of_each_day() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.day = Some(MicroUsd(5 * DOLLAR)));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let mut work = server.attempt_of(1).await;
    spend(&work, 4).await;
    wait_for_midnight(&world).await;
    spend(&work, 4).await;
    world.settle().await;
    assert!(is_running(&work), "8 dollars in two days");
    spend(&work, 1).await;
    work.stopped().await;
}

/// The correction of what was estimated on the day before is money that can be spent again, and no more than that.
#[tokio::test(start_paused = true)]
async fn a_figure_that_corrects_the_estimate_of_the_day_before_counts_as_the_difference() {
    for (figure, more, is_spent) in [(6, 2, false), (7, 2, true), (2, 6, false), (2, 7, true)] {
        let world = World::new();
        let rules = TestRules::capped(4);
        rules.set(|rules| rules.day = Some(MicroUsd(5 * DOLLAR)));
        let mut server = world.pool(&rules);
        world.add(goal(1)).await;
        let mut work = server.attempt_of(1).await;
        estimate(&work, 4).await;
        wait_for_midnight(&world).await;
        spend(&work, figure).await;
        world.settle().await;
        assert!(is_running(&work), "{figure} of the agent's own");
        spend(&work, more).await;
        if is_spent {
            work.stopped().await;
        }
        world.settle().await;
        assert_eq!(is_running(&work), !is_spent, "{figure} and {more}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_budget_that_is_spent_stops_those_that_share_it() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| {
        rules.day = Some(MicroUsd(8 * DOLLAR));
        rules.pool = Some(MicroUsd(10 * DOLLAR));
        rules.projects = [("/one", 3), ("/two", 20)]
            .map(|(name, limit)| (name.to_owned(), MicroUsd(limit * DOLLAR)))
            .into();
    });
    let mut server = world.pool(&rules);
    world.add(in_project(1, "/one")).await;
    let mut one = server.attempt_of(1).await;
    world.add(in_project(2, "/two")).await;
    let mut two = server.attempt_of(2).await;
    spend(&two, 4).await;
    spend(&one, 3).await;
    one.stopped().await;
    one.finish(ended(End::Interrupted)).await;
    world.settle().await;
    assert!(is_running(&two), "7 of 8 dollars are spent today");
    spend(&two, 1).await;
    two.stopped().await;
    two.finish(ended(End::Interrupted)).await;
    wait_for_midnight(&world).await;
    let mut again = server.attempt_of(1).await;
    world.settle().await;
    assert!(server.is_idle(), "what is left of the pool's budget is reserved by the first");
    spend(&again, 2).await;
    // Ten dollars in all, and two on this day.
    again.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_lowered_below_what_is_spent_stops_agents_and_one_that_is_raised_lets_them_go_on() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.day = Some(MicroUsd(5 * DOLLAR)));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let mut work = server.attempt_of(1).await;
    spend(&work, 3).await;
    rules.set(|rules| rules.day = Some(MicroUsd(2 * DOLLAR)));
    world.write();
    work.stopped().await;
    work.finish(ended(End::Interrupted)).await;
    world.settle().await;
    for (limit, starts) in [(3, false), (4, true)] {
        rules.set(|rules| rules.day = Some(MicroUsd(limit * DOLLAR)));
        world.write();
        world.settle().await;
        assert_eq!(server.is_idle(), !starts, "{limit}");
    }
    server.attempt_of(1).await;
}

/// A goal with a limit reserves what is left of it, also of those that start in the same look.
#[tokio::test(start_paused = true)]
async fn goals_that_could_spend_more_than_is_left_do_not_start_together() {
    let limited = |number: u32, dollars: u64| {
        let budget = Budget { usd: Some(MicroUsd(dollars * DOLLAR)), ..goal(number).budget };
        Goal { budget, ..goal(number) }
    };
    let world = World::new();
    let rules = TestRules::capped(0);
    rules.set(|rules| rules.day = Some(MicroUsd(10 * DOLLAR)));
    let mut server = world.pool(&rules);
    for number in 1..=4 {
        world.add(limited(number, 4)).await;
    }
    world.settle().await;
    rules.set(|rules| rules.caps.pool = 8);
    world.write();
    let [one, _two] = [server.attempt_of(1).await, server.attempt_of(2).await];
    world.settle().await;
    assert!(server.is_idle(), "8 of 10 dollars are reserved");
    spend(&one, 1).await;
    world.settle().await;
    assert!(server.is_idle(), "1 is spent and 7 are reserved");
    server.complete(one).await;
    server.attempt_of(3).await;
    world.settle().await;
    assert!(server.is_idle(), "1 is spent and 8 are reserved");
}

#[tokio::test(start_paused = true)]
async fn agents_whose_cost_is_unknown_are_not_stopped_and_reserve_nothing() {
    let world = World::new();
    let rules = TestRules::capped(8);
    rules.set(|rules| rules.day = Some(MicroUsd(DOLLAR)));
    let mut server = world.pool(&rules);
    let silent = |number| Goal { agents: vec![AgentName::new("silent")], ..goal(number) };
    let mut works = Vec::new();
    for number in 1..=3 {
        world.add(silent(number)).await;
        works.push(server.attempt_of(number).await);
        report(&works[0], Usage { input: Tokens(1_000_000), ..Usage::default() }).await;
    }
    world.add(goal(4)).await;
    let mut paid = server.attempt_of(4).await;
    assert!(works.iter().all(is_running));
    spend(&paid, 1).await;
    paid.stopped().await;
    for work in &mut works {
        work.stopped().await;
    }
}

/// Checks cost nothing, so they are not stopped.
#[tokio::test(start_paused = true)]
async fn a_goal_that_is_checked_while_a_budget_is_used_up_waits_for_money_after_a_red_verdict() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.day = Some(MicroUsd(DOLLAR)));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    work.finish(ended(End::Completed)).await;
    let checks = server.checks().await;
    world.add(goal(2)).await;
    let mut other = server.attempt_of(2).await;
    spend(&other, 1).await;
    other.stopped().await;
    other.finish(ended(End::Interrupted)).await;
    world.settle().await;
    checks.finish(verdict("tree", false)).await;
    let mut again = server.attempt().await;
    again.stopped().await;
    again.finish(ended(End::Interrupted)).await;
    world.settle().await;
    for number in [1, 2] {
        assert_eq!(world.record(goal(number).id).await.state.phase, Phase::Queued);
    }
}
