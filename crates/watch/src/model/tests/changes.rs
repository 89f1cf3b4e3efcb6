//! Goals that were removed, texts that cannot be sent, and closed accounts.

use super::*;

#[test]
fn what_is_typed_after_a_refused_message_or_answer_gives_no_orders() {
    for (phase, key) in [("done", "t"), ("running", "a"), ("queued", "a")] {
        let mut model = one(phase);
        press(&mut model, key);
        press(&mut model, "please merge, cancel (cy) and Retry");
        assert_eq!(model.requests(), Vec::new(), "{phase} {key}");
        assert!(matches!(&model.mode, Mode::Refused { .. }), "{:?}", model.mode);
        press(&mut model, "\n");
        assert!(matches!(model.mode, Mode::Browse), "{:?}", model.mode);
    }
}

#[test]
fn a_goal_that_was_removed_goes_from_the_list_and_when_it_is_open() {
    let gone = || Failure::Missing("no goal has this id".to_owned());
    let mut model = model(&[line(1, "done", "x", &json!({}))], vec![choice(1)]);
    model.open_goal(id(1));
    model.requests();
    model.take(Input::Pool(FeedNews::Removed(id(1))), at(0));
    model.take(Input::Due, at(1));
    assert_eq!(model.requests(), [Request::Goal(id(1))], "the server knows");
    model.take(Input::Reply(Reply::Goal(id(1), Err(gone()))), at(1));
    assert!(model.open.is_none() && model.home(at(1)).is_empty());
    assert_eq!(model.requests(), [Request::Unfollow]);
    assert!(model.notice.as_ref().is_some_and(|(_, text)| text == "goal 00000001 was removed"));
    let mut model = one("running");
    press(&mut model, "p");
    let (act, key) = acts(&mut model).pop().expect("sent");
    model.take(Input::Reply(Reply::Acted(id(1), act, key, Err(gone()))), at(0));
    assert!(model.home(at(0)).is_empty());
}

#[test]
fn goals_that_no_list_names_after_a_lost_connection_are_read_again() {
    let goals = [
        line(1, "running", "x", &json!({})),
        line(2, "done", "x", &json!({})),
        line(9, "done", "x", &json!({})),
    ];
    let mut model = model(&goals, Vec::new());
    model.take(Input::Pool(FeedNews::Lost("gone".to_owned())), at(0));
    model.take(Input::Pool(FeedNews::Opened), at(0));
    model.requests();
    let page = |goals: Vec<Value>, cursor: Option<&str>| GoalPage {
        goals: goals.into_iter().map(|goal| serde_json::from_value(goal).expect("a goal")).collect(),
        cursor: cursor.map(str::to_owned),
    };
    for list in [List::Active, List::Failed] {
        model.take(Input::Reply(Reply::Goals(list, Ok(page(Vec::new(), None)))), at(0));
    }
    let ended = page(vec![line(5, "done", "x", &json!({}))], Some("more"));
    model.take(Input::Reply(Reply::Goals(List::Ended, Ok(ended))), at(0));
    model.take(Input::Due, at(1));
    let read: Vec<Request> =
        model.requests().into_iter().filter(|request| matches!(request, Request::Goal(_))).collect();
    assert_eq!(read, [Request::Goal(id(1)), Request::Goal(id(2))], "9 is older than what is listed");
}

#[test]
fn another_state_directory_leaves_nothing_of_the_one_before() {
    let mut model = one("running");
    model.take(Input::Pool(FeedNews::Restarted), at(0));
    assert!(model.home(at(0)).is_empty());
    assert!(model.requests().contains(&Request::Goals(List::Active, None)));
}

#[test]
fn a_closed_account_needs_a_person_until_it_is_open() {
    let account = |state: &str| {
        let account = json!({"name": "anthropic-main", "agent": "claude", "state": state, "until": null, "guessed": false, "updated_at": at(0)});
        Ok(vec![serde_json::from_value(account).expect("an account")])
    };
    let mut model = one("running");
    model.take(Input::Reply(Reply::Accounts(account("closed"))), at(0));
    assert_eq!(model.needs(at(0)), 1);
    assert!(matches!(model.home(at(0))[1], HomeLine::Account(account) if account.name == "anthropic-main"));
    model.take(Input::Reply(Reply::Accounts(account("open"))), at(0));
    assert_eq!(model.needs(at(0)), 0);
}

#[test]
fn a_goal_that_failed_lately_needs_a_person_however_many_goals_are_newer() {
    let goals = |phase: &str, numbers: std::ops::RangeInclusive<u32>| -> Vec<towline_api::GoalLine> {
        let goals = numbers.map(|number| line(number, phase, "x", &json!({})));
        goals.map(|goal| serde_json::from_value(goal).expect("a goal")).collect()
    };
    let page = |goals, cursor: Option<&str>| GoalPage { goals, cursor: cursor.map(str::to_owned) };
    let mut model = Model::new("n".to_owned());
    model.take(Input::Pool(FeedNews::Opened), at(0));
    model.take(Input::Reply(Reply::Questions(Ok(Vec::new()))), at(0));
    model.take(Input::Reply(Reply::Goals(List::Active, Ok(page(Vec::new(), None)))), at(0));
    let newest = page(goals("done", 1..=100), Some("older"));
    model.take(Input::Reply(Reply::Goals(List::Ended, Ok(newest))), at(0));
    assert!(model.requests().contains(&Request::Goals(List::Failed, None)));
    model.take(
        Input::Reply(Reply::Goals(List::Failed, Ok(page(goals("failed", 101..=200), Some("c"))))),
        at(0),
    );
    assert_eq!(model.requests(), [Request::Goals(List::Failed, Some("c".to_owned()))], "read to its end");
    assert!(!model.is_loaded);
    model.take(Input::Reply(Reply::Goals(List::Failed, Ok(page(goals("failed", 201..=210), None)))), at(0));
    assert_eq!((model.is_loaded, model.needs(at(0))), (true, 110));
    assert_eq!(model.needs(at(24 * 60 * 60)), 0, "after a day they are history");
    assert_eq!(model.requests(), [], "goals that ended otherwise are read on demand");
}
