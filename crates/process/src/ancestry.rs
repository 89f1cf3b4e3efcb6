//! The supervisors above a process: whose program started it, directly or not.
//!
//! A supervisor is the subreaper of its tree, so a process cannot leave it by losing its parents. What another program
//! starts on request (a service manager, a container runtime) is not below it.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::client::ShimProgram;
use crate::platform;

/// No tree is deeper; the walk ends here even if the tree changes all the time.
const DEEPEST: usize = 4096;

/// The parents of a process, nearest first, up to the first that cannot be seen. Empty where the system offers no way to
/// look, and for a process that does not exist.
pub fn ancestors(pid: u32) -> Vec<u32> {
    let parents = std::iter::successors(Some(pid), |pid| platform::parent(*pid).filter(|parent| *parent > 0));
    parents.skip(1).take(DEEPEST).collect()
}

/// The run directories of the supervisors above a process, nearest first. A supervisor is recognised by its command line,
/// which the programs below it cannot change.
pub fn supervised_by(pid: u32, program: &ShimProgram) -> Vec<PathBuf> {
    ancestors(pid).into_iter().filter_map(|above| run_of(platform::arguments(above), program)).collect()
}

/// The run directory in the command line of a supervisor.
fn run_of(arguments: Vec<Vec<u8>>, program: &ShimProgram) -> Option<PathBuf> {
    let [_, words @ .., run] = arguments.as_slice() else { return None };
    let is_supervisor = words.iter().eq(program.args.iter().map(String::as_bytes));
    let run = PathBuf::from(std::ffi::OsString::from_vec(run.clone()));
    (is_supervisor && run.is_absolute()).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> ShimProgram {
        ShimProgram { path: "/opt/towline".into(), args: vec!["shim".into()] }
    }

    fn run(arguments: &[&str]) -> Option<PathBuf> {
        run_of(arguments.iter().map(|word| word.as_bytes().to_vec()).collect(), &program())
    }

    #[test]
    fn a_supervisor_is_recognised_by_its_arguments_and_by_nothing_else() {
        assert_eq!(run(&["towline", "shim", "/state/attempts/1"]), Some("/state/attempts/1".into()));
        assert_eq!(run(&["/proc/self/exe", "shim", "/state/a b"]), Some("/state/a b".into()));
        for other in [
            &["towline"][..],
            &["towline", "shim"],
            &["towline", "shim", "relative"],
            &["towline", "show", "/state/attempts/1"],
            &["less", "/state/attempts/1"],
            &["sh", "-c", "towline shim /state/attempts/1"],
            &["towline", "shim", "/state/attempts/1", "more"],
            &[],
        ] {
            assert_eq!(run(other), None, "{other:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_parents_of_a_process_are_listed_nearest_first() {
        let me = std::process::id();
        let above = ancestors(me);
        assert_eq!(above.first().copied(), Some(std::os::unix::process::parent_id()));
        assert!(!above.contains(&me));
        assert_eq!(ancestors(u32::MAX), [] as [u32; 0]);
        assert!(platform::arguments(me).first().is_some_and(|program| !program.is_empty()));
    }
}
