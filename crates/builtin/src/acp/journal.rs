//! A session's file: one JSON line per record, written before anything acts on it.
//!
//! A process that is killed in the middle leaves whole lines and at most one torn line at the end, which is ignored.
//! A session belongs to one process at a time: the file is locked while it is open.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use uuid::Uuid;

use super::record::{Header, Record, VERSION};

/// The longest session file that is read, far above any conversation.
const LONGEST: u64 = 1 << 30;

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    /// There is no file of this id.
    #[error("no such session")]
    NotFound,
    /// Another process holds its lock.
    #[error("the session is open in another process; end that one first")]
    InUse,
    /// A line before the last cannot be parsed.
    #[error("line {line} of the session file cannot be parsed ({why}); start a new session")]
    Damaged {
        /// The line's number, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be read or written.
    #[error("the session file cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A session's file, open and locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
}

impl Journal {
    /// Creates the file of a new session.
    pub(super) fn create(folder: &Path, header: &Header) -> Result<Self, JournalError> {
        towline_files::create_private_dir(folder)?;
        let path = folder.join(file_name(&header.id).ok_or(JournalError::NotFound)?);
        towline_files::create_new(&path)?;
        let file = towline_files::open_to_append(&path)?;
        lock(&file)?;
        let mut journal = Self { file };
        journal.write(header)?;
        Ok(journal)
    }

    /// Opens the file of an earlier session and reads its records.
    pub(super) fn open(folder: &Path, id: &str) -> Result<(Self, Header, Vec<Record>), JournalError> {
        let path = folder.join(file_name(id).ok_or(JournalError::NotFound)?);
        let mut file = towline_files::open_to_append(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => JournalError::NotFound,
            _ => JournalError::Io(error),
        })?;
        lock(&file)?;
        if file.metadata()?.len() > LONGEST {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let (header, records) = read(&bytes[..whole])?;
        if header.id != id {
            return Err(JournalError::NotFound);
        }
        // The next record must not become a part of the torn line.
        if whole < bytes.len() {
            file.set_len(u64::try_from(whole).unwrap_or(u64::MAX))?;
        }
        Ok((Self { file }, header, records))
    }

    /// Appends a line, the header or a record, in one write.
    pub(super) fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let length = self.file.metadata()?.len();
        self.file.write_all(&bytes).inspect_err(|_| {
            // The disk became full in the middle: half a line would damage the next one.
            let _ = self.file.set_len(length);
        })
    }
}

/// The file name of a session. Ids are UUIDs in their usual form; nothing else is one of ours.
fn file_name(id: &str) -> Option<String> {
    let parsed: Uuid = id.parse().ok()?;
    (parsed.to_string() == id).then(|| format!("{id}.jsonl"))
}

fn lock(file: &File) -> Result<(), JournalError> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => JournalError::InUse,
        error => JournalError::Io(error.into()),
    })
}

/// Parses whole lines.
fn read(bytes: &[u8]) -> Result<(Header, Vec<Record>), JournalError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let damaged = |line: usize, why: String| JournalError::Damaged { line, why };
    let header: Header = match lines.next() {
        None => return Err(JournalError::NotFound),
        Some(line) => serde_json::from_slice(line).map_err(|error| damaged(1, error.to_string()))?,
    };
    if header.version != VERSION {
        let why = format!("it is of version {}, and this program writes version {VERSION}", header.version);
        return Err(damaged(1, why));
    }
    let record = |(number, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| damaged(number + 2, error.to_string()))
    };
    let records = lines.enumerate().map(record).collect::<Result<_, _>>()?;
    Ok((header, records))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use towline_provider::{Item, WireFormat};

    use super::*;
    use crate::acp::clock;

    fn header(id: &str) -> Header {
        Header {
            version: VERSION,
            id: id.to_owned(),
            cwd: "/project".into(),
            model: "m".to_owned(),
            format: WireFormat::OpenaiChat,
            created: clock::now(),
        }
    }

    fn prompt(text: &str) -> Record {
        Record::Item { item: Item::User { text: text.to_owned() } }
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_records_before_the_cut_and_accepts_more() {
        let folder = tempfile::tempdir().unwrap();
        let id = Uuid::now_v7().to_string();
        let written = [prompt("one\ntwo"), prompt("zwei ü"), prompt("")];
        let mut journal = Journal::create(folder.path(), &header(&id)).unwrap();
        let path = folder.path().join(format!("{id}.jsonl"));
        let mut ends = vec![std::fs::metadata(&path).unwrap().len()];
        for record in &written {
            journal.write(record).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len());
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let count = ends.iter().filter(|end| **end <= cut as u64).count();
            let Some(records) = count.checked_sub(1) else {
                assert!(matches!(Journal::open(folder.path(), &id), Err(JournalError::NotFound)), "{cut}");
                continue;
            };
            let (mut journal, _, found) = Journal::open(folder.path(), &id).unwrap();
            assert_eq!(found, written[..records], "{cut}");
            journal.write(&prompt("more")).unwrap();
            drop(journal);
            let (_, _, found) = Journal::open(folder.path(), &id).unwrap();
            assert_eq!((found.len(), &found[records]), (records + 1, &prompt("more")), "{cut}");
        }
    }

    #[test]
    fn only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join("a/sessions");
        let id = Uuid::now_v7().to_string();
        Journal::create(&sessions, &header(&id)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&sessions), mode(&sessions.join(format!("{id}.jsonl")))), (0o700, 0o600));
    }

    #[test]
    fn only_a_uuid_in_its_usual_form_is_a_session_id() {
        let folder = tempfile::tempdir().unwrap();
        let id = Uuid::now_v7().to_string();
        Journal::create(folder.path(), &header(&id)).unwrap();
        let tricks =
            ["", "..", "../x", "a/b", &id.to_uppercase(), &id.replace('-', ""), &format!("{{{id}}}")];
        for id in tricks {
            assert!(matches!(Journal::open(folder.path(), id), Err(JournalError::NotFound)), "{id}");
        }
    }

    #[test]
    fn anything_but_a_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let id = Uuid::now_v7().to_string();
        let path = folder.path().join(format!("{id}.jsonl"));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(matches!(Journal::open(folder.path(), &id), Err(JournalError::Io(_))));
        assert!(matches!(Journal::create(folder.path(), &header(&id)), Err(JournalError::Io(_))));
        std::fs::remove_file(&path).unwrap();
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        assert!(matches!(Journal::open(folder.path(), &id), Err(JournalError::Io(_))));
    }

    #[test]
    fn a_line_that_cannot_be_parsed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let id = Uuid::now_v7().to_string();
        let mut journal = Journal::create(folder.path(), &header(&id)).unwrap();
        journal.write(&prompt("a")).unwrap();
        journal.file.write_all(b"{}\n").unwrap();
        drop(journal);
        let found = Journal::open(folder.path(), &id);
        assert!(matches!(found, Err(JournalError::Damaged { line: 3, .. })), "{found:?}");
    }
}
