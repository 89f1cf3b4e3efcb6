//! Goals that wait for other goals.

use towline_core::{Budget, Commit, End, Event, Goal, Need, Phase, Prerequisite, Scheduling};
use towline_store::Store;

use super::harness::{World, attempt_of};
use super::rules::TestRules;
use super::values::{ended, goal, retry, verdict};
use crate::executors::Job;

fn after(number: u32, before: u32, need: Need) -> Goal {
    let after = vec![Prerequisite { goal: goal(before).id, need }];
    Goal { scheduling: Scheduling { after, ..Scheduling::default() }, ..goal(number) }
}

#[tokio::test(start_paused = true)]
async fn a_goal_starts_when_its_prerequisite_is_done_with_the_prompt_and_the_base_that_it_inherits() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    let mut heir = after(2, 1, Need::Done);
    (heir.scheduling.template, heir.scheduling.base_is_prerequisite) = (Some([].into()), true);
    world.add(heir).await;
    let work = server.attempt_of(1).await;
    world.settle().await;
    assert!(server.is_idle());
    server.complete(work).await;
    let prepare = loop {
        let work = server.next().await;
        if let Job::Prepare(_) = &work.job {
            break work;
        }
    };
    let Job::Prepare(job) = &prepare.job else { panic!("not a preparation") };
    assert_eq!(job.goal.prompt, "Make the tests pass. After: goal 1.");
    assert_eq!(job.goal.workspace.base, Commit::new("candidate"));
    prepare.finish(super::values::prepared()).await;
    let attempt = server.attempt_of(2).await;
    assert!(attempt_of(&attempt).launch.prompt.contains("After: goal 1."));
}

#[tokio::test(start_paused = true)]
async fn a_failed_prerequisite_holds_its_dependants_and_a_retry_frees_them() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(Goal { budget: Budget { attempts: Some(1), ..Budget::default() }, ..goal(1) }).await;
    world.add(after(2, 1, Need::Done)).await;
    server.attempt_of(1).await.finish(ended(End::Completed)).await;
    server.checks().await.finish(verdict("t1", false)).await;
    server.publish().await;
    world.settle().await;
    assert_eq!(world.record(goal(2).id).await.state.phase, Phase::Queued);

    let budget = vec!["attempts=+1".parse().expect("a change")];
    let again = match retry() {
        Event::RetryRequested { session, model, .. } => Event::RetryRequested { budget, session, model },
        other => other,
    };
    server.engine.record_request(goal(1).id, again).await.expect("recorded");
    let work = server.attempt_of(1).await;
    server.complete(work).await;
    server.attempt_of(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_needs_a_merge_waits_until_the_work_is_merged() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    world.add(after(2, 1, Need::Merged)).await;
    let work = server.attempt_of(1).await;
    server.complete(work).await;
    server.publish().await;
    world.settle().await;
    assert!(server.is_idle());
    let (into, commit) = ("main".to_owned(), Commit::new("merged"));
    let candidate = Commit::new("commit-t1");
    server
        .engine
        .record_request(goal(1).id, Event::Merged { into, commit, candidate })
        .await
        .expect("recorded");
    server.attempt_of(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_goal_whose_prerequisite_was_removed_waits_and_holds_up_no_other() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(0));
    world.add(goal(1)).await;
    world.add(after(2, 1, Need::Done)).await;
    let now = world.now();
    let lease = world.store.claim(goal(1).id, server.engine.worker(), now, now, None).await.expect("claimed");
    world.store.remove(&lease).await.expect("removed");
    let rules = TestRules::capped(1);
    server.engine.drain(std::time::Duration::ZERO).await;
    server = world.pool(&rules);
    world.add(goal(3)).await;
    let work = server.attempt_of(3).await;
    server.complete(work).await;
    server.publish().await;
    world.settle().await;
    let before = world.store.calls();
    tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    assert_eq!(world.store.calls(), before, "nothing is tried");
    assert_eq!(world.record(goal(2).id).await.state.phase, Phase::Queued);
}
