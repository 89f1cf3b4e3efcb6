//! What agents ask is answered by a person, or by the default when nobody does.

use std::time::Duration;

use towline_core::{
    AgentEvent, Answerer, Ask, Closed, Delivered, DeliveryState, End, Event, Phase, QuestionNo, Words,
};

use super::harness::World;
use super::values::{answered, chosen, ended, goal, question};

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_agent_that_waits_for_it() {
    let (world, _engine, mut work, handle) = World::at_work().await;
    work.emit(AgentEvent::Asked(question())).await;
    let phase = world.record(goal(1).id).await.state.phase;
    assert!(matches!(phase, Phase::Blocked { question: QuestionNo(1), attempt: Some(_), .. }), "{phase:?}");

    handle.steerer().send(answered(QuestionNo(1))).await.expect("a driver").expect("it is asked");
    let delivery = work.delivery().await;
    let Delivered::Answer { question, request, reply } = delivery.what else { panic!("{delivery:?}") };
    assert_eq!((question, request.as_str(), reply), (QuestionNo(1), "r1", chosen("blue")));
    work.report(Event::AnswerDelivered { question: QuestionNo(1), words: Words::Sent }).await;
    let state = world.record(goal(1).id).await.state;
    assert!(matches!(state.phase, Phase::Running { .. }), "{:?}", state.phase);
    let answer = state.question(QuestionNo(1)).and_then(|question| question.answer());
    assert!(matches!(answer, Some((_, DeliveryState::Delivered(_)))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn at_its_deadline_a_question_is_answered_by_its_default() {
    let (world, _engine, mut work, _handle) = World::at_work().await;
    let patience = Duration::from_secs(300);
    let ask = Ask { default: Some("red".into()), patience: Some(patience), ..question() };
    let asked_at = world.now();
    work.emit(AgentEvent::Asked(ask)).await;
    let Delivered::Answer { reply, .. } = work.delivery().await.what else { panic!("no answer") };
    assert_eq!(reply, chosen("red"));
    let waited = Duration::try_from(world.now().duration_since(asked_at)).expect("later");
    assert!(waited >= patience && waited < patience + Duration::from_secs(1), "{waited:?}");
    let state = world.record(goal(1).id).await.state;
    let closed = state.question(QuestionNo(1)).and_then(|question| question.closed.clone());
    assert!(matches!(closed, Some(Closed::Answered { by: Answerer::Default, .. })), "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_an_agent_that_has_ended_is_in_the_next_prompt() {
    let (_world, mut engine, work, handle) = World::at_work().await;
    work.emit(AgentEvent::Asked(Ask { request: None, ..question() })).await;
    work.finish(ended(End::Completed)).await;
    handle.steerer().send(answered(QuestionNo(1))).await.expect("a driver").expect("it is asked");
    let next = engine.attempt().await;
    let prompt = &super::harness::attempt_of(&next).launch.prompt;
    assert!(prompt.contains("Which colour?") && prompt.contains("blue"), "{prompt}");
}
