//! A goal from its start to its end.

use towline_core::{Event, Phase};

use super::harness::{World, attempt_of};
use super::values::goal;
use crate::control::{AgentWord, Reply};

#[tokio::test(start_paused = true)]
async fn a_goal_whose_checks_fail_gets_another_attempt_and_is_done_when_they_pass() {
    let (world, mut engine, first, handle) = World::at_work().await;
    engine.judge(first, "t0", false).await;
    let second = engine.attempt().await;
    let record = engine.pass(second, handle).await;
    assert_eq!(record.state.phase, Phase::Done);
    assert_eq!(record.state.attempts.len(), 2);
    assert_eq!(record.lease, None);
    let log = world.log(record.goal.id).await;
    assert_eq!(log.iter().filter(|event| matches!(event, Event::AttemptEnded { .. })).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_report_of_an_agent_that_comes_through_the_engines_process_takes_no_place_of_its_socket() {
    let (world, engine, work, _handle) = World::at_work().await;
    let token = engine.engine.shared().secret.token(attempt_of(&work).launch.id);
    let name = crate::presence::socket_name(engine.engine.worker());
    std::fs::remove_file(world.home.engines().join(name)).expect("a socket");
    let word = AgentWord::Progress { text: "half of it".to_owned(), percent: Some(50) };
    let heard = engine.engine.speak_for_agent(goal(1).id, &token, &word).await.expect("an answer");
    assert_eq!(heard, Some(Reply::Accepted));
    let refused = engine.engine.speak_for_agent(goal(1).id, "another", &word).await.expect("an answer");
    assert!(matches!(refused, Some(Reply::Refused { .. })), "{refused:?}");
    assert_eq!(engine.engine.speak_for_agent(goal(2).id, &token, &word).await.expect("nobody"), None);
}
