//! What a process takes of the machine, as `/proc` shows it.

use std::fs;
use std::time::{Duration, Instant};

use towline_testkit::scratch::wait_for;

/// Nothing left of the start takes longer than this between two steps.
const REST: Duration = Duration::from_millis(500);
/// Far more than any start needs, on a busy machine, too.
const LIMIT: Duration = Duration::from_secs(90);

/// What a process has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    /// Processor time, in hundredths of a second.
    pub(crate) ticks: u64,
    /// How often its threads went to sleep.
    pub(crate) switches: u64,
}

/// What processes did in a time.
pub(crate) struct Watched<const COUNT: usize> {
    pub(crate) work: [Work; COUNT],
    pub(crate) seconds: f64,
}

/// Watches processes for a time.
pub(crate) fn watch<const COUNT: usize>(pids: [u32; COUNT], time: Duration) -> Watched<COUNT> {
    let (before, begun) = (pids.map(work_of), Instant::now());
    std::thread::sleep(time);
    let seconds = begun.elapsed().as_secs_f64();
    let mut work = pids.map(work_of);
    for (after, before) in work.iter_mut().zip(before) {
        after.ticks -= before.ticks;
        // A thread that has ended no longer counts.
        after.switches = after.switches.saturating_sub(before.switches);
    }
    Watched { work, seconds }
}

/// Waits until a process has done all that there is to do at its start.
pub(crate) fn wait_for_rest(pid: u32) {
    wait_for(LIMIT, "the process to come to rest", || {
        let before = work_of(pid);
        std::thread::sleep(REST);
        work_of(pid) == before
    });
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
pub(crate) fn pss_of(pid: u32) -> f64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    let (text, field) = match read("smaps_rollup") {
        Ok(rollup) => (rollup, "Pss:"),
        Err(_) => (read("status").expect("a process"), "VmRSS:"),
    };
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("its share");
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024.0
}
