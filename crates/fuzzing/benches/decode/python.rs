//! The official Python SDK, which takes its turns with us on the same file.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde::Deserialize;
use towline_testkit::scratch::clean_command;

/// The figures that the Python SDK reports.
#[derive(Debug, Deserialize)]
pub(crate) struct Versions {
    pub(crate) sdk: String,
    pub(crate) python: String,
}

/// What one reading of the file took.
#[derive(Debug, Deserialize)]
pub(crate) struct Reading {
    /// Of one core.
    pub(crate) seconds: f64,
    pub(crate) lines: usize,
    /// Lines that the SDK does not understand.
    pub(crate) refused: usize,
}

/// A Python that has the file in its memory, and waits.
pub(crate) struct Sdk {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub(crate) versions: Versions,
}

impl Sdk {
    /// Starts it with the interpreter that has the SDK.
    pub(crate) fn start(python: &Path, file: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/decode/claude_sdk.py");
        let mut command = clean_command(python);
        command.arg(script).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        let stdin = process.stdin.take().expect("its input");
        let mut stdout = BufReader::new(process.stdout.take().expect("its output"));
        let versions = answer(&mut stdout);
        Self { process, stdin, stdout, versions }
    }

    /// Has it read the file once.
    pub(crate) fn read(&mut self) -> Reading {
        writeln!(self.stdin, "again").expect("it listens");
        answer(&mut self.stdout)
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answer<T: serde::de::DeserializeOwned>(stdout: &mut impl BufRead) -> T {
    let mut line = String::new();
    stdout.read_line(&mut line).expect("its output");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("the Python SDK printed {line:?}: {error}"))
}
