//! Starting a supervisor: its directory, its orders, its connection to us.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::ProcessError;
use crate::files;
use crate::launch::Launch;
use crate::reaper::{self, Supervised};

/// How much of the supervisor's own log goes into an error.
const LOG_EXCERPT: u64 = 500;

/// This very program as the system holds it, even if its file was replaced or removed.
#[cfg(target_os = "linux")]
const THIS_PROGRAM: Option<&str> = Some("/proc/self/exe");
#[cfg(not(target_os = "linux"))]
const THIS_PROGRAM: Option<&str> = None;

/// The program that becomes the supervisor: the arguments are followed by `.`, and it starts in the run's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorProgram {
    pub path: PathBuf,
    /// What comes before the directory, such as `shim`.
    pub args: Vec<String>,
    /// How lists of processes name it, if not by its path.
    pub shown: Option<PathBuf>,
}

impl SupervisorProgram {
    /// The program that runs now, whose file is `path`. A file that was replaced or deleted since changes nothing, where the
    /// system allows that.
    pub fn running(path: &Path, args: Vec<String>) -> Self {
        let shown = Some(path.to_owned());
        Self { path: THIS_PROGRAM.map_or_else(|| path.to_owned(), PathBuf::from), args, shown }
    }

    /// The file of the program.
    pub fn file(&self) -> &Path {
        self.shown.as_deref().unwrap_or(&self.path)
    }

    fn command(&self) -> Command {
        #[expect(clippy::disallowed_methods, reason = "this crate starts the supervisors")]
        let mut command = Command::new(&self.path);
        if let Some(shown) = &self.shown {
            command.arg0(shown);
        }
        // Not the path: whoever is supervised can read the arguments.
        command.args(&self.args).arg(".");
        command
    }
}

pub(crate) struct Started {
    pub(crate) socket: UnixStream,
    pub(crate) supervised: Supervised,
}

pub(crate) fn start(
    program: &SupervisorProgram,
    dir: &Path,
    launch: &Launch,
    env: &BTreeMap<String, String>,
) -> Result<Started, ProcessError> {
    towline_files::create_private_dir(dir).map_err(ProcessError::io("create", dir))?;
    let dir = dir.canonicalize().map_err(ProcessError::io("find", dir))?;
    write_launch(&dir, launch)?;
    let log_path = dir.join(files::SUPERVISOR_LOG);
    let log = towline_files::append(&log_path).map_err(ProcessError::io("create", &log_path))?;
    let not_started = |source| ProcessError::SupervisorNotStarted { program: program.path.clone(), source };
    let (ours, theirs) = UnixStream::pair().map_err(not_started)?;
    let mut command = program.command();
    command
        .current_dir(&dir)
        .env_clear()
        .envs(env)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::from(log));
    let supervised = reaper::start(&mut command).map_err(|source| {
        // Nothing ran, so the directory is free again.
        let _ = std::fs::remove_file(dir.join(files::LAUNCH));
        not_started(source)
    })?;
    Ok(Started { socket: ours, supervised })
}

fn write_launch(dir: &Path, launch: &Launch) -> Result<(), ProcessError> {
    let path = dir.join(files::LAUNCH);
    let json = launch.to_json().map_err(|source| ProcessError::UnwritableLaunch { source })?;
    let mut file = towline_files::create_new(&path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ProcessError::DirectoryInUse { dir: dir.to_owned() },
        _ => ProcessError::io("create", &path)(error),
    })?;
    io::Write::write_all(&mut file, &json).map_err(ProcessError::io("write", &path))
}

/// The end of what a supervisor wrote about itself.
pub(crate) fn log_excerpt(dir: &Path) -> String {
    let text = towline_files::read_end(&dir.join(files::SUPERVISOR_LOG), LOG_EXCERPT).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if text.is_empty() { "it printed nothing".to_owned() } else { text.to_owned() }
}
