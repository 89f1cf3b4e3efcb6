//! A running agent when the store fails.

use std::time::Duration;

use towline_core::{AgentEvent, End, Event, Illegal, PauseReason, Phase};
use towline_store::StoreError;

use super::faulty_store::Call;
use super::harness::{World, attempt_of, cancel, notices};
use super::values::{ended, goal, notice};
use crate::error::EngineError;
use crate::handle::Handle;
use crate::news::StopLevel;

fn full() -> StoreError {
    StoreError::NoSpace { path: "towline.db".into() }
}

fn locked() -> StoreError {
    StoreError::Unavailable { path: "towline.db".into(), message: "it is locked".into() }
}

fn damaged() -> StoreError {
    StoreError::Database { path: "towline.db".into(), message: "it is damaged".into() }
}

/// The agent's notices, in order.
fn agent_notices(log: &[Event]) -> Vec<&str> {
    let notices = log.iter().filter_map(|event| match event {
        Event::Agent { event: AgentEvent::Notice { text } } => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

#[tokio::test(start_paused = true)]
async fn an_agent_outlives_a_store_that_fails_for_a_while() {
    for (error, seconds) in [(full as fn() -> StoreError, 2), (locked, 12), (full, 35)] {
        let (world, mut engine, handle) = World::with_goal().await;
        let mut trouble = engine.engine.store_trouble();
        let work = engine.first_attempt().await;
        world.store.fail(move |call| matches!(call, Call::Append | Call::Renew).then(error));
        work.send(notice("one")).await;
        trouble.changed().await.expect("an engine");
        let shown = trouble.borrow_and_update().clone().expect("trouble");
        assert_eq!(shown.error, error().to_string());
        assert!(shown.until > world.now());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run);

        world.store.heal();
        work.emit(notice("two")).await;
        assert_eq!(*trouble.borrow(), None);
        let log = world.log(goal(1).id).await;
        assert_eq!(agent_notices(&log), ["one", "two"]);
        let [report] = notices(&log)[..] else { panic!("{log:?}") };
        assert!(report.starts_with("nothing could be stored for ") && report.ends_with(&error().to_string()));
        assert_eq!(engine.pass(work, handle).await.state.phase, Phase::Done);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_agent_outlives_thirty_seconds_without_renewals() {
    let (world, _engine, work, _handle) = World::at_work().await;
    world.store.fail(|call| (call == Call::Renew).then(locked));
    tokio::time::sleep(Duration::from_secs(50)).await;
    world.store.heal();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
    work.emit(notice("still here")).await;
    let lease = world.record(goal(1).id).await.lease.expect("a lease");
    assert!(lease.until > world.now());
}

#[tokio::test(start_paused = true)]
async fn nothing_more_is_taken_in_while_the_store_fails() {
    let (world, _engine, work, _handle) = World::at_work().await;
    world.store.fail(|call| (call == Call::Append).then(full));
    let flood = async {
        for _ in 0..32 {
            work.send(notice("more")).await;
        }
    };
    tokio::pin!(flood);
    tokio::time::timeout(Duration::from_secs(30), &mut flood).await.expect_err("it has to wait");
    world.store.heal();
    flood.await;
    work.emit(notice("last")).await;
    assert_eq!(agent_notices(&world.log(goal(1).id).await).len(), 33);
}

#[tokio::test(start_paused = true)]
async fn when_the_lease_has_expired_the_agent_is_left_to_the_next_engine() {
    for silent in [false, true] {
        let (world, _engine, work, handle) = World::at_work().await;
        let began = world.now();
        world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(full));
        if !silent {
            work.send(notice("unheard")).await;
        }
        let result = handle.result().await;
        assert!(matches!(result, Err(EngineError::LeaseExpired { .. })), "{result:?}");
        let waited = world.now().duration_since(began).as_secs();
        assert!((55..=65).contains(&waited), "{waited} s");
        assert_eq!(*work.control.stop.borrow(), StopLevel::Run, "its agent is not stopped");

        world.store.heal();
        let (mut next, _handle) = world.resumed().await;
        assert_eq!(attempt_of(&next.next().await).launch, attempt_of(&work).launch);
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_was_fenced_while_the_store_failed_records_nothing() {
    let (world, _engine, work, handle) = World::at_work().await;
    world.store.fail(|call| (call == Call::Append).then(full));
    work.send(notice("too late")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.take_lease().await;
    world.store.heal();
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Fenced { .. }))), "{result:?}");
    assert_eq!(agent_notices(&world.log(goal(1).id).await), [""; 0]);
    assert_eq!(*work.control.stop.borrow(), StopLevel::Run);
}

#[tokio::test(start_paused = true)]
async fn an_append_that_took_effect_and_reported_an_error_is_not_repeated() {
    let (world, _engine, work, _handle) = World::at_work().await;
    let mut is_first = true;
    world.store.fail_after(move |call| {
        (call == Call::Append && std::mem::replace(&mut is_first, false)).then(locked)
    });
    work.emit(notice("one")).await;
    work.emit(notice("two")).await;
    assert_eq!(agent_notices(&world.log(goal(1).id).await), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_agent_although_it_cannot_be_recorded() {
    let reason = PauseReason::Operator;
    for (stop, phase) in [
        (Event::CancelRequested, Phase::Cancelled),
        (Event::PauseRequested { reason }, Phase::Paused { reason }),
    ] {
        for is_noticed in [false, true] {
            let (world, mut engine, mut work, handle) = World::at_work().await;
            world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(full));
            if is_noticed {
                work.send(notice("unrecorded")).await;
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            // Whoever asked is answered although nothing is recorded.
            let (accepted, level) = tokio::join!(send(&handle, &stop), async {
                let level = work.stopped().await;
                drop(work);
                level
            });
            assert_eq!((accepted, level), (Some(Ok(())), StopLevel::Kill));
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert!(engine.is_idle());
            world.store.heal();

            let again = engine.next().await;
            assert_eq!(attempt_of(&again).launch.attempt.get(), 1, "its log is read");
            again.finish(ended(End::Crashed { message: String::new() })).await;
            if phase == Phase::Cancelled {
                engine.publish().await;
            }
            let state = handle.result().await.expect("a result").state;
            assert_eq!((state.phase, state.errors_in_row), (phase.clone(), 0));
            assert_eq!(agent_notices(&world.log(goal(1).id).await), [""; 0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_store_that_does_not_answer() {
    let (world, _engine, mut work, handle) = World::at_work().await;
    let lock = world.store.hang().await;
    let asked_at = world.now();
    handle.cancel().await;
    assert_eq!(work.stopped().await, StopLevel::Kill);
    assert!(world.now().duration_since(asked_at).as_secs() <= 2);
    drop(work);
    handle.kill().await;
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::StopUnrecorded { request: "cancel", .. })), "{result:?}");
    assert!(world.now().duration_since(asked_at).as_secs() <= 4);
    drop(lock);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_never_recorded_leaves_a_goal_that_one_command_continues() {
    for insists in [false, true] {
        let (world, engine, mut work, handle) = World::at_work().await;
        world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(locked));
        handle.pause(PauseReason::Shutdown).await;
        work.stopped().await;
        drop(work);
        if insists {
            handle.kill().await;
        }
        let result = handle.result().await;
        assert!(matches!(result, Err(EngineError::StopUnrecorded { request: "pause", .. })), "{result:?}");

        world.store.heal();
        drop(engine);
        let (mut next, handle) = world.resumed().await;
        next.next().await.finish(ended(End::Interrupted)).await;
        let work = next.next().await;
        assert_eq!(attempt_of(&work).launch.attempt.get(), 2);
        let state = world.record(goal(1).id).await.state;
        assert_eq!((state.attempts[0].counts, state.errors_in_row), (false, 0));
        // From now on an interruption is one.
        work.report(Event::AttemptStarted { sandbox: None }).await;
        work.finish(ended(End::Interrupted)).await;
        let phase = handle.result().await.expect("a result").state.phase;
        assert_eq!(phase, Phase::Paused { reason: PauseReason::Shutdown });
    }
}

#[tokio::test(start_paused = true)]
async fn checks_and_setup_are_stopped_although_it_cannot_be_recorded() {
    for checks in [false, true] {
        let (world, mut engine, handle) = World::with_goal().await;
        let mut work = if checks {
            engine.first_attempt().await.finish(ended(End::Completed)).await;
            engine.checks().await
        } else {
            engine.next().await
        };
        world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(full));
        handle.cancel().await;
        assert_eq!(work.stopped().await, StopLevel::Kill);
        drop(work);
        world.store.heal();
        engine.next().await.finish(Event::Stopped).await;
        assert_eq!(engine.end_of(handle).await.state.phase, Phase::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_being_stopped_when_the_store_fails_is_ended() {
    let (world, mut engine, mut work, handle) = World::at_work().await;
    cancel(&handle).await;
    assert_eq!(work.stopped().await, StopLevel::Stop);
    world.store.fail(|call| (call == Call::Append).then(full));
    work.send(notice("last words")).await;
    work.control.stop.wait_for(|level| *level == StopLevel::Kill).await.expect("a driver");
    drop(work);
    world.store.heal();
    engine.next().await.finish(ended(End::Lost)).await;
    assert_eq!(engine.end_of(handle).await.state.phase, Phase::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn of_several_stops_that_could_not_be_recorded_a_cancel_counts() {
    let pause = || Event::PauseRequested { reason: PauseReason::Operator };
    let cancel = || Event::CancelRequested;
    for (requests, cancelled) in
        [([pause(), pause()], false), ([pause(), cancel()], true), ([cancel(), pause()], true)]
    {
        let (world, mut engine, mut work, handle) = World::at_work().await;
        world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(full));
        let [first, second] = &requests;
        let (first, second, ()) = tokio::join!(send(&handle, first), send(&handle, second), async {
            work.stopped().await;
            drop(work);
        });
        assert_eq!([first, second], [Some(Ok(())), Some(Ok(()))]);
        world.store.heal();
        engine.next().await.finish(ended(End::Lost)).await;
        if cancelled {
            engine.publish().await;
        }
        let phase = handle.result().await.expect("a result").state.phase;
        assert_eq!(phase == Phase::Cancelled, cancelled, "{requests:?}: {phase:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_insists_need_not_wait_for_a_goal_that_waits() {
    let (world, mut engine, handle) = World::with_goal().await;
    let until = world.now() + Duration::from_secs(3_600);
    engine.first_attempt().await.finish(ended(End::RateLimited { until: Some(until) })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.store.fail(|call| matches!(call, Call::Append | Call::Renew).then(full));
    let asked_at = world.now();
    handle.pause(PauseReason::Shutdown).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    handle.kill().await;
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(_))), "{result:?}");
    assert!(world.now().duration_since(asked_at).as_secs() <= 6);
    world.store.heal();
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Limited { .. }));
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_has_held_a_goal_for_long_outlives_a_store_that_fails_for_a_while() {
    let (world, mut engine, work, handle) = World::at_work().await;
    engine.pass(work, handle).await;
    for unrenewed in [false, true] {
        let mut held = engine.engine.hold(goal(1).id).await.expect("free");
        if unrenewed {
            held.hold_unrenewed().await.expect("held");
        }
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        world.store.fail(|call| (call == Call::Append).then(full));
        let store = std::sync::Arc::clone(&world.store);
        let healed = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            store.heal();
        };
        let (noted, ()) = tokio::join!(held.note(Event::Notice { text: "merged".into() }), healed);
        noted.expect("recorded");
        held.give_back().await;
    }
}

async fn send(handle: &Handle, event: &Event) -> Option<Result<(), Illegal>> {
    handle.steerer().send(event.clone()).await
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_good_ends_the_agent() {
    let (world, _engine, mut work, handle) = World::at_work().await;
    world.store.fail(|call| (call == Call::Append).then(damaged));
    work.send(notice("more")).await;
    assert_eq!(work.stopped().await, StopLevel::Kill);
    work.finish(ended(End::Lost)).await;
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Database { .. }))), "{result:?}");
    world.store.heal();
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Running { .. }));
}
