//! How many tests a check ran, by the closing lines that test runners print: cargo test, nextest, pytest, jest, vitest and go test.
//!
//! What ran counts, whether it passed or failed; what was skipped does not. Several runs of one command add up. The code under test
//! runs in the same process as its tests and can print such lines as well: a count is evidence, not proof.

use std::io;

use serde::Deserialize;
use towline_core::plain_line;
use towline_process::{Framed, LineFramer, ReportedLog};

/// The longest line that is looked at. Closing lines are short.
const LINE_CAP: usize = 64 * 1024;

/// How much of a stream is looked at.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// What a pytest result is that ran.
const RAN_IN_PYTEST: [&str; 4] = ["passed", "failed", "xfailed", "xpassed"];

/// Every other word of pytest's closing line.
const OTHERS_IN_PYTEST: [&str; 8] =
    ["skipped", "deselected", "error", "errors", "warning", "warnings", "rerun", "reruns"];

/// The tests of one run, as far as its output is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    nextest: Option<u64>,
    go: Go,
    others: Option<u64>,
}

/// What `go test` printed: single tests only where it was asked for them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Go {
    tests: Option<u64>,
    packages: Option<u64>,
}

/// One line of `go test -json`.
#[derive(Deserialize)]
struct GoEvent {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Test")]
    test: Option<String>,
}

impl Counts {
    /// Adds what a stream of the run has. False if there is more of it than is looked at.
    pub(crate) fn read(&mut self, log: &mut ReportedLog) -> io::Result<bool> {
        let mut framer = LineFramer::with_cap(0, LINE_CAP);
        let mut looked_at = 0_u64;
        loop {
            let chunk = log.read()?;
            if chunk.is_empty() {
                framer.finish().into_iter().for_each(|last| self.add(last));
                return Ok(true);
            }
            looked_at += chunk.len() as u64;
            if looked_at > MOST_BYTES {
                return Ok(false);
            }
            framer.push(chunk);
            while let Some(line) = framer.pull() {
                self.add(line);
            }
        }
    }

    fn add(&mut self, framed: Framed<'_>) {
        let Framed::Line(line) = framed else { return };
        let text = String::from_utf8_lossy(line.bytes);
        // Most lines are none of these, and colours are rare.
        let text = if text.contains('\u{1b}') { plain_line(&text) } else { text.into_owned() };
        self.add_line(text.trim_end());
    }

    fn add_line(&mut self, line: &str) {
        let others = || cargo(line).or_else(|| jest(line)).or_else(|| vitest(line)).or_else(|| pytest(line));
        if let Some(ran) = nextest(line) {
            add_to(&mut self.nextest, ran);
        } else if !self.go.add(line)
            && let Some(ran) = others()
        {
            add_to(&mut self.others, ran);
        }
    }

    /// How many tests ran; none if no runner reported it. What nextest repeats of its failed tests has closing lines of another runner.
    pub(crate) fn total(&self) -> Option<u64> {
        if self.nextest.is_some() {
            return self.nextest;
        }
        let go = self.go.tests.or(self.go.packages);
        match (go, self.others) {
            (Some(go), Some(others)) => Some(go.saturating_add(others)),
            (go, others) => go.or(others),
        }
    }
}

impl Go {
    /// Whether the line is one of go's.
    fn add(&mut self, line: &str) -> bool {
        if line.starts_with("=== RUN ") {
            add_to(&mut self.tests, 1);
        } else if line.trim_start().starts_with("--- SKIP: ") {
            self.tests = self.tests.map(|tests| tests.saturating_sub(1));
        } else if line.starts_with("ok  \t") {
            let ran = !line.ends_with("[no tests to run]");
            add_to(&mut self.packages, ran.into());
        } else if line.starts_with("FAIL\t") {
            let ran = !line.ends_with("[build failed]") && !line.ends_with("[setup failed]");
            add_to(&mut self.packages, ran.into());
        } else if let Some(event) = event(line) {
            let ran = event.test.is_some() && matches!(event.action.as_str(), "pass" | "fail");
            add_to(&mut self.tests, ran.into());
        } else {
            return false;
        }
        true
    }
}

fn event(line: &str) -> Option<GoEvent> {
    (line.starts_with('{') && line.contains("\"Action\":")).then(|| serde_json::from_str(line).ok()).flatten()
}

/// `     Summary [   0.012s] 3/5 tests run: 2 passed, 1 failed, 2 skipped`
fn nextest(line: &str) -> Option<u64> {
    let (_, counts) = line.trim_start().strip_prefix("Summary [")?.split_once("] ")?;
    let (ran, _) = counts.split_once(" tests run: ").or_else(|| counts.split_once(" test run: "))?;
    number(ran.split('/').next()?)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s`
fn cargo(line: &str) -> Option<u64> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    sum(counts.split("; "), &["passed", "failed"])
}

/// `Tests:       1 failed, 1 skipped, 2 passed, 4 total`
fn jest(line: &str) -> Option<u64> {
    sum(line.strip_prefix("Tests:")?.split(", "), &["passed", "failed"])
}

/// `      Tests  1 failed | 2 passed | 1 skipped (4)`
fn vitest(line: &str) -> Option<u64> {
    let counts = line.trim_start().strip_prefix("Tests  ")?;
    let (counts, total) = counts.rsplit_once(" (")?;
    number(total.strip_suffix(')')?)?;
    sum(counts.split(" | "), &["passed", "failed"])
}

/// `=== 1 failed, 2 passed, 1 skipped in 0.12s ===`, with `-q` without the lines around it.
fn pytest(line: &str) -> Option<u64> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    if seconds.is_empty() || !seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    if counts == "no tests ran" {
        return Some(0);
    }
    let is_known = |part: &str| {
        let word = part.split_once(' ').map_or("", |(_, word)| word);
        RAN_IN_PYTEST.contains(&word) || OTHERS_IN_PYTEST.contains(&word) || word.starts_with("subtests ")
    };
    counts.split(", ").all(is_known).then(|| sum(counts.split(", "), &RAN_IN_PYTEST)).flatten()
}

/// The sum of the numbers before these words; none if a part is not a number and a word.
fn sum<'a>(parts: impl Iterator<Item = &'a str>, words: &[&str]) -> Option<u64> {
    let mut ran = 0_u64;
    for part in parts {
        let (count, word) = part.trim().split_once(' ')?;
        match number(count) {
            Some(count) if words.contains(&word) => ran = ran.saturating_add(count),
            Some(_) => {}
            // The last part of a line of cargo is a time.
            None if count == "finished" => {}
            None => return None,
        }
    }
    Some(ran)
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn add_to(sum: &mut Option<u64>, more: u64) {
    *sum = Some(sum.unwrap_or_default().saturating_add(more));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use towline_process::{ExitRecord, Stream};

    use super::*;

    fn total(output: &str) -> Option<u64> {
        let mut counts = Counts::default();
        output.lines().for_each(|line| counts.add_line(line.trim_end()));
        counts.total()
    }

    #[test]
    fn the_closing_lines_of_each_runner_count_what_ran() {
        for (output, expected) in [
            (
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s",
                3,
            ),
            (
                "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
                5,
            ),
            ("     Summary [   0.012s] 3 tests run: 3 passed, 1 skipped", 3),
            ("     Summary [   0.012s] 1 test run: 1 passed, 0 skipped", 1),
            ("     Summary [   0.102s] 3/5 tests run: 2 passed (1 slow), 1 failed, 2 skipped", 3),
            ("============== 1 failed, 2 passed, 1 skipped, 3 warnings in 0.12s ==============", 3),
            ("1 passed, 1 xfailed, 1 xpassed, 1 error in 61.20s (0:01:01)", 3),
            ("2 passed, 4 subtests passed in 0.01s", 2),
            ("============================ no tests ran in 0.01s =============================", 0),
            ("Tests:       1 failed, 1 skipped, 1 todo, 2 passed, 5 total", 3),
            ("Tests:       0 total", 0),
            ("      Tests  1 failed | 2 passed | 1 skipped (4)", 3),
            ("      Tests  12 passed (12)", 12),
            (
                "ok  \texample.com/a\t0.002s\nok  \texample.com/b\t(cached)\n?   \texample.com/c\t[no test files]",
                2,
            ),
            ("ok  \texample.com/a\t0.002s [no tests to run]", 0),
            ("--- FAIL: TestAdd (0.00s)\n    a_test.go:5: no\nFAIL\nFAIL\texample.com/a\t0.002s\nFAIL", 1),
            ("FAIL\texample.com/a [build failed]", 0),
            (
                "=== RUN   TestA\n=== RUN   TestA/one\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/one (0.00s)\n\
                 === RUN   TestB\n--- SKIP: TestB (0.00s)\nPASS\nok  \texample.com/a\t0.002s",
                2,
            ),
            (
                "{\"Action\":\"run\",\"Package\":\"a\",\"Test\":\"TestA\"}\n\
                 {\"Action\":\"pass\",\"Package\":\"a\",\"Test\":\"TestA\",\"Elapsed\":0}\n\
                 {\"Action\":\"fail\",\"Package\":\"a\",\"Test\":\"TestB\",\"Elapsed\":0}\n\
                 {\"Action\":\"skip\",\"Package\":\"a\",\"Test\":\"TestC\",\"Elapsed\":0}\n\
                 {\"Action\":\"fail\",\"Package\":\"a\",\"Elapsed\":0.002}",
                2,
            ),
        ] {
            assert_eq!(total(output), Some(expected), "{output}");
        }
    }

    #[test]
    fn the_runs_of_one_command_add_up_and_what_nextest_repeats_does_not() {
        let binary =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(total(&format!("{binary}\nrunning 2 tests\n{binary}\n1 passed in 0.01s\n")), Some(5));
        let nextest =
            format!("{binary}\n     Summary [   0.012s] 3 tests run: 2 passed, 1 failed, 0 skipped");
        assert_eq!(total(&nextest), Some(3));
    }

    #[test]
    fn no_other_line_counts() {
        for output in [
            "",
            "3 passed",
            "built in 0.12s",
            "5 files changed in 0.12s",
            "test result: unknown",
            "Tests:",
            "Tests: fine",
            "Tests  are good (very)",
            "Summary [x",
            "{\"Action\":",
            "Tests:       99999999999999999999999999 passed, 1 total",
        ] {
            assert_eq!(total(output), None, "{output}");
        }
    }

    fn read(run: &Path, text: &[u8]) -> (Option<u64>, bool) {
        std::fs::write(run.join("stdout.log"), text).unwrap();
        let record = ExitRecord { stdout_bytes: text.len() as u64, ..ExitRecord::default() };
        let mut log = ReportedLog::open(run, Stream::Stdout, &record).unwrap();
        let mut counts = Counts::default();
        let is_whole = counts.read(&mut log).unwrap();
        (counts.total(), is_whole)
    }

    #[test]
    fn hostile_output_is_read_within_bounds() {
        let run = tempfile::tempdir().unwrap();
        let mut output = vec![b'x'; 4 * LINE_CAP];
        output
            .extend_from_slice(b"\n\xff\xfe\n\x1b[1mTests:\x1b[22m       \x1b[32m2 passed\x1b[39m, 2 total");
        assert_eq!(read(run.path(), &output), (Some(2), true));
        let many = "test result: ok. 18446744073709551615 passed; 1 failed\n".repeat(2);
        assert_eq!(read(run.path(), many.as_bytes()), (Some(u64::MAX), true));
    }
}
