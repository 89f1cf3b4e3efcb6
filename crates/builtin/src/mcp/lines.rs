//! Lines from a child process, with at most one line in memory.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerLine {
    /// A complete line, without its end.
    Whole(Vec<u8>),
    /// A line above the limit, which was discarded.
    TooLong,
}

/// The next line; `None` at the end.
pub(super) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
) -> io::Result<Option<ServerLine>> {
    // With its end.
    let most = longest as u64 + 1;
    let mut line = Vec::new();
    if (&mut *reader).take(most).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= longest {
        return Ok(Some(ServerLine::Whole(line)));
    }
    while !line.ends_with(b"\n") {
        line.clear();
        if (&mut *reader).take(most).read_until(b'\n', &mut line).await? == 0 {
            break;
        }
    }
    Ok(Some(ServerLine::TooLong))
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn lines_are_the_same_however_they_are_read_and_never_longer_than_allowed() {
        let whole = |text: &str| ServerLine::Whole(text.as_bytes().to_vec());
        for size in 1..20 {
            let mut reader = BufReader::with_capacity(size, &b"one\n\ntoolong\nlast"[..]);
            let mut got = Vec::new();
            while let Some(line) = next_line(&mut reader, 4).await.unwrap() {
                got.push(line);
            }
            assert_eq!(got, [whole("one"), whole(""), ServerLine::TooLong, whole("last")]);
        }
    }
}
