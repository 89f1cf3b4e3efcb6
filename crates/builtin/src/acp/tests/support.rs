//! A client and a scripted model.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
};
use tokio::task::JoinHandle;
use towline_provider::{
    Answer, Call, Delta, ErrorClass, Item, ModelMessage, ProviderError, Question, Stop, Usage, WireFormat,
};

use super::super::model::{MakeModel, Model};
use super::super::server::serve;
use super::super::{AcpSettings, Fetch};

/// Far longer than anything in these tests takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// The usage of an answer unless the test sets another.
pub(super) const USAGE: Usage = Usage { input: 100, output: 20, cache_read: 7, cache_write: 3 };

/// What the model does with the next question.
pub(super) enum Step {
    Answers(Answer),
    /// Writes a text, then fails.
    Fails(&'static str, ProviderError),
    /// Writes a text, then nothing more.
    Hangs(&'static str),
}

/// A question that the model received.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) items: Vec<Item>,
    pub(super) tools: usize,
}

#[derive(Default)]
pub(super) struct Scripted {
    steps: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<Asked>>,
}

impl Model for Scripted {
    fn ask<'a>(
        &'a self,
        question: &'a Question<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        self.asked.lock().unwrap().push(Asked {
            model: question.model.to_owned(),
            items: question.items.to_vec(),
            tools: question.tools.len(),
        });
        let step = self.steps.lock().unwrap().pop_front().expect("the model is asked once too often");
        Box::pin(async move {
            let mut write_text = |text: &str| {
                if !text.is_empty() {
                    on_delta(Delta::Text(text.to_owned()));
                }
            };
            match step {
                Step::Answers(answer) => {
                    write_text(&answer.message.text);
                    Ok(answer)
                }
                Step::Fails(text, error) => {
                    write_text(text);
                    Err(error)
                }
                Step::Hangs(text) => {
                    write_text(text);
                    std::future::pending().await
                }
            }
        })
    }
}

/// An answer of text alone.
pub(super) fn replies(text: &str) -> Step {
    answers(text, &[])
}

/// An answer with tool calls, whose ids are `c1`, `c2` and so on.
pub(super) fn calls(calls: &[(&str, Value)]) -> Step {
    answers("", calls)
}

pub(super) fn answers(text: &str, calls: &[(&str, Value)]) -> Step {
    let call = |(number, (name, input)): (usize, &(&str, Value))| Call {
        id: format!("{name}-{}", number + 1),
        name: (*name).to_owned(),
        input: input.clone(),
    };
    let message = ModelMessage {
        text: text.to_owned(),
        calls: calls.iter().enumerate().map(call).collect(),
        native: None,
    };
    Step::Answers(Answer { message, stop: Stop::Done, usage: USAGE })
}

/// The same step with a changed answer.
pub(super) fn but(step: Step, change: impl FnOnce(&mut Answer)) -> Step {
    match step {
        Step::Answers(mut answer) => {
            change(&mut answer);
            Step::Answers(answer)
        }
        other => other,
    }
}

pub(super) fn fails(text: &'static str, class: ErrorClass) -> Step {
    Step::Fails(text, ProviderError { class, status: None, until: None, message: "scripted".into() })
}

/// A folder to work in and one for sessions.
pub(super) struct Place {
    root: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub(super) fn sessions(&self) -> PathBuf {
        self.root.path().join("sessions")
    }

    pub(super) fn settings(&self) -> AcpSettings {
        AcpSettings {
            format: WireFormat::OpenaiChat,
            base_url: Some("http://127.0.0.1:1".into()),
            key: None,
            key_variable: "KEY".into(),
            model: "scripted".into(),
            context_window: 100_000,
            max_output: None,
            max_turns: None,
            prices: None,
            fetch: Fetch::Off,
            directories: Vec::new(),
            sessions: self.sessions(),
            silence: DEADLINE,
        }
    }

    /// Starts an agent here whose model follows `steps`.
    pub(super) fn agent(&self, steps: impl IntoIterator<Item = Step>) -> Agent {
        Agent::start(self.settings(), self.work(), steps)
    }

    /// The same with an open session.
    pub(super) async fn session(&self, steps: impl IntoIterator<Item = Step>) -> (Agent, String) {
        let mut agent = self.agent(steps);
        let id = agent.new_session().await;
        (agent, id)
    }
}

/// An agent with an open session in a place of its own.
pub(super) async fn new_session(steps: impl IntoIterator<Item = Step>) -> (Agent, String) {
    let place = Place::new();
    let (mut agent, id) = place.session(steps).await;
    agent.own_place = Some(place);
    (agent, id)
}

/// An agent, from the client's side.
pub(super) struct Agent {
    pub(super) model: Arc<Scripted>,
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<()>,
    pub(super) work: PathBuf,
    /// Its folders, where the test does not hold them.
    own_place: Option<Place>,
    last_id: u64,
    /// The option that a permission request is answered with.
    pub(super) permit: &'static str,
}

impl Agent {
    #[expect(clippy::disallowed_methods, reason = "the test owns the agent, and waits for its end")]
    pub(super) fn start(settings: AcpSettings, work: PathBuf, steps: impl IntoIterator<Item = Step>) -> Self {
        let model = Arc::new(Scripted::default());
        model.steps.lock().unwrap().extend(steps);
        let given = Arc::clone(&model);
        let make: MakeModel = Box::new(move |_| Ok(Arc::clone(&given) as Arc<dyn Model>));
        let (ours, theirs) = duplex(4096);
        let (read, write) = tokio::io::split(theirs);
        let server = tokio::spawn(serve(settings, make, read, write));
        let (read, input) = tokio::io::split(ours);
        let output = BufReader::new(read).lines();
        Self { model, input, output, server, work, own_place: None, last_id: 0, permit: "allow_once" }
    }

    pub(super) async fn line(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.line(&message.to_string()).await;
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message; `None` at the end of the output.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let line =
            tokio::time::timeout(DEADLINE, self.output.next_line()).await.expect("news in time").unwrap();
        line.map(|line| serde_json::from_str(&line).expect("JSON"))
    }

    /// All messages until the answer to a request, and the answer. Permission requests are answered on the way.
    pub(super) async fn until(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut news = Vec::new();
        loop {
            let message = self.next().await.expect("an answer");
            if message["method"] == "session/request_permission" {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": self.permit}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome})).await;
            } else if message["id"] == json!(id) {
                return (news, message);
            }
            news.push(message);
        }
    }

    /// The answer to a request, without the messages before it.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.until(id).await.1
    }

    pub(super) async fn new_session(&mut self) -> String {
        let params = json!({"cwd": self.work, "mcpServers": []});
        let answer = self.call("session/new", params).await;
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Opens an earlier session. Returns the messages and the answer.
    pub(super) async fn open(&mut self, method: &str, session: &str) -> (Vec<Value>, Value) {
        let params = json!({"sessionId": session, "cwd": self.work, "mcpServers": []});
        let id = self.request(method, params).await;
        self.until(id).await
    }

    pub(super) async fn ask(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    /// A whole turn: its messages and the answer.
    pub(super) async fn prompt(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        let id = self.ask(session, text).await;
        self.until(id).await
    }

    /// The next message of this method.
    pub(super) async fn wait_for(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("{method} comes"));
            if message["method"] == method {
                return message;
            }
        }
    }

    /// The next update of a kind.
    pub(super) async fn wait_for_update(&mut self, kind: &str) -> Value {
        loop {
            let message = self.wait_for("session/update").await;
            if message["params"]["update"]["sessionUpdate"] == kind {
                return message["params"]["update"].clone();
            }
        }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.model.asked.lock().unwrap().clone()
    }

    /// Closes the agent's input and waits for its end.
    pub(super) async fn end(mut self) -> Vec<Value> {
        self.input.shutdown().await.unwrap();
        let mut last = Vec::new();
        while let Some(message) = self.next().await {
            last.push(message);
        }
        tokio::time::timeout(DEADLINE, self.server).await.expect("an end in time").unwrap();
        last
    }
}

/// The updates among the messages, of one kind or of all.
pub(super) fn updates(news: &[Value], kind: Option<&str>) -> Vec<Value> {
    let updates = news.iter().filter(|message| message["method"] == "session/update");
    let updates = updates.map(|message| message["params"]["update"].clone());
    updates.filter(|update| kind.is_none_or(|kind| update["sessionUpdate"] == kind)).collect()
}

/// The text of all chunks of a kind.
pub(super) fn text(news: &[Value], kind: &str) -> String {
    let chunks = updates(news, Some(kind)).into_iter();
    chunks.map(|update| update["content"]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The last state of each call: id, status and output.
pub(super) fn ends(news: &[Value]) -> Vec<(String, String, String)> {
    let over = |update: &Value| update["status"] == "completed" || update["status"] == "failed";
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let updates = updates(news, Some("tool_call_update")).into_iter().filter(over);
    updates
        .map(|update| {
            (word(&update["toolCallId"]), word(&update["status"]), word(&update["rawOutput"]["output"]))
        })
        .collect()
}

pub(super) fn stop_reason(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

pub(super) fn user(text: &str) -> Item {
    Item::User { text: text.to_owned() }
}

pub(super) fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}
