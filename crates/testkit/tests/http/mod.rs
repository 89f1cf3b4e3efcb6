//! A plain HTTP client for the scripted model.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use towline_testkit::model::ModelServer;

/// Far more than the server needs.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A response, with its body out of its chunks.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) end: BodyEnd,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Proper,
    BrokenOff,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    /// The events of a stream, after checking that each that has a name has the name that its data has. Data that is no
    /// JSON is a string.
    pub(crate) fn events(&self) -> Vec<Value> {
        let frames = self.body.split_terminator("\n\n");
        frames
            .map(|frame| {
                let (name, data) =
                    frame.split_once('\n').map_or((None, frame), |(name, data)| (Some(name), data));
                let data = data.strip_prefix("data: ").expect("data");
                let data = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
                if let Some(name) = name {
                    assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
                }
                data
            })
            .collect()
    }
}

pub(crate) fn connect(server: &ModelServer) -> TcpStream {
    let stream = TcpStream::connect(server.url().trim_start_matches("http://")).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    stream
}

pub(crate) fn send(server: &ModelServer, method: &str, path: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let length = body.len();
    let mut stream = connect(server);
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: model\r\nX-Api-Key: dummy\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("the request is sent");
    stream
}

pub(crate) fn receive(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    assert!(
        !matches!(&read, Err(error) if error.kind() == io::ErrorKind::WouldBlock),
        "no end of the answer"
    );
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, rest) = text.split_once("\r\n\r\n").expect("a head");
    let head = head.to_ascii_lowercase();
    if !head.contains("transfer-encoding: chunked") {
        return Answer { head, body: rest.to_owned(), end: BodyEnd::Proper };
    }
    let (mut body, mut rest, mut end) = (String::new(), rest, BodyEnd::BrokenOff);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        if size == 0 {
            end = BodyEnd::Proper;
            break;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    Answer { head, body, end }
}
