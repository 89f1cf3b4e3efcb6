//! Reads `/proc`. A process that has ended is not there. Anything else that keeps us from looking is an error: who cannot see must
//! not report that nobody is there.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{ProcessId, SUPERVISOR};

/// How often the line about a process is read before it counts as unreadable.
const STAT_TRIES: u32 = 3;

/// A file of a process; none if the process has ended or is not ours to look at.
pub(super) fn file_of(pid: u32, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    Ok(read_into(pid, name, &mut bytes)?.then_some(bytes))
}

fn read_into(pid: u32, name: &str, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let path = format!("/proc/{pid}/{name}");
    let read = with_room(|| {
        bytes.clear();
        File::open(&path)?.read_to_end(bytes)
    });
    match read {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(false),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Tries once more with as many descriptors as we may have: another process of the same user can lower that number.
pub(super) fn with_room<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    match attempt() {
        Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            raise_descriptor_limit()?;
            attempt()
        }
        other => other,
    }
}

pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

/// All processes at one moment, by their parents.
pub(super) struct Processes(pub(super) HashMap<u32, Vec<(ProcessId, Stat)>>);

impl Processes {
    pub(super) fn look() -> io::Result<Self> {
        let mut children: HashMap<u32, Vec<(ProcessId, Stat)>> = HashMap::new();
        let mut scratch = Vec::new();
        for entry in with_room(|| fs::read_dir("/proc"))? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Some(stat) = Stat::read_with(pid, &mut scratch)? {
                let process = ProcessId { pid, start_time: stat.start_time };
                children.entry(stat.parent).or_default().push((process, stat));
            }
        }
        Ok(Self(children))
    }

    /// Every process, with its parent's number in its state.
    pub(super) fn all(&self) -> impl Iterator<Item = &(ProcessId, Stat)> {
        self.0.values().flatten()
    }

    /// Everything that runs below these, children before their own children.
    pub(super) fn take_below(&mut self, mut parents: Vec<u32>) -> Vec<ProcessId> {
        let mut found = Vec::new();
        while let Some(parent) = parents.pop() {
            for (process, stat) in self.0.remove(&parent).unwrap_or_default() {
                parents.push(process.pid);
                if stat.is_running() {
                    found.push(process);
                }
            }
        }
        found
    }
}

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// By its name.
    pub(super) is_supervisor: bool,
    pub(super) state: u8,
    pub(super) parent: u32,
    /// This and the session are zero for a process whose leader is outside our process namespace.
    pub(super) group: u32,
    pub(super) session: u32,
    threads: u32,
    pub(super) start_time: u64,
}

impl Stat {
    pub(super) fn of_ourselves() -> io::Result<Self> {
        Self::read(std::process::id())?.ok_or_else(|| io::Error::other("/proc does not list this process"))
    }

    /// None if the process has ended.
    pub(super) fn read(pid: u32) -> io::Result<Option<Self>> {
        Self::read_with(pid, &mut Vec::new())
    }

    fn read_with(pid: u32, scratch: &mut Vec<u8>) -> io::Result<Option<Self>> {
        // Of a process that ends at this moment, there may be less than a line.
        for _ in 0..STAT_TRIES {
            if !read_into(pid, "stat", scratch)? {
                return Ok(None);
            }
            if let Some(stat) = Self::parse(scratch) {
                return Ok(Some(stat));
            }
        }
        Err(io::Error::other(format!("/proc/{pid}/stat cannot be understood")))
    }

    /// The name in the second field may hold spaces and parentheses; after the last one the fields are plain.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let name = text.get(text.iter().position(|byte| *byte == b'(')? + 1..name_end)?;
        let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let threads = fields.nth(13)?.parse().ok()?;
        let start_time = fields.nth(1)?.parse().ok()?;
        let is_supervisor = name == SUPERVISOR.to_bytes();
        Some(Self { is_supervisor, state, parent, group, session, threads, start_time })
    }

    /// A process whose first thread has exited shows as a zombie while its other threads go on.
    pub(super) fn is_running(&self) -> bool {
        match self.state {
            b'Z' => self.threads > 1,
            b'X' | b'x' => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_parsed_past_a_name_that_looks_like_fields() {
        let text = b"4242 (a) Z 1 (b) S 17 4242 4241 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1000 10\n";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                is_supervisor: false,
                state: b'S',
                parent: 17,
                group: 4242,
                session: 4241,
                threads: 3,
                start_time: 987_654
            })
        );
        assert_eq!(Stat::parse(b"4242 (cut) S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }
}
