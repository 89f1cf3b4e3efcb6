//! Known problems of Gemini CLI and opencode that are visible in the conversation, shown by their recordings. Those
//! at the start of a program are with `plan`; those that need the real program are in the conformance suite.

use towline_agent::Steer;
use towline_core::{AgentEvent, End, TurnStop};

use super::support::{
    RECORDED, answered, end, events, exited, feed, give, in_turn, settings, text_chunk, written,
};

fn messages(events: &[AgentEvent]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        AgentEvent::Message { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_gemini_that_loses_its_last_line_and_exits_with_0_has_crashed() {
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
fn an_answer_that_gemini_repeats_after_a_cut_is_no_success() {
    let (actions, end) = RECORDED.named("gemini_cut").play();
    let reported = events(&actions);
    // Nothing marks where one try ends and the next begins.
    assert_eq!(messages(&reported), ["half ofhalf ofhalf ofhalf of"]);
    let stopped = reported.iter().any(
        |event| matches!(event, AgentEvent::TurnEnded(turn) if matches!(turn.stop, TurnStop::Failed { .. })),
    );
    assert!(stopped, "{reported:?}");
    assert!(matches!(end, End::Crashed { .. }), "{end:?}");
}

#[test]
fn an_opencode_that_loops_after_a_cut_has_completed_nothing() {
    let (actions, end) = RECORDED.named("opencode_cut").play();
    let reported = events(&actions);
    let texts = messages(&reported);
    assert!(texts.len() > 50 && texts.iter().all(|text| *text == "half of"), "{}", texts.len());
    assert!(!reported.iter().any(|event| matches!(event, AgentEvent::TurnEnded { .. })), "{reported:?}");
    assert!(matches!(end, End::Crashed { .. }), "{end:?}");
}

#[test]
fn an_opencode_that_asks_the_client_to_write_files_is_refused_and_continues() {
    let recording = RECORDED.named("opencode_permission_env");
    let asked: Vec<_> = recording.frames().filter(|frame| frame["method"] == "fs/write_text_file").collect();
    assert_eq!(asked.len(), 1);
    let (actions, end) = recording.play();
    let refused = written(&actions).into_iter().find(|sent| sent["id"] == asked[0]["id"]);
    assert_eq!(refused.expect("an answer")["error"]["code"], -32_601);
    assert_eq!(end, End::Completed);
}

#[test]
fn an_opencode_that_is_interrupted_between_retries_is_not_done() {
    let mut protocol = in_turn(&settings("opencode"));
    give(&mut *protocol, &text_chunk("This sentence will "));
    protocol.on_steer(Steer::Interrupt);
    give(&mut *protocol, &answered("prompt", "end_turn"));
    assert_eq!(end(&mut *protocol), End::Crashed { message: "the turn was interrupted".to_owned() });
}
