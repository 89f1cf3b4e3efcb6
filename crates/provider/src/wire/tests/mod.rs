//! All formats, without a socket: what is written, what is read, and that no damage is taken for an answer.

mod damage;
mod encode;
mod streams;

use serde_json::{Value, json};

use super::{Decode, Trouble, decoder};
use crate::reader::Reader;
use crate::{Answer, Call, Delta, Item, ModelMessage, Native, Question, Stop, Usage, WireFormat};

/// A stream, and what has to come of it.
struct Sample {
    name: &'static str,
    format: WireFormat,
    stream: String,
    /// What is shown on the way. The texts among them are the text of the answer.
    deltas: Vec<Delta>,
    calls: Vec<Call>,
    /// The value that is sent again in the same format.
    native: Option<Value>,
    stop: Stop,
    usage: Usage,
}

impl Sample {
    fn answer(&self) -> Answer {
        let texts = self.deltas.iter().map(|delta| match delta {
            Delta::Text(words) => words.as_str(),
            Delta::Thought(_) => "",
        });
        let native = self.native.clone().map(|value| Native { format: self.format, value });
        let message = ModelMessage { text: texts.collect(), calls: self.calls.clone(), native };
        Answer { message, stop: self.stop, usage: self.usage }
    }
}

fn question(items: &[Item]) -> Question<'_> {
    Question { model: "m-1", system: "", items, tools: &[], max_output: None }
}

/// The answer to a conversation of one item.
fn decoder_of(format: WireFormat) -> Box<dyn Decode> {
    decoder(format, &question(&[Item::User { text: "hello".into() }]))
}

/// Reads `pieces` as one body.
fn read(mut reader: Reader, pieces: &[&[u8]]) -> (Result<Answer, Trouble>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let pushed = pieces.iter().try_for_each(|piece| reader.push(piece, &mut on_delta));
    let answer = pushed.and_then(|()| reader.finish(&mut on_delta));
    (answer, deltas)
}

fn stream_of(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"])).collect()
}

fn text(words: &str) -> Delta {
    Delta::Text(words.into())
}

fn thought(words: &str) -> Delta {
    Delta::Thought(words.into())
}

fn call(id: &str, name: &str, input: Value) -> Call {
    Call { id: id.into(), name: name.into(), input }
}

fn native(format: WireFormat, value: Value) -> Option<Native> {
    Some(Native { format, value })
}

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write }
}

#[test]
fn an_answer_in_one_piece_is_read_like_a_stream() {
    let call_of_chat =
        json!({"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{\"a\":1}"}});
    let bodies = [
        json!({
            "status": "completed", "error": null, "incomplete_details": null,
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
                {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{\"a\":1}"},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 2},
        }),
        json!({
            "choices": [{
                "index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "Hello.", "tool_calls": [call_of_chat]},
            }],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        }),
        json!([{
            "candidates": [{
                "content": {"role": "model", "parts": [
                    {"text": "Hello."}, {"functionCall": {"id": "c1", "name": "run", "args": {"a": 1}}},
                ]},
                "finishReason": "STOP",
            }],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
        }]),
        json!({
            "type": "message", "role": "assistant", "stop_reason": "tool_use",
            "content": [
                {"type": "text", "text": "Hello."},
                {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": 1}},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 2},
        }),
    ];
    for (format, body) in WireFormat::ALL.into_iter().zip(bodies) {
        let (answer, deltas) = read(Reader::of_whole(decoder_of(format)), &[body.to_string().as_bytes()]);
        let mut answer = answer.unwrap_or_else(|trouble| panic!("{format:?}: {trouble:?}"));
        answer.message.native = None;
        let model_message = ModelMessage {
            text: "Hello.".into(),
            calls: vec![call("c1", "run", json!({"a": 1}))],
            native: None,
        };
        assert_eq!(
            answer,
            Answer { message: model_message, stop: Stop::Done, usage: usage(5, 2, 0, 0) },
            "{format:?}"
        );
        assert_eq!(deltas, [text("Hello.")], "{format:?}");
    }
}

#[test]
fn a_body_that_is_no_answer_is_none() {
    for format in WireFormat::ALL {
        for body in ["", "{}", "[]", "null", "\"words\"", "{\"choices\": [], \"output\": []}", "{\"status\""]
        {
            let (answer, _) = read(Reader::of_whole(decoder_of(format)), &[body.as_bytes()]);
            assert!(matches!(answer, Err(Trouble::Unreadable(_))), "{format:?} {body}: {answer:?}");
        }
        let (answer, _) = read(Reader::of_whole(decoder_of(format)), &[br#"{"error": {"message": "no"}}"#]);
        let Err(Trouble::Complaint(complaint)) = answer else { panic!("{format:?}: {answer:?}") };
        assert_eq!(complaint.message, "no", "{format:?}");
    }
}

#[test]
fn ends_are_distinguished() {
    let responses = |status: &str, reason: Value| {
        stream_of(&[json!({"type": "response.incomplete", "response": {
            "status": status, "output": [], "incomplete_details": {"reason": reason},
        }})])
    };
    let chat = |reason: &str| {
        let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    };
    let gemini = |reason: &str| format!("data: {}\n\n", json!({"candidates": [{"finishReason": reason}]}));
    let anthropic = |reason: &str| {
        stream_of(&[
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}),
            json!({"type": "message_stop"}),
        ])
    };
    let table = [
        (WireFormat::OpenaiResponses, responses("incomplete", json!("max_output_tokens")), Stop::MaxTokens),
        (WireFormat::OpenaiResponses, responses("incomplete", json!("content_filter")), Stop::Refused),
        (WireFormat::OpenaiResponses, responses("completed", json!(null)), Stop::Done),
        (WireFormat::OpenaiChat, chat("stop"), Stop::Done),
        (WireFormat::OpenaiChat, chat("length"), Stop::MaxTokens),
        (WireFormat::OpenaiChat, chat("content_filter"), Stop::Refused),
        (WireFormat::Gemini, gemini("STOP"), Stop::Done),
        (WireFormat::Gemini, gemini("MAX_TOKENS"), Stop::MaxTokens),
        (WireFormat::Gemini, gemini("SAFETY"), Stop::Refused),
        (
            WireFormat::Gemini,
            format!("data: {}\n\n", json!({"promptFeedback": {"blockReason": "SAFETY"}})),
            Stop::Refused,
        ),
        (WireFormat::Anthropic, anthropic("end_turn"), Stop::Done),
        (WireFormat::Anthropic, anthropic("max_tokens"), Stop::MaxTokens),
        (WireFormat::Anthropic, anthropic("refusal"), Stop::Refused),
    ];
    for (format, stream, stop) in table {
        let (answer, _) = read(Reader::of_stream(decoder_of(format)), &[stream.as_bytes()]);
        assert_eq!(answer.map(|answer| answer.stop), Ok(stop), "{format:?} {stream}");
    }
    let malformed = gemini("MALFORMED_FUNCTION_CALL");
    let (answer, _) = read(Reader::of_stream(decoder_of(WireFormat::Gemini)), &[malformed.as_bytes()]);
    assert!(matches!(answer, Err(Trouble::Unreadable(_))), "{answer:?}");
}

#[test]
fn a_thought_at_the_end_is_not_sent_again() {
    let responses = stream_of(&[
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "encrypted_content": "g"}}),
        json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}),
    ]);
    let anthropic = stream_of(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "Hm", "signature": ""}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ]);
    for (format, stream) in [(WireFormat::OpenaiResponses, responses), (WireFormat::Anthropic, anthropic)] {
        let (answer, _) = read(Reader::of_stream(decoder_of(format)), &[stream.as_bytes()]);
        let model_message = ModelMessage { native: native(format, json!([])), ..ModelMessage::default() };
        let expected = Answer { message: model_message, stop: Stop::MaxTokens, usage: Usage::default() };
        assert_eq!(answer, Ok(expected), "{format:?}");
    }
}

#[test]
fn an_answer_without_end_is_given_up_on() {
    let piece = vec![b'x'; 1024 * 1024];
    let pieces = vec![piece.as_slice(); 65];
    let (answer, _) = read(Reader::of_whole(decoder_of(WireFormat::OpenaiChat)), &pieces);
    assert_eq!(answer, Err(Trouble::Unreadable("it sent more than 64 MiB for one answer".into())));
}
