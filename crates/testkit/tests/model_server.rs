//! The scripted model as any HTTP client sees it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod http;

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use http::{Answer, BodyEnd, SOON, connect, receive, send};
use serde_json::{Value, json};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, Script, ToolCall, ToolResult, Usage};

fn ask(server: &ModelServer, body: &Value) -> Answer {
    receive(send(server, "POST", "/v1/messages?beta=true", body))
}

/// A turn as an agent sends it: streamed, with tools.
fn turn(messages: Value) -> Value {
    json!({"model": "m-1", "stream": true, "tools": [{"name": "Bash"}], "messages": messages})
}

fn prompt(text: &str) -> Value {
    turn(json!([{"role": "user", "content": text}]))
}

/// What a client makes of a stream of text.
fn streamed_text(answer: &Answer) -> String {
    answer.events().iter().filter_map(|event| event["delta"]["text"].as_str()).collect()
}

#[test]
fn a_streamed_text_has_the_events_of_the_api_and_its_usage_is_counted() {
    let usage = Usage { input: 7, output: 11, cache_read: 13, cache_creation: 17 };
    let server = ModelServer::start(Rule::always().reply(Reply::text("All done").usage(usage)));

    let answer = ask(&server, &prompt("hello"));

    let message = json!({
        "id": "msg_000001", "type": "message", "role": "assistant", "model": "m-1", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 13, "cache_creation_input_tokens": 17},
    });
    let delta = |text| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    assert_eq!(
        answer.events(),
        [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            delta("All "),
            delta("done"),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 11}}),
            json!({"type": "message_stop"}),
        ]
    );
    assert_eq!((answer.status(), &answer.end), (200, &BodyEnd::Proper));
    assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
    assert_eq!(server.reported_usage(), usage);
}

#[test]
fn without_a_stream_the_message_comes_in_one_piece() {
    let reply = Reply::tool("Bash", json!({"command": "true"})).with_text("Trying.");
    let server = ModelServer::start(Rule::always().reply(reply));
    let mut request = prompt("hello");
    request["stream"] = json!(false);

    let answer = ask(&server, &request);

    assert_eq!(
        answer.json(),
        json!({
            "id": "msg_000001", "type": "message", "role": "assistant", "model": "m-1",
            "content": [
                {"type": "text", "text": "Trying."},
                {"type": "tool_use", "id": "toolu_000001_1", "name": "Bash", "input": {"command": "true"}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 0},
        })
    );
    assert_eq!(server.reported_usage(), Usage::DEFAULT_REPLY);
}

#[test]
fn a_rule_goes_on_when_the_result_of_its_tool_comes_back() {
    let calls =
        [ToolCall::new("Read", json!({"path": "ä"})), ToolCall::new("Bash", json!({"command": "ls"}))];
    let server = ModelServer::start([
        Rule::when(Matcher::prompt_contains("work"))
            .reply(Reply::tools(calls))
            .then(Reply::text("Finished.")),
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Someone else's tool.")),
    ]);

    let first = ask(&server, &prompt("work, please"));
    let events = first.events();
    let input = |index: u64| -> String {
        let of_block = events.iter().filter(|event| event["index"] == index);
        of_block.filter_map(|event| event["delta"]["partial_json"].as_str()).collect()
    };
    assert_eq!((input(0).as_str(), input(1).as_str()), (r#"{"path":"ä"}"#, r#"{"command":"ls"}"#));
    let ids: Vec<_> = events.iter().filter_map(|event| event["content_block"]["id"].as_str()).collect();
    assert_eq!(ids, ["toolu_000001_1", "toolu_000001_2"]);

    let result = |id| {
        let results = json!([
            {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": "a b"}]},
            {"type": "tool_result", "tool_use_id": "other", "content": "no", "is_error": true},
        ]);
        turn(json!([{"role": "user", "content": "work"}, {"role": "user", "content": results}]))
    };
    assert_eq!(streamed_text(&ask(&server, &result("toolu_000001_1"))), "Finished.");
    assert_eq!(streamed_text(&ask(&server, &result("unknown"))), "Someone else's tool.");

    let last = server.turns().pop().expect("a turn");
    let expected = [("unknown", "a b", false), ("other", "no", true)]
        .map(|(id, text, is_error)| ToolResult { tool_use_id: id.into(), text: text.into(), is_error });
    assert_eq!(last.tool_results(), expected);
    assert_eq!((last.prompt_text(), last.all_text()), (String::new(), "work\na b\nno".to_owned()));
}

#[test]
fn the_first_rule_that_matches_answers_and_its_last_reply_repeats() {
    let server = ModelServer::start([
        Rule::when(Matcher::nth_turn(2)).reply(Reply::text("second")),
        Rule::when(Matcher::any_text_contains("earlier").and(Matcher::prompt_contains("now").negated()))
            .reply(Reply::text("history")),
        Rule::when(Matcher::prompt_contains("now").or(Matcher::prompt_contains("later")))
            .reply(Reply::text("a"))
            .then(Reply::text("b")),
    ]);
    let earlier =
        turn(json!([{"role": "assistant", "content": "earlier"}, {"role": "user", "content": "go on"}]));
    let bodies = [prompt("now"), prompt("now"), prompt("later"), prompt("now"), earlier, prompt("?")];

    let texts = bodies.map(|body| streamed_text(&ask(&server, &body)));

    assert_eq!(texts, ["a", "second", "b", "b", "history", "Nothing more to do."]);
}

#[test]
fn side_requests_get_a_bland_answer_and_use_up_no_reply() {
    let title = json!({"model": "small", "messages": [{"role": "user", "content": "A title for: work"}]});
    let work =
        || Rule::when(Matcher::prompt_contains("work")).reply(Reply::text("first")).then(Reply::text("next"));
    let server = ModelServer::start(Script::new().rule(work()));
    assert_eq!(ask(&server, &title).json()["content"][0]["text"], "Nothing more to do.");
    assert_eq!(streamed_text(&ask(&server, &prompt("work"))), "first");
    let numbers: Vec<_> = server.requests().iter().map(|request| (request.number, request.turn)).collect();
    assert_eq!(numbers, [(1, None), (2, Some(1))]);

    let server = ModelServer::start(work().also_side_requests());
    assert_eq!(ask(&server, &title).json()["content"][0]["text"], "first");

    let titles =
        Rule::when(Matcher::has_tools().negated()).reply(Reply::text("A title")).also_side_requests();
    let server = ModelServer::start([titles, work()]);
    assert_eq!(ask(&server, &title).json()["content"][0]["text"], "A title");
    assert_eq!(streamed_text(&ask(&server, &prompt("work"))), "first");
}

#[test]
fn errors_have_the_status_the_headers_and_the_body_of_the_api() {
    let cases = [
        (Reply::unauthorized(), 401, "authentication_error"),
        (Reply::rate_limited(), 429, "rate_limit_error"),
        (Reply::server_error(), 500, "api_error"),
        (Reply::overloaded(), 529, "overloaded_error"),
        (Reply::error(413, "too long"), 413, "request_too_large"),
    ];
    for (reply, status, kind) in cases {
        let reply = reply.header("retry-after", 7).header("anthropic-ratelimit-unified-status", "rejected");
        let server = ModelServer::start(Rule::always().reply(reply).then(Reply::text("fine again")));

        let answer = ask(&server, &prompt("hello"));

        assert_eq!(answer.status(), status);
        assert_eq!(
            (&answer.json()["type"], &answer.json()["error"]["type"]),
            (&json!("error"), &json!(kind))
        );
        assert!(answer.head.contains("retry-after: 7\r\n"), "{}", answer.head);
        assert!(answer.head.contains("anthropic-ratelimit-unified-status: rejected"), "{}", answer.head);
        assert_eq!(server.reported_usage(), Usage::default());
        assert_eq!(streamed_text(&ask(&server, &prompt("hello"))), "fine again");
    }
}

#[test]
fn a_cut_stream_breaks_off_and_has_reported_what_it_got_to() {
    let server = ModelServer::start(Rule::always().reply(Reply::text("never whole").cut_after(3)));

    let answer = ask(&server, &prompt("hello"));

    assert_eq!(answer.end, BodyEnd::BrokenOff);
    assert_eq!((answer.events().len(), streamed_text(&answer).as_str()), (3, "never "));
    assert_eq!(server.reported_usage(), Usage { output: 1, ..Usage::DEFAULT_REPLY });
}

#[test]
fn silence_keeps_the_connection_until_the_server_is_dropped() {
    let server = ModelServer::start(Rule::always().reply(Reply::silence()));
    let mut stream = send(&server, "POST", "/v1/messages", &prompt("hello"));
    server.wait_for_turns(1, SOON);

    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    let waiting = stream.read(&mut [0; 16]).expect_err("nothing is sent");
    assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);

    drop(server);
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    let ended = stream.read(&mut [0; 16]);
    assert!(
        matches!(&ended, Ok(0))
            || matches!(&ended, Err(error) if error.kind() == io::ErrorKind::ConnectionReset),
        "{ended:?}"
    );
}

#[test]
fn a_slow_reply_waits_before_each_event() {
    let pause = Duration::from_millis(20);
    let server = ModelServer::start(Rule::always().reply(Reply::text("x").slow(pause)));
    let begun = Instant::now();

    let answer = ask(&server, &prompt("hello"));

    let events = u32::try_from(answer.events().len()).expect("few events");
    assert_eq!(events, 6);
    assert!(begun.elapsed() >= pause * events, "{:?} for {events} events", begun.elapsed());
}

#[test]
fn a_client_that_goes_away_in_the_middle_does_no_harm() {
    let server = ModelServer::start(
        Rule::always()
            .reply(Reply::text("a b c d e f").slow(Duration::from_millis(5)))
            .then(Reply::text("fine")),
    );
    let mut reading = send(&server, "POST", "/v1/messages", &prompt("hello"));
    reading.read_exact(&mut [0; 16]).expect("the answer begins");
    drop(reading);
    let mut half = connect(&server);
    half.write_all(b"POST /v1/messages HTTP/1.1\r\nHost: model\r\nContent-Length: 100\r\n\r\n{\"mod")
        .expect("sent");
    drop(half);

    assert_eq!(streamed_text(&ask(&server, &prompt("hello"))), "fine");
}

#[test]
fn other_paths_are_refused_and_logged_and_tokens_are_counted() {
    let server = ModelServer::start(Script::new());
    let count = receive(send(&server, "POST", "/v1/messages/count_tokens", &prompt("hello")));
    assert!(count.json()["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{count:?}");
    let unknown = receive(send(&server, "GET", "/v1/files?limit=1", &json!("x")));
    assert_eq!((unknown.status(), &unknown.json()["error"]["type"]), (404, &json!("not_found_error")));

    let log = server.requests();
    assert_eq!((log[0].path.as_str(), log[0].turn), ("/v1/messages/count_tokens", None));
    let last = &log[1];
    assert_eq!(
        (last.method.as_str(), last.path.as_str(), last.query.as_str()),
        ("GET", "/v1/files", "limit=1")
    );
    assert_eq!(last.header("x-api-key"), Some("dummy"));
    assert_eq!(*last.body, json!("x"));
    assert!(log[0].at <= last.at);
}

#[test]
fn a_long_text_arrives_whole_in_few_events() {
    let text = "wörter und mehr ".repeat(20_000);
    let server = ModelServer::start(Rule::always().reply(Reply::text(&text)));

    let answer = ask(&server, &prompt("hello"));

    assert!(answer.events().len() < 40, "{} events", answer.events().len());
    assert!(streamed_text(&answer) == text, "the text is not what was scripted");
}

#[test]
#[should_panic(expected = "for 2 turns at the scripted model; it got [\"POST /v1/messages\"]")]
fn waiting_in_vain_shows_what_came_instead() {
    let server = ModelServer::start(Script::new());
    ask(&server, &prompt("hello"));
    server.wait_for_turns(2, Duration::from_millis(20));
}

#[test]
#[should_panic(expected = "a rule without a reply")]
fn a_rule_without_a_reply_is_refused() {
    let _ = Script::new().rule(Rule::always());
}

#[test]
#[should_panic(expected = "header that HTTP does not allow")]
fn a_header_that_http_does_not_allow_is_refused() {
    let _ = Reply::rate_limited().header("retry after", 1);
}
