//! Tests of conversations with plain programs.

use std::collections::BTreeMap;
use std::fs;

use towline_agent::{
    Action, Agent, AgentSettings, CliSettings, Frame, Kind, LaunchContext, ProcessEnd, PromptBy, Protocol,
    Resuming, Stdio, Steer, WindowSize, agent,
};
use towline_core::{
    AgentEvent, End, LaunchProblem, MessageNo, MicroUsd, Reply, Role, SessionId, SessionPlan, SessionStarted,
    TurnEnd, TurnStop, Usage,
};

use crate::recording::{exit_beside, testdata};
use crate::support::{plain_launch, plain_settings};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn settings(command: &[&str], cli: CliSettings) -> AgentSettings {
    let plain = plain_settings(Kind::Command, command);
    AgentSettings { args: words(&["--yes"]), pass_env: words(&["SOME_KEY"]), cli, ..plain }
}

fn patterns() -> CliSettings {
    CliSettings {
        resume: words(&["--resume", "{session}"]),
        session_pattern: Some("^session: (.+)$".into()),
        cost_pattern: Some(r"cost: (\$?[0-9.,]+)".into()),
        limit_pattern: Some("(?i)quota exceeded".into()),
        ..CliSettings::default()
    }
}

fn fresh() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("ours"))
}

fn resumed() -> SessionPlan {
    SessionPlan::Resume(SessionId::new("theirs"))
}

const PROMPT: &str = "fix {session} in {prompt_file}";

fn with_context<T>(session: &SessionPlan, prompt: &str, use_it: impl FnOnce(&LaunchContext<'_>) -> T) -> T {
    let variables = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    use_it(&LaunchContext {
        environment: &variables(&[("PATH", "/bin"), ("SOME_KEY", "k"), ("OTHER_KEY", "o")]),
        towline: &variables(&[("TOWLINE_GOAL", "g")]),
        ..plain_launch(session, prompt, &BTreeMap::new())
    })
}

fn command() -> &'static dyn Agent {
    agent(Kind::Command)
}

fn argv(command_line: &[&str], cli: CliSettings, session: &SessionPlan) -> Vec<String> {
    with_context(session, PROMPT, |context| command().plan(&settings(command_line, cli), context).argv)
}

fn protocol(cli: CliSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    with_context(session, PROMPT, |context| command().protocol(&settings(&["cli"], cli), context))
}

fn session(id: &str, resumed: bool) -> Action {
    let native_id = SessionId::new(id);
    let started = SessionStarted { native_id, resumed, model: None, agent_version: None };
    Action::emit(AgentEvent::SessionStarted(started))
}

fn turn_started() -> Action {
    Action::emit(AgentEvent::TurnStarted)
}

fn delta(text: &str) -> Action {
    Action::emit(AgentEvent::MessageDelta { text: text.into() })
}

fn message(text: &str) -> Action {
    Action::emit(AgentEvent::Message { role: Role::Assistant, text: text.into() })
}

fn turn_ended(stop: TurnStop, text: &str) -> Action {
    let text = text.into();
    let end = TurnEnd { stop, text, structured: None, inner_turns: None, reported_cost: None };
    Action::emit(AgentEvent::TurnEnded(end))
}

fn failed(reason: &str) -> TurnStop {
    TurnStop::Failed { status: None, reason: reason.into() }
}

fn crashed(message: &str) -> End {
    End::Crashed { message: message.into() }
}

fn code(code: i32) -> ProcessEnd {
    ProcessEnd { code: Some(code), ..ProcessEnd::default() }
}

/// A whole conversation, from the first line to the end.
fn talk(cli: CliSettings, session: &SessionPlan, lines: &[&str], exit: &ProcessEnd) -> (Vec<Action>, End) {
    let mut protocol = protocol(cli, session);
    let mut actions: Vec<Action> =
        lines.iter().flat_map(|line| protocol.on_frame(Frame::Line(line.as_bytes()))).collect();
    let (last, end) = protocol.on_exit(exit);
    actions.extend(last);
    (actions, end)
}

/// How each transcript in `testdata/command` ends, by its name.
pub(crate) fn recorded_ends() -> Vec<(String, End)> {
    let end = |name: &str| {
        let file = testdata().join("command").join(name).with_extension("txt");
        let transcript = fs::read_to_string(&file).expect("a transcript");
        let lines: Vec<_> = transcript.lines().collect();
        (name.to_owned(), talk(patterns(), &fresh(), &lines, &exit_beside(&file)).1)
    };
    ["done", "failed", "limited"].map(end).into()
}

#[test]
fn the_prompt_is_in_the_arguments_only_if_the_settings_require_it() {
    let by = |prompt| CliSettings { prompt, ..CliSettings::default() };
    let line = ["cli", "-m={prompt}", "{prompt_file}"];
    assert_eq!(argv(&line, by(PromptBy::Stdin), &fresh()), ["cli", "-m={prompt}", "{prompt_file}", "--yes"]);
    assert_eq!(argv(&line, by(PromptBy::File), &fresh()), ["cli", "-m={prompt}", "/attempt/prompt", "--yes"]);
    let wanted = ["cli", "-m=fix {session} in {prompt_file}", "{prompt_file}", "--yes"];
    assert_eq!(argv(&line, by(PromptBy::Argument), &fresh()), wanted);
    let reads = |prompt| command().reads_prompt_file(&settings(&line, by(prompt)));
    assert_eq!([PromptBy::Stdin, PromptBy::File, PromptBy::Argument].map(reads), [false, true, false]);
}

#[test]
fn only_a_resumed_conversation_has_the_arguments_for_that() {
    let line = ["cli", "{session}"];
    assert_eq!(argv(&line, patterns(), &fresh()), ["cli", "{session}", "--yes"]);
    assert_eq!(argv(&line, patterns(), &resumed()), ["cli", "{session}", "--yes", "--resume", "theirs"]);
    let resuming = |cli| command().resuming(&settings(&line, cli));
    assert_eq!(resuming(patterns()), Resuming::Possible);
    assert_eq!(resuming(CliSettings::default()), Resuming::Never);
}

#[test]
fn it_gets_the_named_variables_and_no_others() {
    let settings = settings(&["cli"], CliSettings::default());
    let env = with_context(&fresh(), PROMPT, |context| command().plan(&settings, context).env);
    let names: Vec<&String> = env.keys().collect();
    assert_eq!(names, ["PATH", "SOME_KEY", "TOWLINE_GOAL"]);
}

#[test]
fn a_prompt_too_long_for_an_argument_is_refused_with_a_fix() {
    let refuses = |prompt, length: usize| {
        let settings = settings(&["cli"], CliSettings { prompt, ..CliSettings::default() });
        with_context(&fresh(), &"x".repeat(length), |context| command().refuses(&settings, context))
    };
    assert_eq!(refuses(PromptBy::Argument, 100 * 1024 - 1), None);
    assert_eq!(refuses(PromptBy::Stdin, 200 * 1024), None);
    let Some(LaunchProblem::Other { message }) = refuses(PromptBy::Argument, 100 * 1024) else {
        panic!("not refused")
    };
    assert!(message.contains("102400 bytes") && message.contains("\"stdin\" or \"file\""), "{message}");
}

#[test]
fn the_prompt_is_written_once_and_the_input_closed() {
    let start = |prompt| protocol(CliSettings { prompt, ..CliSettings::default() }, &fresh()).start();
    let written = Action::Write(format!("{PROMPT}\n").into_bytes());
    assert_eq!(start(PromptBy::Stdin), [turn_started(), written, Action::CloseStdin]);
    assert_eq!(start(PromptBy::File), [turn_started(), Action::CloseStdin]);
    assert_eq!(start(PromptBy::Argument), [turn_started(), Action::CloseStdin]);
    let steers = [
        Steer::Interrupt,
        Steer::Tell { message: MessageNo(1), text: "faster".into() },
        Steer::Answer { request: "q1".into(), reply: Reply::Allowed },
    ];
    for steer in steers {
        assert_eq!(protocol(CliSettings::default(), &fresh()).on_steer(steer), []);
    }
}

#[test]
fn every_line_is_shown_and_all_of_them_are_the_message() {
    let (actions, end) =
        talk(CliSettings::default(), &fresh(), &["\u{1b}[1mworking\u{1b}[0m\r", "", "done"], &code(0));
    assert_eq!(end, End::Completed);
    let wanted = [
        session("ours", false),
        delta("working\n"),
        delta("\n"),
        delta("done\n"),
        message("working\n\ndone"),
        turn_ended(TurnStop::Done, "working\n\ndone"),
    ];
    assert_eq!(actions, wanted);
}

#[test]
fn in_a_terminal_lines_are_separate_and_the_last_one_is_the_error() {
    let terminal = Some(WindowSize { columns: 80, rows: 24 });
    let in_terminal = CliSettings { terminal, ..patterns() };
    let stdio = |cli: &CliSettings| {
        with_context(&fresh(), PROMPT, |context| {
            command().plan(&settings(&["cli"], cli.clone()), context).stdio
        })
    };
    assert_eq!(stdio(&in_terminal), Stdio::Terminal(WindowSize { columns: 80, rows: 24 }));
    assert_eq!(stdio(&patterns()), Stdio::Pipes);
    let lines = ["working\u{1b}[2;1Hsession:\u{1b}[1Ctheirs\r", "no key\r", "\r"];
    let (actions, end) = talk(in_terminal, &fresh(), &lines, &code(3));
    assert_eq!(end, crashed("exit code 3: no key"));
    let wanted = [
        delta("working\n"),
        session("theirs", false),
        delta("session: theirs\n"),
        delta("no key\n"),
        delta("\n"),
        message("working\nsession: theirs\nno key"),
        turn_ended(failed("exit code 3: no key"), "working\nsession: theirs\nno key"),
    ];
    assert_eq!(actions, wanted);
}

#[test]
fn a_silent_program_with_a_clean_exit_has_had_its_turn() {
    let (actions, end) = talk(CliSettings::default(), &fresh(), &[], &code(0));
    assert_eq!(end, End::Completed);
    assert_eq!(actions, [session("ours", false), turn_ended(TurnStop::Done, "")]);
    // A program that fails without output has never had a conversation.
    let failed = turn_ended(failed("exit code 2"), "");
    assert_eq!(talk(CliSettings::default(), &fresh(), &[], &code(2)), (vec![failed], crashed("exit code 2")));
}

#[test]
fn its_own_id_is_the_session_and_without_one_there_is_none_to_resume() {
    let first = |cli, plan: &SessionPlan, lines: &[&str], exit: &ProcessEnd| {
        let actions = talk(cli, plan, lines, exit).0;
        let is_session = |a: &Action| matches!(a, Action::Emit { event: AgentEvent::SessionStarted(_), .. });
        actions.into_iter().filter(is_session).collect::<Vec<_>>()
    };
    let named = ["hello", "\u{1b}[2msession: theirs\u{1b}[0m", "session: other"];
    assert_eq!(first(patterns(), &fresh(), &named, &code(0)), [session("theirs", false)]);
    assert_eq!(first(patterns(), &resumed(), &named, &code(0)), [session("theirs", true)]);
    assert_eq!(first(patterns(), &resumed(), &["session: new"], &code(0)), [session("new", false)]);
    let on_stderr = ProcessEnd { stderr_tail: "log\nsession: quiet\n".into(), ..code(1) };
    assert_eq!(first(patterns(), &fresh(), &["hello"], &on_stderr), [session("quiet", false)]);
    assert_eq!(first(patterns(), &fresh(), &["hello"], &code(0)), []);
    assert_eq!(first(patterns(), &resumed(), &["hello"], &code(0)), [session("theirs", true)]);
    assert_eq!(first(patterns(), &resumed(), &["no such session"], &code(1)), []);
    let forgetful = CliSettings { resume: vec![], ..patterns() };
    assert_eq!(first(forgetful, &fresh(), &["hello"], &code(1)), [session("ours", false)]);
}

#[test]
fn every_cost_that_is_named_is_added() {
    let lines = ["cost: $0.25", "cost: 1,000.5", "cost: .", "no cost", "cost: 0.01 cost: 0.02"];
    let costs: Vec<Usage> = talk(patterns(), &fresh(), &lines, &code(0))
        .0
        .into_iter()
        .filter_map(|action| match action {
            Action::Emit { event: AgentEvent::Usage { used, .. }, .. } => Some(used),
            _ => None,
        })
        .collect();
    let cost = |micro| Usage { cost: MicroUsd(micro), ..Usage::default() };
    assert_eq!(costs, [cost(250_000), cost(1_000_500_000), cost(30_000)]);
}

#[test]
fn only_an_exit_without_error_and_without_signal_completes_it() {
    let signal = ProcessEnd { signal: Some(9), ..ProcessEnd::default() };
    let both = ProcessEnd { signal: Some(15), ..code(0) };
    let stderr = ProcessEnd { stderr_tail: "\u{1b}[31mno key\u{1b}[0m\n".into(), ..code(3) };
    let limited = ProcessEnd { stderr_tail: "Quota exceeded\n".into(), ..code(1) };
    let limit = End::RateLimited { until: None };
    let cases: [(&[&str], ProcessEnd, End); 8] = [
        (&["x"], code(0), End::Completed),
        (&["x"], code(1), crashed("exit code 1")),
        (&["x"], stderr, crashed("exit code 3: no key")),
        (&["x"], signal, crashed("ended by signal 9")),
        (&["x"], both, crashed("ended by signal 15")),
        (&["x"], ProcessEnd::default(), crashed("ended in an unknown way")),
        (&["quota exceeded, come back"], code(1), limit.clone()),
        (&["x"], limited, limit),
    ];
    for (lines, exit, wanted) in cases {
        let (actions, end) = talk(patterns(), &fresh(), lines, &exit);
        assert_eq!(end, wanted, "{lines:?} {exit:?}");
        let stop = match &wanted {
            End::Completed => TurnStop::Done,
            End::Crashed { message } => failed(message),
            _ => failed("rate_limited"),
        };
        let last = lines.first().map(|text| turn_ended(stop, text));
        assert_eq!(actions.last(), last.as_ref(), "{lines:?} {exit:?}");
    }
}

#[test]
fn a_flood_of_lines_keeps_its_end_and_a_line_that_is_too_long_is_noted() {
    let mut protocol = protocol(CliSettings::default(), &fresh());
    for n in 0..20_000 {
        protocol.on_frame(Frame::Line(format!("line {n}").as_bytes()));
    }
    let unknown =
        AgentEvent::Unrecognised { what: "too long".into(), raw: "a line of 9 bytes".into(), count: 1 };
    assert_eq!(protocol.on_frame(Frame::TooLong { length: 9 }), [Action::emit(unknown)]);
    let (actions, _) = protocol.on_exit(&code(0));
    let Some(Action::Emit { event: AgentEvent::Message { text, .. }, .. }) = actions.first() else {
        panic!("{actions:?}")
    };
    assert!(text.ends_with("line 19998\nline 19999") && text.len() <= 16 * 1024, "{}", text.len());
    assert!(text.len() > 15 * 1024, "{}", text.len());
}
