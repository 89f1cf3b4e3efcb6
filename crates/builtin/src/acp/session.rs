//! An open session: its conversation, its file, its tools, and whether a turn runs.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::oneshot;
use towline_provider::{Call, CallResult, Item};

use super::conversation::Conversation;
use super::hands::Hands;
use super::journal::Journal;
use super::model::Model;
use super::record::{Mode, Record};
use super::rpc::Refusal;
use super::updates;
use crate::lock::lock;
use crate::tools::{Described, ToolKind};

/// A session that is open.
pub(super) struct Session {
    pub(super) id: String,
    /// The system prompt.
    pub(super) system: String,
    pub(super) model: Arc<dyn Model>,
    pub(super) hands: Hands,
    history: Mutex<History>,
    always: Mutex<Vec<Always>>,
    running: Mutex<Running>,
}

/// The conversation and the file that it is derived from, which change together.
struct History {
    journal: Journal,
    conversation: Conversation,
}

/// A permission that lasts while the session is open.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Always {
    /// All calls of a kind.
    Kind(ToolKind),
    /// One tool of the kind that fits any tool.
    Tool(String),
}

#[derive(Debug)]
enum Running {
    No,
    /// A running turn. It can be cancelled while the sender exists.
    Turn(Option<oneshot::Sender<()>>),
}

impl Session {
    pub(super) fn new(
        id: String,
        system: String,
        model: Arc<dyn Model>,
        hands: Hands,
        journal: Journal,
        conversation: Conversation,
    ) -> Self {
        Self {
            id,
            system,
            model,
            hands,
            history: Mutex::new(History { journal, conversation }),
            always: Mutex::default(),
            running: Mutex::new(Running::No),
        }
    }

    /// Writes a record to the file, then applies it to the conversation.
    pub(super) fn record(&self, record: Record) -> io::Result<()> {
        let mut history = lock(&self.history);
        history.journal.write(&record)?;
        history.conversation.apply(record);
        Ok(())
    }

    /// Passes the conversation to `look`.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Conversation) -> T) -> T {
        look(&lock(&self.history).conversation)
    }

    /// The conversation so far.
    pub(super) fn items(&self) -> Vec<Item> {
        self.look(|conversation| conversation.items.clone())
    }

    /// Whether calls that act need permission.
    pub(super) fn mode(&self) -> Mode {
        self.look(|conversation| conversation.mode)
    }

    /// The model that is asked.
    pub(super) fn model_name(&self) -> String {
        self.look(|conversation| conversation.model.clone())
    }

    /// Ends the calls without a result as failed, and returns those results.
    pub(super) fn close_calls(&self, why: &str) -> io::Result<Vec<CallResult>> {
        let failed = |Call { id, name, .. }| CallResult { id, name, output: why.to_owned(), failed: true };
        let open = self.look(Conversation::open_calls).into_iter().map(failed).collect::<Vec<_>>();
        for result in &open {
            self.record(Record::Result { result: result.clone() })?;
        }
        Ok(open)
    }

    /// A record as it is replayed to the client.
    pub(super) fn replay(&self, record: &Record) -> Vec<Value> {
        updates::replay(record, |call| {
            self.hands.describe(call).unwrap_or_else(|| updates::unknown_tool(call))
        })
    }

    /// Permits calls like this one while the session is open.
    pub(super) fn permit(&self, call: &Call, described: &Described) {
        lock(&self.always).push(Always::like(call, described));
    }

    /// Whether calls like this one are permitted while the session is open.
    pub(super) fn is_permitted(&self, call: &Call, described: &Described) -> bool {
        lock(&self.always).contains(&Always::like(call, described))
    }

    /// Begins a turn. The receiver is notified when the turn is cancelled.
    pub(super) fn begin_turn(&self) -> Result<oneshot::Receiver<()>, Refusal> {
        let mut running = lock(&self.running);
        if matches!(*running, Running::Turn(_)) {
            return Err(Refusal::invalid_request(
                "the session is in the middle of a turn; wait for its end, or cancel it",
            ));
        }
        let (sender, receiver) = oneshot::channel();
        *running = Running::Turn(Some(sender));
        Ok(receiver)
    }

    pub(super) fn end_turn(&self) {
        *lock(&self.running) = Running::No;
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(*lock(&self.running), Running::Turn(_))
    }

    /// Cancels the running turn, if there is one.
    pub(super) fn cancel(&self) {
        if let Running::Turn(cancel) = &mut *lock(&self.running)
            && let Some(cancel) = cancel.take()
        {
            // The turn may have ended just now.
            let _ = cancel.send(());
        }
    }
}

impl Always {
    fn like(call: &Call, described: &Described) -> Self {
        match described.kind {
            ToolKind::Other => Self::Tool(call.name.clone()),
            kind => Self::Kind(kind),
        }
    }
}
