//! Requests for goals that no engine runs.

use jiff::Timestamp;
use towline_app::{Action, Arrival, Error, Hint, Merge, answer, merge, reopen, send_message};
use towline_core::{Ask, AttemptNo, NextSession, PauseReason, Phase, Question, QuestionNo};
use towline_engine::GoalCommand;
use towline_workspace::MergeStyle;

use crate::desk::Desk;

const PAUSED: Phase = Phase::Paused { reason: PauseReason::Operator };

fn colours(number: u32) -> Question {
    Question {
        n: QuestionNo(number),
        attempt: AttemptNo::FIRST,
        ask: Ask::choice("Which colour?".to_owned(), Vec::new()),
        asked_at: Timestamp::UNIX_EPOCH,
        deadline: None,
        closed: None,
    }
}

#[tokio::test]
async fn a_message_or_an_answer_to_a_paused_goal_names_the_command_that_resumes_it() {
    let desk = Desk::new("");
    let goal = desk
        .store_goal_as(|state| {
            state.phase = PAUSED;
            state.questions.push(colours(1));
        })
        .await;
    let resume = Action::Resume(Some(goal.id));
    let sent = send_message(&desk.context(), "@", "hi".to_owned()).await.expect("stored");
    assert_eq!(sent, Arrival::Recorded { next: resume.clone() });
    let answered = answer(&desk.context(), "@", None, "blue").await.expect("stored");
    assert_eq!(answered.next, Some(resume));
}

#[tokio::test]
async fn a_goal_that_asks_is_not_retried_and_the_hint_answers_it() {
    let desk = Desk::new("");
    let goal = desk
        .store_goal_as(|state| {
            state.phase = Phase::Blocked { question: QuestionNo(2), attempt: None, until: None };
            state.questions.push(colours(2));
        })
        .await;
    let retry = GoalCommand::Retry { budget: Vec::new(), session: NextSession::Resumed, model: None };
    let refused = reopen(&desk.context(), "@", retry, &[]).await.expect_err("it waits for an answer");
    let id = goal.id.short();
    assert_eq!(refused.message(), format!("goal {id} waits for an answer: Which colour?"));
    let wanted = Hint::from([("it continues with one", Action::Answer(goal.id, 2))]);
    assert_eq!(refused.way_out(), Some(wanted));
}

#[tokio::test]
async fn a_paused_goal_is_not_merged_and_the_hint_resumes_it() {
    let desk = Desk::new("");
    let goal = desk.store_goal_as(|state| state.phase = PAUSED).await;
    let request = Merge {
        into: None,
        candidate: None,
        message: None,
        edit: false,
        style: MergeStyle::default(),
        unproven: false,
        verify: true,
        dry_run: false,
    };
    let refused = merge(&desk.context(), "@", &request, std::future::pending(), |_| ()).await.err();
    let Some(Error::Refused { hint: Some(Hint::Actions(actions)), .. }) = refused else {
        panic!("a refusal with a hint")
    };
    assert_eq!(actions[0].1, Action::Resume(Some(goal.id)));
}
