//! A server on a real database, in real time: it notices what others write, and rests when nobody does.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use towline_core::{
    AgentEvent, AgentName, Ask, End, Envelope, Event, GoalState, PoolSeq, QuestionNo, Source,
};
use towline_store::{SqliteStore, Store};

use super::harness::World;
use super::rules::TestRules;
use super::values::{answered, ended, goal, question};

/// How long nothing may happen in a server at rest; several times as long as it takes to notice a write.
const AT_REST: Duration = Duration::from_millis(600);

/// Waits until the server has not written for a while.
async fn rests(world: &World) {
    let log = world.home.root().join("towline.db-wal");
    let written = || std::fs::metadata(&log).and_then(|about| about.modified()).expect("a log");
    let resting = async {
        loop {
            let before = written();
            tokio::time::sleep(AT_REST).await;
            if written() == before {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), resting).await.expect("the server keeps writing");
}

#[tokio::test]
async fn goals_and_answers_of_other_processes_are_noticed_and_nothing_is_written_at_rest() {
    let world = World::new();
    let open = || SqliteStore::open(&world.home.database()).expect("a database");
    let (store, other) = (Arc::new(open()), open());
    let mut server = world.pool_on(Arc::clone(&store) as Arc<dyn Store>, &TestRules::capped(1));
    let mut events = server.engine.pool_events(PoolSeq(0));
    for number in [1, 2] {
        let goal = goal(number);
        let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
        other.create(&goal, &GoalState::new(&goal), created).await.expect("created");
    }
    let work = server.attempt_of(1).await;
    work.emit(AgentEvent::Asked(Ask { request: None, ..question() })).await;
    work.finish(ended(End::Completed)).await;
    let second = server.attempt_of(2).await;
    rests(&world).await;

    // Another process records the answer, and the goal waits for the slot.
    let beside = world.pool_on(Arc::new(other), &TestRules::capped(0));
    beside.engine.record_request(goal(1).id, answered(QuestionNo(1))).await.expect("recorded");
    rests(&world).await;
    assert!(server.is_idle());
    server.complete(second).await;
    let again = server.attempt_of(1).await;
    server.complete(again).await;
    server.publish().await;
    rests(&world).await;

    let all = store.events_since(PoolSeq(0), 10_000).await.expect("all events");
    for expected in all {
        let event = timeout(Duration::from_secs(10), events.next()).await.expect("in time");
        assert_eq!(event.expect("an event"), Some(expected));
    }
}

/// More than the goals that a look shows first and a page behind them.
const LAST: u32 = 2_200;

#[tokio::test]
async fn a_goal_starts_however_many_goals_wait_before_it_for_other_reasons() {
    let world = World::new();
    let store = Arc::new(SqliteStore::open(&world.home.database()).expect("a database"));
    // Each with files of its own, and all of them without a slot.
    let waiting = (1..=LAST).map(|number| {
        let mut goal = goal(number);
        goal.created_at += Duration::from_secs(number.into());
        goal.scheduling.touches = vec![format!("src/{number}/**")];
        if number == LAST {
            goal.agents = vec![AgentName::new("other")];
        }
        let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
        (goal.clone(), GoalState::new(&goal), created)
    });
    store.create_all(&waiting.collect::<Vec<_>>()).await.expect("created");
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.caps.agents.extend([(AgentName::new("agent"), 0)]));
    let mut server = world.pool_on(store, &rules);
    server.attempt_of(LAST).await;
}
