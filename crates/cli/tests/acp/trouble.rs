//! Providers that give no answer.

use serde_json::{Value, json};
use towline_testkit::model::{ModelServer, Reply, Rule};

use crate::agent::*;

fn failed(format: (&str, &[&str], &str), reply: Reply, more: &[&str]) -> (Vec<Value>, Value, usize) {
    let server = ModelServer::start(Rule::always().reply(reply));
    let place = Place::new();
    let (mut agent, session) = place.session(format, &server, more);
    let (news, answer) = agent.prompt(&session, "go");
    assert!(!format!("{news:?}{answer}").contains(KEY.1), "the key is in {answer}");
    let retries = notified(&news, "_towline/retrying");
    for (retry, attempt) in retries.iter().zip(2..) {
        assert_eq!((&retry["attempt"], &retry["sessionId"]), (&json!(attempt), &json!(session)));
    }
    (retries, answer["error"].clone(), server.turns().len())
}

#[test]
fn refusals_end_the_prompt_with_their_status_and_class_in_every_format() {
    for format in FORMATS {
        let (retries, error, asked) = failed(format, Reply::unauthorized(), &[]);
        let found = (&error["code"], &error["data"]["class"], retries.len(), asked);
        assert_eq!(found, (&json!(401), &json!("auth"), 0, 1), "{format:?}: {error}");
        let limited = Reply::rate_limited().header("retry-after", 3600);
        let (retries, error, asked) = failed(format, limited, &[]);
        let found = (&error["code"], &error["data"]["class"], retries.len(), asked);
        assert_eq!(found, (&json!(429), &json!("limited"), 0, 1), "{format:?}: {error}");
        assert!(error["data"]["until"].is_string(), "{format:?}: {error}");
    }
}

#[test]
fn a_provider_that_fails_is_asked_three_times_in_every_format() {
    for format in FORMATS {
        let (retries, error, asked) = failed(format, Reply::server_error(), &[]);
        let found = (&error["code"], &error["data"]["class"], retries.len(), asked);
        assert_eq!(found, (&json!(500), &json!("server"), 2, 3), "{format:?}: {error}");
        assert_eq!(retries[0]["status"], 500, "{format:?}");
    }
}

#[test]
fn answers_that_break_off_and_silence_are_tried_again() {
    let cut = || Reply::text("A long answer that nobody gets to read to its end.").cut_after(3);
    let (retries, error, asked) = failed(ANY, cut(), &[]);
    assert_eq!((retries.len(), asked), (2, 3), "{error}");
    assert!(["cut_off", "network"].map(Value::from).contains(&error["data"]["class"]), "{error}");
    let (retries, error, asked) = failed(ANY, Reply::silence(), &["--silence", "1"]);
    assert_eq!((retries.len(), asked), (2, 3), "{error}");
    assert!(["cut_off", "network"].map(Value::from).contains(&error["data"]["class"]), "{error}");
}

#[test]
fn an_answer_that_broke_off_is_not_twice_in_the_conversation() {
    for format in FORMATS {
        let rule = Rule::always()
            .reply(Reply::text("The answer is forty-two.").cut_after(4))
            .then(Reply::text("The answer is forty-two."))
            .then(Reply::text("As before."));
        let server = ModelServer::start(rule);
        let place = Place::new();
        let (mut agent, session) = place.session(format, &server, &[]);
        let (news, answer) = agent.prompt(&session, "What is it?");
        assert_eq!(
            (stop_reason(&answer), notified(&news, "_towline/retrying").len()),
            ("end_turn", 1),
            "{format:?}"
        );
        agent.prompt(&session, "Again?");
        let last = server.turns().pop().expect("a request");
        assert_eq!(last.all_text().matches("forty-two").count(), 1, "{format:?}");
    }
}
