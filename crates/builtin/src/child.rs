//! Processes that the built-in agent starts: commands and MCP servers, each in a process group of its own.
//!
//! Whoever holds a [`Group`] owns all that is in it: dropping it ends it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long a killed process may take to be gone.
const DYING: Duration = Duration::from_secs(5);

/// A process and what it starts, as long as that stays in its group.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    /// None once the group was ended: its number may then belong to others.
    leader: Option<Pid>,
}

impl Group {
    /// Starts `command` as the leader of a new group.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, leader })
    }

    /// The three pipes, as far as they were asked for and not yet taken.
    pub(crate) fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the leader, and not for what it started. May be dropped and asked again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Whether anything of it is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.leader.is_some_and(|leader| test_kill_process_group(leader).is_ok())
    }

    /// Kills all of it and reaps the leader. Says how the leader ended where that can be known.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        timeout(DYING, self.child.wait()).await.ok()?.ok()
    }

    /// Kills all of it without waiting.
    pub(crate) fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            // A group that is gone already is what we want.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
