//! Tests of conversations with the scripted agent.

use std::collections::BTreeMap;

use towline_agent::{Action, AgentSettings, Frame, Kind, LaunchContext, ProcessEnd, Protocol, Steer, agent};
use towline_core::{AgentEvent, Ask, End, MessageNo, Reply, Role, SessionId, SessionPlan};

use crate::support::{feed, plain_launch, plain_settings};

fn settings() -> AgentSettings {
    AgentSettings { args: vec!["demo.json".into()], ..plain_settings(Kind::Script, &["towline", "script"]) }
}

fn with_context<T>(session: SessionPlan, use_it: impl FnOnce(&LaunchContext<'_>) -> T) -> T {
    let none = BTreeMap::new();
    let prompt = "fix \"it\"\n";
    use_it(&LaunchContext { compact: Some("keep the goal"), ..plain_launch(&session, prompt, &none) })
}

fn protocol() -> Box<dyn Protocol> {
    with_context(SessionPlan::Fresh(SessionId::new("s")), |context| {
        agent(Kind::Script).protocol(&settings(), context)
    })
}

const STARTED: &str = r#"{"kind":"turn_started"}"#;

fn ended(stop: &str) -> String {
    format!(
        r#"{{"kind":"turn_ended","stop":{stop},"text":"","structured":null,"inner_turns":null,"reported_cost":null}}"#
    )
}

fn end_after(lines: &[&str], exit: ProcessEnd) -> End {
    let mut protocol = protocol();
    for line in lines {
        feed(&mut *protocol, line);
    }
    protocol.on_exit(&exit).1
}

fn code(code: i32) -> ProcessEnd {
    ProcessEnd { code: Some(code), ..ProcessEnd::default() }
}

#[test]
fn the_session_is_between_command_and_arguments() {
    let argv = |session| with_context(session, |context| agent(Kind::Script).plan(&settings(), context).argv);
    let id = SessionId::new("s");
    assert_eq!(argv(SessionPlan::Fresh(id.clone())), ["towline", "script", "--session", "s", "demo.json"]);
    assert_eq!(argv(SessionPlan::Resume(id)), ["towline", "script", "--resume", "s", "demo.json"]);
}

#[test]
fn the_prompt_is_one_line_and_nothing_follows_it() {
    let wanted = [Action::Write(b"{\"prompt\":\"fix \\\"it\\\"\\n\"}\n".to_vec()), Action::CloseStdin];
    let mut protocol = protocol();
    assert_eq!(protocol.start(), wanted);
    let steers = [
        Steer::Interrupt,
        Steer::Tell { message: MessageNo(1), text: "faster".into() },
        Steer::Answer { request: "q1".into(), reply: Reply::Allowed },
    ];
    for steer in steers {
        assert_eq!(protocol.on_steer(steer), []);
    }
}

#[test]
fn each_line_is_an_event() {
    let mut protocol = protocol();
    let message = AgentEvent::Message { role: Role::Assistant, text: "hello".into() };
    let line = serde_json::to_string(&message).expect("serialises");
    assert_eq!(feed(&mut *protocol, &line), [Action::emit(message)]);
    let asks = r#"{"kind":"asked","request":null,"about":{"about":"choice","parts":
        [{"text":"Which?","options":[],"many":false}]},"default":"a","patience":null}"#
        .replace('\n', "");
    let asked = Ask { default: Some("a".into()), ..Ask::choice("Which?".into(), vec![]) };
    assert_eq!(feed(&mut *protocol, &asks), [Action::emit(AgentEvent::Asked(asked))]);
    assert_eq!(feed(&mut *protocol, ""), []);
    let unknown = AgentEvent::Unrecognised { what: "not an event".into(), raw: "hello".into(), count: 1 };
    assert_eq!(feed(&mut *protocol, "hello"), [Action::emit(unknown)]);
    let too_long =
        AgentEvent::Unrecognised { what: "too long".into(), raw: "a line of 9 bytes".into(), count: 1 };
    assert_eq!(protocol.on_frame(Frame::TooLong { length: 9 }), [Action::emit(too_long)]);
}

#[test]
fn only_a_turn_that_is_done_and_an_exit_without_error_complete_it() {
    let (done, failed) =
        (ended(r#"{"why":"done"}"#), ended(r#"{"why":"failed","status":500,"reason":"asked to"}"#));
    let interrupted = ended(r#"{"why":"interrupted"}"#);
    let signal = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let stderr = ProcessEnd { stderr_tail: "no such script\n".into(), ..code(2) };
    let crashed = |message: &str| End::Crashed { message: message.into() };
    let cases: [(&[&str], ProcessEnd, End); 10] = [
        (&[STARTED, &done], code(0), End::Completed),
        (&[STARTED, &failed, STARTED, &done], code(0), End::Completed),
        (&[STARTED, &done], code(3), crashed("exit code 3 after its turn")),
        (&[STARTED, &done], signal, crashed("ended by signal 9 after its turn")),
        (&[STARTED, &done], ProcessEnd::default(), crashed("ended in an unknown way after its turn")),
        (&[STARTED, &done, STARTED], code(0), crashed("exit code 0 in the middle of a turn")),
        (&[STARTED, &failed], code(0), crashed("asked to; exit code 0")),
        (&[STARTED, &interrupted], code(0), crashed("interrupted; exit code 0")),
        (&[], code(0), crashed("exit code 0 before any turn")),
        (&["noise"], stderr, crashed("exit code 2 before any turn: no such script")),
    ];
    for (lines, exit, wanted) in cases {
        assert_eq!(end_after(lines, exit.clone()), wanted, "{lines:?} {exit:?}");
    }
}
