//! Starting the program, and saying by kind why it could not be started.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::launch::Launch;
use crate::platform::{self, ProcessId};
use crate::record::{SpawnError, SpawnErrorKind};

/// The program: the leader of the tree, in a session of its own.
pub(super) struct Leader {
    pub(super) process: ProcessId,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Starts the program with the shim's own environment.
pub(super) fn start(launch: &Launch) -> Result<Leader, SpawnError> {
    let Some(program) = launch.argv.first() else {
        return Err(SpawnError { kind: SpawnErrorKind::Other, message: "the command is empty".to_owned() });
    };
    if !launch.cwd.is_dir() {
        return Err(SpawnError {
            kind: SpawnErrorKind::DirectoryMissing,
            message: format!("there is no directory {} to start {program} in", launch.cwd.display()),
        });
    }
    let child = command(program, launch).spawn().map_err(|error| explain(program, launch, &error))?;
    take_over(child).map_err(|error| SpawnError {
        kind: SpawnErrorKind::Other,
        message: format!("{program} started and its pipes could not be taken over: {error}"),
    })
}

#[expect(clippy::disallowed_methods, reason = "the shim is the one that starts programs")]
#[expect(unsafe_code, reason = "a new session and the parent death signal are set between fork and exec")]
fn command(program: &str, launch: &Launch) -> Command {
    let mut command = Command::new(program);
    command
        .args(launch.argv.iter().skip(1))
        .current_dir(&launch.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let shim = rustix::process::getpid();
    let in_child = move || {
        rustix::process::setsid()?;
        platform::die_with_parent(shim)
    };
    // SAFETY: the closure runs in the child between fork and exec and only makes system calls: it allocates
    // nothing, takes no lock and touches no state of the parent.
    unsafe { command.pre_exec(in_child) };
    command
}

/// The child handle is let go of on purpose: the supervisor reaps every process of the tree, this one too.
fn take_over(mut child: Child) -> io::Result<Leader> {
    let missing = || io::Error::other("a pipe is missing");
    // Our own unreaped child has its number for certain, so looking its start time up cannot mistake it.
    let process = ProcessId::of(child.id()).ok_or_else(|| io::Error::other("it is not to be seen"))?;
    Ok(Leader {
        process,
        stdin: child.stdin.take().ok_or_else(missing)?.into(),
        stdout: child.stdout.take().ok_or_else(missing)?.into(),
        stderr: child.stderr.take().ok_or_else(missing)?.into(),
    })
}

fn explain(program: &str, launch: &Launch, error: &io::Error) -> SpawnError {
    use io::ErrorKind;
    let kind = match error.kind() {
        ErrorKind::NotFound => SpawnErrorKind::ProgramNotFound,
        ErrorKind::PermissionDenied | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            SpawnErrorKind::NotExecutable
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            SpawnErrorKind::NotExecutable
        }
        _ => SpawnErrorKind::Other,
    };
    let has_path = program.contains('/');
    let message = match kind {
        SpawnErrorKind::ProgramNotFound if has_path && launch.cwd.join(Path::new(program)).exists() => {
            format!("{program} exists, but the interpreter it names does not")
        }
        SpawnErrorKind::ProgramNotFound if has_path => format!("there is no program {program}"),
        SpawnErrorKind::ProgramNotFound => format!("there is no program {program} in the PATH of the run"),
        SpawnErrorKind::NotExecutable => format!("{program} cannot be executed: {error}"),
        _ => format!("{program} could not be started: {error}"),
    };
    SpawnError { kind, message }
}
