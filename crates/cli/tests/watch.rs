//! The dashboard in a real terminal, over a real server: what it shows, what its keys do, and what a killed server does to it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::PathBuf;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use support::server::{add, down, kill, up};
use support::terminal::Terminal;
use support::{Desk, finish};
use towline_testkit::scratch::clean_command;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];
const CONTROL_C: &str = "\u{3}";
const CONTROL_Z: &str = "\u{1a}";
/// The program begins a screen of another size.
const CLEARED: &str = "\u{1b}[2J";

/// Asks for a colour, and writes a greeting in it.
const ASKS: &str = r#"
[[turn]]
step = [
    { say = "I read the greeting first, to see whom it greets." },
    { usage = { input = 11200, output = 800, cost_usd = 0.42 } },
    { say = '{"towline": "ask", "question": "Which colour should the greeting have?", "options": ["red", "blue"]}' },
]

[[turn]]
step = [
    { say = "Then it gets that colour." },
    { write = { path = "greeting", text = "hello in colour\n" } },
    { say = "The greeting is written." },
]
"#;

/// Works until its gate is open.
const WORKS: &str = r#"
[[turn]]
step = [
    { say = "I count the names." },
    { run = "until [ -e GATE ]; do sleep 0.05; done" },
    { write = { path = "greeting", text = "hello to three\n" } },
    { usage = { input = 14000, output = 1500, cost_usd = 0.631 } },
    { say = "There are three names." },
]
"#;

/// A desk with a server and two agents.
fn desk() -> Desk {
    let desk = Desk::new();
    let home = desk.home.path();
    let gate = gate(&desk).display().to_string();
    let mut text = "[defaults]\nagents = [\"asks\"]\n".to_owned();
    for (name, script) in [("asks", ASKS), ("works", &WORKS.replace("GATE", &gate))] {
        let path = home.join(format!("{name}.toml"));
        std::fs::write(&path, script).expect("a script");
        let program = env!("CARGO_BIN_EXE_towline");
        text +=
            &format!("[agents.{name}]\nkind = \"script\"\ncommand = [{program:?}, \"script\", {path:?}]\n");
    }
    desk.configure(&text);
    desk
}

fn gate(desk: &Desk) -> PathBuf {
    desk.home.path().join("go")
}

fn open_the_gate(desk: &Desk) {
    std::fs::write(gate(desk), "").expect("the signal to go on");
}

const CHECK: [&str; 2] = ["--check", "grep hello greeting"];

fn asking(desk: &Desk) -> String {
    let goal = add(desk, "Greet everybody in a colour", &CHECK);
    desk.wait_for_phase(&goal, "blocked");
    goal
}

fn working(desk: &Desk) -> String {
    let more = [CHECK.as_slice(), &["--agent", "works"]].concat();
    let goal = add(desk, "Count the names", &more);
    desk.wait_for(&goal, "the agent to work", |_| {
        desk.events(&goal).iter().any(|event| event["event"]["event"]["kind"] == "tool")
    });
    goal
}

fn watch(desk: &Desk, terminal: &mut Terminal, args: &[&str]) -> Child {
    terminal.start(&desk.command([&["watch"], args].concat()))
}

/// Begins to answer a request that is on the screen. What has just appeared takes no keys for 0.7 seconds, and nothing shows when they are over.
fn begin_answer(terminal: &mut Terminal) {
    sleep(Duration::from_secs(1));
    terminal.press("a");
}

/// Leaves the dashboard, and looks at the terminal that it leaves.
fn leave(mut terminal: Terminal, dashboard: Child, keys: &str, code: i32) {
    terminal.press(keys);
    let ended = finish(dashboard);
    terminal.wait_for_the_end();
    assert_eq!(ended.code, Some(code), "{ended:?} {:#?}", terminal.screen());
    assert_restored(&terminal);
}

fn assert_restored(terminal: &Terminal) {
    let emulator = terminal.emulated(24);
    let screen = emulator.screen();
    assert!(!screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor());
    assert!(terminal.is_cooked(), "what is typed is echoed again");
}

/// A screen without what differs from run to run.
fn steady(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    for (what, instead) in [
        (r"\b[0-9a-f]{8}\b", "1a2b3c4d"),
        (r"\b\d\d:\d\d:\d\d\b", "12:34:56"),
        (r"\b\d+(\.\d)?s\b", "1s"),
        (r"until \[ -e .*", "until [ -e GATE ]…"),
        // A path takes more rows where temporary folders have long names.
        (r"\n{3,}", "\n\n"),
        (r"(?m)^  workspace( .*)?(\n    /.*)?(\n    [^ ].*)?", "  workspace PATH"),
    ] {
        text = Regex::new(what).expect("a pattern").replace_all(&text, instead).into_owned();
    }
    text
}

fn snapshot(name: &str, (columns, rows): (u16, u16), lines: &[String]) {
    let edge = "_".repeat(usize::from(columns));
    let text = format!("{edge}\n{}\n{edge}", steady(lines));
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(format!("watch_{name}_{columns}x{rows}"), text);
    });
}

#[test]
fn the_dashboard_shows_all_goals_and_one_of_them() {
    for size in SIZES {
        let desk = desk();
        let server = up(&desk);
        let asking = asking(&desk);
        let working = working(&desk);

        let mut terminal = Terminal::sized(size.0, size.1);
        let dashboard = watch(&desk, &mut terminal, &[]);
        terminal.wait_to_see("1 needs you");
        terminal.wait_to_see("Running 1");
        snapshot("board", size, &terminal.wait_to_see("$0.42 today"));
        begin_answer(&mut terminal);
        terminal.press("bl");
        snapshot("answer", size, &terminal.wait_to_see("answer> bl"));
        terminal.press("\u{1b}");
        terminal.wait_to_see("Enter open");
        terminal.press("\r");
        terminal.wait_to_see("attempt 1 of");
        snapshot("goal", size, &terminal.wait_to_see("waiting; answer with"));
        terminal.press("?");
        snapshot("help", size, &terminal.wait_to_see("these keys"));
        terminal.press("x");
        leave(terminal, dashboard, CONTROL_C, 0);
        for (goal, phase) in [(asking, "blocked"), (working, "running")] {
            assert_eq!(desk.show(&goal)["phase"], phase, "the goals keep running");
        }
        open_the_gate(&desk);
        down(&desk, server);
    }
}

#[test]
fn keys_answer_send_a_message_pause_resume_cancel_retry_and_merge() {
    let desk = desk();
    let server = up(&desk);
    let asking = asking(&desk);
    let mut terminal = Terminal::sized(80, 24);
    let dashboard = watch(&desk, &mut terminal, &[]);

    terminal.wait_to_see("Which colour should the greeting have?");
    begin_answer(&mut terminal);
    terminal.press("2\r");
    terminal.wait_to_see("answered goal");
    desk.wait_for_phase(&asking, "done");
    terminal.wait_to_see("nothing needs you");
    let answers = desk.events(&asking).into_iter().find(|event| event["event"]["kind"] == "answered");
    assert_eq!(answers.expect("an answer")["event"]["reply"]["answers"][0], "blue");

    let working = working(&desk);
    terminal.wait_to_see("Running 1");
    terminal.press("/names\r");
    terminal.wait_to_see("> ");
    terminal.press("\r");
    terminal.wait_to_see("I count the names.");
    // What a terminal pastes is typed and not obeyed: its line break sends nothing.
    terminal.press("t\u{1b}[200~count\nslowly\u{1b}[201~");
    terminal.wait_to_see("count\\nslowly");
    terminal.press("\r");
    terminal.wait_to_see("has your message");
    let sent = desk.events(&working).into_iter().find(|event| event["event"]["text"].is_string());
    assert_eq!(sent.expect("a message")["event"]["text"], "count\nslowly");

    terminal.press("p");
    desk.wait_for_phase(&working, "paused");
    terminal.wait_to_see("r resume");
    terminal.press("r");
    desk.wait_for_phase(&working, "running");
    terminal.wait_to_see("p pause");
    terminal.press("c");
    terminal.wait_to_see("Cancel goal");
    terminal.press("y");
    desk.wait_for_phase(&working, "cancelled");
    terminal.wait_to_see("R retry");
    terminal.press("R");
    desk.wait_for_phase(&working, "running");
    open_the_gate(&desk);
    desk.wait_for_phase(&working, "done");
    terminal.wait_to_see("m merge");
    let before = desk.project.git(["rev-parse", "HEAD"]);
    terminal.press("m");
    terminal.wait_to_see("Press y to merge");
    assert_eq!(desk.project.git(["rev-parse", "HEAD"]), before, "the first look changes nothing");
    terminal.press("y");
    terminal.wait_to_see("merged into");
    assert_eq!(desk.project.read("greeting"), "hello to three\n");
    leave(terminal, dashboard, "qqq", 0);
    down(&desk, server);
}

#[test]
fn a_dashboard_whose_server_was_killed_catches_up_with_the_next_one() {
    let desk = desk();
    let server = up(&desk);
    let working = working(&desk);
    let mut terminal = Terminal::sized(120, 40);
    let dashboard = watch(&desk, &mut terminal, &[&working]);
    terminal.wait_to_see("I count the names.");
    kill(server);
    terminal.wait_to_see("reconnecting");
    terminal.press("tnot so fast");
    terminal.wait_to_see("not so fast");
    terminal.press("\r");
    terminal.wait_to_see("your text is not lost");
    // It is at another port.
    let server = up(&desk);
    terminal.wait_to_see("connected again");
    terminal.press("t\r");
    terminal.wait_to_see("has your message");
    open_the_gate(&desk);
    desk.wait_for_phase(&working, "done");
    let screen = terminal.wait_to_see("m merge").join("\n");
    for line in ["I count the names.", "operator: not so fast", "There are three names.", "checks · "] {
        assert_eq!(screen.matches(line).count(), 1, "{line} {screen}");
    }
    leave(terminal, dashboard, CONTROL_C, 0);
    down(&desk, server);
}

#[test]
fn a_signal_to_end_and_ctrl_z_give_the_terminal_back() {
    let desk = desk();
    let server = up(&desk);
    let mut terminal = Terminal::sized(80, 24);
    let dashboard = watch(&desk, &mut terminal, &[]);
    terminal.wait_to_see("There are no goals yet");
    assert!(!terminal.is_cooked());
    let pid = Pid::from_child(&dashboard);
    kill_process(pid, Signal::TERM).expect("a signal");
    leave(terminal, dashboard, "", 143);

    let mut terminal = Terminal::sized(80, 24);
    let watch = desk.command(["watch"]);
    let mut shell = clean_command("sh");
    let script = r#"set -m; "$@"; echo resting; until [ -e "$HOME/back" ]; do sleep 0.05; done; fg"#;
    shell.args(["-c", script, "sh"]).arg(watch.get_program()).args(watch.get_args());
    shell.current_dir(desk.project.path());
    shell.envs(watch.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let shell = terminal.start(&shell);
    terminal.wait_to_see("There are no goals yet");
    terminal.press(CONTROL_Z);
    terminal.wait_to_see("resting");
    assert_restored(&terminal);
    std::fs::write(desk.home.path().join("back"), "").expect("the signal to come back");
    terminal.wait_to_see("There are no goals yet");
    let cleared = terminal.shown().matches(CLEARED).count();
    terminal.resize(40, 10);
    terminal.wait_for(CLEARED, cleared + 1);
    terminal.press("?");
    terminal.wait_to_see("choose the next");
    terminal.press("x");
    terminal.wait_to_see("There are no goals yet");
    leave(terminal, shell, "q", 0);
    down(&desk, server);
}

#[test]
fn without_a_server_or_a_terminal_it_attaches_to_a_goal_and_refuses_otherwise() {
    let mut desk = desk();
    let server = up(&desk);
    let goal = asking(&desk);
    desk.towline(["answer", &goal, "red"]);
    desk.wait_for_phase(&goal, "done");

    let refused = desk.towline(["watch"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    assert!(
        refused.stderr.contains("needs a terminal") && refused.stderr.contains("towline ls"),
        "{refused:?}"
    );
    for args in [vec![goal.as_str()], vec![&goal, "--json"]] {
        let [watched, attached] =
            ["watch", "attach"].map(|command| desk.towline([&[command], args.as_slice()].concat()));
        assert_eq!((watched.code, watched.stdout), (attached.code, attached.stdout));
    }
    let missing = desk.towline(["watch", "--json"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");

    desk.set("TERM", "dumb");
    let mut terminal = Terminal::sized(80, 24);
    let dumb = watch(&desk, &mut terminal, &[]);
    assert_eq!(finish(dumb).code, Some(2));
    terminal.wait_to_see("TERM is not set");
    desk.unset("TERM");

    down(&desk, server);
    let mut terminal = Terminal::sized(80, 24);
    let refused = watch(&desk, &mut terminal, &[]);
    assert_eq!(finish(refused).code, Some(2));
    terminal.wait_to_see("towline up");
    let mut terminal = Terminal::sized(80, 24);
    let attached = watch(&desk, &mut terminal, &[&goal]);
    assert_eq!(finish(attached).code, Some(0));
}

#[test]
fn a_removed_goal_goes_from_the_screen_at_once() {
    let desk = desk();
    let server = up(&desk);
    let asking = asking(&desk);
    let mut terminal = Terminal::sized(80, 24);
    let dashboard = watch(&desk, &mut terminal, &[]);
    terminal.wait_to_see("1 needs you");
    assert_eq!(desk.towline(["cancel", &asking]).code, Some(0));
    terminal.wait_to_see("Ended 1");
    assert_eq!(desk.towline(["rm", "--force", &asking]).code, Some(0));
    terminal.wait_to_see("There are no goals yet.");
    leave(terminal, dashboard, "q", 0);
    down(&desk, server);
}
