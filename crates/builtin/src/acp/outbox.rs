//! What we write: one writer for all sessions, and the requests of ours that wait for an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use towline_agent::jsonrpc;

use super::rpc::Refusal;
use crate::lock::lock;

/// Where messages for the client go in. Cheap to copy.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    pieces: mpsc::UnboundedSender<Piece>,
    asked: Arc<Mutex<Asked>>,
}

/// The other end, for [`write_out`].
///
/// It is unbounded because a model's words come in where nobody can wait. It stays small all the same: a turn waits for
/// [`Outbox::flushed`] before it asks the model again, so at most one answer of each session is in it.
pub(super) type Pieces = mpsc::UnboundedReceiver<Piece>;

/// What the writer is given.
#[derive(Debug)]
pub(super) enum Piece {
    Line(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
struct Asked {
    last: u64,
    waiting: HashMap<String, oneshot::Sender<Option<Value>>>,
}

impl Outbox {
    /// A new one, with its other end.
    pub(super) fn new() -> (Self, Pieces) {
        let (pieces, receiver) = mpsc::unbounded_channel();
        (Self { pieces, asked: Arc::default() }, receiver)
    }

    /// Tells the client something.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.put(jsonrpc::notification(method, params));
    }

    /// Tells of a session.
    pub(super) fn update(&self, session: &str, update: Value) {
        self.notify("session/update", json!({"sessionId": session, "update": update}));
    }

    /// Answers a request.
    pub(super) fn answer(&self, id: impl Serialize, result: Result<Value, Refusal>) {
        self.put(match result {
            Ok(result) => jsonrpc::answer(id, result),
            Err(refusal) => jsonrpc::refusal(id, &refusal),
        });
    }

    /// Asks the client, and waits for its answer; none when it refuses. Whoever stops waiting is not answered.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut asked = lock(&self.asked);
            // Those that nobody waits for any more.
            asked.waiting.retain(|_, waiting| !waiting.is_closed());
            asked.last += 1;
            let id = format!("towline-{}", asked.last);
            asked.waiting.insert(id.clone(), sender);
            id
        };
        self.put(jsonrpc::request(id, method, params));
        receiver.await.ok().flatten()
    }

    /// The client has answered.
    pub(super) fn answered(&self, id: &RawValue, result: Option<&RawValue>) {
        let id: String = serde_json::from_str(id.get()).unwrap_or_default();
        let waiting = lock(&self.asked).waiting.remove(&id);
        if let Some(waiting) = waiting {
            // Whoever asked may have been cancelled by now.
            let _ = waiting.send(result.and_then(|result| serde_json::from_str(result.get()).ok()));
        }
    }

    /// Waits until everything so far is written, or cannot be written any more.
    pub(super) async fn flushed(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.pieces.send(Piece::Flush(sender)).is_ok() {
            let _ = receiver.await;
        }
    }

    fn put(&self, line: Vec<u8>) {
        // A client that reads no more is noticed by the writer, which ends everything.
        let _ = self.pieces.send(Piece::Line(line));
    }
}

/// Writes until the output is closed.
pub(super) async fn write_out(mut pieces: Pieces, mut output: impl AsyncWrite + Unpin) {
    let mut buffer = Vec::new();
    while let Some(first) = pieces.recv().await {
        let mut waiting = Vec::new();
        let mut next = Some(first);
        while let Some(piece) = next {
            match piece {
                Piece::Line(line) => buffer.extend_from_slice(&line),
                Piece::Flush(sender) => waiting.push(sender),
            }
            next = pieces.try_recv().ok();
        }
        if output.write_all(&buffer).await.is_err() || output.flush().await.is_err() {
            return;
        }
        buffer.clear();
        for sender in waiting {
            let _ = sender.send(());
        }
    }
}
