//! Somebody at the keyboard of a terminal in which a goal runs: what they type answers what they see, and nothing that
//! is asked later.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::Value;
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{clean_command, wait_for};

/// A terminal, with what it shows.
struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    /// A terminal, and the side of it that a program gets.
    fn new() -> (Self, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = openpt(flags | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let theirs = ioctl_tiocgptpeer(&ours, flags | OpenptFlags::CLOEXEC).expect("its other side");
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().expect("a second handle");
        let shown = Arc::new(Mutex::new(String::new()));
        let showing = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error says that nobody has the other side open any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                showing.lock().expect("unharmed").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        (Self { keyboard, shown }, theirs)
    }

    fn type_in(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("typed");
    }

    fn wait_for(&self, text: &str, times: usize) {
        let what = format!("{text:?} on the screen");
        wait_for(LIMIT, &what, || self.shown.lock().expect("unharmed").matches(text).count() >= times);
    }
}

/// Asks for one permission, waits for the file `go` in its home, and asks for another.
fn begs_twice(dir: &Path) -> PathBuf {
    let body = r#"
beg() {
  printf '{"type":"control_request","request_id":"r%s","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make %s"},"tool_use_id":"toolu_%s"}}\n' $1 $1 $1
  IFS= read -r answer
}
await_prompt
init
beg 1
while [ ! -e "$HOME/go" ]; do sleep 0.05; done
beg 2
assistant 'Done.'
result false null 'Done.'
while IFS= read -r line; do :; done
"#;
    hostile::with_body(dir, "begs-twice", body)
}

#[test]
fn a_line_that_was_typed_before_a_question_does_not_answer_it() {
    let desk = Desk::with_script(begs_twice);
    desk.agent_settings("permission = \"ask\"");
    let (mut terminal, theirs) = Terminal::new();
    let run = desk.command(["run", "make it", "--check", "true"]);
    // In a session of its own, of which this is the terminal.
    let mut towline = clean_command("setsid");
    towline.arg("--ctty").arg(run.get_program()).args(run.get_args()).env_clear();
    towline.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    towline.current_dir(desk.project.path());
    let side = || theirs.try_clone().expect("a handle");
    towline.stdin(side()).stdout(side()).stderr(side());
    terminal.type_in("yes");
    let towline = towline.spawn().expect("towline starts");
    drop(theirs);

    let goal = desk.only_goal();
    terminal.wait_for("waiting; answer with", 1);
    terminal.type_in("no, make nothing");
    desk.wait_for_phase(&goal, "running");
    terminal.type_in("yes");
    terminal.wait_for("yes", 3);
    std::fs::write(desk.home.path().join("go"), "").expect("the signal to go on");
    terminal.wait_for("waiting; answer with", 2);
    terminal.type_in("no, nothing at all");

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let decisions = desk.show(&goal)["attempts"][0]["decisions"].clone();
    let outcomes: Vec<&Value> =
        decisions.as_array().expect("decisions").iter().map(|decision| &decision["outcome"]).collect();
    assert_eq!(outcomes, ["deny", "deny"], "{decisions}");
}
