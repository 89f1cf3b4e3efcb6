//! Requests for goals that no engine runs.

use jiff::Timestamp;
use towline_app::{Action, Arrival, Error, Hint, Merge, answer, merge, send_message};
use towline_core::{Ask, AttemptNo, PauseReason, Phase, Question, QuestionNo};
use towline_workspace::MergeStyle;

use crate::desk::Desk;

const PAUSED: Phase = Phase::Paused { reason: PauseReason::Operator };

#[tokio::test]
async fn a_message_or_an_answer_to_a_paused_goal_names_the_command_that_resumes_it() {
    let desk = Desk::new("");
    let goal = desk
        .store_goal_as(|state| {
            state.phase = PAUSED;
            state.questions.push(Question {
                n: QuestionNo(1),
                attempt: AttemptNo::FIRST,
                ask: Ask::choice("Which colour?".to_owned(), Vec::new()),
                asked_at: Timestamp::UNIX_EPOCH,
                deadline: None,
                closed: None,
            });
        })
        .await;
    let resume = Action::Resume(Some(goal.id));
    let sent = send_message(&desk.context(), "@", "hi".to_owned()).await.expect("stored");
    assert_eq!(sent, Arrival::Recorded { next: resume.clone() });
    let answered = answer(&desk.context(), "@", None, "blue").await.expect("stored");
    assert_eq!(answered.next, Some(resume));
}

#[tokio::test]
async fn a_paused_goal_is_not_merged_and_the_hint_resumes_it() {
    let desk = Desk::new("");
    let goal = desk.store_goal_as(|state| state.phase = PAUSED).await;
    let request = Merge {
        into: None,
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
