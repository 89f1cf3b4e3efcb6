//! What Towline takes of the machine: memory and waiting of what runs beside an agent, and the program itself.
//!
//! `cargo xtask bench` runs it. The agent prints nothing and sleeps; neither the engine nor the supervisor has anything to do.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

#[path = "shared/processes.rs"]
mod processes;
#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use processes::{Watched, pss_of, wait_for_rest, watch};
use support::{Desk, LIMIT};
use towline_testkit::figures::{Figure, median, shown};
use towline_testkit::scratch::{clean_command, processes_with, wait_for_some};

const SECTION: &str = "The footprint";
const PROGRAM: &str = env!("CARGO_BIN_EXE_towline");
/// How long the idle processes are watched.
const WATCHED: Duration = Duration::from_secs(10);
/// How often the help is printed.
const TIMES: usize = 50;

fn main() {
    idle();
    program();
}

/// An engine whose agent is silent, and its supervisor.
fn idle() {
    let desk = Desk::new();
    desk.configure("[defaults]\nagents = [\"silent\"]\n[agents.silent]\nkind = \"command\"\ncommand = [\"sleep\", \"600\"]\n");
    let mut command = desk.command(["run", "print nothing", "--check", "true"]);
    let mut towline = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("towline starts");
    let marker = desk.home.marker();
    let supervisor = wait_for_some(LIMIT, "the supervisor", || {
        processes_with(&marker).iter().find(|found| found.command.starts_with("sleep "))?;
        let dir = desk.home.towline().join(format!("attempts/{}/1", desk.only_goal()));
        towline_process::supervisor_process(&dir).expect("its identity").map(|supervisor| supervisor.pid)
    });
    let engine = towline.id();
    wait_for_rest(engine);
    let Watched { work, seconds } = watch([engine, supervisor], WATCHED);
    let (pss, engine_pss) = (pss_of(supervisor), pss_of(engine));
    towline.kill().and_then(|()| towline.wait()).expect("towline ends");
    drop(desk);

    Figure::new(SECTION, "the supervisor of an agent, PSS", pss / 1e6, "MB")
        .below(4.0)
        .beside(format!("the engine: {} MB", shown(engine_pss / 1e6)))
        .print();
    for (who, work) in ["idle engine", "idle supervisor"].into_iter().zip(work) {
        let switches = work.switches as f64 / seconds;
        let beside = format!("{} times awake a second, over {} s", shown(switches), shown(seconds.round()));
        let ticks = work.ticks as f64;
        Figure::new(SECTION, format!("{who}, processor time"), ticks, "ticks")
            .below(1.0)
            .beside(beside)
            .print();
    }
}

/// The program itself.
fn program() {
    let size = fs::metadata(PROGRAM).expect("the program").len();
    Figure::new(SECTION, "the program", size as f64 / 1e6, "MB").below(25.0).print();
    let rounds: Vec<(f64, f64)> =
        (0..TIMES).map(|_| (millis_of(PROGRAM, &["--help"]), millis_of("true", &[]))).collect();
    let help = median(rounds.iter().map(|(help, _)| *help));
    let beside = format!("`true`: {} ms", shown(median(rounds.iter().map(|(_, nothing)| *nothing))));
    Figure::new(SECTION, "`towline --help`", help, "ms").below(10.0).beside(beside).print();
}

fn millis_of(program: &str, arguments: &[&str]) -> f64 {
    let begun = Instant::now();
    let output = clean_command(program).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    begun.elapsed().as_secs_f64() * 1e3
}
