//! What the shim is told to run: `launch.json`, written before the shim starts and never changed after.
//!
//! The environment is not in it, because it holds secrets: it reaches the program as the shim's own.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An absolute point in time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Deadline(u64);

impl Deadline {
    /// The deadline at this many milliseconds since the Unix epoch.
    pub const fn at_unix_ms(milliseconds: u64) -> Self {
        Self(milliseconds)
    }

    /// The deadline as milliseconds since the Unix epoch.
    pub const fn unix_ms(self) -> u64 {
        self.0
    }
}

/// One program to run under a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments; a bare name is looked up in the run's own `PATH`.
    pub argv: Vec<String>,
    /// The directory the program starts in.
    pub cwd: PathBuf,
    /// When the shim ends the run by itself, whether or not anybody is connected.
    pub deadline: Deadline,
    /// How long the program may take to end after the SIGINT that begins a stop.
    pub interrupt_grace: Duration,
    /// How long the tree may take to end between SIGTERM and SIGKILL.
    pub term_grace: Duration,
    /// How long processes that outlive the program may go on writing before they are ended.
    pub drain: Duration,
    /// How long the program may take to end once nobody holds its standard output open any more; without it, as long
    /// as it likes.
    pub closed_output_grace: Option<Duration>,
}

/// The form of [`Launch`] on disk.
#[derive(Serialize, Deserialize)]
struct LaunchFile {
    argv: Vec<String>,
    cwd: PathBuf,
    deadline_unix_ms: Deadline,
    interrupt_grace_ms: u64,
    term_grace_ms: u64,
    drain_ms: u64,
    #[serde(default)]
    closed_output_grace_ms: Option<u64>,
}

impl Launch {
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(&LaunchFile {
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            deadline_unix_ms: self.deadline,
            interrupt_grace_ms: millis(self.interrupt_grace),
            term_grace_ms: millis(self.term_grace),
            drain_ms: millis(self.drain),
            closed_output_grace_ms: self.closed_output_grace.map(millis),
        })
    }

    pub(crate) fn from_json(bytes: &[u8]) -> serde_json::Result<Self> {
        let file: LaunchFile = serde_json::from_slice(bytes)?;
        Ok(Self {
            argv: file.argv,
            cwd: file.cwd,
            deadline: file.deadline_unix_ms,
            interrupt_grace: Duration::from_millis(file.interrupt_grace_ms),
            term_grace: Duration::from_millis(file.term_grace_ms),
            drain: Duration::from_millis(file.drain_ms),
            closed_output_grace: file.closed_output_grace_ms.map(Duration::from_millis),
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_survives_its_file_form() {
        let mut launch = Launch {
            argv: vec!["program".into(), "-x".into(), "zwei Wörter".into()],
            cwd: "/somewhere/deep".into(),
            deadline: Deadline::at_unix_ms(1_800_000_000_123),
            interrupt_grace: Duration::from_millis(1500),
            term_grace: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            closed_output_grace: None,
        };
        assert_eq!(Launch::from_json(&launch.to_json().unwrap()).unwrap(), launch);
        launch.closed_output_grace = Some(Duration::from_secs(30));
        assert_eq!(Launch::from_json(&launch.to_json().unwrap()).unwrap(), launch);
    }
}
