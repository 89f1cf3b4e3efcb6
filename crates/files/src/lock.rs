//! Who holds a lock, for messages.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The process that holds the lock (`flock`) of this file, where the system reports it.
pub fn lock_holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| holder_in(line, inode))
}

/// Reads a line like `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`. A line of a process that waits has an arrow in
/// the second place. The device is not compared: file systems with subvolumes report another one here.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let (kind, pid, place) = (words.next()?, words.nth(2)?, words.next()?);
    let is_it = kind == "FLOCK" && place.rsplit(':').next()?.parse() == Ok(inode);
    is_it.then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_named_and_one_who_waits_is_not() {
        let line = "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF";
        assert_eq!(holder_in(line, 5678), Some(1234));
        assert_eq!(holder_in(line, 567), None);
        for other in [
            "1: -> FLOCK  ADVISORY  WRITE 9 08:01:5678 0 EOF",
            "1: POSIX  ADVISORY  WRITE 9 0:1:5678 0 EOF",
            "",
        ] {
            assert_eq!(holder_in(other, 5678), None, "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_holder_of_our_own_lock_is_this_process() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(lock_holder(&file), None);
        file.lock().unwrap();
        assert_eq!(lock_holder(&file), Some(std::process::id()));
    }
}
