//! Which processes are above another: whether a supervisor's program started it, directly or not.
//!
//! A supervisor is the subreaper of its tree, so a process cannot leave it by losing its parents. What another program
//! starts on request (a service manager, a container runtime) is not below it.

use std::io;

use crate::platform::{self, ProcessId, ancestors};

/// Whether a process is this one or below it.
pub(crate) fn is_in_our_tree(pid: u32) -> io::Result<bool> {
    let ourselves = std::process::id();
    Ok(pid == ourselves || ancestors(pid)?.contains(&ourselves))
}

/// Whether a supervisor that was started with these first arguments is above a process. The programs below a supervisor cannot
/// change its command line, and everybody can read it.
pub fn is_below_supervisor(pid: u32, arguments: &[String]) -> io::Result<bool> {
    platform::with_steady_parents(pid, || has_supervisor(&ancestors(pid)?, arguments))
}

/// None if one of them has ended.
fn has_supervisor(above: &[u32], arguments: &[String]) -> io::Result<Option<bool>> {
    for pid in above {
        match platform::arguments(*pid)? {
            Some(line) if has_first_arguments(&line, arguments) => return Ok(Some(true)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(Some(false))
}

/// Running supervisors of ours that were started with these first arguments, each with the arguments after those. Files may hide a
/// supervisor, its command line cannot. Empty where the system offers no way to look.
pub fn supervisors(arguments: &[String]) -> io::Result<Vec<(ProcessId, Vec<String>)>> {
    let mut found = Vec::new();
    for process in platform::own_processes()? {
        let Some(line) = platform::arguments(process.pid)? else { continue };
        if has_first_arguments(&line, arguments) {
            let rest = line.iter().skip(1 + arguments.len());
            found.push((process, rest.map(|word| String::from_utf8_lossy(word).into_owned()).collect()));
        }
    }
    Ok(found)
}

/// Those of these processes that belong to a living supervisor with the same first word and other arguments after it, and to none with
/// these. A supervisor above ourselves does not count: what our own supervisors left comes to it. Supervisors of earlier versions have
/// the word alone, and may be anybody's.
pub(crate) fn of_others(processes: &[ProcessId], arguments: &[String]) -> io::Result<Vec<ProcessId>> {
    let Some(word) = arguments.first() else { return Ok(Vec::new()) };
    let above_us = platform::own_number().map_or(Ok(Vec::new()), ancestors)?;
    let is_anothers = |pid: u32| -> io::Result<Option<bool>> {
        let above = ancestors(pid)?.into_iter().filter(|above| !above_us.contains(above));
        let mut is_anothers = false;
        for pid in std::iter::once(pid).chain(above) {
            let Some(line) = platform::arguments(pid)? else { return Ok(None) };
            if has_first_arguments(&line, arguments) {
                return Ok(Some(false));
            }
            let names_more = line.len() > 1 + arguments.len();
            is_anothers |= names_more
                && has_first_arguments(&line, std::slice::from_ref(word))
                && platform::has_supervisors_name(pid)?;
        }
        Ok(Some(is_anothers))
    };
    let mut found = Vec::new();
    for process in processes {
        match platform::with_steady_parents(process.pid, || is_anothers(process.pid)) {
            Ok(true) => found.push(*process),
            Ok(false) => {}
            // It has ended meanwhile.
            Err(_) if !process.is_running() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

pub(crate) fn has_first_arguments(command_line: &[Vec<u8>], arguments: &[String]) -> bool {
    let given = command_line.iter().skip(1).take(arguments.len());
    given.eq(arguments.iter().map(String::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_recognised_by_all_of_its_first_arguments() {
        let supervisor = ["shim", "fe01-2a"].map(str::to_owned);
        let is = |line: &[&str]| {
            let line: Vec<_> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
            has_first_arguments(&line, &supervisor)
        };
        for line in [&["towline", "shim", "fe01-2a", "."][..], &["/proc/self/exe", "shim", "fe01-2a", "/run"]]
        {
            assert!(is(line), "{line:?}");
        }
        for line in [
            &[][..],
            &["towline"],
            &["towline", "shim"],
            &["towline", "shim", "fe01-2b", "."],
            &["towline", "show", "shim", "fe01-2a"],
            &["sh", "-c", "towline shim fe01-2a ."],
        ] {
            assert!(!is(line), "{line:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_parents_of_a_process_are_listed_nearest_first() {
        let me = std::process::id();
        assert_eq!(platform::own_number(), Some(me));
        let above = ancestors(me).unwrap();
        assert_eq!(above.first().copied(), Some(std::os::unix::process::parent_id()));
        assert!(!above.contains(&me));
        assert_eq!(ancestors(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
        let arguments = platform::arguments(me).unwrap().unwrap();
        assert!(arguments.first().is_some_and(|program| !program.is_empty()));
    }
}
