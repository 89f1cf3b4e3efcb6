//! Only so many goals work at the same time.

use std::time::Duration;

use towline_core::{AgentEvent, Budget, End, Event, Goal, Phase};

use super::harness::{PlayedEngine, Work, World};
use super::values::{crashed, ended, goal, goal_with, prepared, question};
use crate::executors::Job;

/// The next preparation, which is that of this goal. Goals that have ended meanwhile are published.
async fn preparation_of(engine: &mut PlayedEngine, number: u32) -> Work {
    loop {
        let work = engine.next().await;
        match &work.job {
            Job::Prepare(of) => {
                assert_eq!(of.goal.id, goal(number).id);
                return work;
            }
            Job::Publish(_) => {}
            _ => panic!("not a preparation"),
        }
    }
}

fn failed() -> Event {
    Event::PrepareFailed { error: "no space".into() }
}

#[tokio::test(start_paused = true)]
async fn a_queued_goal_starts_when_the_one_before_it_has_ended() {
    let world = World::new();
    let mut engine = world.engine_with_slots(1);
    let first = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    let second = engine.start(goal(2)).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(world.record(goal(2).id).await.state.phase, Phase::Queued);
    assert!(engine.is_idle());

    engine.judge(work, "t1", true).await;
    // The end of the first and the start of the second, in whichever order.
    let (mut is_published, mut attempt) = (false, None);
    while !is_published || attempt.is_none() {
        let work = engine.next().await;
        match &work.job {
            Job::Publish(_) => is_published = true,
            Job::Prepare(of) => {
                assert_eq!(of.goal.id, goal(2).id);
                work.finish(prepared()).await;
            }
            _ => attempt = Some(work),
        }
    }
    assert_eq!(first.result().await.expect("a result").state.phase, Phase::Done);
    let record = engine.pass(attempt.expect("the second"), second).await;
    assert_eq!(record.state.phase, Phase::Done);
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_sleeps_leaves_its_slot_to_another_and_waits_for_the_next() {
    let world = World::new();
    let mut engine = world.engine_with_slots(1);
    let _first = engine.start(goal_with(Budget { errors: Some(3), ..Budget::default() })).await;
    engine.first_attempt().await.finish(crashed()).await;
    let phase = world.record(goal(1).id).await.state.phase;
    assert!(matches!(phase, Phase::Sleeping { .. }), "{phase:?}");

    let _second = engine.start(goal(2)).await;
    let work = engine.first_attempt().await;
    // Longer than any pause after an error.
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Queued);
    work.finish(crashed()).await;
    let attempt = engine.attempt().await;
    assert!(matches!(&attempt.job, Job::Attempt(job) if job.goal.id == goal(1).id));
}

#[tokio::test(start_paused = true)]
async fn goals_start_in_the_order_in_which_they_were_queued_however_long_they_wait() {
    let world = World::new();
    let mut engine = world.engine_with_slots(1);
    let _first = engine.start(goal(1)).await;
    let mut work = engine.next().await;
    let mut waiting = Vec::new();
    for number in [4, 2, 3] {
        waiting.push(engine.start(Goal { created_at: world.now(), ..goal(number) }).await);
        // Longer than a lease.
        tokio::time::sleep(Duration::from_secs(100)).await;
    }
    for next in [4, 2, 3] {
        work.finish(failed()).await;
        work = preparation_of(&mut engine, next).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_goal_keeps_its_place_when_its_engine_dies() {
    let world = World::new();
    let engine = world.engine_with_slots(0);
    for number in [2, 1] {
        engine.start(Goal { created_at: world.now(), ..goal(number) }).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    drop(engine);
    let mut engine = world.engine_with_slots(1);
    let _running = engine.start(goal(3)).await;
    let work = engine.next().await;
    let mut waiting = Vec::new();
    for number in [1, 2] {
        waiting.push(engine.resume(goal(number).id).await);
    }
    // Until both are in the queue.
    tokio::time::sleep(Duration::from_secs(1)).await;
    work.finish(failed()).await;
    let work = preparation_of(&mut engine, 2).await;
    work.finish(failed()).await;
    preparation_of(&mut engine, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_alive_is_adopted_without_a_slot_and_new_work_waits_until_there_is_room() {
    let world = World::new();
    let mut engine = world.engine();
    let mut handles = Vec::new();
    for number in [1, 2] {
        handles.push(engine.start(goal(number)).await);
        engine.first_attempt().await;
    }
    for handle in handles {
        handle.crash().await;
    }
    drop(engine);

    let mut engine = world.engine_with_slots(1);
    let mut adopted = Vec::new();
    for number in [1, 2] {
        let _handle = engine.resume(goal(number).id).await;
        adopted.push(engine.next().await);
    }
    let _new = engine.start(goal(3)).await;
    for work in adopted {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.record(goal(3).id).await.state.phase, Phase::Queued);
        // They were queued before it, and would go on first.
        work.finish(ended(End::Declined { message: "no".into() })).await;
    }
    preparation_of(&mut engine, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_waits_for_an_answer_leaves_its_slot_to_another() {
    let world = World::new();
    let mut engine = world.engine_with_slots(1);
    let _first = engine.start(goal(1)).await;
    let work = engine.first_attempt().await;
    work.emit(AgentEvent::Asked(question())).await;
    let _second = engine.start(goal(2)).await;
    assert!(matches!(engine.next().await.job, Job::Prepare(of) if of.goal.id == goal(2).id));
}
