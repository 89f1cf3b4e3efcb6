//! `OpenAI` Responses, without anything stored at the provider.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calls::{arguments, as_object};
use super::lawful::lawful;
use super::{Decode, Draft, OnDelta, Posted, Trouble, list_of, no_complaint, parsed, text_of, think};
use crate::complaint::Complaint;
use crate::{Answer, Call, CallResult, Item, ModelMessage, Native, Question, Stop, Usage, WireFormat};

/// Writes a question.
pub(super) fn encode(question: &Question<'_>) -> Posted {
    let mut body = json!({
        "model": question.model,
        "stream": true,
        "store": false,
        "input": lawful(question.items).iter().flat_map(|item| input(item)).collect::<Vec<_>>(),
    });
    if !question.system.trim().is_empty() {
        body["instructions"] = json!(question.system);
    }
    if may_reason(question.model) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(limit) = question.max_output {
        body["max_output_tokens"] = json!(limit);
    }
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false,
            })
        });
        body["tools"] = tools.collect();
    }
    Posted { segments: vec!["responses".into()], query: None, body }
}

/// The API refuses a question for hidden thoughts to a model that has none.
fn may_reason(model: &str) -> bool {
    let never = ["gpt-3", "gpt-4", "chatgpt-"];
    !never.iter().any(|prefix| model.starts_with(prefix)) && !model.contains("-chat")
}

fn input(item: &Item) -> Vec<Value> {
    match item {
        Item::User { text } => vec![message("user", "input_text", text)],
        Item::Model(model_message) => message_items(model_message),
        Item::Results { results } => results.iter().map(result_item).collect(),
    }
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn message_items(model_message: &ModelMessage) -> Vec<Value> {
    if let Some(Native { format: WireFormat::OpenaiResponses, value: Value::Array(items) }) =
        &model_message.native
    {
        return items.clone();
    }
    let text = Some(&model_message.text).filter(|text| !text.is_empty());
    let text = text.map(|text| message("assistant", "output_text", text));
    let calls = model_message.calls.iter().map(|call| {
        json!({
            "type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": as_object(&call.input).to_string(),
        })
    });
    text.into_iter().chain(calls).collect()
}

fn result_item(result: &CallResult) -> Value {
    let output = super::openai_chat::reported_output(result);
    json!({"type": "function_call_output", "call_id": result.id, "output": output})
}

/// Reads an answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    draft: Draft,
    /// Finished items by their place in the output.
    items: BTreeMap<u64, Value>,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        // Servers that copy this API end it like chat completions.
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event = parsed(data)?;
        let delta = text_of(&event, "delta");
        match text_of(&event, "type") {
            "response.output_item.added" if event["item"]["type"] == "message" => self.draft.begin_piece(),
            "response.output_text.delta" | "response.refusal.delta" => self.draft.add(delta, on_delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                think(delta, on_delta);
            }
            "response.output_item.done" => {
                let place = event["output_index"].as_u64().unwrap_or(self.items.len() as u64);
                self.items.insert(place, event["item"].clone());
            }
            "response.completed" | "response.incomplete" => self.end(&event["response"], on_delta),
            "response.failed" | "response.cancelled" => {
                return Err(Trouble::Complaint(Complaint::of_body(&event["response"])));
            }
            "error" => return Err(Trouble::Complaint(Complaint::of_body(&event))),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        no_complaint(body)?;
        if matches!(text_of(body, "status"), "completed" | "incomplete") {
            self.end(body, on_delta);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.draft.stop.is_some()
    }

    fn finish(mut self: Box<Self>) -> Option<Answer> {
        let items: Vec<Value> = self.items.into_values().collect();
        self.draft.calls = items.iter().filter(|item| item["type"] == "function_call").map(call).collect();
        let mut replayable: Vec<Value> = items.iter().filter_map(replayed).collect();
        // A thought is only taken back together with what came of it.
        while replayable.pop_if(|item| item["type"] == "reasoning").is_some() {}
        self.draft.finish(WireFormat::OpenaiResponses, Some(Value::Array(replayable)))
    }
}

impl Decoder {
    fn end(&mut self, response: &Value, on_delta: OnDelta<'_>) {
        // Some servers send the items only here, others only on the way.
        if self.items.is_empty() {
            self.items = (0..).zip(list_of(response, "output").iter().cloned()).collect();
        }
        if self.draft.text.is_empty() {
            let messages = self.items.values().filter(|item| item["type"] == "message");
            for message in messages {
                self.draft.begin_piece();
                for part in list_of(message, "content") {
                    self.draft.add(text_of(part, "text"), on_delta);
                    self.draft.add(text_of(part, "refusal"), on_delta);
                }
            }
        }
        self.draft.stop = Some(self.stop(response));
        self.draft.usage = usage(&response["usage"]);
    }

    fn stop(&self, response: &Value) -> Stop {
        let parts = self.items.values().flat_map(|item| list_of(item, "content"));
        match text_of(&response["incomplete_details"], "reason") {
            "content_filter" => Stop::Refused,
            "" if text_of(response, "status") != "incomplete" => {
                let refused = parts.into_iter().any(|part| part["type"] == "refusal");
                if refused { Stop::Refused } else { Stop::Done }
            }
            _ => Stop::MaxTokens,
        }
    }
}

fn call(item: &Value) -> Call {
    Call {
        id: text_of(item, "call_id").to_owned(),
        name: text_of(item, "name").to_owned(),
        input: arguments(text_of(item, "arguments")),
    }
}

/// An item as the API takes it back. It knows no ids, since it keeps nothing, and a thought only by its encrypted form.
fn replayed(item: &Value) -> Option<Value> {
    let mut item = item.clone();
    let fields = item.as_object_mut()?;
    fields.remove("id");
    fields.remove("status");
    match text_of(&item, "type") {
        "reasoning" if !item["encrypted_content"].is_string() => return None,
        "function_call" => {
            let input = arguments(text_of(&item, "arguments"));
            if !input.is_object() {
                item["arguments"] = json!(as_object(&input).to_string());
            }
        }
        _ => {}
    }
    Some(item)
}

fn usage(usage: &Value) -> Usage {
    let details = &usage["input_tokens_details"];
    let [cache_read, cache_write] =
        ["cached_tokens", "cache_write_tokens"].map(|field| details[field].as_u64().unwrap_or(0));
    let input = usage["input_tokens"].as_u64().unwrap_or(0);
    Usage {
        input: input.saturating_sub(cache_read).saturating_sub(cache_write),
        output: usage["output_tokens"].as_u64().unwrap_or(0),
        cache_read,
        cache_write,
    }
}
