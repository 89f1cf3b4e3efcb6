//! The Messages API of Anthropic.

use serde_json::{Value, json};

use super::calls::{arguments, as_object};
use super::lawful::lawful;
use super::{Decode, Draft, OnDelta, Posted, Trouble, list_of, no_complaint, parsed, text_of, think};
use crate::complaint::Complaint;
use crate::{Answer, Call, CallResult, Item, ModelMessage, Native, Question, Stop, WireFormat};

/// The longest answer of Anthropic's format where the question sets no limit: this API wants one. Every model that is
/// served today can write as much, and a coding agent's answer that is longer is one gone astray.
const MAX_OUTPUT: u64 = 16_384;

/// Writes a question.
pub(super) fn encode(question: &Question<'_>) -> Posted {
    let mut body = json!({
        "model": question.model,
        "max_tokens": question.max_output.unwrap_or(MAX_OUTPUT),
        "stream": true,
        "messages": messages(question.items),
    });
    if !question.system.trim().is_empty() {
        // The mark covers the tools too, which the API puts before the system prompt.
        body["system"] = json!([cached(json!({"type": "text", "text": question.system}))]);
    }
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        });
        body["tools"] = tools.collect();
    }
    Posted { segments: vec!["messages".into()], query: None, body }
}

/// The conversation as messages whose roles alternate, with the end marked as worth to be cached.
fn messages(items: &[Item]) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for item in lawful(items) {
        let (role, blocks) = match item.as_ref() {
            Item::User { text } => ("user", vec![json!({"type": "text", "text": text})]),
            Item::Model(model_message) => ("assistant", message_blocks(model_message)),
            Item::Results { results } => ("user", results.iter().map(result_block).collect()),
        };
        // Words behind results join their message, where the results have to come first.
        match messages.last_mut() {
            Some((before, content)) if *before == role => content.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => messages.push((role, blocks)),
        }
    }
    if let Some(("user", content)) = messages.last_mut()
        && let Some(last) = content.pop()
    {
        content.push(cached(last));
    }
    messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn cached(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

fn message_blocks(model_message: &ModelMessage) -> Vec<Value> {
    if let Some(Native { format: WireFormat::Anthropic, value: Value::Array(blocks) }) = &model_message.native
    {
        return blocks.clone();
    }
    let text = Some(&model_message.text).filter(|text| !text.trim().is_empty());
    let text = text.map(|text| json!({"type": "text", "text": text}));
    let calls = model_message.calls.iter().map(
        |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": as_object(&call.input)}),
    );
    text.into_iter().chain(calls).collect()
}

fn result_block(result: &CallResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": result.output});
    if result.failed {
        block["is_error"] = json!(true);
    }
    block
}

/// Reads an answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    draft: Draft,
    blocks: Vec<Value>,
    /// The arguments of the block that is open, as far as they came.
    partial_input: String,
    /// The index of the block that is open.
    open: Option<u64>,
    stopped: bool,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        let event = parsed(data)?;
        match text_of(&event, "type") {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => self.begin_block(&event, on_delta),
            "content_block_delta" => self.grow_block(&event, on_delta),
            "content_block_stop" => self.end_block(),
            "message_delta" => {
                self.count(&event["usage"]);
                self.draft.stop = stop(&event["delta"]).or(self.draft.stop);
            }
            "message_stop" => {
                self.end_block();
                self.stopped = true;
            }
            "error" => return Err(Trouble::Complaint(Complaint::of_body(&event))),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, on_delta: OnDelta<'_>) -> Result<(), Trouble> {
        no_complaint(body)?;
        self.count(&body["usage"]);
        for block in list_of(body, "content") {
            self.begin_block(&json!({"content_block": block}), on_delta);
            self.end_block();
        }
        self.draft.stop = stop(body);
        self.stopped = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.stopped && self.draft.stop.is_some()
    }

    fn finish(mut self: Box<Self>) -> Option<Answer> {
        if !self.stopped {
            return None;
        }
        // An answer that ran into its limit may end in a thought, and as such it is not taken back.
        while self.blocks.pop_if(|block| text_of(block, "type").ends_with("thinking")).is_some() {}
        self.draft.finish(WireFormat::Anthropic, Some(Value::Array(self.blocks)))
    }
}

impl Decoder {
    /// Each report counts from the beginning of the answer, and reports only what it knows.
    fn count(&mut self, usage: &Value) {
        let counted = &mut self.draft.usage;
        let counts = [
            ("input_tokens", &mut counted.input),
            ("output_tokens", &mut counted.output),
            ("cache_read_input_tokens", &mut counted.cache_read),
            ("cache_creation_input_tokens", &mut counted.cache_write),
        ];
        for (field, count) in counts {
            *count = usage[field].as_u64().unwrap_or(*count);
        }
    }

    fn begin_block(&mut self, event: &Value, on_delta: OnDelta<'_>) {
        self.end_block();
        let block = event["content_block"].clone();
        match text_of(&block, "type") {
            "text" => {
                self.draft.begin_piece();
                self.draft.add(text_of(&block, "text"), on_delta);
            }
            "thinking" => think(text_of(&block, "thinking"), on_delta),
            _ => {}
        }
        self.open = Some(event["index"].as_u64().unwrap_or_default());
        self.blocks.push(block);
    }

    fn grow_block(&mut self, event: &Value, on_delta: OnDelta<'_>) {
        let is_open = self.open.is_some() && self.open == event["index"].as_u64();
        let Some(block) = self.blocks.last_mut().filter(|_| is_open) else { return };
        let delta = &event["delta"];
        match text_of(delta, "type") {
            "text_delta" => {
                append(block, "text", text_of(delta, "text"));
                self.draft.add(text_of(delta, "text"), on_delta);
            }
            "thinking_delta" => {
                append(block, "thinking", text_of(delta, "thinking"));
                think(text_of(delta, "thinking"), on_delta);
            }
            "signature_delta" => append(block, "signature", text_of(delta, "signature")),
            "input_json_delta" => self.partial_input.push_str(text_of(delta, "partial_json")),
            _ => {}
        }
    }

    fn end_block(&mut self) {
        let partial = std::mem::take(&mut self.partial_input);
        let Some(block) = self.blocks.last_mut().filter(|_| self.open.take().is_some()) else { return };
        let kind = text_of(block, "type");
        if kind == "text" && text_of(block, "text").trim().is_empty() {
            // The API writes empty texts, and refuses to read them.
            self.blocks.pop();
        } else if kind.ends_with("tool_use") {
            let input = if partial.is_empty() { block["input"].clone() } else { arguments(&partial) };
            let input = if input.is_null() { json!({}) } else { input };
            if kind == "tool_use" {
                let [id, name] = ["id", "name"].map(|field| text_of(block, field).to_owned());
                self.draft.calls.push(Call { id, name, input: input.clone() });
            }
            block["input"] = as_object(&input);
        }
    }
}

fn append(block: &mut Value, field: &str, text: &str) {
    let Some(block) = block.as_object_mut() else { return };
    match block.entry(field).or_insert_with(|| json!("")) {
        Value::String(before) => before.push_str(text),
        other => *other = json!(text),
    }
}

fn stop(delta: &Value) -> Option<Stop> {
    Some(match delta["stop_reason"].as_str()? {
        "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
        "refusal" => Stop::Refused,
        _ => Stop::Done,
    })
}
