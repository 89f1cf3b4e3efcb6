//! The keys that only agents of the kind `command` have.

use regex::Regex;
use towline_agent::{AgentSettings, CliSettings, Kind, PromptBy, WindowSize};

use crate::error::{Warning, WarningKind};
use crate::schema::KeyPath;
use crate::settings::Settings;

/// Reads them. Problems are reported to `settings`; none is the answer when there are any.
pub(crate) fn read(
    settings: &mut Settings,
    name: &str,
    kind: Kind,
    command: &[String],
) -> Option<CliSettings> {
    if kind != Kind::Command {
        return Some(CliSettings::default());
    }
    let problems = settings.problems.len();
    let prompt = match settings.get::<String>(&["agents", name, "prompt"]).as_deref() {
        Some("file") => PromptBy::File,
        Some("argument") => PromptBy::Argument,
        _ => PromptBy::Stdin,
    };
    let text = |key| settings.get::<String>(&["agents", name, key]);
    let cli = CliSettings {
        prompt,
        resume: settings.get(&["agents", name, "resume"]).unwrap_or_default(),
        session_pattern: text("session_pattern"),
        cost_pattern: text("cost_pattern"),
        limit_pattern: text("limit_pattern"),
        terminal: terminal(settings, name),
    };
    check_size(settings, name, &cli);
    check_words(settings, name, command, prompt);
    check_groups(settings, name, &cli);
    check_resume(settings, name, &cli);
    (settings.problems.len() == problems).then_some(cli)
}

fn terminal(settings: &Settings, name: &str) -> Option<WindowSize> {
    let cells = |key, usual| {
        let number: Option<u64> = settings.get(&["agents", name, key]);
        number.and_then(|number| number.try_into().ok()).unwrap_or(usual)
    };
    let usual = WindowSize::USUAL;
    let size = WindowSize { columns: cells("columns", usual.columns), rows: cells("rows", usual.rows) };
    settings.get(&["agents", name, "terminal"]).unwrap_or(false).then_some(size)
}

/// The size of a terminal that is not there was meant to be one.
fn check_size(settings: &mut Settings, name: &str, cli: &CliSettings) {
    for key in ["columns", "rows"] {
        if cli.terminal.is_none() {
            let fix = "set `terminal = true`, or take it out";
            settings.report_key(&["agents", name, key], "is the size of a terminal, and there is none", fix);
        }
    }
}

/// A prompt in the arguments is allowed, and nothing to be surprised by.
pub(crate) fn visible_prompt(settings: &Settings, name: &str, agent: &AgentSettings) -> Option<Warning> {
    let path = ["agents", name, "prompt"];
    let place = settings.place(&path).filter(|_| agent.cli.prompt == PromptBy::Argument)?.clone();
    Some(Warning { key: KeyPath::of(&path).to_string(), place, kind: WarningKind::VisiblePrompt })
}

/// The place of the prompt is named exactly when there is to be one.
fn check_words(settings: &mut Settings, name: &str, command: &[String], prompt: PromptBy) {
    let args: Vec<String> = settings.get(&["agents", name, "args"]).unwrap_or_default();
    let is_named = |word: &str| command.iter().chain(&args).any(|given| given.contains(word));
    for (way, by, word) in [
        ("file", PromptBy::File, PromptBy::FILE_WORD),
        ("argument", PromptBy::Argument, PromptBy::ARGUMENT_WORD),
    ] {
        match (prompt == by, is_named(word)) {
            (true, false) => {
                let fix = format!("add the word `{word}` to `command` where the prompt belongs");
                let what = format!("is \"{way}\" and no word marks the place");
                settings.report_key(&["agents", name, "prompt"], &what, &fix);
            }
            (false, true) => {
                let fix = format!("set `prompt = \"{way}\"`, or take the word out");
                let key = if command.iter().any(|given| given.contains(word)) { "command" } else { "args" };
                let what = format!("has the word `{word}`, which has no meaning here");
                settings.report_key(&["agents", name, key], &what, &fix);
            }
            _ => {}
        }
    }
}

fn check_groups(settings: &mut Settings, name: &str, cli: &CliSettings) {
    for (key, pattern, of_what) in [
        ("session_pattern", &cli.session_pattern, "the id"),
        ("cost_pattern", &cli.cost_pattern, "the amount"),
    ] {
        let Some(Ok(pattern)) = pattern.as_deref().map(Regex::new) else { continue };
        if pattern.captures_len() != 2 {
            let fix = format!("put {of_what}, and nothing else, into one group `(…)`; others are `(?:…)`");
            settings.report_key(&["agents", name, key], "must have exactly one group", &fix);
        }
    }
}

fn check_resume(settings: &mut Settings, name: &str, cli: &CliSettings) {
    let names_session = cli.resume.iter().any(|word| word.contains(PromptBy::SESSION_WORD));
    if names_session && cli.session_pattern.is_none() {
        let what = "names `{session}`, and nothing defines it";
        let fix = "add a `session_pattern` that finds the id in the program's output";
        settings.report_key(&["agents", name, "resume"], what, fix);
    }
}
