//! What each format makes of one and the same conversation.

use super::super::{Posted, encode};
use super::*;
use crate::{CallResult, ToolSpec};

fn tools() -> [ToolSpec; 1] {
    [ToolSpec { name: "run".into(), description: "Runs.".into(), parameters: json!({"type": "object"}) }]
}

fn result(id: &str, output: &str, failed: bool) -> CallResult {
    CallResult { id: id.into(), name: "run".into(), output: output.into(), failed }
}

/// A question, an answer with two calls, their results, and words right behind them.
fn conversation(native: Option<Native>) -> Vec<Item> {
    let calls = vec![call("c1", "run", json!({"a": 1})), call("c2", "run", json!("{half"))];
    vec![
        Item::User { text: "Work.".into() },
        Item::Model(ModelMessage { text: "I look.".into(), calls, native }),
        Item::Results { results: vec![result("c1", "fine", false), result("c2", "bad", true)] },
        Item::User { text: "Go on.".into() },
    ]
}

fn posted(format: WireFormat, items: &[Item]) -> Posted {
    let tools = tools();
    encode(format, &Question { model: "m-1", system: "Be good.", items, tools: &tools, max_output: Some(99) })
}

#[test]
fn responses_are_asked_without_being_stored() {
    let model_message = json!([
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{\"a\":1}"},
        {"type": "function_call", "call_id": "c2", "name": "run", "arguments": "{\"raw\":\"{half\"}"},
    ]);
    let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let body = |model_message: &Value| {
        let mut input = vec![user("Work.")];
        input.extend(model_message.as_array().cloned().unwrap_or_default());
        input.extend([
            json!({"type": "function_call_output", "call_id": "c1", "output": "fine"}),
            json!({"type": "function_call_output", "call_id": "c2", "output": "Error: bad"}),
            user("Go on."),
        ]);
        json!({
            "model": "m-1", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "instructions": "Be good.", "max_output_tokens": 99, "input": input,
            "tools": [{"type": "function", "name": "run", "description": "Runs.", "parameters": {"type": "object"}, "strict": false}],
        })
    };
    let format = WireFormat::OpenaiResponses;
    let expected =
        |model_message| Posted { segments: vec!["responses".into()], query: None, body: body(model_message) };
    assert_eq!(posted(format, &conversation(None)), expected(&model_message));
    assert_eq!(
        posted(format, &conversation(native(WireFormat::Gemini, json!([])))),
        expected(&model_message)
    );
    let own = json!([{"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}]);
    assert_eq!(posted(format, &conversation(native(format, own.clone()))), expected(&own));
}

#[test]
fn only_models_that_can_think_are_asked_for_hidden_thoughts() {
    let items = [Item::User { text: "x".into() }];
    for (model, asked) in
        [("gpt-5.1-codex", true), ("o3", true), ("gpt-4.1", false), ("gpt-5-chat-latest", false)]
    {
        let question = Question { model, ..question(&items) };
        let body = encode(WireFormat::OpenaiResponses, &question).body;
        assert_eq!(body.get("include").is_some(), asked, "{model}");
    }
}

#[test]
fn chat_completions_have_a_message_for_each_result() {
    let sent = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "run", "arguments": arguments}});
    let model_message = json!({
        "role": "assistant", "content": "I look.",
        "tool_calls": [sent("c1", "{\"a\":1}"), sent("c2", "{\"raw\":\"{half\"}")],
    });
    let body = |model_message: &Value| {
        json!({
            "model": "m-1", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 99,
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": "Work."},
                model_message,
                {"role": "tool", "tool_call_id": "c1", "content": "fine"},
                {"role": "tool", "tool_call_id": "c2", "content": "Error: bad"},
                {"role": "user", "content": "Go on."},
            ],
            "tools": [{"type": "function", "function": {"name": "run", "description": "Runs.", "parameters": {"type": "object"}}}],
        })
    };
    let format = WireFormat::OpenaiChat;
    let expected = |model_message| Posted {
        segments: vec!["chat".into(), "completions".into()],
        query: None,
        body: body(model_message),
    };
    assert_eq!(posted(format, &conversation(None)), expected(&model_message));
    let own = json!({"role": "assistant", "content": "I look.", "reasoning_content": "Hm."});
    assert_eq!(posted(format, &conversation(native(format, own.clone()))), expected(&own));
    assert_eq!(
        posted(format, &conversation(native(WireFormat::Anthropic, json!([])))),
        expected(&model_message)
    );
}

#[test]
fn the_limit_of_a_chat_has_the_name_that_its_model_knows() {
    let items = [Item::User { text: "x".into() }];
    let names = [
        ("gpt-5", "max_completion_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("gpt-oss:20b", "max_tokens"),
        ("llama", "max_tokens"),
    ];
    for (model, name) in names {
        let question = Question { model, max_output: Some(7), ..question(&items) };
        assert_eq!(encode(WireFormat::OpenaiChat, &question).body[name], 7, "{model}");
    }
}

#[test]
fn gemini_gets_the_ids_that_it_knows() {
    let format = WireFormat::Gemini;
    let body = |model_message: Value, sent: [Option<&str>; 2]| {
        let response = |id: Option<&str>, response: Value| {
            let mut response = json!({"name": "run", "response": response});
            if let Some(id) = id {
                response["id"] = json!(id);
            }
            json!({"functionResponse": response})
        };
        json!({
            "systemInstruction": {"parts": [{"text": "Be good."}]},
            "generationConfig": {"maxOutputTokens": 99},
            "contents": [
                {"role": "user", "parts": [{"text": "Work."}]},
                {"role": "model", "parts": model_message},
                {"role": "user", "parts": [response(sent[0], json!({"output": "fine"})), response(sent[1], json!({"error": "bad"}))]},
                {"role": "user", "parts": [{"text": "Go on."}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "run", "description": "Runs.", "parametersJsonSchema": {"type": "object"}}]}],
        })
    };
    let expected = |body| Posted {
        segments: vec!["models".into(), "m-1:streamGenerateContent".into()],
        query: Some(("alt", "sse")),
        body,
    };
    let foreign = json!([
        {"text": "I look."},
        {"functionCall": {"id": "c1", "name": "run", "args": {"a": 1}}, "thoughtSignature": "skip_thought_signature_validator"},
        {"functionCall": {"id": "c2", "name": "run", "args": {"raw": "{half"}}},
    ]);
    assert_eq!(posted(format, &conversation(None)), expected(body(foreign, [Some("c1"), Some("c2")])));
    let own = json!([
        {"functionCall": {"name": "run", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "c2", "name": "run", "args": {}}},
    ]);
    let asked = posted(format, &conversation(native(format, own.clone())));
    assert_eq!(asked, expected(body(own, [None, Some("c2")])));
}

#[test]
fn gemini_finds_its_models_wherever_they_are() {
    let items = [Item::User { text: "x".into() }];
    let names =
        [("g", "models", "g"), ("models/g", "models", "g"), ("tunedModels/mine", "tunedModels", "mine")];
    for (model, collection, name) in names {
        let question = Question { model, ..question(&items) };
        let expected = [collection.to_owned(), format!("{name}:streamGenerateContent")];
        assert_eq!(encode(WireFormat::Gemini, &question).segments, expected, "{model}");
    }
}

#[test]
fn anthropic_reads_results_first_and_caches_system_and_end() {
    let format = WireFormat::Anthropic;
    let body = |model_message: Value| {
        json!({
            "model": "m-1", "max_tokens": 99, "stream": true,
            "system": [{"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Work."}]},
                {"role": "assistant", "content": model_message},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "fine"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "bad", "is_error": true},
                    {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
                ]},
            ],
            "tools": [{"name": "run", "description": "Runs.", "input_schema": {"type": "object"}}],
        })
    };
    let expected =
        |model_message| Posted { segments: vec!["messages".into()], query: None, body: body(model_message) };
    let foreign = json!([
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "run", "input": {"raw": "{half"}},
    ]);
    assert_eq!(posted(format, &conversation(None)), expected(foreign));
    let own = json!([{"type": "thinking", "thinking": "Hm.", "signature": "EqQ="}]);
    assert_eq!(posted(format, &conversation(native(format, own.clone()))), expected(own));
}

#[test]
fn a_bare_question_sends_no_optional_fields() {
    let items = [Item::User { text: "x".into() }];
    let bodies = WireFormat::ALL.map(|format| encode(format, &question(&items)).body);
    let expected = [
        json!({
            "model": "m-1", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}],
        }),
        json!({
            "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "x"}],
        }),
        json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
        json!({
            "model": "m-1", "stream": true, "max_tokens": 16_384,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}],
        }),
    ];
    assert_eq!(bodies, expected);
}
