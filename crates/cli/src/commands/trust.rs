//! `towline trust`: what the user accepts of a repository's `towline.toml`, and the question about it before a goal starts.

use std::io::{self, IsTerminal};

use jiff::Timestamp;
use towline_api::{RepositoryTrust, TrustedRepository, WideningSetting};
use towline_app::{
    Context, Error, HeldGoal, WideningFile, accept, continue_held, revoke_trust, trusted_repositories,
    widening_file,
};
use towline_engine::{Clock, SystemClock};
use towline_terminal::{age, counted};
use towline_view::hints::command_line;

use crate::output::{self, Layout};

/// How many settings are shown, and how many characters of a value.
const MOST: usize = 200;
const LONGEST: usize = 2_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline trust             show what the file sets, and ask
  towline trust --yes       accept it without a question
  towline trust --list      what you have accepted on this machine
  towline trust --revoke    forget it for this repository")]
pub(crate) struct Trust {
    /// Accept the settings without asking
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    yes: bool,
    /// List the repositories whose settings you have accepted
    #[arg(long)]
    list: bool,
    /// Forget what you have accepted for this repository
    #[arg(long, conflicts_with = "list")]
    revoke: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(context: &Context, args: &Trust) -> Result<(), Error> {
    if args.list {
        list(context, args.json)
    } else if args.revoke {
        revoke(context, args.json)
    } else {
        show_and_accept(context, args).await
    }
}

/// Asks about settings of the repository's file that the person at the terminal has not accepted. Without a terminal, reading the
/// configuration refuses them.
pub(crate) fn ask_first(context: &Context, is_for_programs: bool) -> Result<(), Error> {
    if is_for_programs || !is_person_here() {
        return Ok(());
    }
    match widening_file(context, &context.directory)?.filter(|file| !file.is_trusted()) {
        Some(file) if is_accepted_by_person(&file) => accept(context, &file, SystemClock.now()).map(drop),
        Some(file) => Err(file.refusal()),
        None => Ok(()),
    }
}

async fn show_and_accept(context: &Context, args: &Trust) -> Result<(), Error> {
    let Some(file) = widening_file(context, &context.directory)? else { return nothing(args.json) };
    if file.is_trusted() {
        return print(&file.report(), args.json, &[]);
    }
    if !args.yes {
        if args.json || !is_person_here() {
            let hint = format!("read {}, then run `towline trust --yes`", file.file().display());
            return Err(Error::usage("cannot ask: there is no terminal").hint(hint));
        }
        if !is_accepted_by_person(&file) {
            return Err(file.refusal());
        }
    }
    let file = accept(context, &file, SystemClock.now())?;
    let held = continue_held(context, &file).await?;
    print(&file.report(), args.json, &held)
}

fn nothing(json: bool) -> Result<(), Error> {
    if json {
        let state = "not_needed".to_owned();
        let report =
            RepositoryTrust { file: None, state, settings: Vec::new(), gone: Vec::new(), accepted_at: None };
        output::print_json_or_exit(Layout::Pretty, &report);
    } else {
        output::print_or_exit(
            "nothing here needs your trust: there is no towline.toml, or it sets nothing that widens what agents may do",
        );
    }
    Ok(())
}

/// Prints what is trusted, and which goals can continue now.
fn print(report: &RepositoryTrust, json: bool, held: &[HeldGoal]) -> Result<(), Error> {
    if json {
        output::print_json_or_exit(Layout::Pretty, report);
        return Ok(());
    }
    let file = report.file.as_deref().unwrap_or_default();
    output::print_or_exit(format_args!("trusted: {}", output::printable(file)));
    let settings = report.settings.iter().take(MOST);
    settings.for_each(|setting| output::print_or_exit(format_args!("  {}", line(setting))));
    if let Some(left) = report.settings.len().checked_sub(MOST).filter(|left| *left > 0) {
        output::print_or_exit(format_args!("  and {left} more"));
    }
    for HeldGoal { id, next } in held {
        output::print_or_exit(match next {
            Some(next) => format!("goal {} can continue: {}", id.short(), command_line(next)),
            None => format!("goal {} continues", id.short()),
        });
    }
    Ok(())
}

/// A person who can read a question and answer it.
fn is_person_here() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn is_accepted_by_person(file: &WideningFile) -> bool {
    let report = file.report();
    shown(&report).iter().for_each(|line| output::eprint(format_args!("{line}")));
    if !is_shown_whole(&report) {
        output::eprint(format_args!("this is not all of it: read the file, then run `towline trust --yes`"));
        return false;
    }
    output::agrees(format_args!("Accept these settings?"))
}

/// Whether a person sees everything that is to be accepted.
fn is_shown_whole(report: &RepositoryTrust) -> bool {
    let fits = |text: &str| text.chars().count() <= LONGEST;
    report.settings.len() <= MOST
        && report.settings.iter().all(|setting| fits(&setting.key) && fits(&setting.value.to_string()))
}

/// The settings that a person is asked about.
fn shown(report: &RepositoryTrust) -> Vec<String> {
    let file = output::printable(report.file.as_deref().unwrap_or_default());
    let mut lines = vec![format!("{file} widens what agents may do beyond your own settings:")];
    let is_later = report.accepted_at.is_some();
    lines.extend(report.settings.iter().take(MOST).map(|setting| {
        let state = if is_later { format!("{:<9}", setting.state) } else { String::new() };
        format!("  {state}{}", line(setting))
    }));
    if let Some(left) = report.settings.len().checked_sub(MOST).filter(|left| *left > 0) {
        lines.push(format!("  and {left} more: read the file"));
    }
    lines.extend(report.gone.iter().take(MOST).map(|key| format!("  gone     {}", output::printable(key))));
    lines
}

/// A setting as it could be written in the file.
fn line(setting: &WideningSetting) -> String {
    let bounded = |text: &str| match text.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!("{}… and {left} more characters: read the file", output::printable(&text[..end]))
        }
        None => output::printable(text),
    };
    format!("{} = {}", bounded(&setting.key), bounded(&setting.value.to_string()))
}

fn revoke(context: &Context, json: bool) -> Result<(), Error> {
    let revoked = revoke_trust(context)?;
    if json {
        output::print_json_or_exit(Layout::Pretty, &revoked);
    } else {
        output::print_or_exit(match &revoked.directory {
            Some(directory) => format!("not trusted any more: {}", output::printable(directory)),
            None => "nothing was accepted here".to_owned(),
        });
    }
    Ok(())
}

fn list(context: &Context, json: bool) -> Result<(), Error> {
    let all = trusted_repositories(context)?;
    if json {
        output::print_json_or_exit(Layout::Pretty, &all);
    } else if all.is_empty() {
        output::eprint(format_args!("you have accepted nothing"));
    } else {
        table(&all, SystemClock.now()).iter().for_each(output::print_or_exit);
    }
    Ok(())
}

fn table(all: &[TrustedRepository], now: Timestamp) -> Vec<String> {
    let mut rows = vec![["DIRECTORY", "ACCEPTED", "SETTINGS", "NOW"].map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|trusted| {
        vec![
            output::printable(&trusted.directory),
            age(trusted.accepted_at, now),
            counted(trusted.keys.len(), "setting"),
            match trusted.state.as_str() {
                "current" => "the same".to_owned(),
                "changed" => "changed: not in force".to_owned(),
                "not_needed" => "sets nothing of it".to_owned(),
                state => state.to_owned(),
            },
        ]
    }));
    output::table(&rows, &["SETTINGS", "ACCEPTED"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(settings: &[(&str, serde_json::Value, &str)]) -> RepositoryTrust {
        let setting = |(key, value, state): &(&str, serde_json::Value, &str)| WideningSetting {
            key: (*key).to_owned(),
            value: value.clone(),
            state: (*state).to_owned(),
        };
        RepositoryTrust {
            file: Some("/repo/towline.toml".to_owned()),
            state: "untrusted".to_owned(),
            settings: settings.iter().map(setting).collect(),
            gone: Vec::new(),
            accepted_at: None,
        }
    }

    #[test]
    fn the_question_shows_every_setting_and_what_has_changed() {
        let settings = [
            ("agents.mine.command", json!(["./mine", "--fast"]), "new"),
            ("workspace.pass_env", json!(["DATABASE_URL"]), "changed"),
        ];
        let mut report = report(&settings);
        let lines = shown(&report);
        assert_eq!(
            lines,
            [
                "/repo/towline.toml widens what agents may do beyond your own settings:",
                "  agents.mine.command = [\"./mine\",\"--fast\"]",
                "  workspace.pass_env = [\"DATABASE_URL\"]",
            ]
        );
        report.accepted_at = Some(Timestamp::UNIX_EPOCH);
        report.gone = vec!["agents.mine.args".to_owned()];
        let again = shown(&report);
        assert_eq!(
            again[1..],
            [
                "  new      agents.mine.command = [\"./mine\",\"--fast\"]",
                "  changed  workspace.pass_env = [\"DATABASE_URL\"]",
                "  gone     agents.mine.args",
            ]
        );
    }

    #[test]
    fn what_is_shown_gives_no_orders_to_the_terminal_and_names_what_is_left_out() {
        let hostile = format!("\u{1b}[2Jhide\u{202e}me\n{}", "x".repeat(LONGEST));
        let lines = shown(&report(&[("agents.mine.args", json!([hostile]), "new")]));
        assert!(lines[1].starts_with("  agents.mine.args = [\"\\u001b[2Jhide\u{fffd}me\\n"), "{}", lines[1]);
        assert!(lines[1].contains(" more characters: read the file"), "{}", lines[1]);
        let many = vec![("agents.mine.args", json!([]), "new"); MOST + 3];
        assert!(shown(&report(&many)).contains(&"  and 3 more: read the file".to_owned()));
    }

    #[test]
    fn what_is_too_long_to_be_shown_whole_cannot_be_accepted_by_an_answer() {
        let whole = |value: &str| is_shown_whole(&report(&[("agents.a.env", json!(value), "new")]));
        assert!(whole("short"));
        assert!(!whole(&"x".repeat(LONGEST)));
        let many = vec![("agents.a.env", json!("x"), "new"); MOST + 1];
        assert!(!is_shown_whole(&report(&many)));
    }
}
