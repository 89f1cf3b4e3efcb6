//! Outgoing messages: one writer for all sessions, and our own requests that wait for an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use towline_agent::jsonrpc;

use super::rpc::Refusal;
use crate::lock::lock;

/// Takes messages for the client. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    pieces: mpsc::UnboundedSender<Piece>,
    asked: Arc<Mutex<Asked>>,
    /// Whether the client is Towline, which may stop a turn that has spent its budget.
    is_towline: Arc<AtomicBool>,
}

/// The receiving end, for [`write_out`].
///
/// It is unbounded because pieces of an answer arrive where nothing can wait. It stays small: a turn waits for
/// [`Outbox::flushed`] before it asks the model again, so it holds at most one answer per session.
pub(super) type PieceReceiver = mpsc::UnboundedReceiver<Piece>;

/// What the writer receives.
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
    /// Creates an outbox and its receiving end.
    pub(super) fn new() -> (Self, PieceReceiver) {
        let (pieces, receiver) = mpsc::unbounded_channel();
        (Self { pieces, asked: Arc::default(), is_towline: Arc::default() }, receiver)
    }

    /// From now on, Towline is asked before each request to the model.
    pub(super) fn set_towline(&self) {
        self.is_towline.store(true, Ordering::Relaxed);
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.put(jsonrpc::notification(method, params));
    }

    /// Sends an update of a session.
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

    /// Asks the client and waits for its answer, `None` if it refuses. Dropping the future abandons the question.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut asked = lock(&self.asked);
            // Requests that nothing waits for any more.
            asked.waiting.retain(|_, waiting| !waiting.is_closed());
            asked.last += 1;
            let id = format!("towline-{}", asked.last);
            asked.waiting.insert(id.clone(), sender);
            id
        };
        self.put(jsonrpc::request(id, method, params));
        receiver.await.ok().flatten()
    }

    /// Passes on an answer of the client.
    pub(super) fn answered(&self, id: &RawValue, result: Option<&RawValue>) {
        let id: String = serde_json::from_str(id.get()).unwrap_or_default();
        let waiting = lock(&self.asked).waiting.remove(&id);
        if let Some(waiting) = waiting {
            // The receiver may have been cancelled by now.
            let _ = waiting.send(result.and_then(|result| serde_json::from_str(result.get()).ok()));
        }
    }

    /// Waits until all messages so far are written, or can no longer be written.
    pub(super) async fn flushed(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.pieces.send(Piece::Flush(sender)).is_ok() {
            let _ = receiver.await;
        }
    }

    /// Waits until the client may have stopped the turn because of what it has used so far: Towline answers when that is recorded and
    /// does not when the budget is spent.
    pub(super) async fn counted(&self, session: &str) {
        self.flushed().await;
        if self.is_towline.load(Ordering::Relaxed) {
            self.ask("_towline/counted", json!({"sessionId": session})).await;
        }
    }

    fn put(&self, line: Vec<u8>) {
        // The writer notices that the client has stopped reading, and ends the agent.
        let _ = self.pieces.send(Piece::Line(line));
    }
}

/// Writes until the output is closed.
pub(super) async fn write_out(mut pieces: PieceReceiver, mut output: impl AsyncWrite + Unpin) {
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
