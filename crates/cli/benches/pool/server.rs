//! The server under test, and a client that reads bytes as they come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::Value;
use towline_testkit::scratch::wait_for_some;

use crate::support::{Desk, LIMIT};

/// A server that runs goals of a desk.
pub(crate) struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    /// Starts one with so many slots, and waits until it is known.
    pub(crate) fn up(desk: &Desk, slots: usize) -> Self {
        let mut command =
            desk.command(["up", "--listen", "127.0.0.1:0", "--wait", "1s", "--slots", &slots.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("towline starts");
        let open = wait_for_some(LIMIT, "the server", || {
            let open = desk.towline(["open", "--json"]);
            (open.code == Some(0)).then(|| open.json())
        });
        let token = std::fs::read_to_string(desk.home.towline().join("operator-token"))
            .expect("the operator's token");
        Self { child, address: open["address"].as_str().expect("an address").to_owned(), token }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn down(mut self, desk: &Desk) {
        let down = desk.towline(["down"]);
        assert_eq!(down.code, Some(0), "{down:?}");
        self.child.wait().expect("it ends");
    }

    /// A connection for many requests.
    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(LIMIT))).expect("settings");
        Client { stream: BufReader::new(stream), address: self.address.clone(), token: self.token.clone() }
    }
}

/// A connection to a server.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    token: String,
}

impl Client {
    /// How long a request takes from its first byte to the last one of its reply, in milliseconds, and the reply.
    pub(crate) fn get(&mut self, path: &str) -> (f64, Value) {
        let begun = Instant::now();
        self.send(path);
        let length = self.head().expect("a length");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        let millis = begun.elapsed().as_secs_f64() * 1e3;
        (millis, serde_json::from_slice(&body).expect("JSON"))
    }

    /// Follows events from the first one on, until the server ends the stream.
    pub(crate) fn follow(mut self, mut on_event: impl FnMut(&Value)) {
        self.send("/events?cursor=0");
        assert_eq!(self.head(), None, "a stream has no length");
        // Each event is a part of its own, so none of its lines is cut. A connection that breaks off ends it, too.
        for line in self.stream.lines().map_while(Result::ok) {
            if let Some(event) = line.strip_prefix("data: ") {
                on_event(&serde_json::from_str(event).expect("JSON"));
            }
        }
    }

    fn send(&mut self, path: &str) {
        let request = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.address, self.token
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("sent");
    }

    /// Reads the head of a good reply, and returns the length of its body.
    fn head(&mut self) -> Option<usize> {
        let (mut line, mut length) = (String::new(), None);
        self.stream.read_line(&mut line).expect("a status");
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.split_once(':') else { return length };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse().expect("a number"));
            }
        }
    }
}
