//! The `generateContent` API of Gemini.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::calls::{CallIds, as_object};
use super::lawful::lawful;
use super::{Decode, Draft, OnDelta, Posted, Trouble, list_of, no_complaint, parsed, text_of, think};
use crate::{Answer, Call, CallResult, Item, ModelMessage, Native, Question, Stop, Usage, WireFormat};

const SIGNATURE: &str = "thoughtSignature";

/// The API's own word for a call that another model made: newer models refuse one without a signature.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes a question.
pub(super) fn encode(question: &Question<'_>) -> Posted {
    let mut body = json!({"contents": contents(question)});
    if !question.system.trim().is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": question.system}]});
    }
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
        });
        body["tools"] = json!([{"functionDeclarations": tools.collect::<Vec<_>>()}]);
    }
    if let Some(limit) = question.max_output {
        body["generationConfig"] = json!({"maxOutputTokens": limit});
    }
    // Tuned models have a collection of their own.
    let name = question.model.strip_prefix("models/").unwrap_or(question.model);
    let (collection, name) = name.split_once('/').unwrap_or(("models", name));
    let segments = vec![collection.to_owned(), format!("{name}:streamGenerateContent")];
    Posted { segments, query: Some(("alt", "sse")), body }
}

fn contents(question: &Question<'_>) -> Vec<Value> {
    let signed = !["gemini-1", "gemini-2"].iter().any(|old| question.model.contains(old));
    // Ids that we made ourselves are none that the API knows.
    let mut unknown = HashSet::new();
    let mut contents = Vec::new();
    for item in lawful(question.items) {
        let (role, parts) = match item.as_ref() {
            Item::User { text } => ("user", vec![json!({"text": text})]),
            Item::Model(model_message) => ("model", message_parts(model_message, signed, &mut unknown)),
            Item::Results { results } => {
                ("user", results.iter().map(|result| response_part(result, &unknown)).collect())
            }
        };
        if !parts.is_empty() {
            contents.push(json!({"role": role, "parts": parts}));
        }
    }
    contents
}

fn message_parts(model_message: &ModelMessage, signed: bool, unknown: &mut HashSet<String>) -> Vec<Value> {
    if let Some(Native { format: WireFormat::Gemini, value: Value::Array(parts) }) = &model_message.native {
        let sent: HashSet<&str> = parts.iter().map(|part| text_of(&part["functionCall"], "id")).collect();
        let ids = model_message.calls.iter().map(|call| &call.id);
        unknown.extend(ids.filter(|id| !sent.contains(id.as_str())).cloned());
        return parts.clone();
    }
    let text = Some(&model_message.text).filter(|text| !text.is_empty()).map(|text| json!({"text": text}));
    let calls = model_message.calls.iter().enumerate().map(|(place, call)| {
        let mut part =
            json!({"functionCall": {"id": call.id, "name": call.name, "args": as_object(&call.input)}});
        // Of calls that are made together only the first is signed.
        if signed && place == 0 {
            part[SIGNATURE] = json!(FOREIGN_SIGNATURE);
        }
        part
    });
    text.into_iter().chain(calls).collect()
}

fn response_part(result: &CallResult, unknown: &HashSet<String>) -> Value {
    let word = if result.failed { "error" } else { "output" };
    let mut response = json!({"name": result.name, "response": {word: result.output}});
    if !unknown.contains(&result.id) {
        response["id"] = json!(result.id);
    }
    json!({"functionResponse": response})
}

/// Reads an answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    ids: CallIds,
    draft: Draft,
    parts: Vec<Value>,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        self.chunk(&parsed(data)?, on_delta)
    }

    fn whole(&mut self, body: &Value, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        // A server that overlooks `alt=sse` sends all chunks in one list.
        match body.as_array() {
            Some(chunks) => chunks.iter().try_for_each(|chunk| self.chunk(chunk, &mut *on_delta)),
            None => self.chunk(body, on_delta),
        }
    }

    fn is_complete(&self) -> bool {
        self.draft.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Option<Answer> {
        self.draft.finish(WireFormat::Gemini, Some(Value::Array(self.parts)))
    }
}

impl Decoder {
    /// Reads the answer to a conversation of `items`.
    pub(super) fn new(items: &[Item]) -> Self {
        Self { ids: CallIds::of(items), ..Self::default() }
    }

    fn chunk(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        no_complaint(chunk)?;
        if chunk["usageMetadata"].is_object() {
            self.draft.usage = usage(&chunk["usageMetadata"]);
        }
        if chunk["promptFeedback"]["blockReason"].is_string() {
            self.draft.stop = Some(Stop::Refused);
        }
        let Some(candidate) = list_of(chunk, "candidates").first() else { return Ok(()) };
        for part in list_of(&candidate["content"], "parts") {
            self.part(part, on_delta);
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.draft.stop = Some(stop(reason, candidate)?);
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, on_delta: OnDelta<'_>) {
        let text = text_of(part, "text");
        if part["thought"] == true {
            think(text, on_delta);
        } else {
            self.draft.add(text, on_delta);
        }
        let call = &part["functionCall"];
        if call.is_object() {
            let id = self.ids.settle(text_of(call, "id"));
            let input = if call["args"].is_null() { json!({}) } else { call["args"].clone() };
            let input = if input.is_object() { input } else { Value::String(input.to_string()) };
            self.draft.calls.push(Call { id, name: text_of(call, "name").to_owned(), input });
        }
        self.keep(part);
    }

    /// Keeps what the API wants to see again: pieces of text joined, signed parts untouched, thoughts left out.
    fn keep(&mut self, part: &Value) {
        let is_plain = |part: &Value| {
            part.as_object().is_some_and(|fields| fields.len() == 1) && part["text"].is_string()
        };
        let signed = part[SIGNATURE].is_string();
        if !signed && (part["thought"] == true || part["text"] == "") {
            return;
        }
        if let Some(last) = self.parts.last_mut().filter(|last| is_plain(last) && is_plain(part))
            && let Value::String(before) = &mut last["text"]
        {
            before.push_str(text_of(part, "text"));
            return;
        }
        self.parts.push(part.clone());
    }
}

fn stop(reason: &str, candidate: &Value) -> Result<Stop, Trouble> {
    match reason {
        "STOP" => Ok(Stop::Done),
        "MAX_TOKENS" => Ok(Stop::MaxTokens),
        // The model wrote something that its own provider could not read.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MISSING_THOUGHT_SIGNATURE" | "OTHER" => {
            let more = text_of(candidate, "finishMessage");
            Err(Trouble::Unreadable(
                format!("the model's answer ended with {reason} {more}").trim().to_owned(),
            ))
        }
        _ => Ok(Stop::Refused),
    }
}

fn usage(usage: &Value) -> Usage {
    let count = |field: &str| usage[field].as_u64().unwrap_or(0);
    let cache_read = count("cachedContentTokenCount");
    let input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    Usage {
        input: input.saturating_sub(cache_read),
        output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
        cache_read,
        cache_write: 0,
    }
}
