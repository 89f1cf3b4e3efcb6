//! A server that is killed at any point, and started again, comes to the same end: nothing is lost and nothing happens twice.

use std::time::Duration;

use towline_core::{Caps, Goal, GoalId, MicroUsd, Need, Prerequisite, Scheduling};
use towline_store::{SpendBy, Store};

use super::super::values::{beginning, goal};
use super::life::Life;
use super::machine::{Does, Script, Step};
use super::{Pool, simulate};

fn step(does: Does) -> Step {
    Step { takes: Duration::from_secs(30), cost: MicroUsd(1_000), does }
}

/// Four goals: one passes at the second attempt, one asks, one sleeps and crashes, and one waits for the first.
fn goals() -> Vec<(Goal, Script)> {
    let after = vec![Prerequisite { goal: goal(1).id, need: Need::Done }];
    let scheduling = Scheduling { after, ..Scheduling::default() };
    vec![
        (goal(1), vec![step(Does::Fail), step(Does::Pass)]),
        (goal(2), vec![step(Does::Ask), step(Does::Pass)]),
        (goal(3), vec![step(Does::Sleep(Duration::from_secs(300))), step(Does::Crash), step(Does::Pass)]),
        (
            Goal { scheduling, ..goal(4) },
            vec![step(Does::Limit(beginning() + Duration::from_secs(900))), step(Does::Pass)],
        ),
    ]
}

fn caps() -> Caps {
    Caps { pool: 2, ..Caps::default() }
}

/// What a pool has come to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    phases: Vec<(String, &'static str)>,
    attempts: Vec<usize>,
    /// In millionths of a dollar, by goal.
    costs: Vec<u64>,
    ledger: i64,
}

async fn outcome(pool: &Pool) -> Outcome {
    let records = pool.records().await;
    let spending = pool.store.spending(jiff::Timestamp::MIN, SpendBy::Project).await.expect("sums");
    Outcome {
        phases: pool.phases().await,
        attempts: records.iter().map(|record| record.state.attempts.len()).collect(),
        costs: records.iter().map(|record| record.state.usage().cost.0).collect(),
        ledger: spending.iter().map(|sum| sum.amounts.cost.unwrap_or_default()).sum(),
    }
}

/// What must hold of the machine and of every log, whatever happened.
async fn assert_sound(pool: &Pool, case: usize) {
    for ((goal, attempt), process) in pool.machine.processes().iter() {
        assert_eq!(process.starts, 1, "killed at {case}: attempt {attempt} of {goal} was started twice");
        assert!(process.is_reaped, "killed at {case}: attempt {attempt} of {goal} has no owner");
    }
    let mut last: std::collections::BTreeMap<GoalId, u64> = std::collections::BTreeMap::new();
    for (_, event) in pool.log().await {
        let before = last.insert(event.goal, event.seq.0).unwrap_or(0);
        assert_eq!(
            event.seq.0,
            before + 1,
            "killed at {case}: a gap or a double in the log of {}",
            event.goal
        );
    }
}

/// How many tests share the points, so that they run side by side.
const SHARES: usize = 4;

/// Kills a server at each point of this share, starts another one, and compares the end with that of a server which was not killed.
fn kill_at_each_point_of(share: usize) {
    let (points, expected) = simulate(async {
        let pool = Pool::new(goals(), caps()).await;
        let life = Life::immortal();
        assert!(!pool.serve(&life).await);
        assert_sound(&pool, 0).await;
        (life.points(), outcome(&pool).await)
    });
    assert!(expected.phases.iter().all(|(_, phase)| *phase == "done"), "{expected:?}");
    assert!(points > 200, "only {points} points");
    let mut killed = 0;
    for point in (1..=points).filter(|point| point % SHARES == share) {
        killed += simulate(async {
            let pool = Pool::new(goals(), caps()).await;
            let is_killed = pool.serve(&Life::ending_at(point)).await;
            if is_killed {
                assert!(!pool.serve(&Life::immortal()).await);
            }
            assert_sound(&pool, point).await;
            assert_eq!(outcome(&pool).await, expected, "killed at point {point} of {points}");
            usize::from(is_killed)
        });
    }
    eprintln!("{points} points; killed a server at {killed} of them");
}

#[test]
fn a_server_that_is_killed_at_a_point_of_the_first_share_loses_nothing_and_does_nothing_twice() {
    kill_at_each_point_of(0);
}

#[test]
fn a_server_that_is_killed_at_a_point_of_the_second_share_loses_nothing_and_does_nothing_twice() {
    kill_at_each_point_of(1);
}

#[test]
fn a_server_that_is_killed_at_a_point_of_the_third_share_loses_nothing_and_does_nothing_twice() {
    kill_at_each_point_of(2);
}

#[test]
fn a_server_that_is_killed_at_a_point_of_the_last_share_loses_nothing_and_does_nothing_twice() {
    kill_at_each_point_of(3);
}
