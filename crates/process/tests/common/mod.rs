//! What the tests share: scratch runs under the real supervisor, bounded waits, and cleaning up.
#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

pub(crate) mod again;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use towline_process::{
    ExitRecord, Launch, LogReader, Notice, Priority, ProcessError, ProcessId, Stdio, Stream,
    SupervisorHandle, SupervisorProgram, connect, end_processes, processes_with_env, spawn,
};

/// No wait in these tests is longer; each of them normally ends within milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that marks every process of a scratch run.
const MARK: &str = "TOWLINE_TEST_RUN";

/// One run in a scratch directory. Whatever is left of it is ended when the test ends.
pub(crate) struct Run {
    scratch: TempDir,
    pub(crate) dir: PathBuf,
    pub(crate) launch: Launch,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) program: SupervisorProgram,
}

impl Run {
    /// A run of a shell script, with short graces and a long lifetime.
    pub(crate) fn script(script: &str) -> Self {
        Self::command(&["sh", "-c", script])
    }

    pub(crate) fn command(argv: &[&str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let work = scratch.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let dir = scratch.path().join("run");
        let launch = Launch {
            argv: argv.iter().map(ToString::to_string).collect(),
            sandbox: Vec::new(),
            sandbox_stays: false,
            cwd: work,
            lifetime: Duration::from_secs(300),
            interrupt_grace: Duration::from_millis(100),
            term_grace: Duration::from_millis(200),
            drain: Duration::from_millis(300),
            closed_output_grace: None,
            stdio: Stdio::Pipes,
            priority: Priority::Normal,
        };
        let env = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            (MARK.to_owned(), scratch.path().to_str().unwrap().to_owned()),
        ]);
        Self { scratch, dir, launch, env, program: supervisor_program() }
    }

    pub(crate) async fn start(&self) -> SupervisorHandle {
        self.try_start().await.unwrap()
    }

    pub(crate) async fn try_start(&self) -> Result<SupervisorHandle, ProcessError> {
        within(spawn(&self.program, &self.dir, &self.launch, &self.env)).await
    }

    pub(crate) async fn reconnect(&self) -> SupervisorHandle {
        within(connect(&self.dir)).await.unwrap()
    }

    /// The directory the program starts in.
    pub(crate) fn work(&self) -> &Path {
        &self.launch.cwd
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.join(name)).unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.read("stdout.log")).unwrap()
    }

    /// The supervisor, also when it has ended.
    pub(crate) fn supervisor_process(&self) -> ProcessId {
        serde_json::from_slice(&self.read("shim.pid")).unwrap()
    }

    /// Every process of this run, whoever its parent is now.
    pub(crate) fn processes(&self) -> Vec<ProcessId> {
        processes_with_env(MARK, self.scratch.path().to_str().unwrap()).unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        end_processes(|| Ok(self.processes()), PATIENCE).unwrap();
    }
}

pub(crate) fn supervisor_program() -> SupervisorProgram {
    SupervisorProgram { path: again::supervisor(), args: Vec::new(), shown: None }
}

/// Waits for a future, but not for ever. It must be one that may move between threads, as tasks do.
pub(crate) async fn within<T>(future: impl Future<Output = T> + Send) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("took too long")
}

/// Waits until something holds, looking again and again.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < give_up, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for the end of the run.
pub(crate) async fn exit_of(supervisor: &mut SupervisorHandle) -> ExitRecord {
    within(async {
        loop {
            if let Notice::Exited(record) = supervisor.next().await.unwrap() {
                return record;
            }
        }
    })
    .await
}

/// Waits, through the supervisor's notices alone, until the program's output ends with `ending`.
pub(crate) async fn output_ending_with(supervisor: &mut SupervisorHandle, stream: Stream, ending: &[u8]) {
    let mut reader = LogReader::output(supervisor.dir(), stream, 0);
    let mut seen = Vec::new();
    within(async {
        loop {
            match supervisor.next().await.unwrap() {
                Notice::Grown { stdout, stderr } => {
                    let reported = if stream == Stream::Stdout { stdout } else { stderr };
                    while reader.offset() < reported {
                        seen.extend_from_slice(reader.read().unwrap());
                    }
                }
                Notice::Exited(record) => panic!("ended before it printed {ending:?}: {record:?}"),
            }
            if seen.ends_with(ending) {
                return;
            }
        }
    })
    .await;
}

#[expect(clippy::disallowed_methods, reason = "records have wall time")]
pub(crate) fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A field of `/proc/PID/status`, as a number.
pub(crate) fn status_number(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The first notice that is not about growth.
pub(crate) async fn end_of(supervisor: &mut SupervisorHandle) -> Result<Notice, ProcessError> {
    within(async {
        loop {
            match supervisor.next().await {
                Ok(Notice::Grown { .. }) => {}
                other => return other,
            }
        }
    })
    .await
}
