//! A client that sends exactly the bytes that a test wants.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a reply may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
}

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    address: SocketAddr,
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn of(address: SocketAddr) -> Self {
        Self { address }
    }

    /// A request for a path below the prefix.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Ask {
        self.ask_root(method, &format!("/api/v1{path}"))
    }

    /// A request for exactly this path.
    pub(crate) fn ask_root(&self, method: &str, path: &str) -> Ask {
        let headers = BTreeMap::from([("host".to_owned(), self.address.to_string())]);
        Ask {
            address: self.address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
        }
    }
}

impl Ask {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    /// Asks with a whole address, as a proxy is asked.
    pub(crate) fn at(mut self, origin: &str) -> Self {
        self.path.insert_str(0, origin);
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, value: &Value) -> Self {
        self.body("application/json", value.to_string())
    }

    pub(crate) fn body(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("content-type", kind).header("content-length", &length)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.headers.contains_key("connection") {
            text.push_str("connection: close\r\n");
        }
        text.push_str("\r\n");
        [text.as_bytes(), &self.body].concat()
    }

    async fn connect(&self) -> (u16, BTreeMap<String, String>, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(self.address).await.expect("connected");
        // A server that refuses a body does not read it.
        let _ = stream.write_all(&self.bytes()).await;
        let mut reading = BufReader::new(stream);
        let mut line = String::new();
        timeout(PATIENCE, reading.read_line(&mut line)).await.expect("in time").expect("a line");
        let status = line.split(' ').nth(1).expect("a status").parse().expect("a number");
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reading.read_line(&mut line).await.expect("a line");
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_owned(), value.to_owned());
        }
        (status, headers, reading)
    }

    /// Sends it, and keeps the connection once the reply has begun.
    pub(crate) async fn hold(self) -> (u16, BufReader<TcpStream>) {
        let (status, _, reading) = self.header("connection", "keep-alive").connect().await;
        (status, reading)
    }

    /// Sends it and reads the whole reply.
    pub(crate) async fn send(self) -> Got {
        let (status, headers, mut reading) = self.connect().await;
        let mut body = Vec::new();
        timeout(PATIENCE, reading.read_to_end(&mut body)).await.expect("in time").expect("a body");
        assert!(!headers.contains_key("transfer-encoding"), "replies have a length");
        Got { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
    }

    /// Sends it and follows the reply.
    pub(crate) async fn follow(self) -> Stream {
        let (status, headers, reading) = self.connect().await;
        assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
        Stream { reading }
    }
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is a problem document with this status.
    pub(crate) fn refused(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["type"].is_string() && problem["title"].is_string(), "{problem}");
        problem
    }
}

/// Server-sent events.
pub(crate) struct Stream {
    reading: BufReader<TcpStream>,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Stream {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        let mut sent = Sent::default();
        loop {
            let mut line = String::new();
            let length = timeout(PATIENCE, self.reading.read_line(&mut line)).await.expect("in time").ok()?;
            if length == 0 {
                return None;
            }
            // Sizes of chunks are between the lines.
            match line.trim_end().split_once(':') {
                Some(("id", id)) => sent.id = id.trim().parse().ok(),
                Some(("event", name)) => sent.name = name.trim().to_owned(),
                Some(("data", data)) => sent.data = serde_json::from_str(data).expect("JSON"),
                _ if sent.data.is_null() => {}
                _ => return Some(sent),
            }
        }
    }
}

impl Ask {
    /// Sends a body of this length without announcing it.
    pub(crate) async fn send_chunked(mut self, length: usize) -> Got {
        self = self.without("content-length").header("content-type", "application/json");
        let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", length, "x".repeat(length));
        self.body = chunk.into_bytes();
        self.send().await
    }
}
