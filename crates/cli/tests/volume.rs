//! Output in masses: all of it is on disk, and neither towline nor its supervisor grows with it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Desk, LIMIT, Ran};
use towline_testkit::hostile;
use towline_testkit::scratch::processes_with;

const MIB: u64 = 1024 * 1024;
/// The most memory of its own that towline may have in use at any time, and its supervisor. Pages of the program's file are
/// not counted: all processes of the program share them, and their number depends on the size of the program.
const TOWLINE_PEAK: u64 = 180 * MIB;
const SUPERVISOR_PEAK: u64 = 4 * MIB;

/// How an agent ended that printed `flood` in the middle of a turn.
struct Flooded {
    report: Value,
    /// The log of its output.
    log: std::path::PathBuf,
    _desk: Desk,
}

/// Runs an agent whose turn is these commands, and watches how much memory it takes to keep up with it.
fn flood(commands: &str) -> Flooded {
    let body = format!(
        "await_prompt\ninit\n{commands}\nassistant 'The flood is over.'\nresult false null 'The flood is over.'\n\
         while IFS= read -r line; do :; done\n"
    );
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "floods", &body));
    let towline = desk.start(["run", "drown me", "--check", "true", "--json"]);
    let (ran, peaks) = watch(&desk, towline);
    assert_eq!(ran.code, Some(0), "{:?}", ran.stderr);
    for (process, peak) in &peaks {
        let most = if process.contains(" shim ") { SUPERVISOR_PEAK } else { TOWLINE_PEAK };
        assert!(*peak < most, "{process} took {} KiB", peak / 1024);
    }
    assert!(peaks.keys().any(|process| process.contains(" shim ")), "no supervisor was seen: {peaks:?}");
    let report = ran.json();
    let dir = Path::new(report["attempts"][0]["dir"].as_str().expect("a directory"));
    let log = dir.join("stdout.log");
    let record = std::fs::read_to_string(dir.join("exit.json")).expect("an exit record");
    let record: Value = serde_json::from_str(&record).expect("a record");
    assert_eq!(record["stdout_bytes"], log.metadata().expect("a log").len());
    Flooded { report, log, _desk: desk }
}

/// Waits for the end and gives the most memory that towline and its supervisors had in use, by their commands.
fn watch(desk: &Desk, mut towline: Child) -> (Ran, BTreeMap<String, u64>) {
    let program = env!("CARGO_BIN_EXE_towline");
    let marker = desk.home.marker();
    let mut peaks = BTreeMap::new();
    let deadline = Instant::now() + LIMIT;
    while towline.try_wait().expect("waited").is_none() {
        assert!(Instant::now() < deadline, "towline does not come to its end");
        let ours = processes_with(&marker).into_iter().filter(|found| found.command.starts_with(program));
        let supervisors = supervisors(desk).map(|pid| (format!("{program} shim ."), pid));
        for (command, pid) in ours.map(|found| (found.command, found.pid)).chain(supervisors) {
            // One that has just ended has no peak to show any more.
            if let Some(peak) = peak_of(pid) {
                peaks.insert(command, peak);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    (Ran::from(towline.wait_with_output().expect("its output")), peaks)
}

/// The supervisors of first attempts; their environment, by which others are found, cannot be read.
fn supervisors(desk: &Desk) -> impl Iterator<Item = u32> {
    let goals = std::fs::read_dir(desk.home.towline().join("attempts")).into_iter().flatten().flatten();
    goals.filter_map(|goal| Some(towline_process::supervisor_process(&goal.path().join("1")).ok()??.pid))
}

/// The largest resident set so far without the pages of files, in bytes.
fn peak_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some(kib("VmHWM:")?.saturating_sub(kib("RssFile:")?) * 1024)
}

/// The log holds, after the lines that begin the turn, exactly `times` of `piece`, and then the lines that end the turn.
fn assert_holds(log: &Path, piece: &[u8], times: u64) {
    let mut file = BufReader::with_capacity(MIB as usize, File::open(log).expect("the log"));
    let begin: Vec<Value> = (0..2).map(|_| next_frame(&mut file)["type"].clone()).collect();
    assert_eq!(begin, ["control_response", "system"]);
    let mut found = vec![0; piece.len()];
    for nth in 0..times {
        file.read_exact(&mut found).expect("as much as was printed");
        assert!(found == piece, "piece {nth} is not as it was printed");
    }
    let mut rest = String::new();
    file.read_to_string(&mut rest).expect("text");
    let mut rest = rest.as_bytes();
    let end: Vec<Value> = (0..2).map(|_| next_frame(&mut rest)["type"].clone()).collect();
    assert_eq!((end, rest), (vec![Value::from("assistant"), Value::from("result")], &b""[..]));
}

fn next_frame(log: &mut impl BufRead) -> Value {
    let mut line = Vec::new();
    log.read_until(b'\n', &mut line).expect("a line");
    serde_json::from_slice(&line).expect("a frame")
}

#[test]
fn a_line_of_a_hundred_megabytes_is_stored_whole_and_reported_as_too_long() {
    let flooded = flood("head -c 100000000 /dev/zero | tr '\\0' x\necho");
    assert_eq!(flooded.report["attempts"][0]["extras"]["unrecognised"], 1);
    let mut line = vec![b'x'; 100_000_000];
    line.push(b'\n');
    assert_holds(&flooded.log, &line, 1);
}

#[test]
fn a_million_short_lines_are_all_stored_and_counted() {
    let flooded = flood("yes '{\"type\":\"flood\"}' | head -n 1000000");
    assert_eq!(flooded.report["attempts"][0]["extras"]["unrecognised"], 1_000_000);
    assert_holds(&flooded.log, b"{\"type\":\"flood\"}\n", 1_000_000);
}

#[test]
fn a_gigabyte_of_output_is_all_stored() {
    // A thousand lines of a million bytes.
    let flooded = flood(
        "head -c 999999 /dev/zero | tr '\\0' x > \"$HOME/line\"\necho >> \"$HOME/line\"\n\
         n=0; while [ $n -lt 1000 ]; do cat \"$HOME/line\"; n=$((n + 1)); done",
    );
    assert_eq!(flooded.report["attempts"][0]["extras"]["unrecognised"], 1_000);
    let mut line = vec![b'x'; 999_999];
    line.push(b'\n');
    assert_holds(&flooded.log, &line, 1_000);
}
