//! Whether a check failed because a program is not installed, which no work in the repository can change.
//!
//! Only programs that are looked up on PATH count. A path such as `./scripts/test.sh` may be what the agent is asked to write,
//! and a program on PATH that exits with 127 itself (as `npm test` does when a script of the project is missing) may be
//! mended by the work, too.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use towline_core::{Check, CheckKind, CheckResult};

use crate::environment::Environment;

/// How a shell exits when a program cannot be executed, and when it is not found.
const NOT_RUN: [i32; 2] = [126, 127];

/// What a shell knows by itself: no program of that name has to be on PATH.
const OF_THE_SHELL: [&str; 47] = [
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "getopts", "hash", "if",
    "in", "jobs", "kill", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "then",
    "times", "trap", "true", "type", "umask", "unset", "until", "while",
];

/// The program that a failed check needs and that is not on PATH.
pub fn missing_program(check: &Check, result: &CheckResult, environment: &Environment) -> Option<String> {
    if result.met {
        return None;
    }
    let path = environment.variables().get("PATH")?;
    let is_missing = |name: &&str| is_bare(name) && !is_on_path(name, path);
    let missing = match &check.kind {
        CheckKind::Command { run, .. } if result.exit_code.is_some_and(|code| NOT_RUN.contains(&code)) => {
            programs_of(run).find(is_missing)
        }
        CheckKind::Program { argv } if result.exit_code.is_none() => {
            argv.first().map(String::as_str).filter(is_missing)
        }
        _ => None,
    };
    missing.map(str::to_owned)
}

/// The first words of the commands in a line, as far as they are plain to see.
fn programs_of(line: &str) -> impl Iterator<Item = &str> {
    let commands = line.split(['\n', ';', '|', '&']);
    let firsts = commands.filter_map(|command| command.split_whitespace().find(|word| !is_assignment(word)));
    firsts.filter(|word| !OF_THE_SHELL.contains(word))
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
        let check = Check { name: "tests".into(), kind, timeout: Duration::from_secs(1) };
        let result = CheckResult {
            name: "tests".into(),
            met: exit_code == Some(0),
            exit_code,
            problem: None,
            evidence: String::new(),
            took: Duration::ZERO,
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
            ("cargo build && carog test", 127, Some("carog")),
            ("notes", 126, Some("notes")),
            // Its own exit code, of a program that is there.
            ("cargo test", 127, None),
            // A path: the agent may be asked to write it.
            ("./scripts/test.sh", 127, None),
            ("scripts/test.sh", 126, None),
            ("sh -c ./test.sh", 127, Some("sh")),
            // Not plain to see.
            ("$RUNNER test", 127, None),
            ("\"my tests\" run", 127, None),
            // Another failure.
            ("carog test", 1, None),
            ("carog test", 0, None),
        ] {
            assert_eq!(missing(command(line), Some(code), &path).as_deref(), expected, "{line}");
        }
        assert_eq!(missing(command("carog test"), Some(127), "node_modules/.bin:/usr/bin"), None);
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
