//! Streams in the documented shape of each API, small enough to be cut at every byte.

use super::*;
use WireFormat::{Anthropic, Gemini, OpenaiChat, OpenaiResponses};

pub(super) fn all() -> Vec<Sample> {
    vec![
        responses_with_reasoning_and_parallel_calls(),
        responses_with_items_at_the_end_only(),
        chat_with_thoughts_and_parallel_calls(),
        chat_of_a_server_without_ids(),
        gemini_with_thoughts_and_calls(),
        anthropic_with_thinking_and_parallel_calls(),
        anthropic_with_arguments_cut_by_the_limit(),
    ]
}

fn responses_with_reasoning_and_parallel_calls() -> Sample {
    let item = |place: u64, item: &Value| json!({"type": "response.output_item.done", "output_index": place, "item": item});
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"});
    let message = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "I löok.", "annotations": []}]});
    let call_item = |n: u64, arguments: &str| json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "status": "completed", "name": "run", "arguments": arguments});
    let (first, second) = (call_item(1, "{\"a\":1}"), call_item(2, "[1]"));
    let mut stream = stream_of(&[
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."}),
        item(0, &reasoning),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "I "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "löok."}),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "I löok."}),
        item(1, &message),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"a\""}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "[1]"}),
        // Items may end in another order than they began.
        item(3, &second),
        item(2, &first),
    ]);
    let usage_object = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 20}});
    let response =
        json!({"status": "completed", "output": [], "usage": usage_object, "incomplete_details": null});
    stream.push_str(&stream_of(&[json!({"type": "response.completed", "response": response})]));
    let replayable = json!([
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I löok.", "annotations": []}]},
        {"type": "function_call", "call_id": "call_1", "name": "run", "arguments": "{\"a\":1}"},
        {"type": "function_call", "call_id": "call_2", "name": "run", "arguments": "{\"raw\":\"[1]\"}"},
    ]);
    Sample {
        name: "reasoning and parallel calls",
        format: OpenaiResponses,
        stream,
        deltas: vec![thought("Hm."), text("I "), text("löok.")],
        calls: vec![call("call_1", "run", json!({"a": 1})), call("call_2", "run", json!("[1]"))],
        native: Some(replayable),
        stop: Stop::Done,
        usage: usage(40, 30, 60, 0),
    }
}

fn responses_with_items_at_the_end_only() -> Sample {
    let message = |words: &str| json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": words}]});
    let output = json!([message("One."), {"type": "reasoning", "id": "rs"}, message("Two.")]);
    let response = json!({"status": "incomplete", "output": output, "usage": {"input_tokens": 1, "output_tokens": 2}, "incomplete_details": {"reason": "max_output_tokens"}});
    let replayable = |words: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]});
    Sample {
        name: "items at the end only",
        format: OpenaiResponses,
        stream: stream_of(&[json!({"type": "response.incomplete", "response": response})]),
        deltas: vec![text("One."), text("\n\nTwo.")],
        calls: Vec::new(),
        native: Some(json!([replayable("One."), replayable("Two.")])),
        stop: Stop::MaxTokens,
        usage: usage(1, 2, 0, 0),
    }
}

fn chat_stream(chunks: &[Value]) -> String {
    let chunks: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("{chunks}data: [DONE]\n\n")
}

fn chunk(delta: &Value, reason: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": null})
}

fn chat_with_thoughts_and_parallel_calls() -> Sample {
    let delta = |delta: Value| chunk(&delta, &Value::Null);
    let piece = |index: u64, rest: Value| {
        let mut piece = rest;
        piece["index"] = json!(index);
        delta(json!({"tool_calls": [piece]}))
    };
    let counts =
        json!({"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 20}, "completion_tokens": 9});
    let stream = chat_stream(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "Let me "})),
        delta(json!({"reasoning_content": "see.", "content": null})),
        delta(json!({"content": "I lo"})),
        delta(json!({"content": "ok."})),
        piece(0, json!({"id": "c1", "type": "function", "function": {"name": "run", "arguments": ""}})),
        piece(0, json!({"function": {"arguments": "{\"a\""}})),
        piece(1, json!({"id": "c2", "type": "function", "function": {"name": "read", "arguments": "{"}})),
        piece(0, json!({"function": {"arguments": ":1}"}})),
        piece(1, json!({"function": {"arguments": "}"}})),
        chunk(&json!({}), &json!("tool_calls")),
        json!({"choices": [], "usage": counts}),
    ]);
    let sent = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let replayable = json!({
        "role": "assistant", "content": "I look.", "reasoning_content": "Let me see.",
        "tool_calls": [sent("c1", "run", "{\"a\":1}"), sent("c2", "read", "{}")],
    });
    Sample {
        name: "thoughts and parallel calls",
        format: OpenaiChat,
        stream,
        deltas: vec![thought("Let me "), thought("see."), text("I lo"), text("ok.")],
        calls: vec![call("c1", "run", json!({"a": 1})), call("c2", "read", json!({}))],
        native: Some(replayable),
        stop: Stop::Done,
        usage: usage(30, 9, 20, 0),
    }
}

/// Whole calls, all of the same index or of none, and one id used twice.
fn chat_of_a_server_without_ids() -> Sample {
    let function = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let stream = chat_stream(&[
        chunk(
            &json!({"tool_calls": [
                {"index": 0, "id": "x", "function": function("run", json!("{}"))},
                {"index": 0, "id": "y", "function": function("read", json!({"p": "q"}))},
            ]}),
            &Value::Null,
        ),
        chunk(
            &json!({"tool_calls": [{"function": function("find", json!("{}"))}, {"function": function("list", json!("oops"))}]}),
            &json!("stop"),
        ),
    ]);
    Sample {
        name: "a server without ids",
        format: OpenaiChat,
        stream,
        deltas: Vec::new(),
        calls: vec![
            call("x", "run", json!({})),
            call("y", "read", json!({"p": "q"})),
            call("call_1_1", "find", json!({})),
            call("call_1_2", "list", json!("oops")),
        ],
        native: None,
        stop: Stop::Done,
        usage: Usage::default(),
    }
}

fn gemini_with_thoughts_and_calls() -> Sample {
    let chunk = |parts: Value, finish: Option<&str>, counts: Value| {
        let mut chunk = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "usageMetadata": counts});
        if let Some(finish) = finish {
            chunk["candidates"][0]["finishReason"] = json!(finish);
        }
        format!("data: {chunk}\n\n")
    };
    let early = json!({"promptTokenCount": 80, "totalTokenCount": 80});
    let last = json!({"promptTokenCount": 80, "cachedContentTokenCount": 30, "candidatesTokenCount": 7, "thoughtsTokenCount": 11, "toolUsePromptTokenCount": 2});
    let signed = json!({"functionCall": {"name": "run", "args": {"a": 1}}, "thoughtSignature": "c2ln"});
    let unsigned = json!({"functionCall": {"id": "g2", "name": "read"}});
    let stream = [
        chunk(json!([{"text": "Hm.", "thought": true}]), None, early.clone()),
        chunk(json!([{"text": "I lo"}]), None, early.clone()),
        chunk(json!([{"text": "ok."}]), None, early.clone()),
        chunk(json!([signed, unsigned]), None, early),
        chunk(json!([{"text": "", "thoughtSignature": "ZW5k"}]), Some("STOP"), last),
    ]
    .concat();
    let replayable = json!([{"text": "I look."}, signed, unsigned, {"text": "", "thoughtSignature": "ZW5k"}]);
    Sample {
        name: "thoughts and calls",
        format: Gemini,
        stream,
        deltas: vec![thought("Hm."), text("I lo"), text("ok.")],
        calls: vec![call("call_1_1", "run", json!({"a": 1})), call("g2", "read", json!({}))],
        native: Some(replayable),
        stop: Stop::Done,
        usage: usage(52, 18, 30, 0),
    }
}

fn block_start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn block_delta(index: u64, kind: &str, field: &str, value: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: value}})
}

fn block_stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn anthropic_with_thinking_and_parallel_calls() -> Sample {
    let start = json!({"input_tokens": 9, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 70, "output_tokens": 1});
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "run", "input": {}});
    let stream = stream_of(&[
        json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": start}}),
        block_start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        block_delta(0, "thinking_delta", "thinking", "Let me "),
        block_delta(0, "thinking_delta", "thinking", "see."),
        block_delta(0, "signature_delta", "signature", "EqQ="),
        block_stop(0),
        block_start(1, json!({"type": "redacted_thinking", "data": "xyz"})),
        block_stop(1),
        block_start(2, json!({"type": "text", "text": ""})),
        block_delta(2, "text_delta", "text", "I "),
        block_delta(2, "text_delta", "text", "look."),
        block_stop(2),
        block_start(3, tool("t1")),
        block_delta(3, "input_json_delta", "partial_json", ""),
        block_delta(3, "input_json_delta", "partial_json", "{\"a\": "),
        block_delta(3, "input_json_delta", "partial_json", "1}"),
        block_stop(3),
        block_start(4, json!({"type": "text", "text": ""})),
        block_stop(4),
        block_start(5, json!({"type": "text", "text": ""})),
        block_delta(5, "text_delta", "text", "Again."),
        block_stop(5),
        block_start(6, tool("t2")),
        block_stop(6),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}}),
        json!({"type": "message_stop"}),
    ]);
    let replayable = json!([
        {"type": "thinking", "thinking": "Let me see.", "signature": "EqQ="},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}},
        {"type": "text", "text": "Again."},
        {"type": "tool_use", "id": "t2", "name": "run", "input": {}},
    ]);
    Sample {
        name: "thinking and parallel calls",
        format: Anthropic,
        stream,
        deltas: vec![thought("Let me "), thought("see."), text("I "), text("look."), text("\n\nAgain.")],
        calls: vec![call("t1", "run", json!({"a": 1})), call("t2", "run", json!({}))],
        native: Some(replayable),
        stop: Stop::Done,
        usage: usage(9, 42, 70, 5),
    }
}

fn anthropic_with_arguments_cut_by_the_limit() -> Sample {
    let stream = stream_of(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}),
        block_start(0, json!({"type": "tool_use", "id": "t1", "name": "run", "input": {}})),
        block_delta(0, "input_json_delta", "partial_json", "{\"a\": "),
        block_stop(0),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"input_tokens": 10, "output_tokens": 8}}),
        json!({"type": "message_stop"}),
    ]);
    let replayable = json!([{"type": "tool_use", "id": "t1", "name": "run", "input": {"raw": "{\"a\": "}}]);
    Sample {
        name: "arguments cut by the limit",
        format: Anthropic,
        stream,
        deltas: Vec::new(),
        calls: vec![call("t1", "run", json!("{\"a\": "))],
        native: Some(replayable),
        stop: Stop::MaxTokens,
        usage: usage(10, 8, 0, 0),
    }
}
