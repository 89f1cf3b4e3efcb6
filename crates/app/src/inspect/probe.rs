//! Runs a program for the few words it prints, within a bounded time and a bounded amount of words.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Far more than an honest program needs to print its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it has ended, once it has closed its output.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// More than this is no version.
const WORDS: u64 = 16 * 1024;

/// Why there are no words. What the program printed to stderr is not shown: it may hold what is in its environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// It could not be started.
    NotStarted(String),
    /// It ended, and not well.
    Failed(String),
    /// It did not end in time.
    TooSlow,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "it cannot be started: {why}"),
            Self::Failed(how) => write!(f, "it failed ({how})"),
            Self::TooSlow => write!(f, "it did not end within {} seconds", PATIENCE.as_secs()),
        }
    }
}

/// What the program prints when it is started with exactly this environment. Nothing of it is left running in its
/// process group.
pub(crate) fn words(
    program: &Path,
    args: &[String],
    directory: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<String, Silence> {
    words_within(PATIENCE, program, args, directory, environment)
}

fn words_within(
    patience: Duration,
    program: &Path,
    args: &[String],
    directory: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<String, Silence> {
    let deadline = Instant::now() + patience;
    let mut child = start(program, args, directory, environment)
        .map_err(|error| Silence::NotStarted(error.to_string()))?;
    let words = child.stdout.take().map(read_aside);
    let words = words.and_then(|words| words.recv_timeout(deadline - Instant::now()).ok());
    let mut ended = None;
    while words.is_some() && ended.is_none() && Instant::now() < deadline {
        ended = child.try_wait().ok().flatten();
        if ended.is_none() {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    match (words, ended) {
        (Some(words), Some(status)) if status.success() => Ok(words),
        (_, Some(status)) => Err(Silence::Failed(status.to_string())),
        (_, None) => {
            end(&mut child);
            Err(Silence::TooSlow)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "asks a program for its version, outside of any attempt")]
fn start(
    program: &Path,
    args: &[String],
    directory: &Path,
    environment: &BTreeMap<String, String>,
) -> std::io::Result<Child> {
    Command::new(program)
        .args(args)
        .current_dir(directory)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Reads on a thread of its own, so that the caller can stop waiting.
fn read_aside(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Of a pipe that breaks, what came before counts.
        let _ = pipe.take(WORDS).read_to_end(&mut bytes);
        // After the deadline the receiver is gone.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Ends its group. It has not been waited for, so its number is still its own.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended just now, and then there is nothing to end.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(patience: Duration, script: &str) -> Result<String, Silence> {
        let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let args = ["-c".to_owned(), script.to_owned()];
        words_within(patience, Path::new("/bin/sh"), &args, Path::new("/"), &environment)
    }

    #[test]
    fn output_is_returned_and_failures_have_a_reason() {
        assert_eq!(shell(PATIENCE, "echo 1.2.3; echo noise >&2"), Ok("1.2.3\n".to_owned()));
        assert_eq!(shell(PATIENCE, "echo 1.2.3; exit 3"), Err(Silence::Failed("exit status: 3".to_owned())));
        let missing = words(Path::new("/nowhere/at/all"), &[], Path::new("/"), &BTreeMap::new());
        assert!(matches!(missing, Err(Silence::NotStarted(_))), "{missing:?}");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_its_group() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let noted = scratch.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; echo 1.2.3; wait", noted.display());
        assert_eq!(shell(Duration::from_millis(500), &script), Err(Silence::TooSlow));
        let pid: u32 = std::fs::read_to_string(noted).expect("a pid").trim().parse().expect("a number");
        let process = towline_process::ProcessId::of(pid);
        let deadline = Instant::now() + PATIENCE;
        while process.is_some_and(towline_process::ProcessId::is_running) {
            assert!(Instant::now() < deadline, "the child of the program still runs");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    #[test]
    fn a_flood_of_words_is_cut() {
        // The program meets a closed pipe, which is the end of most and no success.
        let flood = shell(PATIENCE, "yes");
        assert!(matches!(flood, Err(Silence::Failed(_))), "{flood:?}");
    }
}
