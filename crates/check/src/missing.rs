//! Whether a check failed because a program is not installed, which no work in the repository can change.
//!
//! A program counts as missing only if nothing else can explain the exit code, because a wrong guess ends a goal that the agent
//! could have reached. So the line has to be one simple command, or a chain with `&&` that starts with it. A path such as
//! `./scripts/test.sh` may be what the agent is asked to write, and a program that is on PATH may exit with 127 itself, as
//! `npm test` does when a script of the project is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use towline_core::{Check, CheckKind, CheckResult};

use crate::environment::Environment;

/// How a shell exits when a program cannot be executed, and when it is not found.
const NOT_RUN: [i32; 2] = [126, 127];

/// Builtins and keywords of POSIX shells and bash: no program of that name has to be on PATH.
const OF_THE_SHELL: [&str; 78] = [
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "chdir", "command",
    "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done",
    "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs", "kill", "let", "local",
    "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readonly", "return", "select", "set",
    "shift", "shopt", "source", "suspend", "test", "then", "time", "times", "trap", "true", "type",
    "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Outside quotes, these let another command decide the exit code, or hide what runs.
const COMPOUND: [char; 7] = [';', '|', '\n', '(', ')', '{', '}'];

/// The program that a failed check needs and that is not on PATH.
pub fn missing_program(check: &Check, result: &CheckResult, environment: &Environment) -> Option<String> {
    if result.met {
        return None;
    }
    let path = environment.variables().get("PATH")?;
    let is_missing = |name: &str| is_bare(name) && !is_on_path(name, path);
    match &check.kind {
        CheckKind::Command { run, .. } if result.exit_code.is_some_and(|code| NOT_RUN.contains(&code)) => {
            decisive_program(run).filter(|name| is_missing(name))
        }
        CheckKind::Program { argv } if result.exit_code.is_none() => {
            argv.first().filter(|name| is_missing(name)).cloned()
        }
        _ => None,
    }
}

/// The program that decides the exit code of the line if it is not there.
fn decisive_program(line: &str) -> Option<String> {
    let line = without_quoted_text(line.trim())?;
    let sets_path = line.split_ascii_whitespace().any(|word| word.starts_with("PATH="));
    if sets_path || line.contains(COMPOUND) || line.split("&&").any(runs_in_background) {
        return None;
    }
    // `cd` never exits with 126 or 127.
    let command = line.split("&&").find(|command| command.split_ascii_whitespace().next() != Some("cd"))?;
    let program = command.split_ascii_whitespace().find(|word| !is_assignment(word))?;
    (!OF_THE_SHELL.contains(&program)).then(|| program.to_owned())
}

/// The line with all quoted text removed and the quotes left, so that the rest can be split at white space. `None` if it has
/// escapes, command substitutions or an open quote.
fn without_quoted_text(line: &str) -> Option<String> {
    let mut outside = String::new();
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let is_literal = quote == Some('\'');
        match c {
            '\\' | '`' if !is_literal => return None,
            '$' if !is_literal && chars.peek() == Some(&'(') => return None,
            // bash reads `$'…'` with escapes.
            '$' if quote.is_none() && chars.peek() == Some(&'\'') => return None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => continue,
            _ => {}
        }
        outside.push(c);
    }
    quote.is_none().then_some(outside)
}

/// Whether a command has an `&` that is not part of a redirection such as `2>&1`. For POSIX shells `&>` is no redirection.
fn runs_in_background(command: &str) -> bool {
    command.match_indices('&').any(|(at, _)| !command[..at].ends_with(['<', '>']))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether this is a plain name, so that a shell takes it as it is and looks it up on PATH.
fn is_bare(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    !name.is_empty() && name.chars().all(is_plain)
}

/// A PATH that depends on the current directory may lead into the repository: then everything may be there.
fn is_on_path(name: &str, path: &str) -> bool {
    path.split(':').any(|directory| {
        let directory = Path::new(directory);
        !directory.is_absolute() || is_executable(&directory.join(name))
    })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, Permissions};
    use std::time::Duration;

    use super::*;

    fn missing(kind: CheckKind, exit_code: Option<i32>, path: &str) -> Option<String> {
        let check = Check::new("tests", kind, Duration::from_secs(1));
        let result = CheckResult {
            name: "tests".into(),
            met: exit_code == Some(0),
            exit_code,
            problem: None,
            evidence: String::new(),
            took: Duration::ZERO,
            output: None,
            tests: None,
        };
        let variables = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        missing_program(&check, &result, &Environment::new(&variables, &[], |_| false))
    }

    fn command(run: &str) -> CheckKind {
        CheckKind::Command { run: run.into(), stdout: None }
    }

    #[test]
    fn a_program_that_is_looked_up_on_path_and_not_there_is_named() {
        let bin = tempfile::tempdir().unwrap();
        let path = format!("/nowhere:{}", bin.path().display());
        for (name, mode) in [("cargo", 0o755), ("notes", 0o644)] {
            fs::write(bin.path().join(name), "").unwrap();
            fs::set_permissions(bin.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        for (line, code, expected) in [
            ("carog test", 127, Some("carog")),
            ("RUST_LOG=debug carog test", 127, Some("carog")),
            ("cd sub && carog test", 127, Some("carog")),
            ("carog fmt --check && carog test", 127, Some("carog")),
            ("carog build && ./run.sh", 127, Some("carog")),
            ("RUST_LOG=x carog test --all", 127, Some("carog")),
            ("A='b c' carog test", 127, Some("carog")),
            ("carog test 2>&1", 127, Some("carog")),
            ("carog test > log 2>&1 < input", 127, Some("carog")),
            ("carog test 'a; (b) | `c`' \"d & $E\"", 127, Some("carog")),
            ("notes", 126, Some("notes")),
            // Its own exit code, of a program that is there.
            ("cargo test", 127, None),
            ("cargo build && carog test", 127, None),
            // A path: the agent may be asked to write it.
            ("./scripts/test.sh", 127, None),
            ("scripts/test.sh", 126, None),
            ("sh -c ./test.sh", 127, Some("sh")),
            // Not plain to see.
            ("$RUNNER test", 127, None),
            ("\"my tests\" run", 127, None),
            ("'carog' test", 127, None),
            ("ca\\rog test", 127, None),
            // Another failure.
            ("carog test", 1, None),
            ("carog test", 0, None),
        ] {
            assert_eq!(missing(command(line), Some(code), &path).as_deref(), expected, "{line}");
        }
        assert_eq!(missing(command("carog test"), Some(127), "node_modules/.bin:/usr/bin"), None);
    }

    #[test]
    fn a_program_is_not_missing_if_something_else_may_explain_the_exit_code() {
        for line in [
            "export PATH=\"$PWD/bin:$PATH\"; mytool",
            "export PATH=\"$PWD/bin:$PATH\" && mytool",
            "PATH=bin:$PATH; export PATH; mytool",
            "PATH=$PWD/bin:$PATH mytool",
            "PATH=\"$PWD/bin:$PATH\" mytool",
            "PATH+=:bin mytool",
            "A=b PATH=bin mytool",
            "f() { ./run.sh; }; f",
            "mytool() { ./bin/mytool; }; mytool",
            "alias mytool=./run.sh\nmytool",
            ". ./env.sh && mytool",
            "source env.sh && mytool",
            "./run.sh || fallbacktool",
            "mytool || ./run.sh",
            "cat missing | nosuch3 | cat; ./run.sh",
            "nosuch & ./run.sh",
            "nosuch &> log",
            "./run.sh && nosuch",
            "nosuch\n./run.sh",
            "A='b nosuch c' ./run.sh",
            "cd 'a && nosuch b' && ./run.sh",
            "nosuch $(./run.sh)",
            "nosuch \"`./run.sh`\"",
            "nosuch <(./run.sh)",
            "nosuch $'\\'' ; ./run.sh #'",
            "nosuch 'open",
            "if nosuch; then ./run.sh; fi",
            "! nosuch",
            "command nosuch",
            "exec nosuch",
            "cd sub",
            "A=b",
            "",
        ] {
            assert_eq!(missing(command(line), Some(127), "/nowhere"), None, "{line}");
        }
    }

    #[test]
    fn a_program_that_judges_is_looked_up_as_well() {
        let program = |name: &str| CheckKind::Program { argv: vec![name.into(), "--strict".into()] };
        assert_eq!(missing(program("judeg"), None, "/nowhere").as_deref(), Some("judeg"));
        assert_eq!(missing(program("./judge"), None, "/nowhere"), None);
        assert_eq!(missing(program("judeg"), Some(1), "/nowhere"), None);
        let file = CheckKind::File { path: "CHANGES.md".into(), matches: None };
        assert_eq!(missing(file, None, "/nowhere"), None);
    }
}
