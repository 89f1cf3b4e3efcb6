use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::{Value, json};
use towline_api::GoalPage;

use super::*;
use crate::client::Failure;
use crate::feed::FeedNews;
use crate::model::tests::{at, choice, id, line, logged, model, permission, press, report};
use crate::model::{Input, List, Reply};

mod asking;

const COLOURS: Look = Look { paint: Paint::Colour, letters: Letters::Unicode };
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn screen(model: &mut Model, (columns, rows): (u16, u16), look: Look) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(frame, model, look, at(0))).expect("drawn");
    drawn.buffer.clone()
}

/// The screen as text; what is chosen and coloured is named where it begins.
fn text(buffer: &Buffer, with_colours: bool) -> String {
    let mut lines = Vec::new();
    for row in 0..buffer.area.height {
        let (mut line, mut before) = (String::new(), "");
        let mut skipped = 0;
        for column in 0..buffer.area.width {
            let cell = &buffer[(column, row)];
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            let colour = match cell.fg {
                Color::Red => "<red>",
                Color::Green => "<green>",
                Color::Yellow => "<yellow>",
                _ if cell.modifier.contains(Modifier::BOLD) => "<bold>",
                _ if cell.modifier.contains(Modifier::DIM) => "<dim>",
                _ => "",
            };
            if with_colours && colour != before && cell.symbol() != " " {
                line.push_str(if colour.is_empty() { "<>" } else { colour });
                before = colour;
            }
            line.push_str(cell.symbol());
            skipped = columns(cell.symbol()).saturating_sub(1);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// The same pictures at both sizes.
fn pictures(name: &str, model: &mut Model) {
    for size in SIZES {
        let shown = text(&screen(model, size, COLOURS), false);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown);
    }
}

fn goals() -> Vec<Value> {
    vec![
        line(1, "blocked", "Make the greeting polite", &json!({})),
        line(2, "blocked", "Remove the build folder before each build", &json!({"agent": "codex"})),
        line(
            3,
            "failed",
            "Upgrade the parser and keep its old behaviour for documents of the first version",
            &json!({"reason": "budget: usd"}),
        ),
        line(4, "running", "日本語の挨拶を丁寧にする", &json!({})),
        line(5, "checking", "Sort the names of contributors", &json!({})),
        line(6, "queued", "Translate the manual", &json!({"attempts": 0, "agent": "codex"})),
        line(7, "limited", "Describe the endpoints", &json!({"until": at(842)})),
        line(8, "paused", "Clean up the tests", &json!({"reason": "operator"})),
        line(
            9,
            "done",
            "Fix the failing test",
            &json!({"merged": {"into": "main", "commit": "1", "candidate": "1", "at": at(0)}}),
        ),
        line(10, "done", "Speed up the start", &json!({})),
        line(11, "cancelled", "Rewrite it in another language", &json!({})),
    ]
}

/// A dashboard with goals in all phases.
fn busy() -> Model {
    let mut model = model(&goals(), vec![permission(2), choice(1)]);
    let hold = json!({"reason": "slot", "text": "all 4 slots are taken", "until": null});
    let waiting = json!({"id": id(6), "title": "", "repository": "", "phase": "queued", "agent": "", "account": "", "labels": [],
        "priority": 0, "after": [], "hold": hold});
    let queue = json!({"server": null, "running": [], "waiting": [waiting], "idle": [], "more": false, "problem": null});
    let queue = Box::new(serde_json::from_value(queue).expect("a queue"));
    model.take(Input::Reply(Reply::Queue(Ok(queue))), at(0));
    let cost = json!({"by": "day", "time_zone": "UTC", "since": at(0), "lines": [],
        "total": {"input": 1, "output": 1, "cache_read": null, "cache_write": null, "cost_usd": 12.5, "estimated": true}});
    model.take(Input::Reply(Reply::Today(Ok(serde_json::from_value(cost).expect("a report")))), at(0));
    let tool = json!({"kind": "agent", "event": {"kind": "tool", "id": "1", "tool": "execute", "name": "Bash", "title": "cargo test",
        "status": "running", "input": null, "output": null, "exit_code": null, "paths": []}});
    model.take(Input::Pool(FeedNews::Logged(logged(4, 9, &tool))), at(0));
    model.requests();
    model
}

/// A goal of which the last checks failed, while its agent writes.
fn opened(number: u32, phase: &str) -> Model {
    let mut model = busy();
    model.open_goal(id(number));
    let usage = json!({"input": 11_200, "output": 800, "cache_read": null, "cache_write": null, "cost_usd": 0.42, "estimated": false});
    let attempt = json!({"n": 1, "id": "1", "agent": "claude", "model": "sonnet", "session": null, "resumed": false, "dir": "",
        "started_at": at(-600), "ended_at": null, "turns": 1, "end": null, "detail": null, "exit_code": null, "signal": null,
        "limit_until": null, "text": "", "usage": usage, "decisions": [], "verdict": null, "extras": {}});
    let read = report(
        number,
        phase,
        "Make the greeting polite",
        &json!({"attempts": [attempt], "prompt": "Make it"}),
    );
    model.take(Input::Reply(Reply::Goal(id(number), Ok(Box::new((read, 0))))), at(0));
    let started = |name: &str| json!({"kind": "check_started", "name": name});
    let finished = |name: &str, met: bool| {
        json!({"kind": "check_finished", "result": {"name": name, "met": met, "exit_code": i32::from(!met), "problem": null,
            "evidence": "greeting: hello\n1 failed", "took": {"secs": 2, "nanos": 0}}})
    };
    let events = [
        json!({"kind": "phase_changed", "phase": {"phase": "running", "attempt": 1}}),
        json!({"kind": "agent", "event": {"kind": "message", "role": "assistant", "text": "I read the greeting first, to see whom it greets. It greets everybody in the same way."}}),
        json!({"kind": "phase_changed", "phase": {"phase": "checking", "attempt": 1}}),
        started("polite"),
        finished("polite", true),
        started("tests"),
        finished("tests", false),
        json!({"kind": "told", "text": "say please"}),
        started("lint"),
    ];
    for (seq, event) in (1..).zip(events) {
        model.take(Input::Goal(id(number), FeedNews::Logged(logged(number, seq, &event))), at(0));
    }
    model.requests();
    model
}

#[test]
fn the_board_shows_what_needs_a_person_first() {
    pictures("board", &mut busy());
}

#[test]
fn a_question_is_answered_from_the_board() {
    let mut model = busy();
    press(&mut model, "a");
    pictures("question", &mut model);
    press(&mut model, "\u{1b}");
    model.take(Input::Reply(Reply::Questions(Ok(vec![permission(2)]))), at(0));
    press(&mut model, "ano: use make clean");
    pictures("permission", &mut model);
}

#[test]
fn a_goal_shows_its_checks_its_cost_and_its_log() {
    let mut model = opened(4, "running");
    model.take(Input::Goal(id(4), FeedNews::Writing("Now I look at\nthe tests, which".to_owned())), at(0));
    pictures("goal", &mut model);
    let mut failed = opened(3, "failed");
    let read = report(
        3,
        "failed",
        "Make the greeting polite",
        &json!({"reason": "budget of $5.00 spent ($5.02)", "updated_at": at(5)}),
    );
    failed.take(Input::Reply(Reply::Goal(id(3), Ok(Box::new((read, 9))))), at(0));
    pictures("goal_failed", &mut failed);
    let mut asking = opened(1, "blocked");
    asking.questions = vec![choice(1)];
    pictures("goal_asking", &mut asking);
}

#[test]
fn a_merge_and_a_cancel_are_looked_at_first() {
    let mut merging = busy();
    press(&mut merging, "/start\n");
    press(&mut merging, "m");
    let plan = json!({"id": id(10), "into": "main", "way": "fast_forward", "before": "0", "commit": "1", "candidate": "1", "files": 2,
        "proven": true, "verdict": null, "dry_run": true});
    let plan = Box::new(serde_json::from_value(plan).expect("a report"));
    let act = crate::model::Act::PlanMerge(crate::model::Proof::Checked);
    merging.take(Input::Reply(Reply::Merged(id(10), act, Ok(plan))), at(0));
    pictures("merge", &mut merging);
    let mut cancelling = busy();
    press(&mut cancelling, "c");
    pictures("cancel", &mut cancelling);
}

#[test]
fn the_help_lists_the_keys() {
    let mut model = busy();
    press(&mut model, "?");
    pictures("help", &mut model);
}

#[test]
fn a_lost_connection_is_shown_and_so_is_what_was_typed() {
    let mut model = busy();
    let why = "no server is running; start it with 'towline up'";
    model.take(Input::Pool(FeedNews::Lost(why.to_owned())), at(0));
    pictures("lost", &mut model);
    press(&mut model, "jjjtplease wait\n");
    let (act, key) = model
        .requests()
        .into_iter()
        .find_map(|request| match request {
            crate::model::Request::Act { act, key, .. } => Some((act, key)),
            _ => None,
        })
        .expect("sent");
    let failure = Err(Failure::Lost("the server does not answer".to_owned()));
    model.take(Input::Reply(Reply::Acted(id(5), act, key, failure)), at(0));
    let shown = text(&screen(&mut model, SIZES[1], COLOURS), false);
    assert!(
        shown
            .lines()
            .last()
            .is_some_and(|last| last.contains("reconnecting") && last.contains("your text is not lost")),
        "{shown}"
    );
    model.take(Input::Pool(FeedNews::Opened), at(0));
    let shown = text(&screen(&mut model, SIZES[0], COLOURS), false);
    assert!(shown.lines().last().is_some_and(|last| last.starts_with("connected again")), "{shown}");
}

#[test]
fn a_token_that_is_refused_is_reported() {
    let mut model = busy();
    model.take(Input::Pool(FeedNews::Lost(Failure::Unauthorized.text())), at(0));
    let shown = text(&screen(&mut model, SIZES[0], COLOURS), false);
    assert!(shown.ends_with("reconnecting: the server refuses the operator's token"), "{shown}");
}

#[test]
fn colours_are_those_of_the_rest_of_the_terminal() {
    insta::assert_snapshot!("board_colours", text(&screen(&mut busy(), SIZES[0], COLOURS), true));
    insta::assert_snapshot!(
        "goal_colours",
        text(&screen(&mut opened(4, "running"), SIZES[0], COLOURS), true)
    );
}

#[test]
fn without_colours_and_fine_signs_everything_is_still_said() {
    let plain = Look { paint: Paint::Plain, letters: Letters::Ascii };
    for (name, mut model) in [("board", busy()), ("goal", opened(4, "running"))] {
        let buffer = screen(&mut model, SIZES[0], plain);
        for cell in buffer.content() {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
            assert!((cell.modifier - Modifier::REVERSED).is_empty(), "{cell:?}");
        }
        insta::assert_snapshot!(format!("{name}_plain"), text(&buffer, true));
    }
}

#[test]
fn every_size_is_drawn_and_what_needs_a_person_is_on_all_of_them() {
    for (name, mut model) in [("board", busy()), ("goal", opened(4, "running"))] {
        insta::assert_snapshot!(format!("{name}_40x10"), text(&screen(&mut model, (40, 10), COLOURS), false));
        for size in [(1, 1), (5, 2), (10, 3), (20, 4), (40, 1), (300, 2), (40, 10), (400, 100)] {
            for keys in ["", "a", "\u{1b}?", "\u{1b}c", "\u{1b}/x", "\u{1b}"] {
                press(&mut model, keys);
                let shown = text(&screen(&mut model, size, COLOURS), false);
                assert!(size.0 < 20 || shown.contains("3 need you"), "{size:?} {shown}");
            }
        }
    }
}

#[test]
fn what_agents_and_goals_are_called_gives_no_orders_to_the_terminal() {
    let hostile = format!("\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}evil\u{200b}\r\n{}", "x".repeat(100_000));
    let goal =
        line(1, "blocked", &hostile, &json!({"agent": hostile, "reason": hostile, "repository": hostile}));
    let mut asked = choice(1);
    asked.title.clone_from(&hostile);
    asked.question.question.clone_from(&hostile);
    asked.question.parts[0].question.clone_from(&hostile);
    asked.question.parts[0].options[0].label.clone_from(&hostile);
    let mut model = model(&[goal], vec![asked]);
    for keys in ["", "a", "\u{1b}", "t", "\u{1b}", "c", "n", "\n", "a"] {
        press(&mut model, keys);
        model.take(Input::Goal(id(1), FeedNews::Writing(hostile.clone())), at(0));
        let buffer = screen(&mut model, SIZES[0], COLOURS);
        let misleads = |cell: &&ratatui::buffer::Cell| cell.symbol().chars().any(towline_core::misleads);
        assert_eq!(buffer.content().iter().find(misleads), None, "{keys:?}");
    }
}

#[test]
fn without_unicode_no_byte_of_an_agent_is_more_than_ascii() {
    let ascii = Look { paint: Paint::Plain, letters: Letters::Ascii };
    // In an encoding of one byte per character, the last bytes of these begin and end sequences.
    let hostile = "\u{4db}2J \u{29d}52;c;ZQ==\u{29c} 👩\u{200d}🚀 e\u{301} 日本 \u{301}";
    let mut asked = permission(1);
    asked.question.question = format!("Bash: {hostile}\n{hostile}");
    asked.question.always = Some(hostile.to_owned());
    let goal = line(1, "blocked", hostile, &json!({"agent": hostile, "reason": hostile}));
    let mut model = model(&[goal], vec![asked]);
    for keys in ["", "a", "\u{1b}", "t", "\u{1b}", "c", "n", "\n", "a"] {
        press(&mut model, keys);
        model.take(Input::Paste(hostile.to_owned()), at(0));
        model.take(Input::Goal(id(1), FeedNews::Writing(hostile.to_owned())), at(0));
        let buffer = screen(&mut model, SIZES[0], ascii);
        assert_eq!(buffer.content().iter().find(|cell| !cell.symbol().is_ascii()), None, "{keys:?}");
        let shown = text(&buffer, false);
        assert!(shown.lines().all(|line| columns(line) <= 80), "{keys:?} {shown}");
    }
}

#[test]
fn a_line_end_in_a_command_is_no_blank_on_the_board() {
    let tool = json!({"kind": "agent", "event": {"kind": "tool", "id": "1", "tool": "execute", "name": "Bash", "title": "ls\nrm y",
        "status": "running", "input": null, "output": null, "exit_code": null, "paths": []}});
    let mut asked = permission(2);
    asked.question.question = "Bash: ls\r\nrm x".to_owned();
    asked.question.always = Some("Bash(ls\nrm z)".to_owned());
    let goals = [line(1, "running", "x", &json!({})), line(2, "blocked", "x", &json!({}))];
    let mut model = model(&goals, vec![asked]);
    model.take(Input::Pool(FeedNews::Logged(logged(1, 9, &tool))), at(0));
    press(&mut model, "a");
    for (letters, line_end) in [(Letters::Unicode, "⏎"), (Letters::Ascii, "\\n")] {
        for size in SIZES {
            let shown = text(&screen(&mut model, size, Look { letters, ..COLOURS }), false);
            for line in ["Bash: lsENDrm x  [yes", "  lsENDrm y", "allow \"Bash(lsENDrm z)\""] {
                assert!(shown.contains(&line.replace("END", line_end)), "{line}: {shown}");
            }
        }
    }
}

#[test]
fn the_last_of_a_thousand_goals_can_be_chosen() {
    let goals: Vec<Value> = (1..=1_000).map(|number| line(number, "done", "x", &json!({}))).collect();
    let mut model = model(&goals, Vec::new());
    for list in [List::Active, List::Failed, List::Ended] {
        model.take(Input::Reply(Reply::Goals(list, Ok(GoalPage { goals: Vec::new(), cursor: None }))), at(0));
    }
    press(&mut model, "G");
    let shown = text(&screen(&mut model, SIZES[0], COLOURS), false);
    assert!(shown.contains(&format!("> {}", towline_terminal::short_id(&id(1_000)))), "{shown}");
}

#[test]
fn tabs_keep_words_apart() {
    let mut asked = permission(1);
    asked.question.question = "Bash: rm\tx".to_owned();
    let mut model = model(&[line(1, "blocked", "rm\ty", &json!({}))], vec![asked]);
    model.open_goal(id(1));
    let read = report(1, "blocked", "rm\ty", &json!({}));
    model.take(Input::Reply(Reply::Goal(id(1), Ok(Box::new((read, 0))))), at(0));
    let said = json!({"kind": "agent", "event": {"kind": "message", "role": "assistant", "text": "rm\tz"}});
    model.take(Input::Goal(id(1), FeedNews::Logged(logged(1, 1, &said))), at(0));
    model.take(Input::Goal(id(1), FeedNews::Writing("rm\tw".to_owned())), at(0));
    let seen = text(&screen(&mut model, SIZES[1], COLOURS), false);
    for name in ["x", "z", "w"] {
        assert!(seen.contains(&format!("rm    {name}")), "{seen}");
    }
    press(&mut model, "a");
    model.take(Input::Paste("rm\tv".to_owned()), at(0));
    let shown = text(&screen(&mut model, SIZES[1], COLOURS), false);
    assert!(shown.contains("rm    v"), "{shown}");
    assert!(!seen.contains("rmy") && !shown.contains("rmx"), "{seen}\n{shown}");
}

#[test]
fn a_large_paste_is_drawn_at_once() {
    let mut model = busy();
    model.take(Input::Key(crossterm::event::KeyCode::Char('a').into()), at(0));
    model.take(Input::Paste(format!("{}日本end", "x".repeat(60_000))), at(0));
    let started = std::time::Instant::now();
    let shown = text(&screen(&mut model, SIZES[0], COLOURS), false);
    assert!(shown.contains("xx日本end"), "{shown}");
    // To measure the rest again for each character takes minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
}
