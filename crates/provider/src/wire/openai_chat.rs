//! `OpenAI` chat completions, as `OpenAI` and the many servers that copy it speak it.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::calls::{CallIds, arguments, as_object};
use super::lawful::lawful;
use super::{Decode, Draft, OnDelta, Posted, Trouble, list_of, no_complaint, parsed, text_of, think};
use crate::{Answer, Call, CallResult, Item, ModelMessage, Native, Question, Stop, Usage, WireFormat};

/// Where servers put thoughts. They want to see them again in the same place.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// What a call may carry that belongs to the server alone, such as Gemini's signatures.
const EXTRA: &str = "extra_content";

/// Writes a question.
pub(super) fn encode(question: &Question<'_>) -> Posted {
    let mut messages = Vec::new();
    if !question.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": question.system}));
    }
    messages.extend(lawful(question.items).iter().flat_map(|item| item_messages(item)));
    let mut body = json!({
        "model": question.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
    });
    if let Some(limit) = question.max_output {
        body[limit_field(question.model)] = json!(limit);
    }
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(|tool| {
            let function =
                json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            json!({"type": "function", "function": function})
        });
        body["tools"] = tools.collect();
    }
    Posted { segments: vec!["chat".into(), "completions".into()], query: None, body }
}

/// `OpenAI`'s own models refuse the old name of the limit; other servers know only the old one.
fn limit_field(model: &str) -> &'static str {
    let of_openai = (model.starts_with("gpt-") && !model.starts_with("gpt-oss"))
        || ["o1", "o3", "o4"].iter().any(|prefix| model.starts_with(prefix));
    if of_openai { "max_completion_tokens" } else { "max_tokens" }
}

fn item_messages(item: &Item) -> Vec<Value> {
    match item {
        Item::User { text } => vec![json!({"role": "user", "content": text})],
        Item::Model(model_message) => vec![encode_message(model_message)],
        Item::Results { results } => results
            .iter()
            .map(|result| json!({"role": "tool", "tool_call_id": result.id, "content": reported_output(result)}))
            .collect(),
    }
}

fn encode_message(model_message: &ModelMessage) -> Value {
    match &model_message.native {
        Some(Native { format: WireFormat::OpenaiChat, value }) if value.is_object() => value.clone(),
        _ => message_of(&model_message.text, &model_message.calls),
    }
}

fn message_of(text: &str, calls: &[Call]) -> Value {
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": as_object(&call.input).to_string()});
            json!({"id": call.id, "type": "function", "function": function})
        });
        message["tool_calls"] = calls.collect();
    }
    message
}

/// `OpenAI`'s formats have no word for a tool that failed but the tool's own.
pub(super) fn reported_output(result: &CallResult) -> Cow<'_, str> {
    let is_marked = result.output.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if result.failed && !is_marked {
        format!("Error: {}", result.output).into()
    } else {
        (&*result.output).into()
    }
}

/// Reads an answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    ids: CallIds,
    draft: Draft,
    thoughts: Option<(&'static str, String)>,
    calls: Vec<OpenCall>,
    refused: bool,
    done: bool,
}

/// A call whose arguments are on their way.
#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Option<Value>,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        self.chunk(&parsed(data)?, "delta", on_delta)
    }

    fn whole(&mut self, body: &Value, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        self.done = true;
        self.chunk(body, "message", on_delta)
    }

    fn is_complete(&self) -> bool {
        self.done && self.draft.stop.is_some()
    }

    fn finish(mut self: Box<Self>) -> Option<Answer> {
        // The reason for the stop is the end of the words: not every server puts a mark behind it.
        let stop = self.draft.stop?;
        for open in &self.calls {
            let id = self.ids.settle(&open.id);
            let call = Call { id, name: open.name.clone(), input: arguments(&open.arguments) };
            self.draft.calls.push(call);
        }
        self.draft.stop = Some(if self.refused { Stop::Refused } else { stop });
        let native = self.native();
        self.draft.finish(WireFormat::OpenaiChat, native)
    }
}

impl Decoder {
    /// Reads the answer to a conversation of `items`.
    pub(super) fn new(items: &[Item]) -> Self {
        Self { ids: CallIds::of(items), ..Self::default() }
    }

    fn chunk(&mut self, chunk: &Value, message: &str, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        no_complaint(chunk)?;
        if chunk["usage"].is_object() {
            self.draft.usage = usage(&chunk["usage"]);
        }
        let Some(choice) = list_of(chunk, "choices").first() else { return Ok(()) };
        self.message(&choice[message], on_delta);
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.draft.stop = Some(match reason {
                "length" => Stop::MaxTokens,
                "content_filter" => Stop::Refused,
                _ => Stop::Done,
            });
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, on_delta: OnDelta<'_>) {
        let thought = THOUGHTS.iter().find_map(|place| Some((*place, message[*place].as_str()?)));
        if let Some((place, thought)) = thought.filter(|(_, thought)| !thought.is_empty()) {
            think(thought, on_delta);
            self.thoughts.get_or_insert_with(|| (place, String::new())).1.push_str(thought);
        }
        self.draft.add(text_of(message, "content"), on_delta);
        for part in list_of(message, "content") {
            self.draft.add(text_of(part, "text"), on_delta);
        }
        let refusal = text_of(message, "refusal");
        self.refused |= !refusal.is_empty();
        self.draft.add(refusal, on_delta);
        for call in list_of(message, "tool_calls") {
            self.call(call);
        }
    }

    /// Takes a piece of a call. It belongs to the call of its index, unless it has an id of its own: some servers give
    /// all calls the same index, others give none.
    fn call(&mut self, piece: &Value) {
        let (index, id) = (piece["index"].as_u64(), text_of(piece, "id"));
        let is_same = |open: &OpenCall| {
            (open.index == index || index.is_none()) && (id.is_empty() || open.id == id || open.id.is_empty())
        };
        let begins = index.is_none() && id.is_empty() && piece["function"]["name"].is_string();
        let known = self.calls.iter().rposition(is_same).filter(|_| !begins);
        let place = known.unwrap_or_else(|| {
            self.calls.push(OpenCall { index, ..OpenCall::default() });
            self.calls.len() - 1
        });
        let Some(open) = self.calls.get_mut(place) else { return };
        if open.id.is_empty() {
            id.clone_into(&mut open.id);
        }
        if open.name.is_empty() {
            text_of(&piece["function"], "name").clone_into(&mut open.name);
        }
        match &piece["function"]["arguments"] {
            Value::String(fragment) => open.arguments.push_str(fragment),
            object @ Value::Object(_) => open.arguments.push_str(&object.to_string()),
            _ => {}
        }
        if piece[EXTRA].is_object() {
            open.extra = Some(piece[EXTRA].clone());
        }
    }

    /// What the server wants to see again, where that is more than words and calls.
    fn native(&self) -> Option<Value> {
        if self.thoughts.is_none() && self.calls.iter().all(|call| call.extra.is_none()) {
            return None;
        }
        let mut message = message_of(&self.draft.text, &self.draft.calls);
        if let Some((place, thoughts)) = &self.thoughts {
            message[*place] = json!(thoughts);
        }
        for (place, open) in self.calls.iter().enumerate() {
            if let Some(extra) = &open.extra {
                message["tool_calls"][place][EXTRA] = extra.clone();
            }
        }
        Some(message)
    }
}

fn usage(usage: &Value) -> Usage {
    let count = |place: &str| usage.pointer(place).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = count("/prompt_tokens_details/cached_tokens");
    Usage {
        input: count("/prompt_tokens").saturating_sub(cache_read),
        output: count("/completion_tokens"),
        cache_read,
        cache_write: 0,
    }
}
