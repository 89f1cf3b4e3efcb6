//! The scripted model in the formats of `OpenAI` and Gemini, as any HTTP client sees it. What does not depend on the
//! format is tested with Anthropic's, in `model_server.rs`.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod http;

use std::time::{Duration, Instant};

use http::{Answer, BodyEnd, receive, send};
use serde_json::{Value, json};
use towline_testkit::model::{
    Matcher, ModelServer, Reply, Rule, Script, ToolCall, ToolResult, Usage, WireFormat,
};

const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/m-1:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/m-1:streamGenerateContent?alt=sse";

const USAGE: Usage = Usage { input: 7, output: 11, cache_read: 13, cache_creation: 17 };

fn ask(server: &ModelServer, path: &str, body: &Value) -> Answer {
    receive(send(server, "POST", path, body))
}

/// A streamed turn, as the clients of each format send it.
fn prompts(text: &str) -> [(WireFormat, &'static str, Value); 3] {
    [
        (
            WireFormat::OpenAiResponses,
            RESPONSES,
            json!({"model": "m-1", "stream": true, "tools": [{"type": "function", "name": "run"}], "input": text}),
        ),
        (
            WireFormat::OpenAiChat,
            CHAT,
            json!({
                "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
                "tools": [{"type": "function", "function": {"name": "run"}}],
                "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": text}],
            }),
        ),
        (
            WireFormat::Gemini,
            GEMINI_STREAM,
            json!({
                "systemInstruction": {"parts": [{"text": "Be good."}]},
                "tools": [{"functionDeclarations": [{"name": "run"}]}],
                "contents": [{"role": "user", "parts": [{"text": text}]}],
            }),
        ),
    ]
}

/// The same request for an answer in one piece.
fn in_one_piece(path: &'static str, mut body: Value) -> (&'static str, Value) {
    if path == GEMINI_STREAM {
        return (GEMINI, body);
    }
    body["stream"] = json!(false);
    (path, body)
}

/// What a client makes of a stream of text.
fn streamed_text(format: WireFormat, answer: &Answer) -> String {
    let place = match format {
        WireFormat::OpenAiResponses => "/delta",
        WireFormat::OpenAiChat => "/choices/0/delta/content",
        WireFormat::Gemini => "/candidates/0/content/parts/0/text",
        WireFormat::Anthropic => "/delta/text",
    };
    answer.events().iter().filter_map(|event| event.pointer(place)?.as_str().map(str::to_owned)).collect()
}

#[test]
fn a_text_over_responses_has_the_events_of_the_api() {
    let server = ModelServer::start(Rule::always().reply(Reply::text("All done").usage(USAGE)));
    let [(_, path, body), ..] = prompts("hello");

    let answer = ask(&server, path, &body);

    let part = |text| json!({"type": "output_text", "text": text, "annotations": []});
    let item = |status: &str, content: Value| json!({"type": "message", "id": "msg_resp_000001", "status": status, "role": "assistant", "content": content});
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": "resp_000001", "object": "response", "created_at": 0, "status": status, "error": null,
            "incomplete_details": null, "model": "m-1", "output": output, "usage": usage,
        })
    };
    let whole = item("completed", json!([part("All done")]));
    let usage = json!({
        "input_tokens": 37, "input_tokens_details": {"cached_tokens": 13, "cache_write_tokens": 17},
        "output_tokens": 11, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 48,
    });
    let opened = response("in_progress", json!([]), Value::Null);
    let completed = response("completed", json!([whole]), usage);
    let of_item = |number: u64, kind: &str, field: &str, value: Value| {
        let mut event = json!({"type": kind, "sequence_number": number, "output_index": 0});
        if !kind.contains("output_item") {
            event["item_id"] = json!("msg_resp_000001");
            event["content_index"] = json!(0);
        }
        event[field] = value;
        event
    };
    assert_eq!(
        answer.events(),
        [
            json!({"type": "response.created", "sequence_number": 0, "response": opened}),
            json!({"type": "response.in_progress", "sequence_number": 1, "response": opened}),
            of_item(2, "response.output_item.added", "item", item("in_progress", json!([]))),
            of_item(3, "response.content_part.added", "part", part("")),
            of_item(4, "response.output_text.delta", "delta", json!("All ")),
            of_item(5, "response.output_text.delta", "delta", json!("done")),
            of_item(6, "response.output_text.done", "text", json!("All done")),
            of_item(7, "response.content_part.done", "part", part("All done")),
            of_item(8, "response.output_item.done", "item", whole),
            json!({"type": "response.completed", "sequence_number": 9, "response": completed}),
        ]
    );
    assert_eq!(server.reported_usage(), USAGE);
    let (path, body) = in_one_piece(path, body);
    let mut again = completed;
    again["id"] = json!("resp_000002");
    again["output"][0]["id"] = json!("msg_resp_000002");
    assert_eq!(ask(&server, path, &body).json(), again);
    assert_eq!(server.reported_usage(), USAGE + USAGE);
}

#[test]
fn a_text_over_chat_completions_has_the_chunks_of_the_api() {
    let server = ModelServer::start(Rule::always().reply(Reply::text("All done").usage(USAGE)));
    let [_, (_, path, body), _] = prompts("hello");

    let answer = ask(&server, path, &body);

    let chunk = |choices: Value| json!({"id": "chatcmpl-000001", "object": "chat.completion.chunk", "created": 0, "model": "m-1", "choices": choices});
    let delta =
        |delta: Value, reason: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": reason}]));
    let usage = json!({
        "prompt_tokens": 37, "prompt_tokens_details": {"cached_tokens": 13}, "completion_tokens": 11,
        "total_tokens": 48,
    });
    let mut last = chunk(json!([]));
    last["usage"] = usage.clone();
    assert_eq!(
        answer.events(),
        [
            delta(json!({"role": "assistant", "content": ""}), Value::Null),
            delta(json!({"content": "All "}), Value::Null),
            delta(json!({"content": "done"}), Value::Null),
            delta(json!({}), json!("stop")),
            last,
            json!("[DONE]"),
        ]
    );
    // The format has no word for what is written to a cache.
    let expected = Usage { input: 24, cache_creation: 0, ..USAGE };
    assert_eq!(server.reported_usage(), expected);

    let mut unasked = body.clone();
    unasked["stream_options"] = Value::Null;
    assert_eq!(ask(&server, path, &unasked).events().len(), 5);
    assert_eq!(server.reported_usage(), expected, "no usage is sent unless it is asked for");

    let (path, body) = in_one_piece(path, body);
    let message = json!({"role": "assistant", "content": "All done"});
    assert_eq!(
        ask(&server, path, &body).json(),
        json!({
            "id": "chatcmpl-000003", "object": "chat.completion", "created": 0, "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage,
        })
    );
    assert_eq!(server.reported_usage(), expected + expected);
}

#[test]
fn a_text_over_gemini_has_the_chunks_of_the_api() {
    let server = ModelServer::start(Rule::always().reply(Reply::text("All done").usage(USAGE)));
    let [_, _, (_, path, body)] = prompts("hello");

    let answer = ask(&server, path, &body);

    let chunk = |id: &str, text: &str, finish: Option<&str>, output: u64| {
        let mut candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({
            "candidates": [candidate], "modelVersion": "m-1", "responseId": id,
            "usageMetadata": {
                "promptTokenCount": 37, "cachedContentTokenCount": 13, "candidatesTokenCount": output,
                "totalTokenCount": 37 + output,
            },
        })
    };
    assert_eq!(
        answer.events(),
        [
            chunk("response-000001", "All ", None, 0),
            chunk("response-000001", "done", None, 0),
            chunk("response-000001", "", Some("STOP"), 11),
        ]
    );
    let expected = Usage { input: 24, cache_creation: 0, ..USAGE };
    assert_eq!(server.reported_usage(), expected);
    let (path, body) = in_one_piece(path, body);
    assert_eq!(ask(&server, path, &body).json(), chunk("response-000002", "All done", Some("STOP"), 11));
    assert_eq!(server.reported_usage(), expected + expected);
}

/// Name, id and arguments of the calls that a client reads out of a stream.
fn streamed_calls(format: WireFormat, answer: &Answer) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parsed = |arguments: &str| serde_json::from_str(arguments).expect("arguments in JSON");
    let events = answer.events();
    match format {
        WireFormat::OpenAiResponses => {
            let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
            done.map(|event| {
                let item = &event["item"];
                let deltas = events.iter().filter(|event| {
                    event["type"] == "response.function_call_arguments.delta"
                        && event["item_id"] == item["id"]
                });
                let joined: String = deltas.map(|event| text(&event["delta"])).collect();
                assert_eq!(joined, text(&item["arguments"]));
                (text(&item["name"]), text(&item["call_id"]), parsed(&joined))
            })
            .collect()
        }
        WireFormat::OpenAiChat => {
            let deltas: Vec<_> =
                events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]).collect();
            let openings = deltas.iter().filter(|delta| delta["id"].is_string());
            openings
                .map(|opening| {
                    let same = deltas.iter().filter(|delta| delta["index"] == opening["index"]);
                    let joined: String = same.map(|delta| text(&delta["function"]["arguments"])).collect();
                    (text(&opening["function"]["name"]), text(&opening["id"]), parsed(&joined))
                })
                .collect()
        }
        WireFormat::Gemini => {
            let parts =
                events.iter().filter_map(|event| event.pointer("/candidates/0/content/parts/0/functionCall"));
            parts.map(|call| (text(&call["name"]), text(&call["id"]), call["args"].clone())).collect()
        }
        WireFormat::Anthropic => Vec::new(),
    }
}

/// The same conversation one step on: the model's two calls and their results.
fn with_results(format: WireFormat, mut body: Value, ids: &[String]) -> Value {
    match format {
        WireFormat::OpenAiResponses => {
            let call = |id: &String| json!({"type": "function_call", "call_id": id, "name": "run", "arguments": "{}"});
            body["input"] = json!([
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be good."}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "work"}]},
                {"type": "reasoning", "summary": []},
                call(&ids[0]), call(&ids[1]),
                {"type": "function_call_output", "call_id": ids[0], "output": "a b"},
                {"type": "function_call_output", "call_id": ids[1], "output": [{"type": "input_text", "text": "no"}]},
            ]);
        }
        WireFormat::OpenAiChat => {
            let call = |id: &String| json!({"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}});
            body["messages"] = json!([
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": [{"type": "text", "text": "work"}]},
                {"role": "assistant", "content": null, "tool_calls": [call(&ids[0]), call(&ids[1])]},
                {"role": "tool", "tool_call_id": ids[0], "content": "a b"},
                {"role": "tool", "tool_call_id": ids[1], "content": [{"type": "text", "text": "no"}]},
            ]);
        }
        _ => {
            let response = |id: &String, response: Value| json!({"functionResponse": {"id": id, "name": "run", "response": response}});
            body["contents"] = json!([
                {"role": "user", "parts": [{"text": "work"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "run"}}]},
                {"role": "user", "parts": [response(&ids[0], json!({"output": "a b"})), response(&ids[1], json!({"error": "no"}))]},
            ]);
        }
    }
    body
}

#[test]
fn a_rule_goes_on_when_the_results_of_its_tools_come_back() {
    let inputs = [json!({"path": "ä"}), json!({"command": "ls"})];
    let calls = inputs.clone().map(|input| ToolCall::new("run", input));
    for (format, path, body) in prompts("work, please") {
        let server = ModelServer::start([
            Rule::when(Matcher::prompt_contains("work"))
                .reply(Reply::tools(calls.clone()))
                .then(Reply::text("Finished.")),
            Rule::when(Matcher::after_tool_result()).reply(Reply::text("Someone else's tool.")),
        ]);

        let made = streamed_calls(format, &ask(&server, path, &body));
        let (ids, read): (Vec<_>, Vec<_>) =
            made.into_iter().map(|(name, id, input)| (id, (name, input))).unzip();
        assert_eq!(read, inputs.clone().map(|input| ("run".to_owned(), input)), "{format:?}");

        let results = with_results(format, body.clone(), &ids);
        assert_eq!(streamed_text(format, &ask(&server, path, &results)), "Finished.", "{format:?}");
        let unknown = with_results(format, body, &["x".to_owned(), "y".to_owned()]);
        assert_eq!(
            streamed_text(format, &ask(&server, path, &unknown)),
            "Someone else's tool.",
            "{format:?}"
        );

        let turns = server.turns();
        assert_eq!(turns[0].prompt_text(), "work, please");
        let fails = format == WireFormat::Gemini;
        let expected = [(&ids[0], "a b", false), (&ids[1], "no", fails)]
            .map(|(id, text, is_error)| ToolResult { tool_use_id: id.clone(), text: text.into(), is_error });
        assert_eq!(turns[1].tool_results(), expected, "{format:?}");
        assert_eq!(
            (turns[1].prompt_text(), turns[1].all_text()),
            (String::new(), "work\na b\nno".to_owned())
        );
        assert_eq!((turns[1].format, turns[1].model()), (Some(format), Some("m-1".to_owned())));
    }
}

#[test]
fn tool_calls_come_in_one_piece_too() {
    let reply = Reply::tool("run", json!({"a": 1})).with_text("Trying.");
    let expected = [
        (
            "/output/1",
            json!({"type": "function_call", "id": "fc_call_000001_1", "call_id": "call_000001_1",
            "status": "completed", "name": "run", "arguments": r#"{"a":1}"#}),
        ),
        (
            "/choices/0",
            json!({"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Trying.",
                "tool_calls": [{"id": "call_000001_1", "type": "function", "function": {"name": "run", "arguments": r#"{"a":1}"#}}],
            }}),
        ),
        (
            "/candidates/0/content/parts",
            json!([
                {"text": "Trying."}, {"functionCall": {"id": "call-000001_1", "name": "run", "args": {"a": 1}}},
            ]),
        ),
    ];
    for ((_, path, body), (place, value)) in prompts("hello").into_iter().zip(expected) {
        let server = ModelServer::start(Rule::always().reply(reply.clone()));
        let (path, body) = in_one_piece(path, body);
        let answer = ask(&server, path, &body).json();
        assert_eq!(answer.pointer(place), Some(&value), "{answer:#}");
        assert_eq!(server.reported_usage(), Usage::DEFAULT_REPLY);
    }
}

#[test]
fn requests_without_tools_are_side_requests() {
    for (format, path, mut body) in prompts("work") {
        let server = ModelServer::start(Rule::always().reply(Reply::text("first")));
        let mut title = body.clone();
        title["tools"] = json!([]);
        assert_eq!(streamed_text(format, &ask(&server, path, &title)), "Nothing more to do.");
        if format == WireFormat::Gemini {
            title["tools"] = json!([{"googleSearch": {}}]);
            assert_eq!(streamed_text(format, &ask(&server, path, &title)), "Nothing more to do.");
        }
        assert_eq!(server.turns().len(), 0);
        body["tool_choice"] = json!("auto");
        assert_eq!(streamed_text(format, &ask(&server, path, &body)), "first");
        assert_eq!(server.turns().len(), 1);
    }
}

#[test]
fn errors_have_the_status_and_the_body_of_each_api() {
    let openai = |message: &str, kind: &str, code: Value| json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    let gemini = |code: u16, message: &str, status: &str, details: Option<Value>| {
        let mut body = json!({"error": {"code": code, "message": message, "status": status}});
        if let Some(details) = details {
            body["error"]["details"] = details;
        }
        body
    };
    let (key, limit) = ("scripted: invalid API key", "scripted: rate limit reached");
    let (failed, busy) = ("scripted: internal server error", "scripted: overloaded");
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"});
    let quota = json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerDay"}]});
    let cases = [
        (
            Reply::unauthorized(),
            401,
            openai(key, "invalid_request_error", json!("invalid_api_key")),
            gemini(401, key, "UNAUTHENTICATED", None),
        ),
        (
            Reply::rate_limited().header("retry-after", 7),
            429,
            openai(limit, "requests", json!("rate_limit_exceeded")),
            gemini(429, limit, "RESOURCE_EXHAUSTED", Some(json!([retry]))),
        ),
        (
            Reply::rate_limited().code("PerDay"),
            429,
            openai(limit, "PerDay", json!("PerDay")),
            gemini(429, limit, "RESOURCE_EXHAUSTED", Some(json!([quota]))),
        ),
        (
            Reply::server_error(),
            500,
            openai(failed, "server_error", Value::Null),
            gemini(500, failed, "INTERNAL", None),
        ),
        (
            Reply::overloaded(),
            503,
            openai(busy, "service_unavailable_error", Value::Null),
            gemini(503, busy, "UNAVAILABLE", None),
        ),
    ];
    for (reply, status, of_openai, of_gemini) in cases {
        let retries = of_gemini.to_string().contains("retryDelay");
        for (format, path, body) in prompts("hello") {
            let server =
                ModelServer::start(Rule::always().reply(reply.clone()).then(Reply::text("fine again")));
            let answer = ask(&server, path, &body);
            let expected = if format == WireFormat::Gemini { &of_gemini } else { &of_openai };
            assert_eq!((answer.status(), &answer.json()), (status, expected));
            assert_eq!(answer.head.contains("retry-after: 7"), retries, "{}", answer.head);
            assert_eq!(server.reported_usage(), Usage::default());
            assert_eq!(streamed_text(format, &ask(&server, path, &body)), "fine again");
        }
    }
}

#[test]
fn a_failed_stream_ends_with_the_word_of_each_api_for_it() {
    let reply = Reply::failed_stream("context_length_exceeded", "too long");
    let places = ["/response/error/code", "/error/code", "/error/status"];
    for ((_, path, body), place) in prompts("hello").into_iter().zip(places) {
        let server = ModelServer::start(Rule::always().reply(reply.clone()));
        let answer = ask(&server, path, &body);
        let last = answer.events().pop().expect("an event");
        assert_eq!(
            (answer.status(), last.pointer(place)),
            (200, Some(&json!("context_length_exceeded"))),
            "{last:#}"
        );
        let (path, body) = in_one_piece(path, body);
        assert_eq!(ask(&server, path, &body).status(), 500);
    }
}

#[test]
fn a_cut_stream_breaks_off_and_has_reported_what_it_got_to() {
    let expected = [Usage::default(), Usage::default(), Usage { output: 0, ..Usage::DEFAULT_REPLY }];
    for ((format, path, body), expected) in prompts("hello").into_iter().zip(expected) {
        let events = if format == WireFormat::OpenAiResponses { 5 } else { 2 };
        let server =
            ModelServer::start(Rule::always().reply(Reply::text("never quite whole").cut_after(events)));
        let answer = ask(&server, path, &body);
        assert_eq!((&answer.end, answer.events().len()), (&BodyEnd::BrokenOff, events), "{format:?}");
        assert!(streamed_text(format, &answer).starts_with("never "), "{format:?}");
        assert_eq!(server.reported_usage(), expected, "{format:?}");
    }
}

#[test]
fn slow_streams_and_headers_are_the_same_in_every_format() {
    let pause = Duration::from_millis(20);
    for (format, path, body) in prompts("hello") {
        let reply = Reply::text("x").slow(pause).header("x-ratelimit-remaining-requests", 3);
        let server = ModelServer::start(Rule::always().reply(reply));
        let begun = Instant::now();
        let answer = ask(&server, path, &body);
        let events = u32::try_from(answer.events().len()).expect("few events");
        assert!(begun.elapsed() >= pause * events, "{format:?}: {:?} for {events} events", begun.elapsed());
        assert!(answer.head.contains("x-ratelimit-remaining-requests: 3"), "{}", answer.head);
        assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
    }
}

#[test]
fn one_script_serves_all_formats_at_once_and_lists_its_model() {
    let server = ModelServer::start(
        Rule::always().reply(Reply::text("1")).then(Reply::text("2")).then(Reply::text("3")),
    );
    let texts =
        prompts("hello").map(|(format, path, body)| streamed_text(format, &ask(&server, path, &body)));
    assert_eq!(texts, ["1", "2", "3"]);
    assert_eq!(server.reported_usage(), [Usage::DEFAULT_REPLY; 3].into_iter().sum());

    let listed = |path: &str| receive(send(&server, "GET", path, &Value::Null)).json();
    assert_eq!(listed("/v1/models")["data"][0]["id"], "scripted-model");
    assert_eq!(listed("/v1beta/models")["models"][0]["name"], "models/scripted-model");
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn gemini_counts_tokens_and_is_refused_in_its_own_words() {
    let server = ModelServer::start(Script::new());
    let [_, _, (_, _, body)] = prompts("hello");
    let count = ask(&server, "/v1beta/models/m-1:countTokens", &body).json();
    assert!(count["totalTokens"].as_u64().is_some_and(|tokens| tokens > 0), "{count}");
    let refused = ask(&server, "/v1beta/models/m-1:embedContent", &body);
    assert_eq!((refused.status(), &refused.json()["error"]["status"]), (404, &json!("NOT_FOUND")));
    assert_eq!(server.turns().len(), 0);
}
