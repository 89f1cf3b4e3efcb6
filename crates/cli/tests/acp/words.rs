//! Questions, answers and what they cost.

use std::time::{Duration, Instant};

use serde_json::json;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, Script, Usage};

use crate::agent::*;

#[test]
fn a_prompt_is_answered_in_every_format_and_counted_to_the_token() {
    for format in FORMATS {
        let usage = Usage { input: 1000, output: 30, cache_read: 200, cache_creation: 0 };
        let server = ModelServer::start(Rule::always().reply(Reply::text("Hello there.").usage(usage)));
        let place = Place::new();
        let price = ["--price", "input=2,output=10,cache_read=0.5", "--context-window", "50000"];
        let (mut agent, session) = place.session(format, &server, &price);
        for turn in 1..=2 {
            let (news, answer) = agent.prompt(&session, "Write hello");
            assert_eq!(
                (message_text(&news).as_str(), stop_reason(&answer)),
                ("Hello there.", "end_turn"),
                "{format:?}"
            );
            // 1000 × 2 + 30 × 10 + 200 × 0.5 micro-dollars.
            let wanted = json!({
                "sessionUpdate": "usage_update",
                "used": 1230,
                "size": 50_000,
                "cost": {"amount": f64::from(turn) * 0.0024, "currency": "USD"},
                "_meta": {"towline": {
                    "model": "scripted-model", "input": 1000, "output": 30, "cache_read": 200, "cache_write": 0,
                }},
            });
            assert_eq!(updates(&news, "usage_update"), [wanted], "{format:?}");
            let total = json!({
                "totalTokens": 1230,
                "inputTokens": 1000,
                "outputTokens": 30,
                "cachedReadTokens": 200,
                "cachedWriteTokens": 0,
            });
            assert_eq!(answer["result"]["usage"], total, "{format:?}");
        }
        let requests = server.turns();
        assert_eq!(requests[1].model().as_deref(), Some("scripted-model"), "{format:?}");
        assert!(requests[1].all_text().contains("Hello there."), "{format:?}");
        let has_key = |(_, value): &(String, String)| value.contains(KEY.1);
        assert!(requests[0].headers.iter().any(has_key) || requests[0].query.contains(KEY.1), "{format:?}");
        assert!(agent.end().success(), "{format:?}");
    }
}

#[test]
fn a_long_conversation_is_replaced_by_a_summary_in_every_format() {
    for format in FORMATS {
        let full = Usage { input: 9000, output: 20, cache_read: 0, cache_creation: 0 };
        let script = Script::from([
            Rule::when(
                Matcher::prompt_contains("will be replaced by your summary")
                    .and(Matcher::has_tools().negated()),
            )
            .reply(Reply::text("THE SUMMARY"))
            .also_side_requests(),
            Rule::when(Matcher::any_text_contains("THE SUMMARY")).reply(Reply::text("All done.")),
            Rule::always().reply(Reply::tool("list", json!({})).usage(full)),
        ]);
        let server = ModelServer::start(script);
        let place = Place::new();
        let (mut agent, session) = place.session(format, &server, &["--context-window", "10000"]);
        let (news, answer) = agent.prompt(&session, "Count the files");
        assert_eq!(
            (message_text(&news).as_str(), stop_reason(&answer)),
            ("All done.", "end_turn"),
            "{format:?}"
        );
        let compacted = notified(&news, "_towline/compacted");
        assert_eq!((compacted.len(), &compacted[0]["sessionId"]), (1, &json!(session)), "{format:?}");
        assert!(compacted[0]["before"].as_u64() > compacted[0]["after"].as_u64(), "{compacted:?}");
        let last = server.turns().pop().expect("a request");
        assert!(last.all_text().contains("Count the files"), "{format:?}");
        assert!(last.tool_results().is_empty(), "{format:?}");
        let reported = server.reported_usage();
        assert_eq!(answer["result"]["usage"]["outputTokens"], reported.output, "{format:?}");
        assert_eq!(answer["result"]["usage"]["inputTokens"], reported.input, "{format:?}");
    }
}

#[test]
fn a_missing_key_is_named_unless_the_server_is_ones_own() {
    let place = Place::new();
    let server = ModelServer::start(Rule::always().reply(Reply::text("Hi.")));
    let mut command = place.command();
    command.env_remove(KEY.0).args(["acp", "--provider", "gemini", "--model", "m"]);
    let mut agent = Agent::start_with(command, place.work());
    let answer = agent.call("session/new", &json!({"cwd": place.work(), "mcpServers": []}));
    assert_eq!(answer["error"]["code"], -32_000);
    assert!(
        answer["error"]["message"].as_str().is_some_and(|words| words.contains("GEMINI_API_KEY")),
        "{answer}"
    );
    let mut command = place.command();
    let url = format!("{}/v1", server.url());
    command.env_remove(KEY.0).args(["acp", "--provider", "openai", "--model", "m", "--base-url", &url]);
    let mut agent = Agent::start_with(command, place.work());
    let session = agent.new_session(&json!([]));
    assert_eq!(stop_reason(&agent.prompt(&session, "go").1), "end_turn");
}

#[test]
fn wrong_usage_ends_with_2_and_words() {
    let place = Place::new();
    for (arguments, words) in [
        ("--provider openai", "--model"),
        ("--model m", "--provider"),
        ("--provider x --model m", "anthropic"),
        ("--provider gemini --model m --api chat", "--api is for --provider openai"),
        ("--provider openai --model m --base-url localhost", "http://"),
        ("--provider openai --model m --price input=1", "the price of output is missing"),
        ("--provider openai --model m --context-window 0", "--context-window"),
        ("--provider openai --model m --dir /no/such/directory", "there is no such directory"),
        ("--provider openai --model m --silence 0", "--silence"),
    ] {
        let output = place.command().arg("acp").args(arguments.split(' ')).output().expect("it runs");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {printed}");
        assert!(printed.contains(words), "{arguments}: {printed}");
    }
}

#[test]
fn it_is_ready_at_once() {
    let place = Place::new();
    let server = ModelServer::start(Rule::always().reply(Reply::text("Hi.")));
    // The best of several: others use the machine as well.
    let ready = (0..5).map(|_| {
        let begun = Instant::now();
        let mut agent = place.agent(ANY, &server, &[]);
        agent.call("initialize", &json!({"protocolVersion": 1}));
        begun.elapsed()
    });
    let best = ready.min().expect("one");
    assert!(best < Duration::from_millis(300), "{best:?}");
}
