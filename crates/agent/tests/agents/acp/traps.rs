//! The traps of Gemini CLI and opencode that show in the conversation itself, by their recordings. Those that show in how a
//! program is started are with `plan`; those that take the real program are cases of the conformance suite.

use towline_agent::Steer;
use towline_core::{AgentEvent, End, TurnStop};

use super::support::{RECORDED, answered, end, events, exited, feed, give, in_turn, says, settings, written};

fn messages(events: &[AgentEvent]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        AgentEvent::Message { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn gemini_that_loses_its_last_line_and_exits_with_0_has_crashed() {
    let recording = RECORDED.named("gemini_tool");
    let mut lines = recording.output();
    let last = lines.pop().expect("lines");
    assert!(last.contains("end_turn"), "{last}");
    let mut protocol = recording.protocol();
    protocol.start();
    for line in lines {
        feed(&mut *protocol, line);
    }
    let (_, end) = protocol.on_exit(&exited(0));
    assert_eq!(end, End::Crashed { message: "exit code 0 without an answer to the prompt".to_owned() });
}

#[test]
fn an_answer_that_gemini_begins_again_after_a_cut_is_no_success_however_often_it_is_repeated() {
    let (actions, end) = RECORDED.named("gemini_cut").play();
    let told = events(&actions);
    // Nothing marks where one try ends and the next begins.
    assert_eq!(messages(&told), ["half ofhalf ofhalf ofhalf of"]);
    let stopped = told.iter().any(
        |event| matches!(event, AgentEvent::TurnEnded(turn) if matches!(turn.stop, TurnStop::Failed { .. })),
    );
    assert!(stopped, "{told:?}");
    assert!(matches!(end, End::Crashed { .. }), "{end:?}");
}

#[test]
fn opencode_that_goes_round_and_round_after_a_cut_has_ended_nothing() {
    let (actions, end) = RECORDED.named("opencode_cut").play();
    let told = events(&actions);
    let said = messages(&told);
    assert!(said.len() > 50 && said.iter().all(|text| *text == "half of"), "{}", said.len());
    assert!(!told.iter().any(|event| matches!(event, AgentEvent::TurnEnded { .. })), "{told:?}");
    assert!(matches!(end, End::Crashed { .. }), "{end:?}");
}

#[test]
fn opencode_that_wants_files_written_by_a_client_that_offered_no_such_thing_is_refused_and_goes_on() {
    let recording = RECORDED.named("opencode_permission_env");
    let asked: Vec<_> = recording.frames().filter(|frame| frame["method"] == "fs/write_text_file").collect();
    assert_eq!(asked.len(), 1);
    let (actions, end) = recording.play();
    let refused = written(&actions).into_iter().find(|sent| sent["id"] == asked[0]["id"]);
    assert_eq!(refused.expect("an answer")["error"]["code"], -32_601);
    assert_eq!(end, End::Completed);
}

#[test]
fn opencode_that_is_interrupted_while_it_waits_to_ask_again_claims_to_be_done_and_is_not_believed() {
    let mut protocol = in_turn(&settings("opencode"));
    give(&mut *protocol, &says("This sentence will "));
    protocol.on_steer(Steer::Interrupt);
    give(&mut *protocol, &answered("prompt", "end_turn"));
    assert_eq!(end(&mut *protocol), End::Crashed { message: "the turn was interrupted".to_owned() });
}
