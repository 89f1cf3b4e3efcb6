//! Reads server-sent events from bytes as they arrive.

/// The longest event that is read. What is longer is dropped: the log has it.
const LONGEST: usize = 32 << 20;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    /// The kind of event; empty without one.
    pub(crate) name: String,
    /// The place to resume after, if it has one.
    pub(crate) id: Option<u64>,
    pub(crate) data: String,
}

/// What has arrived of a stream.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    line: Vec<u8>,
    /// Whether the line at hand is longer than what is read.
    is_cut: bool,
    name: String,
    id: Option<u64>,
    data: Option<String>,
}

impl SseReader {
    /// Takes the next bytes, and returns the events that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<ServerEvent> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            if self.line.len() + text.len() > LONGEST {
                self.is_cut = true;
                self.line.clear();
            }
            if !self.is_cut {
                self.line.extend(text);
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let is_cut = std::mem::take(&mut self.is_cut);
                if !is_cut {
                    events.extend(self.line(&String::from_utf8_lossy(&line)));
                }
            }
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<ServerEvent> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            let (name, id) = (std::mem::take(&mut self.name), self.id.take());
            let data = self.data.take()?;
            return Some(ServerEvent { name, id, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" => self.id = value.parse().ok(),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment shows that the stream is alive.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, id: Option<u64>, data: &str) -> ServerEvent {
        ServerEvent { name: name.to_owned(), id, data: data.to_owned() }
    }

    #[test]
    fn events_are_read_wherever_the_bytes_are_cut() {
        let stream = ": alive\n\nid: 7\nevent: event\ndata: {\"ä\":1}\n\nevent: live\r\ndata: a\r\ndata:b\r\n\r\nid: 8\n\ndata\n\n";
        let wanted = [event("event", Some(7), "{\"ä\":1}"), event("live", None, "a\nb"), event("", None, "")];
        for size in [1, 2, 3, 7, stream.len()] {
            let mut reader = SseReader::default();
            let events: Vec<_> =
                stream.as_bytes().chunks(size).flat_map(|piece| reader.take(piece)).collect();
            assert_eq!(events, wanted, "{size}");
        }
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory_and_the_next_event_is_read() {
        let mut reader = SseReader::default();
        let piece = vec![b'x'; 1 << 20];
        assert!(reader.take(b"id: 1\ndata: ").is_empty());
        for _ in 0..80 {
            assert!(reader.take(&piece).is_empty());
            assert!(reader.line.capacity() <= 2 * LONGEST);
        }
        assert_eq!(reader.take(b"\n\nid: 2\ndata: y\n\n"), [event("", Some(2), "y")]);
    }
}
