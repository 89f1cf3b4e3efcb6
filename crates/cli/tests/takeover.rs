//! Goals that lost their engine or the agent's supervisor, with scripts in the place of an agent: what was under way is
//! completed, and nothing is left running.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{clean_command, processes_with, wait_for, wait_until_process_tree_gone};

/// An agent in the middle of a turn, with a tool in a session of its own; both ignore what asks them to end.
const STUBBORN: &str = r#"
trap '' INT TERM HUP
await_prompt
init
setsid sh -c 'setsid sleep 600 & sleep 600' </dev/null >/dev/null 2>&1 &
assistant 'Working.'
: > "$HOME/working"
linger
"#;

fn stubborn_desk(settings: &str) -> Desk {
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "stubborn", STUBBORN));
    desk.agent_settings(settings);
    desk
}

/// A goal whose agent works.
fn working(desk: &Desk) -> (Child, String) {
    let towline = desk.start(["run", "never stop", "--check", "true", "--budget", "errors=1", "--json"]);
    wait_for(LIMIT, "the agent to work", || desk.home.path().join("working").exists());
    (towline, desk.only_goal())
}

fn kill(mut towline: Child) {
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
}

fn assert_nothing_is_left(desk: &Desk) {
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
}

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a time").parse().expect("a time")
}

#[test]
fn an_abandoned_goal_can_be_cancelled_and_nothing_is_left() {
    let desk = stubborn_desk("stop_grace = \"100ms\"");
    let (towline, goal) = working(&desk);
    kill(towline);
    assert!(!processes_with(&desk.home.marker()).is_empty(), "the agent went down with towline");
    let short = &goal[goal.len() - 8..];
    let listed = desk.towline(["ls"]).stdout;
    let left = format!("no engine is running {short}; resume it with: towline run --goal {short}");
    assert_eq!(listed.lines().last(), Some(&*left), "{listed}");
    let cancelled = desk.towline(["cancel", &goal]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_nothing_is_left(&desk);
    assert!(!desk.towline(["ls"]).stdout.contains("no engine is running"));
    let report = desk.show(&goal);
    assert_eq!(
        (&report["phase"], of_attempts(&report, "end")),
        (&json!("cancelled"), vec![json!("cancelled")])
    );
}

#[test]
fn a_stop_that_was_under_way_is_completed() {
    let desk = stubborn_desk("stop_grace = \"2s\"");
    let (towline, goal) = working(&desk);
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    desk.wait_for_phase(&goal, "stopping");
    kill(towline);
    let ran = desk.towline(["run", "--goal", &goal, "--json"]);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(of_attempts(&ran.json(), "end"), ["cancelled"]);
    assert_nothing_is_left(&desk);
}

#[test]
fn a_pause_that_was_under_way_is_not_longer_for_a_restart() {
    let body = r#"
await_prompt
init
test -e "$HOME/died" || { : > "$HOME/died"; exit 1; }
assistant 'Recovered.'
result false null 'Recovered.'
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "recovers", body));
    let towline = desk.start(["run", "recover", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    let until = time(&desk.wait_for_phase(&goal, "sleeping")["until"]);
    kill(towline);
    let ran = desk.towline(["run", "--goal", &goal, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    let began = time(&report["attempts"][1]["started_at"]);
    assert!(began >= until && began.duration_since(until) < SignedDuration::from_secs(2), "{until} {began}");
}

#[test]
fn an_agent_whose_supervisor_was_killed_leaves_nothing_and_the_goal_goes_on() {
    let body = r#"
await_prompt
init
if ! test -e "$HOME/working"; then
  setsid sh -c 'trap "" INT TERM HUP; setsid sleep 600 & sleep 600' </dev/null >/dev/null 2>&1 &
  assistant 'Working.'
  : > "$HOME/working"
  linger
fi
assistant 'Done.'
result false null 'Done.'
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "orphan", body));
    let towline = desk.start(["run", "go on", "--check", "true", "--json"]);
    wait_for(LIMIT, "the agent to work", || desk.home.path().join("working").exists());
    let dir = desk.home.towline().join(format!("attempts/{}/1", desk.only_goal()));
    let supervisor =
        towline_process::supervisor_process(&dir).expect("its identity").expect("the supervisor");
    let supervisor = Pid::from_raw(i32::try_from(supervisor.pid).expect("a pid")).expect("a pid");
    kill_process(supervisor, Signal::KILL).expect("killed");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["lost", "completed"]);
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
    assert_nothing_is_left(&desk);
}

#[test]
fn an_agent_that_kills_its_supervisor_and_forges_its_end_has_no_process_left_when_its_work_is_judged() {
    let body = r#"
await_prompt
init
echo work > work.txt
env -i setsid sh -c 'echo $$ > "$1"; exec sleep 600' sh "$HOME/left" </dev/null >/dev/null 2>&1 &
while ! test -s "$HOME/left"; do sleep 0.02; done
for run in "$TOWLINE_HOME"/attempts/*/1; do
  echo '{"code":0,"signal":null,"spawn_error":null,"started_at_ms":1,"ended_at_ms":2,"stopped":null,
    "leftovers_killed":0,"stdout_bytes":0,"stderr_bytes":0}' > "$run/exit.json"
done
: > "$HOME/working"
kill -9 $PPID
linger
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "usurper", body));
    let check = "test -s $HOME/left && ! kill -0 $(cat $HOME/left)";
    let ran = desk.towline(["run", "be alone", "--check", check, "--json"]);
    assert!(desk.home.path().join("working").exists(), "{ran:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_nothing_is_left(&desk);
}

#[test]
fn what_an_agent_left_that_killed_its_supervisor_and_its_engine_is_ended_before_the_goal_goes_on() {
    let body = r#"
await_prompt
init
if ! test -e "$HOME/left"; then
  env -i setsid sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 600' sh "$HOME/left" </dev/null >/dev/null 2>&1 &
  while ! test -e "$HOME/left"; do sleep 0.02; done
  kill -9 "$(sed 's/.*) . //' /proc/$PPID/stat | cut -d' ' -f1)" $PPID
  linger
fi
kill -0 "$(cat "$HOME/left")" && : > "$HOME/survived"
assistant 'Done.'
result false null 'Done.'
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "killer", body));
    let check = "! kill -0 $(cat $HOME/left) && ! test -e $HOME/survived";
    let killed = desk.towline(["run", "be alone", "--check", check, "--json"]);
    assert_eq!(killed.code, None, "{killed:?}");
    let ran = desk.towline(["run", "--goal", &desk.only_goal(), "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(of_attempts(&ran.json(), "end"), ["lost", "completed"]);
    assert_nothing_is_left(&desk);
}

#[test]
fn a_program_that_an_agent_replaces_during_a_run_supervises_nothing() {
    let body = r#"
await_prompt
init
printf '#!/bin/sh\n: > "$HOME/replaced-ran"\n' > "$HOME/towline.new"
chmod 755 "$HOME/towline.new"
mv "$HOME/towline.new" "$HOME/towline-copy"
assistant 'Done.'
result false null 'Done.'
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "replaces", body));
    let copy = desk.home.path().join("towline-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_towline"), &copy).expect("a copy");
    let mut command = clean_command(copy);
    command.args(["run", "replace it", "--check", "true", "--json"]).envs(desk.variables().iter().cloned());
    command
        .current_dir(desk.project.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = finish(command.spawn().expect("towline starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!desk.home.path().join("replaced-ran").exists());
    assert_nothing_is_left(&desk);
}

#[test]
fn the_timeout_of_a_turn_counts_from_its_old_start_when_towline_was_killed_meanwhile() {
    let body = "\nawait_prompt\ninit\nassistant 'Working.'\n: > \"$HOME/working\"\nlinger\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "endless", body));
    desk.agent_settings("turn_timeout = \"6s\"\nidle_timeout = \"1h\"");
    let mut towline = desk.start(["run", "go on", "--check", "true", "--json"]);
    let began = Instant::now();
    wait_for(LIMIT, "the agent to work", || desk.home.path().join("working").exists());
    let goal = desk.only_goal();
    wait_for(LIMIT, "half of the turn's time", || began.elapsed() > Duration::from_secs(3));
    towline.kill().expect("killed");
    towline.wait().expect("gone");
    let towline = desk.start(["run", "--goal", &goal, "--json"]);
    let is_ring = |event: &Value| event["event"]["kind"] == "clock_ran_out";
    wait_for(LIMIT, "the clock to run out", || desk.events(&goal).iter().any(is_ring));
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    finish(towline);

    let ring = desk.events(&goal).into_iter().find(is_ring).expect("the clock");
    let started = time(&desk.show(&goal)["attempts"][0]["started_at"]);
    let took = time(&ring["at"]).duration_since(started);
    assert_eq!(ring["event"]["clock"], "turn");
    // Begun anew with the new towline, it would have run out after nine seconds at the earliest.
    assert!(took >= SignedDuration::from_secs(6) && took < SignedDuration::from_millis(8_900), "{took}");
}
