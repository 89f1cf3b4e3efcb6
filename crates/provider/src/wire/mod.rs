//! The wire formats, each in a module of its own: how a question is written, and how an answer is read.
//!
//! Nothing here sees a socket or a clock. `lawful` puts a conversation into an order that every API accepts, `calls` is
//! about the calls of tools; the formats build on both.

mod anthropic;
mod calls;
mod gemini;
mod lawful;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::complaint::Complaint;
use crate::{Answer, Call, Delta, ModelMessage, Native, Question, Stop, Usage, WireFormat};

/// What is sent to a provider.
#[derive(Debug, PartialEq)]
pub(crate) struct Posted {
    /// What comes behind the base URL's path.
    pub(crate) segments: Vec<String>,
    /// What comes behind the question mark.
    pub(crate) query: Option<(&'static str, &'static str)>,
    pub(crate) body: Value,
}

/// Takes what may be shown while an answer is on its way.
pub(crate) type OnDelta<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// Why an answer cannot be read to its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trouble {
    /// The provider reports an error.
    Complaint(Complaint),
    /// The provider's message cannot be understood.
    Unreadable(String),
}

/// Reads one answer.
pub(crate) trait Decode: Send {
    /// Takes the data of the next event.
    fn event(&mut self, data: &str, on_delta: OnDelta<'_>) -> Result<(), Trouble>;

    /// Takes an answer that came in one piece although a stream was asked for.
    fn whole(&mut self, body: &Value, on_delta: OnDelta<'_>) -> Result<(), Trouble>;

    /// Whether the event that ends an answer has come.
    fn is_complete(&self) -> bool;

    /// The answer, if it is complete.
    fn finish(self: Box<Self>) -> Option<Answer>;
}

/// Writes `question` in `format`.
pub(crate) fn encode(format: WireFormat, question: &Question<'_>) -> Posted {
    match format {
        WireFormat::OpenaiResponses => openai_responses::encode(question),
        WireFormat::OpenaiChat => openai_chat::encode(question),
        WireFormat::Gemini => gemini::encode(question),
        WireFormat::Anthropic => anthropic::encode(question),
    }
}

/// Makes ready to read the answer to `question` in `format`.
pub(crate) fn decoder(format: WireFormat, question: &Question<'_>) -> Box<dyn Decode> {
    match format {
        WireFormat::OpenaiResponses => Box::new(openai_responses::Decoder::default()),
        WireFormat::OpenaiChat => Box::new(openai_chat::Decoder::new(question.items)),
        WireFormat::Gemini => Box::new(gemini::Decoder::new(question.items)),
        WireFormat::Anthropic => Box::new(anthropic::Decoder::default()),
    }
}

/// The JSON of an event. What is no JSON cannot be passed over: it may have been the words of the answer.
fn parsed(data: &str) -> Result<Value, Trouble> {
    serde_json::from_str(data)
        .map_err(|error| Trouble::Unreadable(format!("it sent an event that is no JSON ({error})")))
}

/// Refuses a body that holds an error instead of an answer.
fn no_complaint(body: &Value) -> Result<(), Trouble> {
    Complaint::in_body(body).map_or(Ok(()), |complaint| Err(Trouble::Complaint(complaint)))
}

/// The text at `field`, empty where there is none.
fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The list at `field`, empty where there is none.
fn list_of<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// An answer as it grows. Its words are shown at the same time.
#[derive(Debug, Default)]
struct Draft {
    text: String,
    /// A new piece begins, to be set apart from earlier text.
    apart: bool,
    calls: Vec<Call>,
    usage: Usage,
    /// Why it ended, once that is known.
    stop: Option<Stop>,
}

impl Draft {
    /// What comes next is a piece of its own.
    fn begin_piece(&mut self) {
        self.apart = !self.text.is_empty() && !self.text.ends_with('\n');
    }

    fn add(&mut self, words: &str, on_delta: OnDelta<'_>) {
        if words.is_empty() {
            return;
        }
        let words = if std::mem::take(&mut self.apart) { format!("\n\n{words}") } else { words.to_owned() };
        self.text.push_str(&words);
        on_delta(Delta::Text(words));
    }

    /// The answer, if it has ended.
    fn finish(self, format: WireFormat, native: Option<Value>) -> Option<Answer> {
        let native = native.map(|value| Native { format, value });
        let message = ModelMessage { text: self.text, calls: self.calls, native };
        Some(Answer { message, stop: self.stop?, usage: self.usage })
    }
}

/// Shows a thought.
fn think(thought: &str, on_delta: OnDelta<'_>) {
    if !thought.is_empty() {
        on_delta(Delta::Thought(thought.to_owned()));
    }
}
