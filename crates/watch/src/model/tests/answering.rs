//! Which request an answer is for, and when it counts.

use super::*;

fn after(milliseconds: i64) -> Timestamp {
    at(0).saturating_add(jiff::SignedDuration::from_millis(milliseconds)).expect("a time")
}

fn press_at(model: &mut Model, keys: &str, time: Timestamp) {
    for key in keys.chars() {
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        model.take(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), time);
        // The screen is drawn after each key.
        model.see(Some(Rows { top: 0, shown: 3, all: 3 }), 80);
    }
}

fn answers(model: &mut Model) -> Vec<(String, u32, String)> {
    let requests = model.requests().into_iter().filter_map(|request| match request {
        Request::Act { goal, act: Act::Answer { question, text }, .. } => Some((goal, question, text)),
        _ => None,
    });
    requests.collect()
}

/// The second request of a goal.
fn second(mut line: QuestionLine) -> QuestionLine {
    line.question.id = 2;
    line
}

fn two_goals(questions: Vec<QuestionLine>) -> Model {
    model(&[line(1, "blocked", "x", &json!({})), line(2, "blocked", "x", &json!({}))], questions)
}

#[test]
fn a_request_that_appears_while_a_person_types_does_not_get_that_answer() {
    // Permissions come before choices, since they have a deadline.
    for (appears, wanted) in [
        (vec![permission(2), choice(1)], vec![(id(1), 1, "blue".to_owned())]),
        (vec![second(permission(1)), choice(1)], vec![(id(1), 1, "blue".to_owned())]),
        // The one that was asked has gone.
        (vec![second(choice(1))], vec![]),
        (vec![permission(2)], vec![]),
    ] {
        let mut model = two_goals(vec![choice(1)]);
        press_at(&mut model, "abl", at(0));
        model.take(Input::Reply(Reply::Questions(Ok(appears.clone()))), at(0));
        press_at(&mut model, "ue\n", at(0));
        assert_eq!(answers(&mut model), wanted, "{appears:?}");
    }
}

#[test]
fn keys_do_not_answer_a_request_that_has_just_appeared() {
    for (aimed, then, wanted) in [
        (0, 0, None),
        (600, 699, None),
        // Whoever types on means what was there before; a pause ends it.
        (690, 710, None),
        (699, 1_300, None),
        (699, 1_400, Some("yes")),
    ] {
        let mut model = two_goals(Vec::new());
        model.take(Input::Reply(Reply::Questions(Ok(vec![permission(2)]))), at(0));
        press_at(&mut model, "any", after(aimed));
        press_at(&mut model, "y\n", after(then));
        let wanted: Vec<_> = wanted.into_iter().map(|text| (id(2), 1, text.to_owned())).collect();
        assert_eq!(answers(&mut model), wanted, "{aimed} {then}");
        let warned = model.notice.as_ref().is_some_and(|(_, text)| text.contains("has just appeared"));
        assert_eq!(warned, wanted.is_empty(), "{:?}", model.notice);
    }
    let mut model = two_goals(Vec::new());
    model.take(Input::Reply(Reply::Questions(Ok(vec![permission(2)]))), at(0));
    press_at(&mut model, "ay\n", after(700));
    assert_eq!(answers(&mut model), [(id(2), 1, "yes".to_owned())]);
}

#[test]
fn the_next_request_in_the_place_of_an_answered_one_is_not_answered_by_the_same_keys() {
    let mut model = two_goals(vec![permission(1), permission(2)]);
    press_at(&mut model, "ay\n", at(0));
    let (act, key) = acts(&mut model).pop().expect("sent");
    let reply = Box::new(report(1, "running", "x", &json!({})));
    model.take(Input::Reply(Reply::Acted(id(1), act, key, Ok(reply))), at(0));
    press_at(&mut model, "ay\n", after(100));
    model.take(Input::Paste("yes".to_owned()), after(200));
    press_at(&mut model, "\n", after(300));
    assert_eq!(answers(&mut model), []);
    press_at(&mut model, "y\n", after(1_100));
    assert_eq!(answers(&mut model), [(id(2), 1, "yes".to_owned())]);
}

#[test]
fn a_request_that_the_person_goes_to_can_be_answered_at_once() {
    let mut model = two_goals(vec![permission(1), permission(2)]);
    let first = model.goal_at_hand(at(0)).map(str::to_owned);
    press_at(&mut model, "jay\n", at(0));
    let answered = answers(&mut model);
    assert_eq!(answered.len(), 1);
    assert_ne!(Some(&answered[0].0), first.as_ref());
}
