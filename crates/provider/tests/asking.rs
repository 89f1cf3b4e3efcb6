//! The client against a model server on loopback, in every wire format.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use towline_provider::{
    Answer, Call, CallResult, Client, Delta, Endpoint, ErrorClass, Item, Key, ProviderError, Question, Stop,
    Timeouts, ToolSpec, Usage, WireFormat,
};
use towline_testkit::model::{self, Matcher, ModelServer, Reply, Rule, ToolCall};

const KEY: &str = "sk-secret-of-ours";
const SOON: Duration = Duration::from_secs(20);

fn endpoint(server: &ModelServer, format: WireFormat) -> Endpoint {
    let version = if format == WireFormat::Gemini { "v1beta" } else { "v1" };
    let base_url = format!("{}/{version}", server.url());
    Endpoint { format, base_url, key: Some(Key::new(KEY)) }
}

fn client_of(server: &ModelServer, format: WireFormat, timeouts: Timeouts) -> Client {
    Client::new(endpoint(server, format), timeouts)
}

fn client(server: &ModelServer, format: WireFormat) -> Client {
    client_of(server, format, Timeouts { connect: SOON, silence: SOON })
}

fn tools() -> [ToolSpec; 1] {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    [ToolSpec { name: "run".into(), description: "Runs.".into(), parameters }]
}

fn user(text: &str) -> Item {
    Item::User { text: text.into() }
}

async fn ask(client: &Client, items: &[Item]) -> (Result<Answer, ProviderError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let tools = tools();
    let question = Question { model: "m-1", system: "Be good.", items, tools: &tools, max_output: Some(99) };
    let answer = client.ask(&question, &mut |delta| deltas.push(delta)).await;
    (answer, deltas)
}

fn in_our_words(usage: model::Usage) -> Usage {
    Usage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_creation,
    }
}

#[tokio::test]
async fn words_come_as_they_are_written_and_no_token_is_counted_twice() {
    let counts = model::Usage { input: 7, output: 11, cache_read: 13, cache_creation: 17 };
    for format in WireFormat::ALL {
        let server = ModelServer::start(Rule::always().reply(Reply::text("All done, Jürgen").usage(counts)));

        let (answer, deltas) = ask(&client(&server, format), &[user("hello")]).await;

        let answer = answer.expect("an answer");
        let words = ["All ", "done, ", "Jürgen"].map(|word| Delta::Text(word.into()));
        assert_eq!(deltas, words, "{format:?}");
        assert_eq!(
            (answer.message.text.as_str(), answer.stop),
            ("All done, Jürgen", Stop::Done),
            "{format:?}"
        );
        assert_eq!(answer.usage, in_our_words(server.reported_usage()), "{format:?}");
        assert_eq!(answer.usage.context(), 48, "{format:?}");
        assert_eq!(server.turns()[0].prompt_text(), "hello", "{format:?}");
    }
}

#[tokio::test]
async fn the_key_goes_into_the_header_of_each_format_and_nowhere_else() {
    let headers = [
        ("authorization", "Bearer sk-secret-of-ours"),
        ("authorization", "Bearer sk-secret-of-ours"),
        ("x-goog-api-key", KEY),
        ("x-api-key", KEY),
    ];
    for (format, (name, value)) in WireFormat::ALL.into_iter().zip(headers) {
        let server = ModelServer::start(Rule::always().reply(Reply::text("hello")));
        let with_key = client(&server, format);
        let (answer, _) = ask(&with_key, &[user("hello")]).await;
        answer.expect("an answer");
        let without = Endpoint { key: None, ..endpoint(&server, format) };
        let (answer, _) = ask(&Client::new(without, Timeouts::default()), &[user("hello")]).await;
        answer.expect("an answer");

        let requests = server.requests();
        let holding: Vec<&str> = requests
            .iter()
            .flat_map(|request| &request.headers)
            .filter(|(_, value)| value.contains(KEY))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(holding, [name], "{format:?}");
        assert_eq!(requests[0].header(name), Some(value), "{format:?}");
        assert_eq!(requests[1].header(name), None, "{format:?}");
        let elsewhere =
            requests.iter().map(|request| format!("{}{}{}", request.path, request.query, request.body));
        assert!(elsewhere.into_iter().all(|text| !text.contains(KEY)), "{format:?}");
        let version = (format == WireFormat::Anthropic).then_some("2023-06-01");
        assert_eq!(requests[0].header("anthropic-version"), version);
    }
}

#[tokio::test]
async fn calls_are_answered_by_their_results_in_the_next_question() {
    let inputs = [json!({"path": "ä"}), json!({"deep": [{"a": null}]})];
    for format in WireFormat::ALL {
        let calls = inputs.clone().map(|input| ToolCall::new("run", input));
        let server = ModelServer::start(
            Rule::when(Matcher::prompt_contains("work"))
                .reply(Reply::tools(calls).with_text("Trying."))
                .then(Reply::text("Finished.")),
        );
        let client = client(&server, format);
        let mut items = vec![user("work, please")];

        let model_message = ask(&client, &items).await.0.expect("an answer").message;
        assert_eq!(model_message.text, "Trying.", "{format:?}");
        let made: Vec<(&str, &Value)> =
            model_message.calls.iter().map(|call| (call.name.as_str(), &call.input)).collect();
        assert_eq!(made, [("run", &inputs[0]), ("run", &inputs[1])], "{format:?}");
        assert_ne!(model_message.calls[0].id, model_message.calls[1].id, "{format:?}");

        let result = |call: &Call, output: &str, failed| CallResult {
            id: call.id.clone(),
            name: call.name.clone(),
            output: output.into(),
            failed,
        };
        let results = vec![
            result(&model_message.calls[0], "a b", false),
            result(&model_message.calls[1], "Error: no", true),
        ];
        let expected: Vec<_> = model_message.calls.iter().map(|call| call.id.clone()).collect();
        items.extend([Item::Model(model_message), Item::Results { results }]);
        let (answer, _) = ask(&client, &items).await;
        assert_eq!(answer.expect("an answer").message.text, "Finished.", "{format:?}");

        let sent = server.turns()[1].tool_results();
        let sent: Vec<_> =
            sent.into_iter().map(|result| (result.tool_use_id, result.text, result.is_error)).collect();
        let has_error_flag = matches!(format, WireFormat::Anthropic | WireFormat::Gemini);
        let expected = [
            (expected[0].clone(), "a b".to_owned(), false),
            (expected[1].clone(), "Error: no".to_owned(), has_error_flag),
        ];
        assert_eq!(sent, expected, "{format:?}");
    }
}

#[tokio::test]
async fn a_conversation_goes_on_in_another_format() {
    for (first, second) in
        WireFormat::ALL.into_iter().flat_map(|first| WireFormat::ALL.map(|second| (first, second)))
    {
        let server = ModelServer::start(
            Rule::always()
                .reply(Reply::tool("run", json!({"path": "a"})).with_text("I look."))
                .then(Reply::text("Finished.")),
        );
        let model_message = ask(&client(&server, first), &[user("work")]).await.0.expect("an answer").message;
        let call = model_message.calls[0].clone();
        let results = vec![CallResult { id: call.id, name: call.name, output: "seen".into(), failed: false }];
        let items = [user("work"), Item::Model(model_message), Item::Results { results }, user("and now?")];

        let (answer, _) = ask(&client(&server, second), &items).await;

        assert_eq!(answer.expect("an answer").message.text, "Finished.", "{first:?} then {second:?}");
        let turn = server.turns().pop().expect("a turn");
        assert!(
            turn.all_text().contains("work") && turn.all_text().contains("seen"),
            "{first:?} then {second:?}"
        );
        assert!(turn.prompt_text().ends_with("and now?"), "{first:?} then {second:?}");
    }
}

#[tokio::test]
async fn refusals_have_a_class_a_status_and_the_providers_words() {
    let cases = [
        (Reply::unauthorized(), 401, ErrorClass::Auth, "invalid API key"),
        (Reply::error(403, "not for you"), 403, ErrorClass::Auth, "not for you"),
        (Reply::error(400, "Your credit balance is too low"), 400, ErrorClass::Auth, "credit balance"),
        (Reply::rate_limited().code("insufficient_quota"), 429, ErrorClass::Auth, "rate limit"),
        (Reply::rate_limited(), 429, ErrorClass::Limited, "rate limit reached"),
        (Reply::server_error(), 500, ErrorClass::Server, "internal server error"),
        (Reply::error(404, "no such model"), 404, ErrorClass::Invalid, "no such model"),
        (Reply::error(400, "prompt is too long: 9 > 8"), 400, ErrorClass::Overflow, "prompt is too long"),
        (Reply::error(413, "too much"), 413, ErrorClass::Overflow, "too much"),
    ];
    for format in WireFormat::ALL {
        for (reply, status, class, words) in cases.clone() {
            // Gemini has no word for an account that is not paid.
            if format == WireFormat::Gemini && words == "rate limit" {
                continue;
            }
            let server = ModelServer::start(Rule::always().reply(reply));
            let (answer, deltas) = ask(&client(&server, format), &[user("hello")]).await;
            let error = answer.expect_err("a refusal");
            assert_eq!(
                (error.class, error.status, error.until),
                (class, Some(status), None),
                "{format:?} {error}"
            );
            assert!(
                error.message.contains(words) && error.message.starts_with("127.0.0.1:"),
                "{format:?} {error}"
            );
            assert_eq!(
                (deltas, server.requests().len()),
                (Vec::new(), 1),
                "{format:?}: one question is one request"
            );
        }
        let server = ModelServer::start(Rule::always().reply(Reply::overloaded()));
        let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("a refusal");
        assert_eq!(error.class, ErrorClass::Server, "{format:?} {error}");
    }
}

#[tokio::test]
async fn a_limit_reports_until_when_it_holds() {
    for format in WireFormat::ALL {
        let server =
            ModelServer::start(Rule::always().reply(Reply::rate_limited().header("retry-after", 600)));
        let before = seconds_now();
        let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("a limit");
        let until = error.until.expect("a time").as_second();
        let range = before + 600..=seconds_now() + 600;
        assert!(
            error.class == ErrorClass::Limited && range.contains(&until),
            "{format:?}: {until} in {range:?}"
        );
    }
}

fn seconds_now() -> i64 {
    let now = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    i64::try_from(now.as_secs()).expect("a clock of this age")
}

#[tokio::test]
async fn an_error_within_a_stream_has_the_class_of_its_code() {
    let cases = [("context_length_exceeded", ErrorClass::Overflow), ("insufficient_quota", ErrorClass::Auth)];
    for format in WireFormat::ALL {
        for (code, class) in cases {
            let server = ModelServer::start(Rule::always().reply(Reply::failed_stream(code, "it is so")));
            let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("a failure");
            assert_eq!((error.class, error.status), (class, None), "{format:?} {error}");
            assert!(error.message.contains("it is so"), "{format:?} {error}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer() {
    for format in WireFormat::ALL {
        for events in 0..=3 {
            // With Gemini the third event is the last.
            if format == WireFormat::Gemini && events == 3 {
                continue;
            }
            let server =
                ModelServer::start(Rule::always().reply(Reply::text("never whole").cut_after(events)));
            let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("no answer");
            let broke_off = matches!(error.class, ErrorClass::CutOff | ErrorClass::Network);
            assert!(
                broke_off && (events == 0 || error.class == ErrorClass::CutOff),
                "{format:?} {events}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_silent_provider_is_given_up_on_in_time() {
    let timeouts = Timeouts { connect: Duration::from_millis(500), silence: Duration::from_millis(100) };
    for format in WireFormat::ALL {
        let replies = [Reply::silence(), Reply::text("so slow").slow(Duration::from_secs(600))];
        for reply in replies {
            let server = ModelServer::start(Rule::always().reply(reply));
            let begun = Instant::now();
            let error =
                ask(&client_of(&server, format, timeouts), &[user("hello")]).await.0.expect_err("silence");
            assert_eq!(error.class, ErrorClass::Network, "{format:?} {error}");
            assert!(error.message.contains("sent nothing for 100ms"), "{format:?} {error}");
            assert!(begun.elapsed() < SOON, "{format:?}");
        }
    }
}

#[tokio::test]
async fn nobody_there_is_named_without_the_key() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    for format in WireFormat::ALL {
        let base_url = format!("http://user:{KEY}@127.0.0.1:{port}/{KEY}");
        let endpoint = Endpoint { format, base_url, key: Some(Key::new(KEY)) };
        let error =
            ask(&Client::new(endpoint, Timeouts::default()), &[user("hello")]).await.0.expect_err("nobody");
        assert_eq!((error.class, error.status), (ErrorClass::Network, None), "{error}");
        assert!(error.message.starts_with(&format!("127.0.0.1:{port} cannot be reached")), "{error}");
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_asked_reports_why() {
    let cases = [
        ("not a url", Some("k"), ErrorClass::Invalid, "the base URL cannot be read"),
        ("ftp://127.0.0.1/v1", Some("k"), ErrorClass::Invalid, "the base URL is none of http or https"),
        ("http://127.0.0.1:9/v1", Some("k\ney"), ErrorClass::Auth, "the API key has characters"),
    ];
    for (base_url, key, class, words) in cases {
        let endpoint =
            Endpoint { format: WireFormat::Anthropic, base_url: base_url.into(), key: key.map(Key::new) };
        let error =
            ask(&Client::new(endpoint, Timeouts::default()), &[user("hello")]).await.0.expect_err("no way");
        assert_eq!(error.class, class, "{error}");
        assert!(error.message.starts_with(words), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let other = ModelServer::start(Rule::always().reply(Reply::text("give me your key")));
    for format in WireFormat::ALL {
        let moved = Reply::error(307, "moved").header("location", format!("{}/v1/else", other.url()));
        let server = ModelServer::start(Rule::always().reply(moved));
        let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("no answer");
        assert_eq!((error.class, error.status), (ErrorClass::Invalid, Some(307)), "{error}");
        let place = other.url().replace("http://", "it has moved to ");
        assert!(error.message.contains(&place), "{error}");
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn a_server_that_repeats_the_key_is_not_quoted_with_it() {
    for format in WireFormat::ALL {
        let server = ModelServer::start(Rule::always().reply(Reply::error(401, format!("{KEY} is no key"))));
        let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("no answer");
        assert!(error.message.ends_with("[key] is no key"), "{error}");
    }
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let page = Reply::text("Sign in").header("content-type", "text/html; charset=utf-8");
    let server = ModelServer::start(Rule::always().reply(page));
    for format in WireFormat::ALL {
        let error = ask(&client(&server, format), &[user("hello")]).await.0.expect_err("no answer");
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert!(error.message.contains("check the base URL"), "{error}");
    }
}

#[tokio::test]
async fn a_client_goes_on_after_a_question_that_was_dropped() {
    for format in WireFormat::ALL {
        let server =
            ModelServer::start(Rule::always().reply(Reply::silence()).then(Reply::text("here I am")));
        let client = client(&server, format);
        let items = [user("hello")];
        tokio::select! {
            (answer, _) = ask(&client, &items) => panic!("an answer out of silence: {answer:?}"),
            () = arrival(&server) => {}
        }
        let (answer, _) = ask(&client, &items).await;
        assert_eq!(answer.expect("an answer").message.text, "here I am", "{format:?}");
        assert_eq!(server.requests().len(), 2, "{format:?}");
    }
}

/// Waits until the server has got a question.
async fn arrival(server: &ModelServer) {
    let begun = Instant::now();
    while server.requests().is_empty() {
        assert!(begun.elapsed() < SOON, "no question arrived");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
