//! What Towline takes of the machine: memory and waiting of what runs beside an agent, and the program itself.
//!
//! `cargo xtask bench` runs it. The agent prints nothing and sleeps; neither the engine nor the supervisor has anything to do.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

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
    // What was to be done at the start is done when nobody has worked for a while.
    let engine = towline.id();
    wait_for_some(LIMIT, "the engine to come to rest", || {
        let before = work_of(engine);
        std::thread::sleep(Duration::from_millis(500));
        (work_of(engine) == before).then_some(())
    });
    let before = (work_of(engine), work_of(supervisor));
    let begun = Instant::now();
    std::thread::sleep(WATCHED);
    let seconds = begun.elapsed().as_secs_f64();
    let after = (work_of(engine), work_of(supervisor));
    let (pss, engine_pss) = (pss_of(supervisor), pss_of(engine));
    towline.kill().and_then(|()| towline.wait()).expect("towline ends");
    drop(desk);

    Figure::new(SECTION, "the supervisor of an agent, PSS", pss / 1e6, "MB")
        .below(4.0)
        .beside(format!("the engine: {} MB", shown(engine_pss / 1e6)))
        .print();
    for (who, before, after) in [("idle engine", before.0, after.0), ("idle supervisor", before.1, after.1)] {
        let switches = after.switches.saturating_sub(before.switches) as f64 / seconds;
        let beside = format!("{} times awake a second, over {} s", shown(switches), shown(seconds.round()));
        let ticks = (after.ticks - before.ticks) as f64;
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

/// What a process has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    /// Processor time, in hundredths of a second.
    ticks: u64,
    /// How often its threads went to sleep.
    switches: u64,
}

fn work_of(pid: u32) -> Work {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    // Behind the name, which may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let switches = tasks.map(|task| {
        let status = fs::read_to_string(task.expect("a thread").path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |count| count.trim().parse().expect("a number"))
    });
    Work { ticks, switches: switches.sum() }
}

/// The memory of a process in bytes, with its share of what it shares. Of a process that refuses to be looked at, only root can
/// read that; for others it is all that it has in memory.
fn pss_of(pid: u32) -> f64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    let (text, field) = match read("smaps_rollup") {
        Ok(rollup) => (rollup, "Pss:"),
        Err(_) => (read("status").expect("a process"), "VmRSS:"),
    };
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("its share");
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024.0
}
