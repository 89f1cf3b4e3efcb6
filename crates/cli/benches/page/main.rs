//! The page in a real browser, beside fifty agents that work and with a goal of 100,000 events.
//!
//! `cargo xtask bench` runs it, after `cargo xtask setup`. The server is the release program, `web/tests/figures.mjs` is who looks. With the
//! argument `agent` this program is the agent that the server starts.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

#[allow(dead_code, reason = "each bench uses its part of this")]
#[path = "../pool/agent.rs"]
mod agent;
mod history;
#[allow(dead_code, reason = "each bench uses its part of this")]
#[path = "../pool/server.rs"]
mod server;
#[path = "../shared/stored.rs"]
mod stored;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::Path;

use serde_json::Value;
use towline_core::{GoalState, PauseReason, Phase};
use towline_testkit::agents::page_folder;
use towline_testkit::figures::{Figure, shown};
use towline_testkit::scratch::clean_command;

use server::Server;
use stored::{AGENT, Template, fill};
use support::Desk;

const SECTION: &str = "The page, with 50 agents at once";
const AGENTS: usize = 50;
/// How many seconds the browser may take for all of it.
const LONGEST: &str = "240";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(agent::ARGUMENT) => agent::run(Path::new(&arguments[2]), &arguments[3..]),
        _ => measure(),
    }
}

fn measure() {
    let mut desk = Desk::new();
    desk.leaves_nothing_to_replay("its attempts are there to be measured");
    let (program, stop) = (std::env::current_exe().expect("this program"), desk.home.path().join("stop"));
    desk.configure(&format!(
        "[defaults]\nagents = [\"{AGENT}\"]\n[agents.{AGENT}]\nkind = \"claude\"\ncommand = [{program:?}, \"{}\", {stop:?}]\n",
        agent::ARGUMENT
    ));
    let template = Template::of(&desk.project);
    let (crowd, long) = (template.goal(0), template.goal(AGENTS));
    let database = desk.home.towline().join("towline.db");
    let paused =
        GoalState { phase: Phase::Paused { reason: PauseReason::Operator }, ..GoalState::new(&long) };
    let goals = (0..AGENTS).map(|number| template.goal(number));
    let goals = goals.map(|goal| (GoalState::new(&goal), goal));
    fill(&database, goals.chain([(paused.clone(), long.clone())]));
    history::write(&database, &long, &paused);

    let server = Server::up(&desk, AGENTS);
    let seen = look(&desk, &[crowd.id.to_string(), long.id.to_string()]);
    std::fs::write(&stop, "").expect("the agents can be stopped");
    server.down(&desk);
    report(&seen);
}

/// What the browser measured.
fn look(desk: &Desk, goals: &[String]) -> Value {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    // Its packages are there for the tests, too.
    let packages = page_folder();
    let mut browser = clean_command("timeout");
    browser.args(["--kill-after=10", LONGEST, "node", "tests/figures.mjs"]).args(goals).current_dir(web);
    browser.env_clear().envs(desk.variables().iter().cloned());
    let open = desk.towline(["open", "--json"]).stdout;
    browser.env("TOWLINE_OPEN", open).stderr(std::process::Stdio::inherit());
    let output = browser.output().expect("node starts");
    assert!(output.status.success(), "{} with {}", output.status, packages.display());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn report(seen: &Value) {
    let number = |name: &str| seen[name].as_f64().expect(name);
    Figure::new(SECTION, "the first load, compressed", number("compressed") / 1e3, "kB")
        .below(200.0)
        .beside(format!("{} kB as sent over the loopback interface", shown(number("sent") / 1e3)))
        .print();
    Figure::new(SECTION, "until the board shows its goals and takes keys", number("interactive"), "ms")
        .below(1_000.0)
        .print();
    let late = format!(
        "{} messages; median: {} ms, longest: {} ms",
        shown(number("messages")),
        shown(number("lateMedian")),
        shown(number("lateLongest"))
    );
    Figure::new(SECTION, "what an agent writes, until it is on the page, p95", number("late"), "ms")
        .below(150.0)
        .beside(late)
        .print();
    Figure::new(SECTION, "a goal with 100,000 events opens", number("opens"), "ms").below(1_000.0).print();
    let frames = format!("{} frames; p99: {} ms", shown(number("frames")), shown(number("frameP99")));
    Figure::new(SECTION, "the longest frame while its log scrolls", number("longestFrame"), "ms")
        .below(50.0)
        .beside(frames)
        .print();
    Figure::new(SECTION, "the memory of the tab, PSS at the end", number("memory") / 1e6, "MB")
        .below(200.0)
        .beside(format!("JavaScript uses {} MB of it", shown(number("heap") / 1e6)))
        .print();
}
