//! Where the figures come from: the machine, and what was typed.

use std::fs;

/// The machine and the commands, as the first lines of the figures.
pub(super) fn described(commands: &[String]) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|total| {
        let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
        Some(format!(", {} GiB of memory", kib.div_ceil(1024 * 1024)))
    });
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    let commands: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
    format!(
        "Machine: {cores} cores of {processor}{}, {} {}; its load when this was done: {load}.\n\n\
         `cargo xtask bench` ran {}.",
        memory.unwrap_or_default(),
        std::env::consts::OS,
        kernel.trim(),
        commands.join(", ")
    )
}

/// The value of a name in a file of `name: value` lines.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
