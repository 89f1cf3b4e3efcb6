//! `[[checks]]`, and the names of checks that have none.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;
use towline_core::{AgentName, Check, CheckKind, Probe, Visibility};

use crate::layer::{Origin, Place};
use crate::schema::KeyPath;
use crate::settings::Settings;
use crate::value::{Refused, Value, refuse};

/// The timeout of a check that sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How many words of a command, and how many characters of those, make a name.
const NAME_WORDS: usize = 4;
const NAME_CHARACTERS: usize = 40;

/// A check that runs a command, as the command line takes it; its name is made from the command and differs from
/// those that are taken.
pub fn check_from_command(command: &str, taken: &[String]) -> Check {
    let kind = CheckKind::Command { run: command.to_owned(), stdout: None };
    Check::new(name_from_command(command, taken), kind, DEFAULT_TIMEOUT)
}

/// What a check can be, by the key that makes it that: a check has exactly one of them.
const KINDS: [&str; 6] = ["run", "file", "untouched", "committed", "program", "judge"];

/// Keys that only go with another one.
const COMPANIONS: [(&str, &str); 6] = [
    ("stdout", "run"),
    ("matches", "file"),
    ("agent", "judge"),
    ("floor", "run"),
    ("probe", "run"),
    ("files", "hidden"),
];

/// Where a hidden check belongs, because agents read the repository.
const OUTSIDE: &str = "the agent reads this file in its clone: put the check into the goal's own file outside of the \
                       repository, or into your own file, usually ~/.config/towline/config.toml";

/// Reads the list; what is wrong with single checks is reported to `settings`.
pub(crate) fn read(
    settings: &mut Settings,
    origin: Origin<'_>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Value, Refused> {
    const FIX: &str = "write each check as a `[[checks]]` table with `run = \"…\"`";
    let items = value.get_ref().as_array().ok_or_else(|| refuse(value, FIX))?;
    let mut entries = Vec::new();
    for item in items {
        let table = item.get_ref().as_table().ok_or_else(|| refuse(item, FIX))?;
        // The keys of a check are those of the table of known keys below `checks`; the list itself is replaced as a
        // whole by a later layer, so that they never meet those of another check.
        let mut entry = Settings::default();
        entry.add_table(origin, &KeyPath::of(&["checks"]), table);
        let place = origin.place(item.span());
        if let Some(name) = text(&entry, "name") {
            for problem in &mut entry.problems {
                problem.what = format!("the check `{name}`: {}", problem.what);
            }
        }
        let kind = if entry.problems.is_empty() { kind_of(&mut entry, &place) } else { None };
        settings.problems.append(&mut entry.problems);
        entries.extend(kind.map(|kind| (entry, kind, place)));
    }
    let given: Vec<String> =
        entries.iter().filter_map(|(entry, ..)| entry.get(&["checks", "name"])).collect();
    let mut checks: Vec<Check> = Vec::new();
    for (entry, kind, place) in entries {
        let check = check_from_entry(&entry, kind, &given, &checks);
        if checks.iter().any(|earlier| earlier.name == check.name) {
            let place = entry.place(&["checks", "name"]).unwrap_or(&place).clone();
            let fix = "give each check a name of its own".to_owned();
            settings.report(format!("two checks with the name `{}`", check.name), place, fix);
        }
        checks.push(check);
    }
    Ok(Value::Checks(checks))
}

/// What the check is, if it is one thing; what keeps it from that is reported to the entry.
fn kind_of(entry: &mut Settings, place: &Place) -> Option<CheckKind> {
    let check =
        text(entry, "name").map_or_else(|| "a check".to_owned(), |name| format!("the check `{name}`"));
    let at = |key| entry.place(&["checks", key]).cloned();
    let is_hidden = entry.get(&["checks", "hidden"]).is_some_and(|hidden: Visibility| !hidden.is_shown());
    let hidden = at("hidden").filter(|place| is_hidden && place.layer.is_repository());
    let given: Vec<(&str, Place)> = KINDS.into_iter().filter_map(|key| Some((key, at(key)?))).collect();
    let strays: Vec<_> = COMPANIONS
        .into_iter()
        // A check that is shown to agents gets no files that they cannot read: a repository's file could name any of the user's.
        .filter(|(key, owner)| if *key == "files" { !is_hidden } else { at(owner).is_none() })
        .filter_map(|(key, owner)| Some((key, owner, at(key)?)))
        .collect();
    match given.as_slice() {
        [_] => {}
        [] => {
            let fix = "add one of `run`, `file`, `untouched`, `committed`, `program` and `judge`, such as \
                       `run = \"cargo test\"`";
            entry.report(format!("{check} does not name what to check"), place.clone(), fix.to_owned());
        }
        [(first, _), (second, place), ..] => {
            let fix = "write a `[[checks]]` table for each of them".to_owned();
            entry.report(format!("{check} has both `{first}` and `{second}`"), place.clone(), fix);
        }
    }
    for (key, owner, place) in strays {
        let fix = format!("take it out: it goes with `{owner}` only");
        entry.report(format!("{check} has `{key}` without `{owner}`"), place, fix);
    }
    if let Some(place) = hidden {
        entry.report(format!("{check} cannot be hidden"), place, OUTSIDE.to_owned());
    }
    let kind = match given.first()?.0 {
        "run" => CheckKind::Command { run: text(entry, "run")?, stdout: text(entry, "stdout") },
        "file" => CheckKind::File { path: text(entry, "file")?, matches: text(entry, "matches") },
        "untouched" => CheckKind::Untouched { paths: entry.get(&["checks", "untouched"])? },
        "program" => CheckKind::Program { argv: entry.get(&["checks", "program"])? },
        "judge" => {
            let agent = text(entry, "agent").map(AgentName::new);
            CheckKind::Judge { rubric: text(entry, "judge")?, agent }
        }
        _ => {
            if entry.get(&["checks", "committed"]) != Some(true) {
                let place = entry.place(&["checks", "committed"]).unwrap_or(place).clone();
                let fix = "write `committed = true`, or leave the check out".to_owned();
                entry.report(format!("{check} has `committed = false`"), place, fix);
            }
            CheckKind::Committed
        }
    };
    entry.problems.is_empty().then_some(kind)
}

fn text(entry: &Settings, key: &str) -> Option<String> {
    entry.get(&["checks", key])
}

/// A check without a name gets one that neither the named checks nor those before it have.
fn check_from_entry(entry: &Settings, kind: CheckKind, given: &[String], earlier: &[Check]) -> Check {
    let name = entry.get(&["checks", "name"]).unwrap_or_else(|| {
        let taken: Vec<String> =
            given.iter().chain(earlier.iter().map(|check| &check.name)).cloned().collect();
        match &kind {
            CheckKind::Command { run, .. } => name_from_command(run, &taken),
            CheckKind::Program { argv } => name_from_command(&argv.join(" "), &taken),
            CheckKind::File { path, .. } => free_name(path, &taken),
            CheckKind::Untouched { .. } => free_name("untouched", &taken),
            CheckKind::Committed => free_name("committed", &taken),
            CheckKind::Judge { .. } => free_name("judge", &taken),
        }
    });
    let timeout = entry.get(&["checks", "timeout"]).unwrap_or(DEFAULT_TIMEOUT);
    Check {
        hidden: entry.get(&["checks", "hidden"]).unwrap_or_default(),
        files: entry.get(&["checks", "files"]).unwrap_or_default(),
        floor: entry.get(&["checks", "floor"]).unwrap_or(true),
        probe: text(entry, "probe").map(|_| Probe::Revert),
        ..Check::new(name, kind, timeout)
    }
}

/// Words of a shell that may precede the command that matters.
const BEFORE: [&str; 14] =
    ["do", "then", "else", "if", "elif", "while", "until", "!", "{", "(", "time", "env", "exec", "nice"];

/// Commands that prepare or end something, and check nothing.
const PREPARING: [&str; 15] = [
    "for", "case", "cd", "pushd", "set", "export", "source", ".", "true", ":", "sleep", "done", "fi", "esac",
    "}",
];

/// Commands that pass on what they read.
const FILTERS: [&str; 4] = ["tee", "cat", "head", "tail"];

/// The first words of the command that decides, up to where they stop describing it. Of statements in a row the last one
/// decides, and a branch only where the condition decides nothing.
fn name_from_command(command: &str, taken: &[String]) -> String {
    let statements = split(command, &[";", "\n"]);
    let is_branch = |statement: &&&str| matches!(statement.split_whitespace().next(), Some("then" | "else"));
    let last = |is_wanted: &dyn Fn(&&&str) -> bool| {
        statements.iter().rev().filter(is_wanted).find_map(|statement| words_that_decide(statement))
    };
    let first = || words_of(statements.first().copied().unwrap_or_default());
    let words = last(&|statement| !is_branch(statement)).or_else(|| last(&is_branch)).unwrap_or_else(first);
    let name = words.join(" ");
    free_name(if name.is_empty() { "check" } else { &name }, taken)
}

/// The words of the first command of a statement that checks something; of a pipeline, its last command decides.
fn words_that_decide(statement: &str) -> Option<Vec<&str>> {
    let is_idle =
        |words: &[&str]| words.first().is_none_or(|word| PREPARING.contains(word)) || words == ["exit"];
    for part in split(statement, &["&&", "||"]) {
        let pipeline: Vec<Vec<&str>> = split(part, &["|"]).into_iter().map(words_of).collect();
        let is_filter = |words: &&Vec<&str>| words.first().is_some_and(|word| FILTERS.contains(word));
        let decides = pipeline.iter().rev().find(|words| !is_filter(words));
        if let Some(words) = decides.filter(|words| pipeline.len() > 1 || !is_idle(words)) {
            return Some(words.clone());
        }
    }
    // A group, such as `do (cd web; npm test)`.
    let inner = statement.split([';', '\n']).map(words_of).find(|words| !is_idle(words));
    inner.filter(|_| statement.contains([';', '\n']))
}

/// The parts between separators that are neither quoted nor in a group. A group at the beginning of a part is none.
fn split<'a>(text: &'a str, separators: &[&str]) -> Vec<&'a str> {
    let (mut parts, mut start, mut quote, mut depth) = (Vec::new(), 0, None, 0_u32);
    let mut skip_to = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| c.is_ascii()) {
        match (quote, c) {
            _ if at < skip_to => {}
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => skip_to = at + 2,
            (None, '(' | '{') if !text[start..at].trim().is_empty() => depth += 1,
            (None, ')' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {
                let found = separators.iter().find(|separator| text[at..].starts_with(**separator));
                if let Some(separator) = found.filter(|_| depth == 0) {
                    parts.push(&text[start..at]);
                    start = at + separator.len();
                    skip_to = start;
                }
            }
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The words that name a command.
fn words_of(command: &str) -> Vec<&str> {
    let is_assignment = |word: &str| word.contains('=') && !word.starts_with(['-', '=']);
    let ends_name = |word: &&str| word.contains(['"', '\'', '$', '`', '(', '<', '>', '#']);
    let command = command.split_whitespace().map(|word| word.trim_start_matches('(').trim_end_matches(')'));
    let mut command =
        command.skip_while(|word| word.is_empty() || BEFORE.contains(word) || is_assignment(word)).peekable();
    if command.next_if_eq(&"timeout").is_some() {
        while command.next_if(|word| word.starts_with(|c: char| c == '-' || c.is_ascii_digit())).is_some() {}
    }
    let mut words: Vec<&str> = command.take(NAME_WORDS).take_while(|word| !ends_name(word)).collect();
    // An option at the end has lost its value, or describes how and not what.
    while words.last().is_some_and(|word| word.starts_with('-') || word.is_empty()) {
        words.pop();
    }
    words
}

/// The beginning of a name; numbered when taken.
fn free_name(name: &str, taken: &[String]) -> String {
    let name: String = name.chars().take(NAME_CHARACTERS).collect();
    let is_free = |name: &String| !taken.contains(name);
    let mut numbered = (2_u64..).map(|number| format!("{name} {number}"));
    if is_free(&name) { name } else { numbered.find(is_free).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_the_first_words_that_describe_the_command() {
        for (command, name) in [
            ("cargo test", "cargo test"),
            ("cargo test -p core --all-features", "cargo test -p core"),
            ("npm run lint", "npm run lint"),
            ("python3 -m pytest tests", "python3 -m pytest tests"),
            ("RUST_LOG=debug CI=1 cargo test", "cargo test"),
            ("make; make install", "make install"),
            ("make && make install", "make"),
            ("sh -c 'exit 1'", "sh"),
            ("test -f done.txt", "test -f done.txt"),
            ("for i in 1 2 3; do cargo test; done", "cargo test"),
            ("cd web && npm test", "npm test"),
            ("(cd web; npm test)", "npm test"),
            ("set -e\ncargo build\ncargo test", "cargo test"),
            ("timeout -k 5 60 cargo test", "cargo test"),
            ("if ! grep -q please greeting; then exit 1; fi", "grep -q please greeting"),
            ("pwd; ls; grep fixed greeting", "grep fixed greeting"),
            ("exit 3 | true", "true"),
            ("cargo test 2>&1 | tee log.txt", "cargo test"),
            ("seq 1 300; echo end; exit 1", "exit 1"),
            ("cargo test; code=$?; exit $code", "cargo test"),
            ("grep -q fixed greeting", "grep -q fixed greeting"),
            ("test -f a || { echo missing; exit 1; }", "test -f a"),
            ("python3 -c 'import a; assert a.b'", "python3"),
            ("grep -E 'a|b' file", "grep"),
            ("for d in a b; do (cd $d; npm test); done", "npm test"),
            ("if true; then npm test; fi", "npm test"),
            ("true", "true"),
            ("cd web", "cd web"),
            ("$CHECK", "check"),
            ("", "check"),
        ] {
            assert_eq!(name_from_command(command, &[]), name, "{command}");
        }
        assert_eq!(name_from_command(&"x".repeat(100), &[]), "x".repeat(40));
    }

    #[test]
    fn a_check_from_a_command_gets_a_name_that_is_free() {
        let taken = ["cargo test".to_owned(), "cargo test 2".to_owned()];
        let kind = CheckKind::Command { run: "cargo test --lib".to_owned(), stdout: None };
        let expected = Check::new("cargo test 3", kind, Duration::from_secs(1_800));
        assert_eq!(check_from_command("cargo test --lib", &taken), expected);
    }
}
