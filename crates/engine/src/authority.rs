//! Who may steer: the operator, and no process that an agent, a check or a setup command started.
//!
//! A process below a supervisor of this state directory is one of those. A supervisor of another state directory does not
//! count, so that a check can test Towline itself. Only a sandbox stops a process that had itself started from elsewhere.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use towline_process::{ProcessId, ShimProgram, ancestors, supervised_by};

/// Whether an agent, a check or a setup command of this state directory started the process, directly or not.
pub fn is_supervised(state_directory: &Path, supervisor: &ShimProgram, pid: u32) -> bool {
    supervised_by(pid, supervisor).iter().any(|run| lies_in(run, state_directory))
}

/// Why the process at the other end of a socket may not steer. What the engine itself started counts as well: a supervisor
/// that dies leaves its tree to the engine.
pub(crate) fn refusal(
    state_directory: &Path,
    supervisor: &ShimProgram,
    peer: Option<u32>,
) -> Option<&'static str> {
    let Some(pid) = peer.filter(|pid| ProcessId::of(*pid).is_some()) else {
        return Some("the process that asks cannot be identified");
    };
    let is_ours = ancestors(pid).contains(&std::process::id());
    (is_ours || is_supervised(state_directory, supervisor, pid))
        .then_some("an agent, check or setup command cannot steer goals")
}

/// Compares files as well as names: the same directory may have several paths, and a run's own directory may be gone.
fn lies_in(run: &Path, state_directory: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    let state = identity(state_directory);
    run.starts_with(state_directory)
        || (state.is_some() && run.ancestors().any(|above| identity(above) == state))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_run_lies_in_its_state_directory_by_any_path_and_in_no_other() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let [state, other, link] = ["state", "state-2", "link"].map(|name| dir.path().join(name));
        for path in [&state, &other] {
            fs::create_dir(path).expect("a directory");
        }
        symlink(&state, &link).expect("a symlink");
        for (run, within) in [("state/attempts/1", true), ("link/gone", true), ("state-2/attempts/1", false)]
        {
            for directory in [&state, &link] {
                assert_eq!(lies_in(&dir.path().join(run), directory), within, "{run}");
            }
        }
        // A state directory inside of a workspace is another one.
        let nested = state.join("workspaces/goal/state");
        fs::create_dir_all(&nested).expect("a directory");
        assert!(!lies_in(&state.join("attempts/1"), &nested));
    }

    #[test]
    fn a_process_that_is_gone_or_unknown_may_not_steer() {
        let shim = ShimProgram { path: "/opt/towline".into(), args: vec!["shim".into()] };
        let dir = tempfile::tempdir().expect("a scratch directory");
        for peer in [None, Some(u32::MAX)] {
            assert!(refusal(dir.path(), &shim, peer).is_some(), "{peer:?}");
        }
        assert_eq!(refusal(dir.path(), &shim, Some(std::process::id())), None);
    }
}
