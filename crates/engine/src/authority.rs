//! Who may steer and follow goals: the operator, and no process that an agent, a check or a setup command started.
//!
//! A process below a supervisor of this state directory is one of those. A supervisor of another state directory does not
//! count, so that a check can test Towline itself. Only a sandbox stops a process that had itself started from elsewhere.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use towline_process::{ancestors, has_lost_supervisor, is_below_supervisor, is_in_session};

use crate::home::proofs_in;

/// The word that makes the program a supervisor.
pub const SUPERVISOR: &str = "shim";

/// The first arguments of every supervisor of this state directory. They identify the directory itself and not its path,
/// because a directory may have several paths.
pub fn supervisor_arguments(state_directory: &Path) -> io::Result<Vec<String>> {
    let about = fs::metadata(state_directory)?;
    Ok(vec![SUPERVISOR.to_owned(), format!("{:x}-{:x}", about.dev(), about.ino())])
}

/// The command that opens an agent's own session on a person's terminal.
const ENTER: &str = "enter";

/// Whether an agent, a check or a setup command of this state directory started the process, directly or not. One in a session that a
/// person opened, or that has lost its supervisor, may belong to any. A directory that does not exist has none. What the checks of a
/// proof started counts as well.
pub fn is_supervised(state_directory: &Path, pid: u32) -> io::Result<bool> {
    for inner in fs::read_dir(proofs_in(state_directory)).into_iter().flatten().flatten() {
        if let Ok(arguments) = supervisor_arguments(&inner.path())
            && is_below_supervisor(pid, &arguments)?
        {
            return Ok(true);
        }
    }
    match supervisor_arguments(state_directory) {
        Ok(arguments) => Ok(is_below_supervisor(pid, &arguments)?
            || is_in_session(pid, &[ENTER.to_owned()])?
            || has_lost_supervisor(pid)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why the process at the other end of a socket may neither steer nor follow. What the engine itself started counts as well: a supervisor
/// that dies leaves its tree to the engine.
pub fn refusal(state_directory: &Path, peer: Option<u32>) -> Option<String> {
    let Some(pid) = peer else { return Some("the process that asks cannot be identified".to_owned()) };
    let is_below_us = ancestors(pid).map(|above| above.contains(&std::process::id()));
    match is_below_us.and_then(|is_below_us| Ok((is_supervised(state_directory, pid)?, is_below_us))) {
        Ok((true, _)) => Some(INSIDE.to_owned()),
        Ok((false, true)) => Some(BELOW_ENGINE.to_owned()),
        Ok((false, false)) => None,
        Err(error) => Some(format!("cannot find out who started the process that asks: {error}")),
    }
}

const INSIDE: &str = "an agent, check or setup command cannot steer or follow goals";
const BELOW_ENGINE: &str =
    "an agent, check or setup command cannot steer or follow goals, and neither can what `[notify]` runs";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_supervisors_of_a_state_directory_are_the_same_by_any_path_and_differ_from_others() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let [state, nested, alias] = ["state", "state/nested", "alias"].map(|name| dir.path().join(name));
        fs::create_dir_all(&nested).expect("directories");
        symlink(&state, &alias).expect("a symlink");
        let of = |path: &Path| supervisor_arguments(path).expect("a directory");
        assert_eq!(of(&state), of(&alias));
        assert_ne!(of(&state), of(&nested));
        assert!(!is_supervised(&dir.path().join("missing"), std::process::id()).expect("none"));
    }

    #[test]
    fn a_process_that_is_gone_or_unknown_may_not_steer() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        for peer in [None, Some(u32::MAX)] {
            assert!(refusal(dir.path(), peer).is_some(), "{peer:?}");
        }
        assert_eq!(refusal(dir.path(), Some(std::process::id())), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a child of this process that is no supervisor's")]
    fn what_the_engine_starts_for_the_operator_may_not_steer_and_learns_why() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a child");
        let refused = refusal(dir.path(), Some(child.id()));
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(refused.as_deref(), Some(BELOW_ENGINE));
    }
}
