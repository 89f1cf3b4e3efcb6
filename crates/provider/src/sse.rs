//! Server-sent events: bytes in, the data of events out.
//!
//! It holds no more than one event, however the bytes are cut, and never looks into the data.

/// The longest line, and the longest data of one event.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// An event that is longer than any of ours can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Cuts a stream into events.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    line: Vec<u8>,
    data: Vec<u8>,
    /// An event without any line of data is none.
    has_data: bool,
    /// The line ended in a carriage return: a line feed right behind it belongs to it.
    after_return: bool,
    /// A byte order mark is allowed only before the first line.
    past_first_line: bool,
}

impl Framer {
    /// Takes the next bytes and gives the data of each event that they complete, in order.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if std::mem::take(&mut self.after_return) && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.grow_line(&rest[..end])?;
            let ended_in_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if ended_in_return {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            events.extend(self.end_line()?);
        }
        self.grow_line(rest)?;
        Ok(events)
    }

    fn grow_line(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<String>, TooLong> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let complete = std::mem::take(&mut self.has_data);
            return Ok(complete.then(|| String::from_utf8_lossy(&data).into_owned()));
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        if field == b"data" {
            self.grow_data(value.strip_prefix(b" ").unwrap_or(value))?;
        }
        Ok(None)
    }

    fn grow_data(&mut self, value: &[u8]) -> Result<(), TooLong> {
        if self.data.len() + value.len() >= MAX_EVENT_BYTES {
            return Err(TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut framer = Framer::default();
        pieces.iter().flat_map(|piece| framer.push(piece).expect("short events")).collect()
    }

    #[test]
    fn events_are_read_as_the_standard_demands() {
        let table: [(&str, &[&str]); 12] = [
            ("data: a\n\n", &["a"]),
            ("data:a\r\rdata:b\r\n\r\n", &["a", "b"]),
            ("data: a\r\n\r\ndata: b\n\n", &["a", "b"]),
            ("event: ping\nid: 7\nretry: 10\ndata: {}\n\n", &["{}"]),
            ("data: a\ndata: b\ndata\n\n", &["a\nb\n"]),
            ("data:  two\n\n", &[" two"]),
            (": comment\n\n:\n\ndata: a\n: more\n\n", &["a"]),
            ("event: nothing\n\n\n\n", &[]),
            ("data\n\n", &[""]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: never ended\n", &[]),
            ("database: other\n\n", &[]),
        ];
        for (stream, expected) in table {
            assert_eq!(events(&[stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused_whether_in_one_line_or_many() {
        let mut framer = Framer::default();
        let piece = vec![b'x'; 1024 * 1024];
        assert!((0..17).any(|_| framer.push(&piece) == Err(TooLong)));
        let mut framer = Framer::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        assert!((0..17).any(|_| framer.push(&line) == Err(TooLong)));
    }

    proptest! {
        #[test]
        fn cuts_between_the_bytes_change_nothing(
            stream in "(data: ?[a-zä]{0,3}|:c|event: x|)(\r\n|\n|\r){0,3}(data:[a-z]{0,3}|)(\r\n|\n|\r){1,3}",
            times in 1usize..4,
        ) {
            let stream = stream.repeat(times);
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            prop_assert_eq!(events(&[stream.as_bytes()]), events(&bytes));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20)) {
            let mut framer = Framer::default();
            for piece in &pieces {
                prop_assert!(framer.push(piece).is_ok());
            }
        }
    }
}
