use crossterm::event::{KeyCode, KeyModifiers};
use serde_json::{Value, json};

use super::*;

mod answering;
mod changes;

pub(crate) const NOW: &str = "2026-03-01T08:00:00Z";

pub(crate) fn at(seconds: i64) -> Timestamp {
    let now: Timestamp = NOW.parse().expect("a time");
    now.saturating_add(jiff::SignedDuration::from_secs(seconds)).expect("a time")
}

pub(crate) fn id(number: u32) -> String {
    format!("01932f6e-7c00-7abc-8def-0000{number:08x}")
}

pub(crate) fn line(number: u32, phase: &str, title: &str, more: &Value) -> Value {
    let mut line = json!({
        "id": id(number), "title": title, "prompt": title, "repository": "/projects/greeter", "phase": phase, "reason": null,
        "until": null, "agent": "claude", "merged": null, "attempts": 1, "created_at": at(-i64::from(number)),
        "updated_at": at(-60 - i64::from(number)), "hold": null,
        "usage": {"input": 1, "output": 1, "cache_read": null, "cache_write": null, "cost_usd": 0.42, "estimated": false, "partial": false},
    });
    for (key, value) in more.as_object().expect("an object") {
        line[key] = value.clone();
    }
    line
}

/// All about the same goal.
pub(crate) fn report(number: u32, phase: &str, title: &str, more: &Value) -> GoalReport {
    let mut report = line(number, phase, title, &json!({}));
    let extra = json!({
        "question": null, "origin": {"channel": "cli", "thread": null, "by": null}, "metadata": {}, "labels": [], "workspace": null,
        "branch": null, "base": "0", "candidate": null, "changed": null, "baseline": null, "checks_hash": "", "checks_replaced_at": null,
        "continues": null, "continued_by": null, "entered_at": null, "protect": [], "unprotect": [], "attempts": [],
        "trust": {"level": 1, "sandbox": null, "in_place": false, "confirmed": null},
        "budget": {"usd": {"limit": 5.0, "left": 4.58}, "attempts": {"limit": 10, "left": 9}}, "updated_at": at(-1),
    });
    for (key, value) in extra.as_object().into_iter().chain(more.as_object()).flatten() {
        report[key] = value.clone();
    }
    serde_json::from_value(report).expect("a report")
}

pub(crate) fn question(number: u32, kind: &str, text: &str, more: &Value) -> QuestionLine {
    let mut line = json!({
        "goal": id(number), "title": "Make the greeting polite", "id": 1, "attempt": 1, "kind": kind, "question": text,
        "options": [], "always": null, "default": null, "asked_at": at(-90), "deadline": null, "parts": [],
    });
    for (key, value) in more.as_object().expect("an object") {
        line[key] = value.clone();
    }
    serde_json::from_value(line).expect("a question")
}

pub(crate) fn choice(number: u32) -> QuestionLine {
    let part = json!({"question": "Which colour?", "many": false,
        "options": [{"label": "red", "description": ""}, {"label": "blue", "description": "as the sea"}]});
    question(number, "choice", "Which colour?", &json!({"options": ["red", "blue"], "parts": [part]}))
}

pub(crate) fn permission(number: u32) -> QuestionLine {
    let more = json!({"options": ["yes", "no", "always"], "always": "Bash(make)", "deadline": at(600)});
    question(number, "permission", "Bash: make\nrm -rf build", &more)
}

/// A dashboard that has read this.
pub(crate) fn model(goals: &[Value], questions: Vec<QuestionLine>) -> Model {
    let mut model = Model::new("n".to_owned());
    model.rows_shown = 20;
    let earlier = at(-5);
    model.take(Input::Pool(FeedNews::Opened), earlier);
    let goals: Vec<towline_api::GoalLine> =
        goals.iter().map(|goal| serde_json::from_value(goal.clone()).expect("a goal")).collect();
    for (list, goals) in [(List::Active, goals), (List::Failed, Vec::new()), (List::Ended, Vec::new())] {
        model.take(Input::Reply(Reply::Goals(list, Ok(GoalPage { goals, cursor: None }))), earlier);
    }
    model.take(Input::Reply(Reply::Questions(Ok(questions))), earlier);
    let queue = json!({"server": null, "running": [], "waiting": [], "idle": [], "more": false});
    let queue = serde_json::from_value(queue).expect("a queue");
    model.take(Input::Reply(Reply::Queue(Ok(Box::new(queue)))), earlier);
    model.requests();
    model
}

pub(crate) fn press(model: &mut Model, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            key => KeyCode::Char(key),
        };
        model.take(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), at(0));
    }
}

/// An entry of a goal's log, as the stream has it.
pub(crate) fn logged(number: u32, seq: u64, event: &Value) -> String {
    json!({"goal": id(number), "seq": seq, "at": at(-30), "attempt": 1, "source": "agent", "parent": null, "raw": null, "event": event})
        .to_string()
}

fn one(phase: &str) -> Model {
    model(&[line(1, phase, "Make the greeting polite", &json!({}))], Vec::new())
}

/// What was sent: the act and its key.
pub(crate) fn acts(model: &mut Model) -> Vec<(Act, String)> {
    let acts = model.requests().into_iter().filter_map(|request| match request {
        Request::Act { act, key, .. } => Some((act, key)),
        _ => None,
    });
    acts.collect()
}

fn lost() -> Failure {
    Failure::Lost("the server does not answer".to_owned())
}

#[test]
fn each_key_asks_for_what_fits_the_goal_and_nothing_else() {
    for (phase, keys, wanted) in [
        ("running", "p", vec![Act::Pause]),
        ("paused", "r", vec![Act::Resume]),
        ("failed", "R", vec![Act::Retry { budget: BTreeMap::new() }]),
        ("running", "c", vec![]),
        ("running", "cn", vec![]),
        ("running", "cx", vec![]),
        ("running", "cy", vec![Act::Cancel]),
        ("running", "tgo on\n", vec![Act::Tell("go on".to_owned())]),
        ("running", "t\n", vec![]),
        ("done", "m", vec![Act::PlanMerge(Proof::Checked)]),
        ("unproven", "m", vec![Act::PlanMerge(Proof::Unproven)]),
        // Nothing is merged before one has seen what it does.
        ("done", "my", vec![Act::PlanMerge(Proof::Checked)]),
        ("done", "p", vec![]),
        ("running", "rRm", vec![]),
    ] {
        let mut model = one(phase);
        press(&mut model, keys);
        let sent: Vec<Act> = acts(&mut model).into_iter().map(|(act, _)| act).collect();
        assert_eq!(sent, wanted, "{phase} {keys:?}");
    }
}

#[test]
fn an_answer_is_an_option_or_words_and_each_part_is_asked_for() {
    let two = json!({"parts": [{"question": "a?", "options": [], "many": false}, {"question": "b?", "options": [], "many": false}]});
    for (asked, keys, wanted) in [
        (choice(1), "a2\n", Some("2")),
        (choice(1), "anone of them\n", Some("none of them")),
        (permission(1), "ay\n", Some("yes")),
        (permission(1), "aA\n", Some("always")),
        (permission(1), "ano: use make clean\n", Some("no: use make clean")),
        (question(1, "choice", "a?", &two), "aone\n", None),
        (question(1, "choice", "a?", &two), "aone\n2\n", Some("one\n2")),
    ] {
        let mut model = model(&[line(1, "blocked", "x", &json!({}))], vec![asked]);
        press(&mut model, &keys[..1]);
        model.see(Some(Rows { top: 0, shown: 3, all: 3 }), 80);
        press(&mut model, &keys[1..]);
        let sent = acts(&mut model).pop().map(|(act, _)| act);
        let wanted = wanted.map(|text| Act::Answer { question: 1, text: text.to_owned() });
        assert_eq!(sent, wanted, "{keys:?}");
    }
}

#[test]
fn typed_text_survives_escape_a_lost_connection_and_a_refusal() {
    let mut model = one("running");
    press(&mut model, "tplease\u{1b}");
    press(&mut model, "t wait\n");
    let (act, key) = acts(&mut model).pop().expect("sent");
    assert_eq!(act, Act::Tell("please wait".to_owned()));
    model.take(Input::Pool(FeedNews::Lost("gone".to_owned())), at(0));
    model.take(Input::Reply(Reply::Acted(id(1), act.clone(), key.clone(), Err(lost()))), at(0));
    // The server may have it, so the same key makes it count once.
    press(&mut model, "t\n");
    assert_eq!(acts(&mut model), [(act.clone(), key.clone())]);
    let refused = Failure::Refused("the goal is settled".to_owned());
    model.take(Input::Reply(Reply::Acted(id(1), act.clone(), key.clone(), Err(refused))), at(0));
    press(&mut model, "t\n");
    let again = acts(&mut model).pop().expect("sent");
    assert_eq!((&again.0, again.1 != key), (&act, true), "another request has another key");
    let reply = Box::new(report(1, "running", "x", &json!({})));
    model.take(Input::Reply(Reply::Acted(id(1), act, again.1, Ok(reply))), at(0));
    press(&mut model, "t");
    assert!(matches!(&model.mode, Mode::Typing(_, line) if line.text().is_empty()), "{:?}", model.mode);
}

#[test]
fn what_needs_a_person_counts_until_it_is_answered_or_looked_at() {
    let goals = [
        line(1, "blocked", "asks", &json!({})),
        line(2, "failed", "failed lately", &json!({})),
        line(3, "failed", "failed long ago", &json!({"updated_at": at(-200_000)})),
        line(4, "escalated", "stuck", &json!({"updated_at": at(-200_000)})),
        line(5, "running", "runs", &json!({})),
    ];
    let mut model = model(&goals, vec![choice(1)]);
    assert_eq!(model.needs(at(0)), 3);
    let heads = |model: &Model| -> Vec<(&'static str, usize)> {
        let heads = model.home(at(0)).into_iter().filter_map(|line| match line {
            HomeLine::Head(title, count, _) => Some((title, count)),
            _ => None,
        });
        heads.collect()
    };
    assert_eq!(heads(&model), [("Needs you", 3), ("Running", 1), ("Ended", 1)]);
    model.open_goal(id(2));
    press(&mut model, "\u{1b}");
    assert_eq!(
        (model.needs(at(0)), heads(&model)),
        (2, vec![("Needs you", 2), ("Running", 1), ("Ended", 2)])
    );
    model.open_goal(id(4));
    press(&mut model, "\u{1b}a1\n");
    let (act, key) = acts(&mut model).pop().expect("sent");
    let reply = Box::new(report(1, "running", "asks", &json!({})));
    model.take(Input::Reply(Reply::Acted(id(1), act, key, Ok(reply))), at(0));
    assert_eq!((model.needs(at(0)), heads(&model)[0]), (0, ("Needs you", 1)));
}

#[test]
fn events_make_stale_what_they_change_and_nothing_is_read_twice_at_once() {
    let mut model = one("running");
    let changed = logged(1, 9, &json!({"kind": "phase_changed", "phase": {"phase": "done"}}));
    for _ in 0..3 {
        model.take(Input::Pool(FeedNews::Logged(changed.clone())), at(0));
    }
    assert_eq!(model.requests(), [], "events that follow each other are collected");
    let due = model.due(at(0)).expect("a time");
    model.take(Input::Due, due);
    // What the first reading has not returned is not asked for again.
    assert_eq!(model.requests(), [Request::Questions, Request::Queue, Request::Goal(id(1))]);
    model.take(Input::Pool(FeedNews::Logged(changed)), due);
    model.take(Input::Due, at(60));
    assert_eq!(model.requests(), []);
    let done = report(1, "done", "Make the greeting polite", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(1), Ok(Box::new((done, 9))))), at(60));
    assert_eq!(model.rows[&id(1)].phase, "done");
    model.take(Input::Due, at(61));
    assert_eq!(model.requests(), [Request::Goal(id(1))]);
    assert_eq!(model.due(at(61)), None, "nothing is polled");
}

#[test]
fn a_goal_that_is_opened_is_followed_from_near_its_end() {
    let mut model = one("running");
    press(&mut model, "\n");
    assert_eq!(model.requests(), [Request::Goal(id(1))]);
    let read = report(1, "running", "x", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(1), Ok(Box::new((read, 1_000))))), at(0));
    assert_eq!(model.requests(), [Request::Follow(id(1), 1_000 - PAGE)]);
    press(&mut model, "q");
    assert_eq!(model.requests(), [Request::Unfollow]);
    press(&mut model, "q");
    assert_eq!(model.requests(), [Request::Leave]);
}

#[test]
fn lists_are_read_on_when_one_comes_near_their_end() {
    let goals: Vec<Value> = (1..=60).map(|number| line(number, "done", "x", &json!({}))).collect();
    let mut model = model(&goals, Vec::new());
    let page = GoalPage { goals: Vec::new(), cursor: Some("c".to_owned()) };
    model.take(Input::Reply(Reply::Goals(List::Ended, Ok(page))), at(0));
    press(&mut model, "j");
    assert_eq!(model.requests(), []);
    press(&mut model, "GGG");
    assert_eq!(model.requests(), [Request::Goals(List::Ended, Some("c".to_owned()))], "one page at a time");
}

#[test]
fn the_chosen_goal_stays_chosen_and_its_neighbour_follows_when_it_goes() {
    let goals: Vec<Value> = (1..=3).map(|number| line(number, "running", "x", &json!({}))).collect();
    let mut model = model(&goals, Vec::new());
    assert_eq!(model.selected, Some(id(3)), "the oldest is the first");
    press(&mut model, "j");
    assert_eq!(model.selected, Some(id(2)));
    let other = report(3, "done", "x", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(3), Ok(Box::new((other, 1))))), at(0));
    assert_eq!(model.selected, Some(id(2)));
    let gone = Failure::Missing("no goal has this id".to_owned());
    model.take(Input::Reply(Reply::Goal(id(2), Err(gone))), at(0));
    assert_eq!(model.selected, Some(id(1)));
    press(&mut model, "/nothing has this");
    assert_eq!(model.home(at(0)).len(), 0);
    press(&mut model, "\u{1b}");
    assert_eq!(model.home(at(0)).len(), 4);
}

#[test]
fn a_countdown_wakes_the_dashboard_and_nothing_else_does() {
    assert_eq!(one("running").due(at(0)), None);
    let limited = line(1, "limited", "x", &json!({"until": at(90)}));
    assert_eq!(model(&[limited], Vec::new()).due(at(0)), Some(at(1)));
    let asks = model(&[line(1, "blocked", "x", &json!({}))], vec![permission(1)]);
    assert_eq!(asks.due(at(0)), Some(at(1)));
}

#[test]
fn the_chosen_goal_stays_chosen_when_it_asks_and_when_it_has_its_answer() {
    let goals: Vec<Value> = (1..=3).map(|number| line(number, "running", "x", &json!({}))).collect();
    let mut model = model(&goals, Vec::new());
    press(&mut model, "j");
    assert_eq!(model.goal_at_hand(at(0)), Some(&*id(2)));
    let blocked = report(2, "blocked", "x", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(2), Ok(Box::new((blocked, 1))))), at(0));
    model.take(Input::Reply(Reply::Questions(Ok(vec![choice(3), choice(2)]))), at(0));
    assert_eq!(model.goal_at_hand(at(0)), Some(&*id(2)));
    model.take(Input::Reply(Reply::Questions(Ok(vec![choice(3)]))), at(0));
    assert_eq!(model.goal_at_hand(at(0)), Some(&*id(2)));
}

#[test]
fn all_goals_that_have_not_ended_are_read_before_any_number_is_shown() {
    let mut model = Model::new("n".to_owned());
    model.take(Input::Pool(FeedNews::Opened), at(0));
    model.requests();
    let goals =
        |number, phase| vec![serde_json::from_value(line(number, phase, "x", &json!({}))).expect("a goal")];
    let page = GoalPage { goals: goals(1, "queued"), cursor: Some("c".to_owned()) };
    model.take(Input::Reply(Reply::Questions(Ok(Vec::new()))), at(0));
    for list in [List::Failed, List::Ended] {
        model.take(Input::Reply(Reply::Goals(list, Ok(GoalPage { goals: Vec::new(), cursor: None }))), at(0));
    }
    model.take(Input::Reply(Reply::Goals(List::Active, Ok(page))), at(0));
    assert_eq!(model.requests(), [Request::Goals(List::Active, Some("c".to_owned()))]);
    assert!(!model.is_loaded, "the rest may have a goal that needs a person");
    let page = GoalPage { goals: goals(2, "escalated"), cursor: None };
    model.take(Input::Reply(Reply::Goals(List::Active, Ok(page))), at(0));
    assert_eq!((model.is_loaded, model.needs(at(0))), (true, 1));
}

#[test]
fn what_could_not_be_read_stays_and_is_read_again_later() {
    let mut model = model(&[line(1, "escalated", "x", &json!({}))], Vec::new());
    let busy = || Failure::Refused("the server replied with 503".to_owned());
    model.take(Input::Reply(Reply::Goal(id(1), Err(busy()))), at(0));
    model.take(Input::Reply(Reply::Questions(Err(busy()))), at(0));
    model.take(Input::Reply(Reply::Goals(List::Active, Err(busy()))), at(0));
    assert_eq!((model.requests(), model.needs(at(0))), (Vec::new(), 1));
    let due = model.due(at(1)).filter(|due| *due > at(1)).expect("not at once");
    model.take(Input::Due, due);
    let wanted = [Request::Goals(List::Active, None), Request::Questions, Request::Goal(id(1))];
    assert_eq!(model.requests(), wanted);
    model
        .take(Input::Reply(Reply::Goal(id(1), Err(Failure::Missing("no goal has this id".to_owned())))), due);
    assert_eq!(model.needs(due), 0, "a goal that was removed is gone from the list");
}

#[test]
fn nothing_is_known_to_need_nobody_before_the_questions_are_read() {
    let mut model = Model::new("n".to_owned());
    model.take(Input::Pool(FeedNews::Opened), at(0));
    for list in [List::Active, List::Failed, List::Ended] {
        model.take(Input::Reply(Reply::Goals(list, Ok(GoalPage { goals: Vec::new(), cursor: None }))), at(0));
    }
    model.take(Input::Reply(Reply::Questions(Err(Failure::Refused("503".to_owned())))), at(0));
    assert!(!model.is_loaded);
    model.take(Input::Reply(Reply::Questions(Ok(Vec::new()))), at(0));
    assert!(model.is_loaded);
}

#[test]
fn a_goal_that_fails_while_it_is_open_was_seen() {
    let mut model = one("running");
    model.open_goal(id(1));
    let failed = report(1, "failed", "x", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(1), Ok(Box::new((failed, 9))))), at(0));
    assert_eq!(model.needs(at(0)), 0);
    press(&mut model, "\u{1b}");
    assert_eq!(model.needs(at(0)), 0);
    // With `towline watch ID`, the goal is open before anything was read.
    let mut model = Model::new("n".to_owned());
    model.open_goal(id(1));
    let failed = report(1, "failed", "x", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(1), Ok(Box::new((failed, 9))))), at(0));
    assert_eq!((model.rows.len(), model.needs(at(0))), (1, 0));
}

#[test]
fn all_goals_that_were_read_stay_and_so_does_the_open_one() {
    let goals: Vec<Value> = (1..=2_500).map(|number| line(number, "done", "x", &json!({}))).collect();
    let mut model = model(&goals, Vec::new());
    model.open_goal(id(2_500));
    let page = GoalPage { goals: Vec::new(), cursor: None };
    model.take(Input::Reply(Reply::Goals(List::Ended, Ok(page))), at(0));
    assert_eq!(model.rows.len(), 2_500);
}

#[test]
fn an_entry_of_a_log_does_not_look_for_the_chosen_goal_in_the_list() {
    let mut model = one("running");
    // Only a look at the list finds that this one is not there.
    model.selected = Some("gone".to_owned());
    let entry = logged(1, 9, &json!({"kind": "notice", "text": "x"}));
    model.take(Input::Pool(FeedNews::Logged(entry.clone())), at(0));
    model.take(Input::Goal(id(1), FeedNews::Logged(entry)), at(0));
    assert_eq!(model.selected.as_deref(), Some("gone"));
    model.take(Input::Due, at(0));
    assert_eq!(model.selected, Some(id(1)));
}

#[test]
fn a_merge_takes_the_work_of_the_plan_into_the_branch_of_the_plan() {
    let mut model = one("done");
    press(&mut model, "m");
    let plan = json!({"id": id(1), "into": "main", "way": "fast_forward", "before": "0", "commit": "1", "candidate": "1",
        "files": 2, "proven": true, "verdict": null, "dry_run": true});
    let plan = serde_json::from_value(plan).expect("a report");
    let (act, _) = acts(&mut model).pop().expect("planned");
    model.take(Input::Reply(Reply::Merged(id(1), act, Ok(Box::new(plan)))), at(0));
    press(&mut model, "y");
    let merges: Vec<Act> = acts(&mut model).into_iter().map(|(act, _)| act).collect();
    let (into, candidate) = ("main".to_owned(), "1".to_owned());
    assert_eq!(merges, [Act::Merge { proof: Proof::Checked, into, candidate }]);
}

#[test]
fn a_text_that_failed_comes_before_what_was_typed_since() {
    for is_typing in [false, true] {
        let mut model = one("running");
        press(&mut model, "tfirst\n");
        let (act, key) = acts(&mut model).pop().expect("sent");
        press(&mut model, "tsecond");
        if !is_typing {
            press(&mut model, "\u{1b}");
        }
        // A reply that comes twice counts once.
        for _ in 0..2 {
            model.take(Input::Reply(Reply::Acted(id(1), act.clone(), key.clone(), Err(lost()))), at(0));
        }
        if !is_typing {
            press(&mut model, "t");
        }
        press(&mut model, "!");
        let Mode::Typing(_, line) = &model.mode else { panic!("{:?}", model.mode) };
        assert_eq!(line.text(), "first\nsecond!", "{is_typing}");
    }
}

#[test]
fn the_end_of_a_log_is_read_until_nothing_is_missing() {
    let entry = |seq| logged(1, seq, &json!({"kind": "notice", "text": "x"}));
    let events = |seqs: std::ops::RangeInclusive<u64>| -> EventPage {
        let events: Vec<Value> =
            seqs.map(|seq| serde_json::from_str(&entry(seq)).expect("an entry")).collect();
        serde_json::from_value(json!({"events": events, "cursor": null})).expect("a page")
    };
    let mut model = one("running");
    model.open_goal(id(1));
    let read = report(1, "running", "x", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(1), Ok(Box::new((read, 1_000))))), at(0));
    let logged = |seq| Input::Goal(id(1), FeedNews::Logged(entry(seq)));
    (701..=5_000).for_each(|seq| model.take(logged(seq), at(0)));
    model.requests();
    press(&mut model, "g");
    let [Request::Events(_, part)] = model.requests()[..] else { panic!("nothing older is read") };
    let Part::Older { after, limit } = part else { panic!("{part:?}") };
    model.take(Input::Reply(Reply::Events(id(1), part, Ok(events(after + 1..=after + limit)))), at(0));
    press(&mut model, "G");
    let part = Part::Newer { after: 5_000 - PAGE };
    assert_eq!(model.requests(), [Request::Events(id(1), part)]);
    model.take(logged(5_001), at(0));
    model.take(Input::Reply(Reply::Events(id(1), part, Ok(events(5_001 - PAGE..=5_000)))), at(0));
    let rest = Part::Newer { after: 5_000 };
    assert_eq!(model.requests(), [Request::Events(id(1), rest)]);
    // What could not be read is asked for again with the next entry.
    model.take(Input::Reply(Reply::Events(id(1), rest, Err(lost()))), at(0));
    model.take(logged(5_002), at(0));
    assert_eq!(model.requests(), [Request::Events(id(1), rest)]);
}
