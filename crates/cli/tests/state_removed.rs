//! An agent or a check that removes Towline's own files while they are in use: the run ends within seconds with an error
//! that names what is gone, and nothing else is lost.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::time::{Duration, Instant};

use support::{Desk, LIMIT, Ran, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

/// How long a run may take to notice and to end everything.
const SECONDS: Duration = Duration::from_secs(15);

/// An agent that does this in its turn and then works on, with a tool in a session of its own. The state directory is `$state`.
fn desk(commands: &str) -> Desk {
    let mut desk = Desk::new();
    let body = format!(
        "state='{}'\nawait_prompt\ninit\nsetsid sleep 600 </dev/null >/dev/null 2>&1 &\n{commands}\nassistant 'Working.'\nlinger\n",
        desk.home.towline().display()
    );
    let script = hostile::with_body(&desk.home.path(), "removes", &body);
    desk.configure(&format!("[agents.claude]\ncommand = [{:?}]\n", script.display().to_string()));
    desk.leaves_nothing_to_replay("its logs are removed");
    desk
}

/// Runs a goal, which must end with an error about this path, leave no process and not touch the repository.
fn assert_ends(desk: &Desk, args: &[&str], gone: &str) -> Ran {
    let before = (desk.project.git(["rev-parse", "HEAD"]), desk.project.git(["status", "--porcelain"]));
    let started = Instant::now();
    let ran = desk.towline([&["run", "fix it", "--budget", "attempts=3"], args].concat());
    assert!(started.elapsed() < SECONDS, "{:?} {ran:?}", started.elapsed());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).expect("an error");
    assert!(error.starts_with(&format!("error: {gone}")), "{error}");
    assert!(error.contains(" was removed "), "{error}");
    assert!(ran.stderr.contains("\n  hint: "), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.stderr);
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(2));
    let after = (desk.project.git(["rev-parse", "HEAD"]), desk.project.git(["status", "--porcelain"]));
    assert_eq!(after, before);
    ran
}

#[test]
fn without_the_state_directory_a_run_ends_and_does_not_make_it_anew() {
    // At once: a removal that takes its time is cut off in the middle.
    let desk = desk(r#"mv "$state" "$state.gone""#);
    let home = desk.home.towline();
    assert_ends(&desk, &["--check", "true"], &home.display().to_string());
    assert!(!home.exists(), "{:?}", desk.state());
}

#[test]
fn without_the_database_a_run_ends() {
    let desk = desk(r#"rm -f "$state"/towline.db*"#);
    let database = desk.home.towline().join("towline.db");
    assert_ends(&desk, &["--check", "true"], &database.display().to_string());
    assert!(!database.exists());
}

#[test]
fn without_the_logs_of_attempts_a_run_ends_and_the_goal_can_be_resumed() {
    let desk = desk(
        r#"
if mkdir "$HOME/once" 2>/dev/null; then rm -rf "$state/attempts"; else
  assistant 'Done.'; result false null 'Done.'; while read -r line; do :; done; exit 0
fi"#,
    );
    let attempts = desk.home.towline().join("attempts");
    assert_ends(&desk, &["--check", "true"], &attempts.display().to_string());
    let goal = desk.only_goal();
    let resumed = desk.towline(["run", "--goal", &goal]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn an_agent_whose_directory_was_removed_while_no_engine_ran_is_ended_before_the_next_one_starts() {
    let body = r#"
await_prompt
init
if test -e "$HOME/pid"; then
  if kill -0 "$(cat "$HOME/pid")" 2>/dev/null; then : > "$HOME/beside"; fi
  assistant 'Done.'; result false null 'Done.'; while read -r line; do :; done; exit 0
fi
assistant 'Working.'
echo $$ > "$HOME/pid"
linger
"#;
    let mut desk = Desk::with_script(|dir| hostile::with_body(dir, "first", body));
    desk.leaves_nothing_to_replay("its logs are removed");
    let mut towline = desk.start(["run", "go on", "--check", "true", "--json"]);
    wait_for(LIMIT, "the agent to work", || {
        std::fs::read_to_string(desk.home.path().join("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    std::fs::remove_dir_all(desk.home.towline().join("attempts")).expect("removed");
    let ran = desk.towline(["run", "--goal", &desk.only_goal(), "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(of_attempts(&ran.json(), "end"), ["lost", "completed"]);
    assert!(!desk.home.path().join("beside").exists(), "two agents at the same time");
}

#[test]
fn without_its_workspace_a_run_ends() {
    let desk = desk(r#"rm -rf "$state/workspaces""#);
    let workspaces = desk.home.towline().join("workspaces");
    assert_ends(&desk, &["--check", "true"], &workspaces.display().to_string());
}

#[test]
fn a_check_that_removes_the_state_directory_ends_the_run() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let home = desk.home.towline();
    let remove = format!("mv '{0}' '{0}.gone'; sleep 600", home.display());
    assert_ends(&desk, &["--check", &remove], &home.display().to_string());
    assert!(!home.exists());
}

#[test]
fn a_check_that_removes_the_state_directory_ends_a_verification() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    desk.leaves_nothing_to_replay("its logs are removed");
    let (home, now) = (desk.home.towline(), desk.home.path().join("now"));
    let check = format!("test ! -e '{}' || {{ rm -rf '{}'; sleep 600; }}", now.display(), home.display());
    let done = desk.towline(["run", "fix it", "--check", &check, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    std::fs::write(&now, "").expect("written");
    let started = Instant::now();
    let ran = desk.towline(["verify", done.json()["id"].as_str().expect("an id")]);
    assert!(started.elapsed() < SECONDS, "{:?} {ran:?}", started.elapsed());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let named = format!("error: {} was removed or replaced while towline was using it", home.display());
    assert!(ran.stderr.contains(&named), "{}", ran.stderr);
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(2));
    assert!(!home.exists(), "{:?}", desk.state());
}
