//! One git command: what it is given, how it runs, and what its failure means.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::waiting::{Gathering, Stop, Waited, end_group};
use super::{ActsFor, Git};
use crate::WorkspaceError;

/// How often a command is tried while another process holds a lock, and the longest pause between tries.
const LOCK_TRIES: u32 = 24;
const LOCK_PAUSE_LIMIT: Duration = Duration::from_millis(500);

/// One git command, ready to run.
#[must_use]
pub(crate) struct GitCommand<'a> {
    git: &'a Git,
    name: &'static str,
    args: Vec<OsString>,
    input: Arc<[u8]>,
}

impl<'a> GitCommand<'a> {
    pub(super) fn new(git: &'a Git, name: &'static str) -> Self {
        Self { git, name, args: Vec::new(), input: Arc::default() }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// What the command reads from its standard input.
    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input.into();
        self
    }

    /// Runs it; anything but exit code 0 is an error.
    pub(crate) fn run(self) -> Result<Vec<u8>, WorkspaceError> {
        Ok(self.success()?.stdout)
    }

    fn success(self) -> Result<Output, WorkspaceError> {
        let output = self.output()?;
        if output.status.success() { Ok(output) } else { Err(self.failure(&output)) }
    }

    /// Runs it for the one line that it prints.
    pub(crate) fn line(self) -> Result<String, WorkspaceError> {
        self.run().map(|out| String::from_utf8_lossy(&out).trim_end_matches('\n').to_owned())
    }

    /// Runs it for what it reports beside its output.
    pub(crate) fn report(self) -> Result<String, WorkspaceError> {
        Ok(String::from_utf8_lossy(&self.success()?.stderr).into_owned())
    }

    /// Runs it for the one path that it prints.
    pub(crate) fn path(self) -> Result<PathBuf, WorkspaceError> {
        let mut out = self.run()?;
        if out.last() == Some(&b'\n') {
            out.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(out)))
    }

    /// Runs a command whose exit code 1 means "no": `Some(output)` for 0, `None` for 1.
    pub(crate) fn query(self) -> Result<Option<Vec<u8>>, WorkspaceError> {
        Ok(self.yes_or_no()?.ok())
    }

    /// Runs a command whose exit code 1 means "no", for what it prints in either case.
    pub(crate) fn yes_or_no(self) -> Result<Result<Vec<u8>, Vec<u8>>, WorkspaceError> {
        let output = self.output()?;
        match output.status.code() {
            Some(0) => Ok(Ok(output.stdout)),
            Some(1) => Ok(Err(output.stdout)),
            _ => Err(self.failure(&output)),
        }
    }

    /// Runs it until it does not fail on somebody else's lock, a bounded number of times.
    fn output(&self) -> Result<Output, WorkspaceError> {
        let mut pause = Duration::from_millis(20);
        for _ in 1..LOCK_TRIES {
            let output = self.output_once()?;
            if output.status.success() || !is_lock_failure(&output.stderr) {
                return Ok(output);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOCK_PAUSE_LIMIT);
        }
        self.output_once()
    }

    fn output_once(&self) -> Result<Output, WorkspaceError> {
        let not_started = |source| self.git.not_started(source);
        if self.git.stop.as_ref().is_some_and(Stop::is_wanted) {
            return Err(WorkspaceError::Stopped);
        }
        let mut program = self.git.program();
        program
            .arg(self.name)
            .args(&self.args)
            .stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !self.stays_in_our_group() {
            program.process_group(0);
        }
        let mut child = program.spawn().map_err(not_started)?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = Arc::clone(&self.input);
            // Written beside the reading, or both sides could wait for each other on a full pipe. A command
            // that ends early closes its end; its exit code counts, not our write error.
            if let Err(error) = Builder::new().spawn(move || stdin.write_all(&input)) {
                return Err(self.abandon(child, error));
            }
        }
        let mut deadline = Instant::now() + self.git.time_limit;
        let gathered = Gathering::of(child.stdout.take())
            .and_then(|stdout| Ok((stdout, Gathering::of(child.stderr.take())?)));
        let (stdout, stderr) = match gathered {
            Ok(gathered) => gathered,
            Err(error) => return Err(self.abandon(child, error)),
        };
        let stop = self.git.stop.as_ref();
        for pipe in [&stdout, &stderr] {
            let why = match pipe.wait(&mut child, &mut deadline, stop) {
                Waited::Ended => continue,
                Waited::TooLong => WorkspaceError::TimedOut {
                    command: self.name.to_owned(),
                    directory: self.git.directory.clone(),
                    limit: self.git.time_limit,
                },
                Waited::Stopped => WorkspaceError::Stopped,
            };
            self.end(&mut child);
            child.wait().map_err(not_started)?;
            return Err(why);
        }
        let status = child.wait().map_err(not_started)?;
        Ok(Output { status, stdout: stdout.take(), stderr: stderr.take() })
    }

    /// Ends a git that nobody can listen to: the machine is out of threads.
    fn abandon(&self, mut child: Child, error: io::Error) -> WorkspaceError {
        self.end(&mut child);
        let _ = child.wait();
        self.git.not_started(error)
    }

    /// Ends the command, with all that it started unless it is in our own group.
    fn end(&self, child: &mut Child) {
        if self.stays_in_our_group() {
            // It may have ended by itself just now.
            let _ = child.kill();
        } else {
            end_group(child);
        }
    }

    /// The user's git may ask them for something, as for the key that they sign with. Only a process of the group in the
    /// foreground can read the terminal; any other is suspended when it tries.
    fn stays_in_our_group(&self) -> bool {
        self.git.acts_for == ActsFor::User
    }

    fn failure(&self, output: &Output) -> WorkspaceError {
        let text = String::from_utf8_lossy(&output.stderr);
        let directory = self.git.directory.clone();
        let command = self.name.to_owned();
        let detail = first_lines(&text, output.status);
        if text.contains("dubious ownership") {
            let detail = text.lines().next().unwrap_or_default().to_owned();
            return WorkspaceError::Untrusted { path: directory, detail };
        }
        if text.contains("not a git repository") && self.git.git_dir.is_none() {
            return WorkspaceError::NotARepository { path: directory };
        }
        if is_lock_failure(&output.stderr) {
            return WorkspaceError::Locked { command, directory, detail };
        }
        let hint = hint(&text, &directory);
        WorkspaceError::Git { command, directory, detail, hint }
    }
}

/// Whether another git process is in the way. The last kind is the record of a worktree that a process which
/// does not take turns with us (an agent's, a person's) has not finished writing.
fn is_lock_failure(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    text.contains(".lock': File exists")
        || text.contains("could not lock config file")
        || (text.contains("failed to read") && text.contains("/commondir"))
}

fn first_lines(stderr: &str, status: std::process::ExitStatus) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
    if lines.is_empty() { format!("it printed nothing ({status})") } else { lines.join(" / ") }
}

fn hint(stderr: &str, directory: &Path) -> String {
    if stderr.contains("No space left") {
        "free some space on that disk and try again".to_owned()
    } else if stderr.contains("Permission denied") || stderr.contains("Read-only file system") {
        "check the owner and permissions of the path it names".to_owned()
    } else if ["bad object", "corrupt", "hash mismatch"].iter().any(|sign| stderr.contains(sign))
        || stderr.contains("missing blob")
    {
        format!("the repository may be damaged: run `git -C {} fsck`", directory.display())
    } else {
        format!("run `git -C {} status` to see the state it met", directory.display())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn git_that_acts_for_the_user_can_read_the_terminal_and_any_other_can_be_ended_as_a_group() {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::discovering(dir.path());
        git.command("init").arg("--quiet").run().unwrap();
        git.command("config").args(["alias.stat", "!cat /proc/self/stat"]).run().unwrap();
        let group = |stat: &str| stat.rsplit(')').next().unwrap().split(' ').nth(3).unwrap().to_owned();
        let ours = group(&std::fs::read_to_string("/proc/self/stat").unwrap());
        assert_eq!(group(&git.for_user().command("stat").line().unwrap()), ours);
        assert_ne!(group(&git.command("stat").line().unwrap()), ours);
    }
}
