//! The commands that a command line may run, for rules that deny some of them.
//!
//! It does not parse the shell's whole language. It finds the usual forms, such as `cd x && rm y`, `sudo rm y` and `sh -c 'rm y'`.
//! A command can be hidden from it on purpose, so `deny` is a guard rail and not a jail.

/// What makes one command line several commands, or lets it reach into another: no pattern speaks for all of it.
pub(super) const JOINTS: [char; 9] = [';', '&', '|', '\n', '`', '$', '<', '>', '('];

/// Words of the shell that come before a command.
const KEYWORDS: [&str; 9] = ["!", "{", "if", "then", "elif", "else", "while", "until", "do"];

/// Programs that run the command in their arguments.
const RUNNERS: [&str; 15] = [
    "builtin", "command", "doas", "env", "eval", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "time", "timeout", "xargs",
];

/// Programs that run the script after `-c`.
const SHELLS: [&str; 6] = ["bash", "dash", "ksh", "sh", "su", "zsh"];

/// How deep scripts in scripts are followed.
const DEEPEST: usize = 4;

/// Every command that the line may run, in several spellings: as it stands, and without what stands before the program.
pub(super) fn commands(line: &str) -> Vec<String> {
    let mut found = vec![line.trim().to_owned()];
    collect(line, DEEPEST, &mut found);
    found
}

fn collect(line: &str, depth: usize, found: &mut Vec<String>) {
    for part in line.split(JOINTS) {
        let mut rest = unquoted(part);
        while !rest.is_empty() {
            found.push(rest.to_owned());
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let program = word.rsplit('/').next().unwrap_or(word);
            if program != word {
                found.push(format!("{program} {after}").trim().to_owned());
            }
            if SHELLS.contains(&program) && depth > 0 {
                if let Some(script) = script(after) {
                    collect(script, depth - 1, found);
                }
                break;
            }
            if RUNNERS.contains(&program) {
                rest = unquoted(without_options(after));
            } else if KEYWORDS.contains(&word) || is_assignment(word) {
                rest = unquoted(after);
            } else {
                break;
            }
        }
    }
}

/// The text without white space, quotes and brackets at its ends.
fn unquoted(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ')' | '}' | '\\'))
}

/// The arguments of a program that runs the rest of them, from the first that is no option, number or variable.
fn without_options(arguments: &str) -> &str {
    let mut rest = arguments.trim_start();
    while let Some(word) = rest.split_whitespace().next() {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if !(word.starts_with('-') || is_number || is_assignment(word)) {
            break;
        }
        rest = rest[word.len()..].trim_start();
    }
    rest
}

/// What a shell runs: the text after `-c`, or after several options in one, like `-lc`.
fn script(arguments: &str) -> Option<&str> {
    let is_option = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let mut rest = arguments;
    while let Some(word) = rest.split_whitespace().next() {
        rest = rest.trim_start()[word.len()..].trim_start();
        if is_option(word) {
            return Some(rest);
        }
    }
    None
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_behind_whatever_runs_them() {
        for line in [
            "rm -rf x",
            "cd y && rm -rf x",
            "cd y; rm -rf x | cat",
            "sudo rm -rf x",
            "sudo -n /bin/rm -rf x",
            "env A=1 B=2 rm -rf x",
            "A=1 rm -rf x",
            "timeout 5 rm -rf x",
            "nice -n 10 rm -rf x",
            "find . | xargs -0 rm -rf x",
            "sh -c 'rm -rf x'",
            "bash -lc \"cd y && rm -rf x\"",
            "/bin/sh -e -c 'sh -c \"rm -rf x\"'",
            "if true; then rm -rf x; fi",
            "(rm -rf x)",
            "{ rm -rf x; }",
            "echo $(rm -rf x)",
            "! rm -rf x",
            "\\rm -rf x",
        ] {
            assert!(
                commands(line).iter().any(|command| command == "rm -rf x"),
                "{line}: {:?}",
                commands(line)
            );
        }
    }

    #[test]
    fn a_word_that_is_only_an_argument_is_no_command() {
        for line in ["git rm x", "echo rm x", "make rm", "grep -c rm x", "cat sh -c rm"] {
            let found = commands(line);
            assert!(!found.iter().any(|command| command.starts_with("rm")), "{line}: {found:?}");
        }
    }
}
