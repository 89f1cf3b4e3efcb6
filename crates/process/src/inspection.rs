//! Keeps other processes of the same user from reading this one's memory, environment and descriptors, and from tracing it.

use std::io;

use crate::platform;

/// Refuses other processes of the same user, as far as the system allows. What this process executes can be looked at again.
/// Where `/proc` hides processes that cannot be looked at, nothing is done: those who have to find this one would not.
pub fn refuse_inspection() -> io::Result<()> {
    if hides_processes(&std::fs::read_to_string("/proc/self/mounts").unwrap_or_default()) {
        return Ok(());
    }
    platform::refuse_tracers()
}

/// Whether one of these mounts is a `/proc` that shows a process only to those who may look at it.
fn hides_processes(mounts: &str) -> bool {
    let of_proc = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let options =
        of_proc.filter(|fields| fields.get(2) == Some(&"proc")).filter_map(|fields| fields.get(3).copied());
    options
        .flat_map(|options| options.split(','))
        .any(|option| option.strip_prefix("hidepid=").is_some_and(|value| !matches!(value, "0" | "off")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_that_hides_processes_is_recognised() {
        let mounts = |options: &str| format!("tmpfs /tmp tmpfs rw 0 0\nproc /proc proc {options} 0 0\n");
        for hiding in
            ["rw,hidepid=2", "rw,nosuid,hidepid=invisible", "rw,gid=4,hidepid=1", "hidepid=ptraceable"]
        {
            assert!(hides_processes(&mounts(hiding)), "{hiding}");
        }
        for open in ["rw,nosuid", "rw,hidepid=0", "rw,hidepid=off"] {
            assert!(!hides_processes(&mounts(open)), "{open}");
        }
        assert!(!hides_processes("tmpfs /tmp tmpfs hidepid=2 0 0\n"));
    }
}
