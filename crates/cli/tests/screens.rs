//! Screens of the real program as people see them, as snapshots at 80×24 and 120×40.
//!
//! What differs from run to run (ids, commits, times, durations, versions) is replaced by something steady that fits its
//! place. An agent or a check on a picture waits at a gate until the picture is taken.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command};

use regex::Regex;
use support::terminal::Terminal;
use support::{Desk, LIMIT, finish};
use towline_testkit::scratch::wait_for;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];
const CONTROL_C: &str = "\u{3}";

/// The agent's first turn claims that it is done when it is not; its second turn makes the greeting polite.
const TWO_TURNS: &str = r#"
[[turn]]
step = [
    { say = "I read the greeting first, to see whom it greets. It greets everybody in the same way." },
    { run = "cat greeting" },
    { run = "grep --count please greeting" },
    { usage = { input = 11200, output = 800, cost_usd = 0.42 } },
    { say = "The greeting is polite enough." },
]

[[turn]]
step = [
    { say = "You are right: it was not. I put it into better words." },
    { write = { path = "greeting", text = "hello, please come in\n" } },
    { usage = { input = 14000, output = 1500, cost_usd = 0.631 } },
    { run = "./try-it --slowly" },
    { say = "Now it is polite." },
]
"#;

/// A person's machine whose paths do not differ from run to run as the program shows them.
struct Stage {
    desk: Desk,
    project: PathBuf,
}

impl Stage {
    fn new(script: &str, configuration: &str) -> Self {
        let mut desk = Desk::new();
        let home = desk.home.path();
        let state = home.join("state");
        let configured = home.join(".config/towline");
        std::fs::create_dir_all(&configured).expect("a folder for the configuration");
        desk.set("TOWLINE_HOME", &state.display().to_string());
        desk.set("XDG_CONFIG_HOME", &home.join(".config").display().to_string());
        std::fs::create_dir(home.join("bin")).expect("a folder for programs");
        symlink(env!("CARGO_BIN_EXE_towline"), home.join("bin/towline")).expect("the program");
        let agent = home.join("agent.toml");
        std::fs::write(&agent, script).expect("a script");
        let agents = format!(
            "[defaults]\nagents = [\"scripted\"]\n[agents.scripted]\nkind = \"script\"\ncommand = [{:?}, \"script\", {:?}]\n",
            home.join("bin/towline").display().to_string(),
            agent.display().to_string(),
        );
        std::fs::write(configured.join("config.toml"), agents).expect("a configuration");
        let project = home.join("greeter");
        let stage = Self { desk, project };
        stage.make_project(configuration);
        stage
    }

    fn make_project(&self, configuration: &str) {
        let folder = self.project.display().to_string();
        std::fs::create_dir(&self.project).expect("a project");
        let waits = format!("#!/bin/sh\nuntil [ -e '{}' ]; do sleep 0.05; done\n", self.gate().display());
        for (name, text) in
            [("greeting", "hello\n"), ("try-it", waits.as_str()), ("towline.toml", configuration)]
        {
            std::fs::write(self.project.join(name), text).expect("a file of the project");
        }
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.project.join("try-it"), executable).expect("an executable file");
        let git = |words: &[&str]| self.desk.project.git([&["-C", &folder], words].concat());
        git(&["init", "--quiet", "--initial-branch=main"]);
        git(&["config", "user.name", "Test"]);
        git(&["config", "user.email", "test@example.invalid"]);
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", "first"]);
    }

    fn gate(&self) -> PathBuf {
        self.desk.home.path().join("go")
    }

    fn open_the_gate(&self) {
        std::fs::write(self.gate(), "").expect("the signal to go on");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.desk.command(args);
        command.current_dir(&self.project);
        command
    }

    fn run(&self, terminal: &mut Terminal, args: &[&str]) -> Child {
        terminal.start(&self.command(&[&["run", "Make the greeting polite"], args].concat()))
    }

    /// Everything that a command writes to a terminal of this width.
    fn printed(&self, args: &[&str], (columns, rows): (u16, u16)) -> String {
        let mut terminal = Terminal::sized(columns, rows);
        let towline = terminal.start(&self.command(args));
        finish(towline);
        terminal.wait_for_the_end();
        steady(&terminal.screen())
    }

    /// Leaves only what Towline itself needs on the search path: the machine may have any agent installed.
    fn hide_the_machine(&mut self) {
        let bin = self.desk.home.path().join("bin");
        for program in ["git", "setsid", "sh"] {
            let paths = std::env::var_os("PATH").expect("a search path");
            let found =
                std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.exists());
            symlink(found.expect(program), bin.join(program)).expect("a program");
        }
        self.desk.set("PATH", &bin.display().to_string());
    }

    fn short_id(&self) -> String {
        let listed = finish(self.command(&["ls", "--json"]).spawn().expect("towline starts")).json();
        let id = listed[0]["id"].as_str().expect("a goal");
        id[id.len() - 8..].to_owned()
    }

    /// A stage on which the goal was reached, in two attempts.
    fn after_the_run() -> Self {
        let stage = Self::new(TWO_TURNS, &two_checks("true"));
        stage.open_the_gate();
        let ran =
            finish(stage.command(&["run", "Make the greeting polite"]).spawn().expect("towline starts"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        stage
    }
}

/// Whether the greeting is polite, and something else.
fn two_checks(lint: &str) -> String {
    format!(
        "[[checks]]\nname = \"polite\"\nrun = \"grep please greeting || {{ echo 'not polite:'; cat greeting; exit 1; }}\"\n\
         [[checks]]\nname = \"lint\"\nrun = {lint:?}\n[budget]\nusd = 5.0\nwall = \"100h\"\n"
    )
}

/// A screen without what differs from run to run.
fn steady(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    for (what, instead) in [
        // One that a narrow terminal has cut.
        (r"\b[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", "000-8000-c0ffee11c0ff"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "1a2b3c4d-0000-7000-8000-c0ffee11c0ff"),
        (r"\b[0-9a-f]{40}\b", "c0ffee11c0ffee11c0ffee11c0ffee11c0ffee11"),
        (r"\b[0-9a-f]{12}\b", "c0ffee11c0ff"),
        (r"\b[0-9a-f]{8}\b", "1a2b3c4d"),
        (r"\b\d+ settings\b", "50 settings"),
        // With its date, where that is tomorrow's.
        (r"\b(\d{4}-\d\d-\d\d \d\d:\d\d|\d\d:\d\d:\d\d)", "12:34:56"),
        (r"\b\d{4}-\d\d-\d\d\b", "2026-01-02"),
        (r"days are those of .*", "days are those of UTC"),
        (r"\b\d+\.\d+\.\d+\b", "1.2.3"),
        // The age in a column.
        (r"\b\d\ds  ", "1s   "),
        (r"\b(\d+m )?\d+(\.\d)?s\b", "1s"),
    ] {
        text = Regex::new(what).expect("a pattern").replace_all(&text, instead).into_owned();
    }
    text
}

fn snapshot(name: &str, (columns, rows): (u16, u16), text: &str) {
    let text = format!("{}\n{text}\n{}", "_".repeat(usize::from(columns)), "_".repeat(usize::from(columns)));
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), text);
    });
}

/// Takes a picture of a goal that waits at its gate, at both sizes, and lets it continue.
fn still(name: &str, script: &str, configuration: &str, args: &[&str], sight: &str) {
    for size in SIZES {
        let stage = Stage::new(script, configuration);
        let mut terminal = Terminal::sized(size.0, size.1);
        let towline = stage.run(&mut terminal, args);
        let picture = terminal.wait_to_see(sight);
        snapshot(name, size, &steady(&picture));
        terminal.press(CONTROL_C);
        let ran = finish(towline);
        assert_eq!(ran.code, Some(130), "{ran:?} {:#?}", terminal.screen());
    }
}

#[test]
fn running_with_a_tool() {
    still("running", TWO_TURNS, &two_checks("true"), &[], "$ ./try-it --slowly · ");
}

#[test]
fn a_log_that_is_followed_in_another_terminal_shows_the_running_tool_and_its_time() {
    let stage = Stage::new(TWO_TURNS, &two_checks("true"));
    let running = stage.command(&["run", "Make the greeting polite"]).spawn().expect("towline starts");
    let goal = stage.desk.only_goal();
    let mut terminal = Terminal::sized(80, 24);
    let following = terminal.start(&stage.command(&["logs", "-f", &goal]));
    let seconds = |picture: &[String]| {
        let line = picture.iter().find_map(|line| line.strip_prefix("$ ./try-it --slowly · "));
        line.and_then(|time| time.strip_suffix('s')?.parse::<u32>().ok())
    };
    let first = seconds(&terminal.wait_to_see("$ ./try-it --slowly · ")).expect("a time");
    wait_for(LIMIT, "the time to go on", || seconds(&terminal.picture()).is_some_and(|now| now > first));
    stage.open_the_gate();
    assert_eq!(finish(following).code, Some(0), "{:#?}", terminal.screen());
    assert_eq!(finish(running).code, Some(0));
}

#[test]
fn resumed_in_the_middle_of_a_tool() {
    for size in SIZES {
        let stage = Stage::new(TWO_TURNS, &two_checks("true"));
        let mut terminal = Terminal::sized(size.0, size.1);
        let mut towline = stage.run(&mut terminal, &[]);
        terminal.wait_to_see("$ ./try-it --slowly · ");
        towline.kill().expect("killed");
        towline.wait().expect("reaped");
        let mut terminal = Terminal::sized(size.0, size.1);
        let towline = terminal.start(&stage.command(&["run", "--goal", &stage.short_id()]));
        terminal.wait_to_see("$ ./try-it --slowly · ");
        // The last line of the block: before it is there, the picture is not whole.
        let picture = terminal.wait_to_see("so far 27.5k tokens");
        snapshot("resumed", size, &steady(&picture));
        stage.open_the_gate();
        assert_eq!(finish(towline).code, Some(0), "{:#?}", terminal.screen());
    }
}

#[test]
fn checking_after_a_red_verdict() {
    let lint = "if grep --quiet please greeting; then echo linting; ./try-it; else echo 'no greeting to lint'; exit 3; fi";
    let script = TWO_TURNS.replace("./try-it --slowly", "true");
    // The last line that the check has printed.
    still("checking", &script, &two_checks(lint), &[], "  linting");
}

#[test]
fn sleeping_until_it_goes_on() {
    let script = r#"[[turn]]
step = [{ say = '{"towline": "sleep", "seconds": 3540, "reason": "the build is not through"}' }]
"#;
    // Whether so long a limit has room beside the others does not depend on how long it took to get here.
    let checks = two_checks("true").replace("100h", "1000h");
    still("sleeping", script, &checks, &[], "continues in ");
}

#[test]
fn blocked_by_a_question() {
    let script = r#"[[turn]]
step = [{ say = '{"towline": "ask", "question": "How polite is polite enough?", "options": ["very", "a little"]}' }]
"#;
    // A limit that has room beside the others even after ten seconds.
    let checks = two_checks("true").replace("100h", "90h");
    still("blocked", script, &checks, &[], "type the answer");
}

#[test]
fn a_narrow_terminal_gets_one_line() {
    let stage = Stage::new(TWO_TURNS, &two_checks("true"));
    let mut terminal = Terminal::sized(38, 24);
    let towline = stage.run(&mut terminal, &[]);
    let picture = terminal.wait_to_see("$ ./try-it");
    snapshot("narrow", (38, 24), &steady(&picture));
    stage.open_the_gate();
    assert_eq!(finish(towline).code, Some(0));
}

#[test]
fn the_output_of_doctor_fits_a_narrow_terminal() {
    let mut stage = Stage::new(TWO_TURNS, &two_checks("true"));
    stage.hide_the_machine();
    snapshot("doctor", (48, 24), &stage.printed(&["doctor"], (48, 24)));
}

#[test]
fn done() {
    for size in SIZES {
        let stage = Stage::new(TWO_TURNS, &two_checks("true"));
        stage.open_the_gate();
        let mut terminal = Terminal::sized(size.0, size.1);
        assert_eq!(finish(stage.run(&mut terminal, &[])).code, Some(0));
        terminal.wait_for_the_end();
        snapshot("done", size, &steady(&terminal.screen()));
    }
}

#[test]
fn failed_by_its_budget() {
    for size in SIZES {
        let stage = Stage::new(TWO_TURNS, &two_checks("true"));
        let mut terminal = Terminal::sized(size.0, size.1);
        assert_eq!(finish(stage.run(&mut terminal, &["--budget", "attempts=1"])).code, Some(3));
        terminal.wait_for_the_end();
        snapshot("failed", size, &steady(&terminal.screen()));
    }
}

#[test]
fn paused_from_another_terminal() {
    for size in SIZES {
        let stage = Stage::new(TWO_TURNS, &two_checks("true"));
        let mut terminal = Terminal::sized(size.0, size.1);
        let towline = stage.run(&mut terminal, &[]);
        terminal.wait_to_see("$ ./try-it --slowly · ");
        let printed = stage.printed(&["pause", &stage.short_id()], size);
        assert_eq!(finish(towline).code, Some(143), "{printed}");
        terminal.wait_for_the_end();
        snapshot("paused", size, &steady(&terminal.screen()));
        snapshot("pause", size, &printed);
        snapshot("show_paused", size, &stage.printed(&["show", &stage.short_id()], size));
    }
}

#[test]
fn without_colours_there_are_none_and_with_them_they_mean_something() {
    let mut stage = Stage::new(TWO_TURNS, &two_checks("true"));
    for (name, no_colour) in [("colours", ""), ("no_colours", "1")] {
        stage.desk.set("NO_COLOR", no_colour);
        let size = SIZES[0];
        let mut terminal = Terminal::sized(size.0, size.1);
        let towline = stage.run(&mut terminal, &[]);
        terminal.wait_to_see("$ ./try-it --slowly · ");
        snapshot(name, size, &steady(&terminal.painted()));
        let has_colours =
            ["\u{1b}[2m", "\u{1b}[31m", "\u{1b}[1m"].map(|colour| terminal.shown().contains(colour));
        assert_eq!(has_colours, [no_colour.is_empty(); 3], "{}", terminal.shown());
        terminal.press(CONTROL_C);
        finish(towline);
    }
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_plain_lines() {
    let mut stage = Stage::new(TWO_TURNS, &two_checks("true"));
    stage.desk.set("TERM", "dumb");
    stage.open_the_gate();
    let mut terminal = Terminal::sized(80, 24);
    assert_eq!(finish(stage.run(&mut terminal, &[])).code, Some(0));
    terminal.wait_for_the_end();
    assert!(!terminal.shown().contains('\u{1b}'), "{}", terminal.shown());
}

#[test]
fn a_terminal_without_fine_signs_gets_ascii() {
    let mut stage = Stage::new(TWO_TURNS, &two_checks("true"));
    stage.desk.set("LANG", "C");
    let mut terminal = Terminal::sized(80, 24);
    let towline = stage.run(&mut terminal, &[]);
    let picture = terminal.wait_to_see("$ ./try-it --slowly - ");
    snapshot("ascii", (80, 24), &steady(&picture));
    assert!(terminal.shown().is_ascii(), "{}", terminal.shown());
    stage.open_the_gate();
    assert_eq!(finish(towline).code, Some(0));
}

#[test]
fn a_run_without_a_terminal_is_printed_in_whole_lines() {
    let stage = Stage::new(TWO_TURNS, &two_checks("true"));
    stage.open_the_gate();
    let ran = finish(stage.command(&["run", "Make the greeting polite"]).spawn().expect("towline starts"));
    let home = stage.desk.home.path().display().to_string();
    let lines: Vec<String> = ran.stdout.lines().map(|line| line.replace(&home, "HOME")).collect();
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("piped", steady(&lines));
    });
}

#[test]
fn the_block_follows_the_size_of_the_terminal() {
    let stage = Stage::new(TWO_TURNS, &two_checks("true"));
    let mut terminal = Terminal::sized(80, 24);
    let towline = stage.run(&mut terminal, &[]);
    terminal.wait_to_see("$ ./try-it --slowly · ");
    let before = terminal.shown().matches(&"─".repeat(80)).count();
    terminal.resize(160, 24);
    terminal.wait_for(&"─".repeat(80), before + 1);
    stage.open_the_gate();
    assert_eq!(finish(towline).code, Some(0));
    terminal.wait_for_the_end();
    let screen = terminal.screen();
    assert!(!screen.iter().any(|line| line.contains("──")), "{screen:#?}");
    assert!(screen.iter().any(|line| line.starts_with("✓ done")), "{screen:#?}");
}

#[test]
fn the_output_of_commands() {
    let stage = Stage::after_the_run();
    let id = stage.short_id();
    for size in SIZES {
        for (name, args) in [
            ("ls", vec!["ls"]),
            ("show", vec!["show", &id]),
            ("logs", vec!["logs", &id]),
            ("diff_stat", vec!["diff", "--stat", &id]),
        ] {
            snapshot(name, size, &stage.printed(&args, size));
        }
    }
}

#[test]
fn the_output_of_commands_about_the_pool() {
    let stage = Stage::after_the_run();
    let add = |args: &[&str]| {
        let added = finish(stage.command(&[&["add"], args].concat()).spawn().expect("towline starts"));
        assert_eq!(added.code, Some(0), "{added:?}");
    };
    add(&["Translate the greeting into twelve languages, and check each of them", "--label", "slow"]);
    let id = stage.short_id();
    add(&["Publish it", "--after", &id]);
    for size in SIZES {
        for (name, args) in [
            ("queue", vec!["queue"]),
            ("ls_queued", vec!["ls"]),
            ("accounts", vec!["accounts"]),
            ("cost", vec!["cost"]),
            ("cost_by_goal", vec!["cost", "--by", "goal"]),
        ] {
            snapshot(name, size, &stage.printed(&args, size));
        }
    }
}

#[test]
fn the_output_of_commands_about_the_machine() {
    let mut stage = Stage::new(TWO_TURNS, &two_checks("true"));
    stage.hide_the_machine();
    for size in SIZES {
        for (name, args) in [
            ("help", vec!["logs", "--help"]),
            ("doctor", vec!["doctor"]),
            ("agents", vec!["agents"]),
            ("questions", vec!["questions"]),
            ("refused", vec!["run", "Make the greeting polite", "--agent", "claude"]),
        ] {
            snapshot(name, size, &stage.printed(&args, size));
        }
    }
}
