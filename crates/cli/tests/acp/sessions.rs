//! Sessions that outlive their process.

use rustix::process::{Signal, kill_process};
use serde_json::json;
use towline_testkit::model::{ModelServer, Reply, Rule};

use crate::agent::*;

#[test]
fn a_killed_agent_goes_on_where_it_was_in_every_format() {
    for format in FORMATS {
        let rule = Rule::always()
            .reply(
                Reply::tool("write", json!({"path": "a.txt", "content": "x"})).with_text("First the file."),
            )
            .then(Reply::tool("run", json!({"command": "echo $$ > outer; exec sleep 600"})))
            .then(Reply::text("Done after all."));
        let server = ModelServer::start(rule);
        let place = Place::new();
        let (mut agent, session) = place.session(format, &server, &["--price", "input=1,output=1"]);
        agent.bypass(&session);
        agent.ask(&session, "Do both");
        let orphan = place.pid("outer");
        agent.kill();
        // Nobody is left who could.
        kill_process(orphan, Signal::KILL).expect("the command still runs");

        let mut agent = place.agent(format, &server, &["--price", "input=1,output=1"]);
        let (news, answer) = agent.open("session/load", &session);
        assert_eq!(answer["result"]["modes"]["currentModeId"], "bypass", "{format:?}: {answer}");
        assert_eq!(message_text(&news), "First the file.", "{format:?}");
        let statuses: Vec<_> = ends(&news).into_iter().map(|(status, _)| status).collect();
        assert_eq!(statuses, ["completed", "failed"], "{format:?}");
        let (news, answer) = agent.prompt(&session, "Go on");
        assert_eq!(
            (message_text(&news).as_str(), stop_reason(&answer)),
            ("Done after all.", "end_turn"),
            "{format:?}"
        );
        let last = server.turns().pop().expect("a request");
        let text = last.all_text();
        assert!(text.contains("Do both") && text.contains("may or may not have been carried out"), "{text}");
        // Three answers of 170 tokens: two before it was killed.
        let costs: Vec<_> =
            updates(&news, "usage_update").iter().map(|update| update["cost"]["amount"].as_f64()).collect();
        assert_eq!(costs, [Some(0.00034), Some(0.00051)], "{format:?}");
        assert_eq!(agent.end().code(), Some(0));
    }
}

#[test]
fn two_processes_do_not_share_a_session() {
    let server = ModelServer::start(Rule::always().reply(Reply::text("Hi.")));
    let place = Place::new();
    let (first, session) = place.session(ANY, &server, &[]);
    let mut second = place.agent(ANY, &server, &[]);
    let (_, answer) = second.open("session/resume", &session);
    assert!(
        answer["error"]["message"].as_str().is_some_and(|words| words.contains("another process")),
        "{answer}"
    );
    assert_eq!(first.end().code(), Some(0));
    let (_, answer) = second.open("session/resume", &session);
    assert!(answer["result"].is_object(), "{answer}");
}
