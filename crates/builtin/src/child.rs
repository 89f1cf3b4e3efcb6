//! Processes that the built-in agent starts: commands and MCP servers, each in its own process group.
//!
//! A [`Group`] owns all processes in it: dropping it ends them.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long a killed process may take to disappear.
const DYING: Duration = Duration::from_secs(5);

/// A process and its descendants, as long as they stay in its group.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    /// `None` once the group has ended: its number may then belong to other processes.
    leader: Option<Pid>,
}

impl Group {
    /// Starts `command` as the leader of a new group.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, leader })
    }

    /// The pipes that were requested and not yet taken.
    pub(crate) fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the leader, but not for its descendants. The future may be dropped and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Whether any process of the group is left.
    pub(crate) fn is_alive(&self) -> bool {
        self.leader.is_some_and(|leader| test_kill_process_group(leader).is_ok())
    }

    /// Kills the group and reaps the leader. Returns the leader's exit status, if it can be known.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        timeout(DYING, self.child.wait()).await.ok()?.ok()
    }

    /// Kills the group without waiting.
    pub(crate) fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            // The group may be gone already.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
