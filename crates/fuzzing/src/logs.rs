//! What must hold of the readers of a run's files, whatever is in them.

use std::fs;
use std::path::Path;

use towline_process::{ExitRecord, Framed, Line, LineFramer, LogReader, OutputTimes, Stream, merged_tail};

/// What a line may be long in these checks.
const CAP: usize = 4 * 1024;
/// What is asked for of the end of a log.
const TAIL: usize = 512;

/// Any chunking of a stream gives the same lines, which are the stream.
pub(crate) fn check_framer(data: &[u8]) {
    let (first, stream) = data.split_first().unwrap_or((&0, &[]));
    let step = usize::from(*first).max(1);
    let whole = framed(stream, stream.len().max(1));
    let pieces = framed(stream, step);
    assert_eq!(whole, pieces, "lines depend on chunks of {step} bytes");
    let mut offset = 0;
    for found in &whole {
        let (at, length) = match found {
            Framed::Line(line) => (line.offset, line.length()),
            Framed::TooLong { offset, len } => (*offset, *len),
        };
        assert_eq!(at, offset, "a line is at another offset");
        match found {
            Framed::Line(_) => assert!(length <= CAP as u64, "a line beyond the cap was returned"),
            Framed::TooLong { .. } => assert!(length > CAP as u64, "a line within the cap was not returned"),
        }
        offset = at + length + 1;
    }
}

fn framed(stream: &[u8], step: usize) -> Vec<Framed<'_>> {
    let mut framer = LineFramer::with_cap(0, CAP);
    let mut found = Vec::new();
    for chunk in stream.chunks(step) {
        framer.push(chunk);
        while let Some(framed) = framer.pull() {
            found.push(in_stream(framed, stream));
        }
    }
    found.extend(framer.finish().map(|last| in_stream(last, stream)));
    found
}

/// The same line where it is in the stream, for as long as that is there.
fn in_stream<'s>(framed: Framed<'_>, stream: &'s [u8]) -> Framed<'s> {
    match framed {
        Framed::Line(Line { offset, bytes, end }) => {
            let place = usize::try_from(offset).unwrap_or(usize::MAX);
            let there = stream.get(place..).and_then(|rest| rest.get(..bytes.len())).unwrap_or_default();
            assert_eq!(bytes, there, "other bytes");
            Framed::Line(Line { offset, bytes: there, end })
        }
        Framed::TooLong { offset, len } => Framed::TooLong { offset, len },
    }
}

/// The files of a run may hold anything, parted by a zero byte: output, error output, index, exit record.
pub(crate) fn check_readers(data: &[u8]) {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no scratch folder: {error}"));
    let mut parts = data.splitn(4, |byte| *byte == 0);
    for name in [Stream::Stdout.file_name(), Stream::Stderr.file_name(), "index", "exit.json"] {
        if let Some(part) = parts.next() {
            fs::write(dir.path().join(name), part).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    if let Ok(tail) = merged_tail(dir.path(), TAIL) {
        assert!(tail.len() <= TAIL, "{} bytes of {TAIL}", tail.len());
    }
    for stream in Stream::ALL {
        read_to_the_end(dir.path(), stream, data.len());
    }
    // An error is an answer, too.
    let _ = ExitRecord::read(dir.path());
}

fn read_to_the_end(dir: &Path, stream: Stream, most: usize) {
    let mut reader = LogReader::output(dir, stream, 0);
    let mut times = OutputTimes::new(dir, stream);
    for _ in 0..=most {
        match reader.read() {
            Ok([]) | Err(_) => break,
            Ok(_) => {}
        }
        let _ = times.at(reader.offset());
    }
    assert!(reader.offset() <= most as u64, "more was read than is there");
    let _ = times.at(u64::MAX);
}
