//! A machine without a sandbox.

use std::process::{Command, Stdio};

use towline_testkit::hostile;
use towline_testkit::scratch::{SANDBOX, clean_command};

use crate::support::{Desk, Ran, finish};

/// Runs `towline` where there is no bubblewrap, as far as it can see.
fn without_bubblewrap(desk: &Desk, words: &[&str]) -> Ran {
    let mut hidden = clean_command("bwrap");
    hidden.args(["--dev-bind", "/", "/"]);
    for place in ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"] {
        let is_own = !std::path::Path::new(place).parent().is_some_and(std::path::Path::is_symlink);
        if is_own && std::path::Path::new(place).is_file() {
            hidden.args(["--ro-bind", "/dev/null", place]);
        }
    }
    let towline: Command = desk.command(words);
    hidden.arg("--").arg(towline.get_program()).args(towline.get_args());
    hidden.env_clear().envs(desk.variables().iter().cloned()).current_dir(desk.project.path());
    hidden.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(hidden.spawn().expect("bubblewrap starts"))
}

#[test]
fn auto_is_level_1_without_bubblewrap() {
    let mut desk = Desk::with_script(hostile::well_behaved);
    desk.unset(SANDBOX);
    let ran = without_bubblewrap(&desk, &["run", "do it", "--check", "test -e done.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["trust"]["level"], 1, "{ran:?}");
}

#[test]
fn auto_is_level_2_with_bubblewrap() {
    let mut desk = Desk::with_script(hostile::well_behaved);
    desk.unset(SANDBOX);
    let ran = desk.towline(["run", "do it", "--check", "test -e done.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["trust"]["level"], 2, "{ran:?}");
}
