//! What an agent that runs as the same ordinary user can read of the engine that drives it.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use support::{Desk, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

/// Who runs Towline here when the tests run as root, whom nothing is hidden from.
const NOBODY: &str = "65534";

const SECRET: &str = "planted-in-the-engine-81c5";

/// The supervisor's parent is the engine.
const SPY: &str = r#"
engine=$(cut -d ' ' -f 4 /proc/$PPID/stat)
tr '\0' ' ' < /proc/$engine/cmdline > "$HOME/engine.command"
id -u > "$HOME/user"
for pid in $engine $PPID; do
  for name in environ maps cwd/towline.toml root/etc/hostname fd/0; do
    if head -c 1 /proc/$pid/$name > /dev/null 2>&1; then echo "$pid $name"; fi
  done
done > "$HOME/readable"
echo done > done.txt
"#;

fn is_root() -> bool {
    let id = clean_command("id").arg("-u").output().expect("a user");
    id.stdout.trim_ascii() == b"0"
}

/// Hands what the desk is made of to an ordinary user, with a program that they can reach.
fn hand_over(desk: &Desk) -> std::path::PathBuf {
    let program = desk.home.path().join("towline");
    std::fs::copy(env!("CARGO_BIN_EXE_towline"), &program).expect("a copy of the program");
    if is_root() {
        let home = desk.home.path();
        let all = home.parent().expect("the scratch folder");
        let owner = format!("{NOBODY}:{NOBODY}");
        let mut chown = clean_command("chown");
        chown.args(["-R", &owner]).args([all, desk.project.path()]);
        assert!(chown.status().expect("chown").success());
    }
    program
}

fn command(desk: &Desk, program: &Path, args: &[&str]) -> Command {
    let mut command = if is_root() {
        let mut command = clean_command("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(program);
        command
    } else {
        clean_command(program)
    };
    command.args(args).env_clear().envs(desk.variables().to_vec()).current_dir(desk.project.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn an_ordinary_user_is_served_and_their_agent_cannot_look_into_the_engine() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, SPY));
    desk.set("DEPLOY_TOKEN", SECRET);
    desk.leaves_nothing_to_replay("it is another user's");
    let program = hand_over(&desk);
    let towline = |args: &[&str]| finish(command(&desk, &program, args).spawn().expect("towline starts"));
    let ran = towline(&[
        "run",
        "look around",
        "--check",
        "test -e done.txt && test -z \"$DEPLOY_TOKEN\"",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read =
        |name: &str| std::fs::read_to_string(desk.home.path().join(name)).expect("what the agent found");
    assert!(read("engine.command").contains(" run look around"), "{}", read("engine.command"));
    assert_ne!(read("user").trim(), "0");
    let engine = read("readable");
    assert_eq!(engine, "", "the agent can read this of the engine or its supervisor");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    for args in [&["show", &goal][..], &["verify", &goal], &["merge", &goal], &["rm", &goal], &["gc"]] {
        let ran = towline(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
}
