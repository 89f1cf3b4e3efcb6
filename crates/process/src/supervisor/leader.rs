//! Starts the program, and classifies why one could not be started.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use towline_files::HeldDirectory;

use super::wiring::{self, Ours, Theirs};
use crate::launch::{Launch, Priority, Stdio};
use crate::limits;
use crate::platform::{self, Mark, ProcessId};
use crate::record::{SpawnError, SpawnErrorKind};

/// What a program that is given a terminal takes it for, unless another type is set.
const USUAL_TERMINAL: &str = "xterm-256color";

/// The program: the leader of the tree, in a session of its own.
pub(super) struct Leader {
    pub(super) process: ProcessId,
    pub(super) streams: Ours,
}

/// Starts the program with the supervisor's own environment. A program that runs and cannot be looked at is an error of ours.
pub(super) fn start(launch: &Launch, place: &HeldDirectory) -> io::Result<Result<Leader, SpawnError>> {
    let (child, streams) = match spawn(launch, place) {
        Ok(started) => started,
        Err(error) => return Ok(Err(error)),
    };
    // Our own unreaped child has its number for certain, so looking its start time up cannot mistake it.
    let unseen = || io::Error::other("the program started and is not to be seen among the processes");
    let process = ProcessId::of(child.id()).ok_or_else(unseen)?;
    Ok(Ok(Leader { process, streams }))
}

fn spawn(launch: &Launch, place: &HeldDirectory) -> Result<(Child, Ours), SpawnError> {
    let Some(program) = launch.argv.first() else {
        return Err(SpawnError { kind: SpawnErrorKind::Other, message: "the command is empty".to_owned() });
    };
    if !launch.cwd.is_dir() {
        return Err(SpawnError {
            kind: SpawnErrorKind::DirectoryMissing,
            message: format!("there is no directory {} to start {program} in", launch.cwd.display()),
        });
    }
    if !launch.sandbox.is_empty() {
        // The sandbox would fail in its own words.
        find(program).map_err(|error| explain(program, launch, &error))?;
    }
    let other = |message| SpawnError { kind: SpawnErrorKind::Other, message };
    let (theirs, streams) = wiring::connect(launch.stdio, place).map_err(|error| {
        other(format!("the streams for {program} could not be made: {}", limits::explain(&error)))
    })?;
    // The child handle is let go of on purpose: the supervisor reaps every process of the tree, this one too.
    let child = command(program, launch, theirs).spawn().map_err(|error| explain(program, launch, &error))?;
    Ok((child, streams))
}

#[expect(clippy::disallowed_methods, reason = "the supervisor is the one that starts programs")]
#[expect(
    unsafe_code,
    reason = "the mark, the session, its terminal, the priority and the parent death signal are set between fork and exec"
)]
fn command(program: &str, launch: &Launch, theirs: Theirs) -> Command {
    let mut words = launch.sandbox.iter().chain(&launch.argv);
    let mut command = Command::new(words.next().map_or(program, String::as_str));
    command
        .args(words)
        .current_dir(&launch.cwd)
        .stdin(theirs.stdin)
        .stdout(theirs.stdout)
        .stderr(theirs.stderr);
    let has_terminal = matches!(launch.stdio, Stdio::Terminal(_));
    if has_terminal && std::env::var_os("TERM").is_none() {
        command.env("TERM", USUAL_TERMINAL);
    }
    let supervisor = rustix::process::getpid();
    let mark = Mark::of_program();
    let priority = launch.priority;
    let in_child = move || {
        mark.put()?;
        rustix::process::setsid()?;
        if priority == Priority::Low {
            platform::yield_to_others();
        }
        if has_terminal {
            // By now it is the standard input.
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        platform::die_with_parent(supervisor)
    };
    // SAFETY: the closure runs in the child between fork and exec and only makes system calls: it allocates
    // nothing, takes no lock and touches no state of the parent.
    unsafe { command.pre_exec(in_child) };
    command
}

/// Whether there is such a program, as the system looks for it.
fn find(program: &str) -> io::Result<()> {
    let may_execute = |path: &Path| Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?);
    if program.contains('/') {
        return may_execute(Path::new(program));
    }
    let mut problem = io::Error::from(io::ErrorKind::NotFound);
    for folder in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        match may_execute(&folder.join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => problem = error,
            Err(_) => {}
        }
    }
    Err(problem)
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
        _ => format!("{program} could not be started: {}", limits::explain(error)),
    };
    SpawnError { kind, message }
}
