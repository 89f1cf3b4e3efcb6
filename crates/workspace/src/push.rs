//! Sending a goal's work to a remote of the user's, when they ask for it.

use towline_core::Commit;

use crate::{Repository, WorkspaceError};

impl Repository {
    /// The remote that a push goes to when the user names none, as git chooses it; none where there is no choice or several.
    pub fn push_remote(&self) -> Result<Option<String>, WorkspaceError> {
        let git = self.users_git();
        let setting = |name: &str| -> Result<Option<String>, WorkspaceError> {
            let value = git.command("config").args(["--get", name]).query()?;
            Ok(value.map(|value| String::from_utf8_lossy(&value).trim().to_owned()))
        };
        let branch = crate::merge::current_branch(self)?.unwrap_or_default();
        for name in [
            format!("branch.{branch}.pushRemote"),
            "remote.pushDefault".into(),
            format!("branch.{branch}.remote"),
        ] {
            if let Some(remote) = setting(&name)?.filter(|remote| remote != ".") {
                return Ok(Some(remote));
            }
        }
        let remotes = git.command("remote").line()?;
        let remotes: Vec<&str> = remotes.lines().collect();
        let chosen = remotes.iter().find(|remote| **remote == "origin").or(match remotes.as_slice() {
            [only] => Some(only),
            _ => None,
        });
        Ok(chosen.map(|&remote| remote.to_owned()))
    }

    /// Pushes a commit as a branch, in the user's name and with their hooks. Gives what the remote answers.
    pub fn push(&self, commit: &Commit, branch: &str, remote: &str) -> Result<String, WorkspaceError> {
        let refspec = format!("{commit}:refs/heads/{branch}");
        self.users_git().command("push").args(["--", remote, &refspec]).report()
    }
}
