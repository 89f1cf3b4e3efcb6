//! Lines from a child process, with at most one line in memory.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

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
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() && length == 0 {
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..end.unwrap_or(available.len())];
        length += piece.len();
        if length <= longest {
            line.extend_from_slice(piece);
        } else {
            line = Vec::new();
        }
        let is_last = end.is_some() || available.is_empty();
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if is_last {
            return Ok(Some(if length <= longest { ServerLine::Whole(line) } else { ServerLine::TooLong }));
        }
    }
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
