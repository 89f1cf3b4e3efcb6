//! The output of an attempt, in ranges of bytes.
//!
//! Secrets are hidden without moving anything: a line that has one is shown without it, cut or filled up to its length. So offsets are
//! those of the file, and a client can read on where it stopped.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use towline_app::find;

use crate::app::{App, in_background};
use crate::problem::Problem;
use crate::query::{self, Query};
use crate::reply::{self, Handled};

/// The longest part that is sent at once.
const LONGEST: u64 = 1 << 20;
/// How far around a part is looked for the ends of its lines.
const AROUND: u64 = 64 * 1024;
/// The file with an attempt's output.
const OUTPUT: &str = "stdout.log";

pub(crate) async fn log(
    State(app): State<Arc<App>>,
    Path((id, number)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Handled {
    Query::of(&uri, &[])?;
    let context = app.context();
    let number = query::attempt_number(&number)?;
    let found = app.goal(&context, &id).await?;
    let number = find::attempt(&found.record, number.get())?;
    let path = app.state.home.attempt(found.record.goal.id, number).join(OUTPUT);
    let wanted = headers.get(header::RANGE).and_then(|range| parse(range.to_str().ok()?));
    let mask = context.secrets.mask();
    let part = in_background(&app, async move { read(&path, wanted, |line| mask.text(line).into_owned()) });
    let (part, length) = part.await?.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Problem::not_found("the output of this attempt was removed, or is not there yet")
        }
        _ => Problem::internal(format!("the output cannot be read: {error}")),
    })?;
    let Some((range, bytes)) = part else {
        let what = format!("the output has {length} bytes");
        return Err(Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, what));
    };
    Ok(with_range(reply::text_of("text/plain; charset=utf-8", bytes), &range, length, wanted.is_some()))
}

fn with_range(mut reply: Response, range: &Range<u64>, length: u64, is_part: bool) -> Response {
    reply.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if is_part || range.end < length {
        *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
        let shown = format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1));
        if let Ok(shown) = HeaderValue::from_str(&shown) {
            reply.headers_mut().insert(header::CONTENT_RANGE, shown);
        }
    }
    reply
}

/// A range of bytes that a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// From here to there, or to the end.
    From(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

/// A range that is not understood is as good as none (RFC 9110): the whole is sent.
fn parse(range: &str) -> Option<Wanted> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.parse::<u64>().ok();
    match (first, last) {
        ("", last) => Some(Wanted::Last(number(last)?)),
        (first, "") => Some(Wanted::From(number(first)?, None)),
        (first, last) => Some(Wanted::From(number(first)?, Some(number(last)?))),
    }
}

impl Wanted {
    /// Which bytes these are of so many; none if there are none.
    fn within(self, length: u64) -> Option<Range<u64>> {
        let (start, end) = match self {
            Self::From(first, last) => {
                (first, last.map_or(length, |last| last.saturating_add(1).min(length)))
            }
            Self::Last(count) => (length.saturating_sub(count), length),
        };
        (start < end).then(|| start..end.min(start.saturating_add(LONGEST)))
    }
}

/// A part of a file with where it is.
type Part = (Range<u64>, Vec<u8>);

/// The wanted part without its secrets, and the length of the whole file.
fn read(
    path: &FilePath,
    wanted: Option<Wanted>,
    mask: impl Fn(&str) -> String,
) -> io::Result<(Option<Part>, u64)> {
    let file = towline_files::open(path)?;
    let length = file.metadata()?.len();
    let range = match wanted {
        None => Some(0..length.min(LONGEST)),
        Some(wanted) => wanted.within(length),
    };
    let Some(range) = range else { return Ok((None, length)) };
    let around = range.start.saturating_sub(AROUND)..range.end.saturating_add(AROUND).min(length);
    let mut bytes = read_range(&file, &around)?;
    hide_in_place(&mut bytes, mask);
    let skipped = usize::try_from(range.start - around.start).unwrap_or(usize::MAX);
    let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let part: Vec<u8> = bytes.into_iter().skip(skipped).take(count).collect();
    let end = range.start + part.len() as u64;
    Ok((Some((range.start..end, part)), length))
}

/// The bytes of this range; fewer if the file has become shorter.
fn read_range(file: &File, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], range.start + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Hides secrets in each line without changing its length.
fn hide_in_place(bytes: &mut [u8], mask: impl Fn(&str) -> String) {
    for line in bytes.split_mut(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line).into_owned();
        let masked = mask(&text);
        if masked != text {
            let rest = masked.bytes().chain(std::iter::repeat(b' '));
            line.iter_mut().zip(rest).for_each(|(byte, shown)| *byte = shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(line: &str) -> String {
        line.replace("secret-value", "[masked KEY]").replace("tiny", "[masked TINY]")
    }

    #[test]
    fn no_range_shows_a_part_of_a_secret_and_offsets_are_those_of_the_file() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("log");
        let text = "first line\nthe secret-value is tiny\nlast line\n";
        std::fs::write(&path, text).expect("written");
        let length = text.len() as u64;
        for start in 0..length {
            for end in start..length {
                let wanted = Some(Wanted::From(start, Some(end)));
                let (part, whole) = read(&path, wanted, masked).expect("read");
                let (range, bytes) = part.expect("a part");
                assert_eq!((range, whole), (start..end + 1, length));
                let shown = String::from_utf8(bytes).expect("text");
                assert_eq!(shown.len() as u64, end + 1 - start);
                assert!(!["ecre", "valu", "tin"].iter().any(|part| shown.contains(part)), "{shown}");
            }
        }
        let (part, _) = read(&path, Some(Wanted::Last(10)), masked).expect("read");
        assert_eq!(part.expect("a part").1, b"last line\n");
        assert_eq!(read(&path, Some(Wanted::From(length, None)), masked).expect("read").0, None);
    }

    #[test]
    fn ranges_are_read_as_clients_write_them() {
        for (text, wanted) in [
            ("bytes=0-9", Some(Wanted::From(0, Some(9)))),
            ("bytes=5-", Some(Wanted::From(5, None))),
            ("bytes=-5", Some(Wanted::Last(5))),
            ("bytes=", None),
            ("lines=1-2", None),
            ("bytes=1-2,4-5", None),
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
        assert_eq!(Wanted::From(0, None).within(3 * LONGEST), Some(0..LONGEST));
        assert_eq!(Wanted::From(9, Some(3)).within(20), None);
    }
}
