//! A system clock that is set while an agent works ends nothing, with the same engine and with one that adopts the attempt.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{SetClock, wait_for};

const TWO_HOURS: i64 = 7_200;

/// Prints nothing until the file `go` is there. A line on stderr then wakes the engine and does not count as activity.
const QUIET: &str = r#"
await_prompt
init
assistant 'Working.'
: > "$HOME/working"
while ! test -e "$HOME/go"; do sleep 0.05; done
echo quiet >&2
sleep 1
assistant 'Done.'
result false null 'Done.'
"#;

fn desk(clock: &SetClock) -> Desk {
    let mut desk = Desk::with_script(|dir| hostile::with_body(dir, "quiet", QUIET));
    desk.agent_settings("idle_timeout = \"10m\"\nturn_timeout = \"1h\"");
    for (name, value) in clock.variables() {
        desk.set(&name, &value);
    }
    desk
}

#[test]
fn a_clock_that_is_set_ends_no_quiet_agent() {
    for (seconds, is_killed) in [(TWO_HOURS, false), (TWO_HOURS, true), (-TWO_HOURS, true)] {
        let clock = SetClock::new().expect("a clock");
        let desk = desk(&clock);
        // While no engine runs, only the clock shows how much time has passed.
        let budget = if is_killed { "wall=1d" } else { "wall=1h" };
        let mut towline =
            desk.start(["run", "take your time", "--check", "true", "--budget", budget, "--json"]);
        wait_for(LIMIT, "the agent to work", || desk.home.path().join("working").exists());
        let goal = desk.only_goal();
        clock.set(seconds).expect("the clock is set");
        if is_killed {
            towline.kill().expect("killed");
            towline.wait().expect("reaped");
            towline = desk.start(["run", "--goal", &goal, "--json"]);
            let claims =
                || desk.events(&goal).iter().filter(|event| event["event"]["kind"] == "claimed").count();
            wait_for(LIMIT, "another engine", || claims() == 2);
        }
        std::fs::write(desk.home.path().join("go"), "").expect("written");
        let ran = finish(towline);
        assert_eq!(ran.code, Some(0), "{seconds} s, killed: {is_killed}: {ran:?}");
        assert_eq!(of_attempts(&ran.json(), "end"), ["completed"], "{seconds} s, killed: {is_killed}");
    }
}
