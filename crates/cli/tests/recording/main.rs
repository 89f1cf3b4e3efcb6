//! The recording of the demo in the README: made from a real terminal, and still what the demo prints.
//!
//! `cargo xtask pictures` writes it anew.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod film;
#[path = "../support/mod.rs"]
mod support;

use std::os::unix::fs::symlink;

use film::Film;
use regex::Regex;
use support::terminal::Terminal;
use support::{Desk, finish};
use towline_testkit::scratch::clean_command;

const COLUMNS: u16 = 92;
const ROWS: u16 = 28;
/// More would be slow to load with the README.
const LARGEST: usize = 150_000;

/// The recording in the repository.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/demo.svg");

/// Films the demo on a machine on which Towline is installed.
fn demo() -> Film {
    let mut desk = Desk::new();
    let programs = desk.home.path().join("bin");
    std::fs::create_dir_all(&programs).expect("a folder for programs");
    symlink(env!("CARGO_BIN_EXE_towline"), programs.join("towline")).expect("the program");
    desk.set("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    let mut command = clean_command("sh");
    command.args(["-c", r"printf '\033[1m$ towline demo\033[0m\n'; exec towline demo"]);
    command.envs(desk.variables().to_vec()).current_dir(desk.project.path());
    let mut terminal = Terminal::sized(COLUMNS, ROWS);
    let ran = finish(terminal.start(&command));
    assert_eq!(ran.code, Some(0), "{:#?}", terminal.screen());
    terminal.wait_for_the_end();
    let state = desk.home.towline().display().to_string();
    Film::of(&terminal, |line| line.replace(&state, "~/.local/state/towline"))
}

/// A screen without what differs from run to run.
fn steady(screen: &str) -> String {
    let patterns = [
        (r"\b[0-9a-f]{12}\b", "c0ffee11c0ff"),
        (r"\b[0-9a-f]{8}\b", "1a2b3c4d"),
        (r"\b\d\d:\d\d:\d\d\b", "12:34:56"),
        (r"\b\d+\.\ds\b", "1.0s"),
    ];
    patterns.iter().fold(screen.to_owned(), |text, (what, instead)| {
        Regex::new(what).expect("a pattern").replace_all(&text, *instead).into_owned()
    })
}

#[test]
fn the_recording_in_the_readme_ends_as_the_demo_does() {
    let film = demo();
    let drawn = film.drawn();
    assert!(drawn.len() < LARGEST, "{} bytes", drawn.len());
    if std::env::var_os("TOWLINE_WRITE_PICTURES").is_some() {
        std::fs::write(FILE, &drawn).expect("the recording is written");
    }
    let stored = std::fs::read_to_string(FILE).expect("a recording");
    let shown = film::description_of(&stored).expect("a text of what it shows");
    assert_eq!(steady(&shown), steady(&film.last_screen()), "make it anew with `cargo xtask pictures`");
}
