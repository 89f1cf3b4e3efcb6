//! The program that a supervisor runs: `launch.json`, written before the supervisor starts and never changed after.
//!
//! The environment is not in it, because it holds secrets: it reaches the program as the supervisor's own.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::millis;
use crate::files;

/// What the program's standard streams are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdio {
    /// A pipe each.
    #[default]
    Pipes,
    /// Pipes, but for the standard output, which is the log itself: for programs that lose the end of what they print to
    /// a pipe when they exit. Nobody can know when such an output is closed: a run with it drains until its tree is gone,
    /// and has no use for [`Launch::closed_output_grace`]. Only on Linux.
    OutputFile,
    /// All three are one terminal, which is also the controlling one. It echoes nothing, makes no signals of what is
    /// written to it, and changes no byte on its way out; whatever the program sets instead holds. All output is standard
    /// output.
    ///
    /// It gives out whole lines, however long they are, and an end of input once standard input is closed: that is what
    /// programs expect that do not read single keys. One that does gets no end of input, because terminals have none for it.
    /// The byte `0xFF`, which no text in UTF-8 has, means the end and cannot be written.
    Terminal(WindowSize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowSize {
    pub columns: u16,
    pub rows: u16,
}

/// How much of the machine a program gets when others want it, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// As much as whoever started it.
    #[default]
    Normal,
    /// What is left over.
    Low,
}

/// One program to run under a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments; a bare name is looked up in the run's own `PATH`.
    pub argv: Vec<String>,
    /// A command line that starts a sandbox around the one that follows it; empty without one.
    pub sandbox: Vec<String>,
    /// Whether the first process of the sandbox stays, ignores the signals that ask a program to end, and ends with the program that
    /// it starts as its grandchild. Otherwise it becomes the program.
    pub sandbox_stays: bool,
    /// The directory the program starts in.
    pub cwd: PathBuf,
    /// How long the run may last before the supervisor ends it by itself, whether or not anybody is connected. Clients can
    /// [extend](crate::SupervisorHandle::extend) it. The time in which the machine is suspended does not count.
    pub lifetime: Duration,
    /// How long the program may take to end after the SIGINT that begins a stop.
    pub interrupt_grace: Duration,
    /// How long the tree may take to end between SIGTERM and SIGKILL.
    pub term_grace: Duration,
    /// How long processes that outlive the program may go on writing before they are ended.
    pub drain: Duration,
    /// How long the program may take to end once nobody holds its standard output open any more; without it, as long
    /// as it likes.
    pub closed_output_grace: Option<Duration>,
    /// What its standard streams are.
    pub stdio: Stdio,
    /// How much of the machine it gets.
    pub priority: Priority,
}

/// The form of [`Launch`] on disk.
#[derive(Serialize, Deserialize)]
struct LaunchFile {
    argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sandbox: Vec<String>,
    #[serde(default)]
    sandbox_stays: bool,
    cwd: PathBuf,
    lifetime_ms: u64,
    interrupt_grace_ms: u64,
    term_grace_ms: u64,
    drain_ms: u64,
    #[serde(default)]
    closed_output_grace_ms: Option<u64>,
    #[serde(default)]
    stdio: Stdio,
    #[serde(default)]
    priority: Priority,
}

impl Launch {
    /// The launch of the run in `dir`. Anybody who runs as the same user can have written it.
    pub fn read(dir: &Path) -> io::Result<Self> {
        Ok(Self::from_json(&towline_files::read(&dir.join(files::LAUNCH), files::LAUNCH_BYTES)?)?)
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(&LaunchFile {
            argv: self.argv.clone(),
            sandbox: self.sandbox.clone(),
            sandbox_stays: self.sandbox_stays,
            cwd: self.cwd.clone(),
            lifetime_ms: millis(self.lifetime),
            interrupt_grace_ms: millis(self.interrupt_grace),
            term_grace_ms: millis(self.term_grace),
            drain_ms: millis(self.drain),
            closed_output_grace_ms: self.closed_output_grace.map(millis),
            stdio: self.stdio,
            priority: self.priority,
        })
    }

    pub(crate) fn from_json(bytes: &[u8]) -> serde_json::Result<Self> {
        let file: LaunchFile = serde_json::from_slice(bytes)?;
        Ok(Self {
            argv: file.argv,
            sandbox: file.sandbox,
            sandbox_stays: file.sandbox_stays,
            cwd: file.cwd,
            lifetime: Duration::from_millis(file.lifetime_ms),
            interrupt_grace: Duration::from_millis(file.interrupt_grace_ms),
            term_grace: Duration::from_millis(file.term_grace_ms),
            drain: Duration::from_millis(file.drain_ms),
            closed_output_grace: file.closed_output_grace_ms.map(Duration::from_millis),
            stdio: file.stdio,
            priority: file.priority,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_survives_its_file_form() {
        let mut launch = Launch {
            argv: vec!["program".into(), "-x".into(), "zwei Wörter".into()],
            sandbox: vec!["confine".into(), "--".into()],
            sandbox_stays: true,
            cwd: "/somewhere/deep".into(),
            lifetime: Duration::from_millis(1_800_123),
            interrupt_grace: Duration::from_millis(1500),
            term_grace: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            closed_output_grace: None,
            stdio: Stdio::Pipes,
            priority: Priority::Low,
        };
        assert_eq!(Launch::from_json(&launch.to_json().unwrap()).unwrap(), launch);
        launch.closed_output_grace = Some(Duration::from_secs(30));
        for stdio in [Stdio::OutputFile, Stdio::Terminal(WindowSize { columns: 80, rows: 24 })] {
            launch.stdio = stdio;
            assert_eq!(Launch::from_json(&launch.to_json().unwrap()).unwrap(), launch);
        }
    }

    #[test]
    fn a_file_that_does_not_speak_of_streams_or_grace_means_pipes_and_none() {
        let file = r#"{"argv":["program"],"cwd":"/","lifetime_ms":7,
            "interrupt_grace_ms":1,"term_grace_ms":2,"drain_ms":3}"#;
        let launch = Launch::from_json(file.as_bytes()).unwrap();
        assert_eq!((launch.stdio, launch.closed_output_grace), (Stdio::Pipes, None));
        assert_eq!(launch.priority, Priority::Normal);
    }
}
