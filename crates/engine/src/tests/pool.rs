//! A server starts the goals of its state directory, whoever added them.

use std::time::Duration;

use tokio::runtime::Handle;
use towline_core::{
    AgentEvent, AgentName, Ask, End, EscalationReason, Event, Goal, PauseReason, Phase, QuestionNo,
    Scheduling,
};
use towline_store::StoreError;

use super::faulty_store::Call;
use super::harness::{World, goal_of};
use super::rules::TestRules;
use super::values::{answered, crashed, ended, goal, question};
use crate::executors::Job;

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn prioritised(number: u32, priority: i32) -> Goal {
    Goal { scheduling: Scheduling { priority, ..Scheduling::default() }, ..goal(number) }
}

/// A question that the agent does not wait for.
fn left_question() -> AgentEvent {
    AgentEvent::Asked(Ask { request: None, ..question() })
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_another_process_adds_is_started_and_released_when_it_is_done() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.settle().await;
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let holder = world.record(goal(1).id).await.lease.map(|lease| lease.worker);
    assert_eq!(holder.as_ref(), Some(server.engine.worker()));
    server.complete(work).await;
    server.publish().await;
    world.settle().await;
    let record = world.record(goal(1).id).await;
    assert_eq!((record.state.phase, record.lease), (Phase::Done, None));
}

#[tokio::test(start_paused = true)]
async fn goals_start_by_rank_and_no_more_of_them_than_the_caps_allow() {
    let world = World::new();
    let rules = TestRules::capped(2);
    rules.set(|rules| rules.caps.agents.insert(AgentName::new("other"), 1).map_or((), drop));
    for (number, priority) in [(1, 0), (2, 5), (3, -1), (4, 1)] {
        world.add(prioritised(number, priority)).await;
    }
    for number in [5, 6] {
        world.add(Goal { agents: vec![AgentName::new("other")], ..prioritised(number, 9) }).await;
    }
    let mut server = world.pool(&rules);
    // The second goal of the other agent has no room, although its rank is higher.
    let first = server.attempt_of(5).await;
    let second = server.attempt_of(2).await;
    world.settle().await;
    assert!(server.is_idle(), "no third one");
    server.complete(first).await;
    let third = server.attempt_of(6).await;
    server.complete(second).await;
    let fourth = server.attempt_of(4).await;
    server.complete(third).await;
    let fifth = server.attempt_of(1).await;
    server.complete(fourth).await;
    let last = server.attempt_of(3).await;
    server.complete(fifth).await;
    server.complete(last).await;
    world.phase(3, "done").await;
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_asks_leaves_its_slot_and_the_recorded_answer_resumes_it() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    world.add(goal(2)).await;
    work.emit(left_question()).await;
    work.finish(ended(End::Completed)).await;
    let other = server.attempt_of(2).await;
    let record = world.record(goal(1).id).await;
    assert!(matches!(record.state.phase, Phase::Blocked { attempt: None, .. }));
    assert_eq!(record.lease, None, "it is released");

    server.engine.record_request(goal(1).id, answered(QuestionNo(1))).await.expect("recorded");
    world.settle().await;
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Queued, "it waits for the slot");
    server.complete(other).await;
    server.attempt_of(1).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waits_for_an_answer_stays_with_its_driver_and_goes_on() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(1)).await;
    let mut work = server.attempt_of(1).await;
    world.add(goal(2)).await;
    work.emit(AgentEvent::Asked(question())).await;
    let _other = server.attempt_of(2).await;
    let driven = server.engine.shared().driven(goal(1).id).expect("it is driven");
    let steerer = crate::handle::Steerer::new(driven.orders);
    steerer.send(answered(QuestionNo(1))).await.expect("a driver").expect("it is asked");
    work.delivery().await;
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Running { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_thousand_waiting_goals_does_nothing_until_one_is_due() {
    const LIMITED: u32 = 20;
    let world = World::new();
    let rules = TestRules::capped(4);
    let mut server = world.pool(&rules);
    let until = world.now() + 2 * DAY;
    for number in 1..=LIMITED {
        // Each has an account of its own, so that none is held for another.
        let accounts = [(AgentName::new("agent"), format!("account {number}"))].into();
        world.add(Goal { accounts, ..goal(number) }).await;
        let work = server.attempt_of(number).await;
        work.finish(ended(End::RateLimited { until: Some(until) })).await;
    }
    rules.set(|rules| rules.caps.pool = 0);
    for number in LIMITED + 1..=1_000 {
        world.add(goal(number)).await;
    }
    world.settle().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 16, "{tasks} tasks");
    assert_eq!(world.record(goal(1).id).await.lease, None);
    let before = world.store.calls();
    tokio::time::sleep(DAY).await;
    assert_eq!(world.store.calls(), before);

    tokio::time::sleep(DAY + Duration::from_secs(60)).await;
    assert_eq!(world.record(goal(LIMITED).id).await.state.phase, Phase::Queued, "it was due");
    rules.set(|rules| rules.caps.pool = 1_000);
    world.write();
    for _ in 0..1_000 {
        server.next().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_failed_sleeps_without_a_lease_and_is_tried_again_in_time() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(1)).await;
    server.attempt_of(1).await.finish(crashed()).await;
    world.settle().await;
    let record = world.record(goal(1).id).await;
    let due = record.state.wakes_at(goal(1).id).expect("a time");
    assert!(matches!(record.state.phase, Phase::Sleeping { .. } | Phase::Running { .. }), "{record:?}");
    server.attempt_of(1).await;
    assert!(world.now() >= due && world.now() < due + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn what_a_shutdown_paused_is_resumed_by_the_next_server_and_what_a_person_paused_is_not() {
    let world = World::new();
    let rules = TestRules::capped(4);
    for (number, reason) in [(1, PauseReason::Shutdown), (2, PauseReason::Operator)] {
        let engine = world.engine_with_slots(0);
        let handle = engine.start(goal(number)).await;
        handle.steerer().send(Event::PauseRequested { reason }).await.expect("an engine").expect("paused");
        handle.result().await.expect("a result");
    }
    let mut server = world.pool(&rules);
    let _work = server.attempt_of(1).await;
    world.settle().await;
    assert!(server.is_idle());
    assert_eq!(world.record(goal(2).id).await.state.phase, Phase::Paused { reason: PauseReason::Operator });
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_stops_no_agent_and_delays_new_goals_only() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let failing = |_: Call| {
        Some(StoreError::Unavailable { path: "towline.db".into(), message: "database is locked".into() })
    };
    world.store.fail(failing);
    world.write();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(*work.control.stop.borrow(), crate::news::StopLevel::Run);
    world.store.heal();
    world.add(goal(2)).await;
    let _second = server.attempt_of(2).await;
    server.complete(work).await;
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_cannot_be_driven_is_tried_less_and_less_often_and_holds_up_no_other() {
    let world = World::new();
    world.add(goal(1)).await;
    let mut fails = 0_u32;
    // The first append of the server claims the first goal.
    world.store.fail(move |call| {
        fails += u32::from(call == Call::Append);
        let error = StoreError::Database { path: "towline.db".into(), message: "disk I/O error".into() };
        (call == Call::Append && fails <= 8).then_some(error)
    });
    let mut server = world.pool(&TestRules::capped(1));
    let begun = world.now();
    let _work = server.attempt_of(1).await;
    let took = world.now().duration_since(begun).as_secs();
    // 1, 2, 4 … 60 seconds.
    assert!((180..200).contains(&took), "{took}");

    world.store.fail(|call| {
        let error = StoreError::Database { path: "towline.db".into(), message: "disk I/O error".into() };
        (call == Call::Append).then_some(error)
    });
    world.add(goal(2)).await;
    world.settle().await;
    let before = world.store.calls();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(world.store.calls() - before < 60 * 60, "{}", world.store.calls() - before);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_gave_up_is_replaced_and_its_attempt_adopted() {
    // On a full disk the pool can still be read.
    for fails_to_read in [true, false] {
        let world = World::new();
        let mut server = world.pool(&TestRules::capped(1));
        world.add(goal(1)).await;
        let work = server.attempt_of(1).await;
        world.store.fail(move |call| {
            let locked = || StoreError::Unavailable { path: "towline.db".into(), message: "locked".into() };
            (fails_to_read || call != Call::Other).then(locked)
        });
        // Longer than a lease.
        tokio::time::sleep(Duration::from_secs(200)).await;
        world.store.heal();
        let adopted = server.next().await;
        assert!(matches!(&adopted.job, Job::Attempt(job) if job.started), "the same attempt");
        assert_eq!(*work.control.stop.borrow(), crate::news::StopLevel::Run);
        server.complete(adopted).await;
        world.phase(1, "done").await;
        assert_eq!(world.record(goal(1).id).await.state.attempts.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_goal_without_space_or_credentials_waits_and_starts_soon_after_they_are_there() {
    for is_disk in [true, false] {
        let world = World::new();
        let rules = TestRules::capped(1);
        rules.set(|rules| {
            rules.free_space = if is_disk { u64::MAX } else { 0 };
            rules.missing_credentials =
                (!is_disk).then(|| (AgentName::new("agent"), "API_KEY".to_owned())).into_iter().collect();
        });
        let mut server = world.pool(&rules);
        world.add(goal(1)).await;
        world.settle().await;
        assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Queued);
        rules.set(|rules| (rules.free_space, rules.missing_credentials) = (0, [].into()));
        server.attempt_of(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_starts_nothing_waits_for_turns_and_leaves_what_runs_to_the_next() {
    let world = World::new();
    let rules = TestRules::capped(4);
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let (engine, begun) = (server.engine, world.now());
    let drained = engine.drain(Duration::from_secs(30));
    world.add(goal(2)).await;
    drained.await;
    drop(engine);
    assert_eq!(world.now().duration_since(begun).as_secs(), 30);
    assert_eq!(*work.control.stop.borrow(), crate::news::StopLevel::Run, "the agent is left alone");
    assert!(work.try_to_report(ended(End::Completed)).await.is_err(), "nobody listens");
    assert_eq!(world.record(goal(2).id).await.state.phase, Phase::Queued);

    let mut next = world.pool(&rules);
    let adopted = next.next().await;
    assert_eq!(goal_of(&adopted), goal(1).id, "what lives comes first");
    assert!(matches!(&adopted.job, Job::Attempt(job) if job.started));
    let _second = next.attempt_of(2).await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_for_a_draining_server_ends_no_agent() {
    let world = World::new();
    let rules = TestRules::capped(4);
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let (engine, begun) = (server.engine, world.now());
    tokio::select! {
        () = engine.drain(Duration::from_secs(600)) => panic!("a turn runs"),
        () = tokio::time::sleep(Duration::from_secs(5)) => {}
    }
    engine.drain(Duration::ZERO).await;
    drop(engine);
    assert_eq!(world.now().duration_since(begun).as_secs(), 5);
    assert_eq!(*work.control.stop.borrow(), crate::news::StopLevel::Run, "the agent is left alone");
    let mut next = world.pool(&rules);
    let adopted = next.next().await;
    assert!(matches!(&adopted.job, Job::Attempt(job) if job.started));
    next.complete(adopted).await;
    world.phase(1, "done").await;
    assert_eq!(world.record(goal(1).id).await.state.attempts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_is_done_when_the_last_turn_is() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(4));
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let begun = world.now();
    let drain = server.engine.drain(Duration::from_secs(600));
    let finish = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        work.finish(ended(End::RateLimited { until: Some(begun + DAY) })).await;
    };
    tokio::join!(drain, finish);
    assert_eq!(world.now().duration_since(begun).as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_goal_whose_prompt_cannot_be_filled_in_is_escalated_and_disturbs_no_other() {
    let world = World::new();
    let rules = TestRules::capped(1);
    rules.set(|rules| rules.inherits_nothing = Some("`{{ colour }}` has no value".into()));
    let scheduling = Scheduling { template: Some([].into()), priority: 1, ..Scheduling::default() };
    world.add(Goal { scheduling, ..goal(1) }).await;
    world.add(goal(2)).await;
    let mut server = world.pool(&rules);
    server.attempt_of(2).await;
    let escalated = EscalationReason::Configuration { error: "`{{ colour }}` has no value".into() };
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Escalated { reason: escalated });
}

#[tokio::test(start_paused = true)]
async fn a_goal_whose_directory_is_taken_lets_others_pass_and_starts_when_the_directory_is_free() {
    let world = World::new();
    let folder = tempfile::tempdir().expect("a folder");
    let in_place = |number: u32| {
        let mut goal = goal(number);
        goal.workspace.mode = towline_core::WorkspaceMode::InFolder;
        goal.workspace.repository = folder.path().display().to_string();
        goal
    };
    let mut server = world.pool(&TestRules::capped(2));
    world.add(in_place(1)).await;
    let attempt = server.attempt_of(1).await;
    world.add(in_place(2)).await;
    world.add(goal(3)).await;
    let _third = server.attempt_of(3).await;
    world.settle().await;
    let before = world.store.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(world.store.calls() - before < 600, "{}", world.store.calls() - before);
    // What it left there is not finished while it waits.
    attempt.finish(ended(End::RateLimited { until: Some(world.now() + DAY / 48) })).await;
    world.settle().await;
    assert!(server.is_idle());
    let again = server.attempt_of(1).await;
    server.complete(again).await;
    server.attempt_of(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_wakes_what_is_due() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(1)).await;
    let until = world.now() + DAY;
    server.attempt_of(1).await.finish(ended(End::RateLimited { until: Some(until) })).await;
    world.settle().await;
    world.set_clock(jiff::SignedDuration::from_hours(25));
    let before = tokio::time::Instant::now();
    server.attempt_of(1).await;
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_recorded_while_its_goal_is_to_start_delays_the_start_for_a_moment_only() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.settle().await;
    // The request claims the goal and cannot be recorded until the pool has looked.
    let hanging = world.store.hang().await;
    world.add(goal(1)).await;
    let message = Event::MessageSent { text: "use tabs".into() };
    let release = async {
        world.settle().await;
        assert!(server.is_idle());
        drop(hanging);
    };
    let (recorded, ()) = tokio::join!(server.engine.record_request(goal(1).id, message), release);
    recorded.expect("recorded");
    let begun = world.now();
    let work = server.attempt_of(1).await;
    assert!(world.now() < begun + Duration::from_secs(1));
    assert!(super::harness::attempt_of(&work).launch.prompt.contains("use tabs"));
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_goal_that_was_released_finds_no_driver_and_can_be_recorded() {
    let world = World::new();
    let mut server = world.pool(&TestRules::capped(1));
    world.add(goal(1)).await;
    let work = server.attempt_of(1).await;
    let driven = server.engine.shared().driven(goal(1).id).expect("it is driven");
    work.finish(ended(End::RateLimited { until: Some(world.now() + DAY) })).await;
    world.settle().await;
    let steerer = crate::handle::Steerer::new(driven.orders);
    assert_eq!(steerer.send(Event::ResumeRequested).await, None);
    server.engine.record_request(goal(1).id, Event::CancelRequested).await.expect("recorded");
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Cancelled);
}
