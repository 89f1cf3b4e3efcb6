//! The commands that a command line may run, for rules that deny some of them.
//!
//! It does not parse the shell's whole language. It finds the usual forms, such as `cd x && rm y`, `sudo rm y` and `sh -c 'rm y'`,
//! with or without quotes. A command can be hidden from it on purpose, so `deny` is a guard rail and not a jail.

use std::iter::Peekable;
use std::str::Chars;

/// Characters that join commands or embed one: no pattern covers such a line as a whole.
pub(super) const JOINTS: [char; 9] = [';', '&', '|', '\n', '`', '$', '<', '>', '('];

/// Characters that end a simple command outside quotes. `)` comes before a command in `case`.
const ENDS: [char; 7] = [';', '&', '|', '\n', '`', '(', ')'];

/// Words of the shell that come before a command.
const KEYWORDS: [&str; 9] = ["!", "{", "if", "then", "elif", "else", "while", "until", "do"];

/// Programs that run the command in their arguments.
const RUNNERS: [&str; 30] = [
    "builtin", "busybox", "chroot", "chrt", "command", "doas", "env", "eval", "exec", "flock", "ionice",
    "nice", "nohup", "nsenter", "parallel", "pkexec", "runuser", "script", "setsid", "stdbuf", "strace",
    "sudo", "taskset", "time", "timeout", "toybox", "trap", "unshare", "watch", "xargs",
];

/// The runners whose first argument is a file, a directory or the like, with the command behind it.
const RUNNERS_IN: [&str; 3] = ["chroot", "flock", "script"];

/// Programs that run the script after `-c`.
const SHELLS: [&str; 6] = ["bash", "dash", "ksh", "sh", "su", "zsh"];

/// Options of `find` that come before a command.
const FIND_ACTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Options of `git` that come before the subcommand and take the next word as their value.
const GIT_OPTIONS: [&str; 6] = ["-C", "-c", "--config-env", "--git-dir", "--namespace", "--work-tree"];

/// How deep scripts in scripts are followed.
const DEEPEST: usize = 4;

/// Whether `is_match` accepts a command that the line may run. Each command is tried in several spellings: as written, with
/// single spaces and without quotes, and without the directory of its program.
pub(super) fn may_run(line: &str, is_match: &dyn Fn(&str) -> bool) -> bool {
    is_match(line.trim()) || script_may_run(line, DEEPEST, is_match)
}

/// Whether a prefix of the line hardly limits what it runs: it begins with an assignment or with something that runs
/// another command.
pub(super) fn begins_with_a_runner(line: &str) -> bool {
    let commands = simple_commands(line);
    let Some(command) = commands.first().filter(|command| !command.words.is_empty()) else { return false };
    let (word, program) = (&*command.words[0].text, command.program(0));
    let runs_others = RUNNERS.contains(&program) || SHELLS.contains(&program) || program == "find";
    runs_others || KEYWORDS.contains(&word) || is_assignment(word)
}

/// Splits the script both at joints outside quotes and at all joints, since quoted text may be a script for another program.
/// Each time with its redirections and without them: they may come before the program.
fn script_may_run(script: &str, depth: usize, is_match: &dyn Fn(&str) -> bool) -> bool {
    let [bare, bare_in_quotes] =
        [Quotes::Respected, Quotes::Ignored].map(|quotes| undirected(script, quotes));
    let mut parts = [script, &bare].into_iter().chain([script, &bare_in_quotes].into_iter().flat_map(pieces));
    parts.any(|part| simple_commands(part).iter().any(|command| command.may_run(depth, is_match)))
}

fn pieces(script: &str) -> impl Iterator<Item = &str> {
    script.split(JOINTS).map(trimmed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Respected,
    Ignored,
}

/// The script without redirections such as `2>&1`, `> file` and `<<< word`. The `&` of `&>` stays: some shells end a command there.
fn undirected(script: &str, quotes: Quotes) -> String {
    let mut left = String::with_capacity(script.len());
    let mut chars = script.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        if quote.is_none() && matches!(c, '<' | '>') {
            // The number or the variable of the descriptor.
            let word = left.rfind(|c: char| c.is_whitespace() || ENDS.contains(&c)).map_or(0, |end| end + 1);
            let descriptor = left[word..].trim_start_matches('{').trim_end_matches('}');
            if descriptor.len() + 2 == left.len() - word || descriptor.chars().all(|c| c.is_ascii_digit()) {
                left.truncate(word);
            }
            while chars.next_if(|c| matches!(c, '<' | '>')).is_some() {}
            chars.next_if(|c| matches!(c, '&' | '|'));
            skip_word(&mut chars, quotes);
            left.push(' ');
            continue;
        }
        left.push(c);
        follow_quote(c, &mut quote, quotes);
        if c == '\\' && quote != Some('\'') {
            left.extend(chars.next());
        }
    }
    left
}

/// Skips blanks and the word behind them.
fn skip_word(chars: &mut Peekable<Chars<'_>>, quotes: Quotes) {
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let mut quote = None;
    while let Some(c) = chars
        .next_if(|c| quote.is_some() || !(c.is_whitespace() || ENDS.contains(c) || matches!(c, '<' | '>')))
    {
        follow_quote(c, &mut quote, quotes);
        if c == '\\' && quote != Some('\'') {
            chars.next();
        }
    }
}

fn follow_quote(c: char, quote: &mut Option<char>, quotes: Quotes) {
    match c {
        '\'' | '"' if quotes == Quotes::Respected && quote.is_none() => *quote = Some(c),
        _ if *quote == Some(c) => *quote = None,
        _ => {}
    }
}

/// A program and its arguments, with whatever comes before them.
struct SimpleCommand<'a> {
    written: &'a str,
    words: Vec<Word>,
}

/// A word without its quotes and backslashes.
struct Word {
    /// Where it starts in the command as written.
    at: usize,
    text: String,
}

fn simple_commands(line: &str) -> Vec<SimpleCommand<'_>> {
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote = None;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        let is_end = quote.is_none() && ENDS.contains(&c);
        if is_end || quote.is_none() && c.is_whitespace() {
            words.extend(word.take());
            if is_end {
                commands.push(SimpleCommand { written: &line[..at], words: std::mem::take(&mut words) });
            }
            continue;
        }
        let text = &mut word.get_or_insert(Word { at, text: String::new() }).text;
        match c {
            '\\' if quote != Some('\'') => text.extend(chars.next().map(|(_, c)| c).filter(|c| *c != '\n')),
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ => text.push(c),
        }
    }
    words.extend(word);
    commands.push(SimpleCommand { written: line, words });
    // A lone backslash or an escaped newline is no word.
    for command in &mut commands {
        command.words.retain(|word| !word.text.is_empty());
    }
    commands
}

impl SimpleCommand<'_> {
    fn may_run(&self, depth: usize, is_match: &dyn Fn(&str) -> bool) -> bool {
        let mut is_start = vec![false; self.words.len()];
        is_start.iter_mut().take(1).for_each(|first| *first = true);
        for at in 0..self.words.len() {
            if !is_start[at] {
                continue;
            }
            let text = &self.words[at].text;
            let is_script = depth > 0 && text.contains(char::is_whitespace) && !is_assignment(text);
            if self.matches_from(at, is_match) || is_script && script_may_run(text, depth - 1, is_match) {
                return true;
            }
            for next in self.starts_behind(at) {
                is_start[next] = true;
            }
        }
        false
    }

    /// Whether the command that starts with this word matches in one of its spellings.
    fn matches_from(&self, at: usize, is_match: &dyn Fn(&str) -> bool) -> bool {
        let written = trimmed(&self.written[self.words[at].at..]);
        let plain = self.joined(at);
        let spellings = [written, without_directory(written), &plain, without_directory(&plain)];
        spellings.into_iter().any(is_match)
            || self.program(at) == "git" && is_match(&format!("git {}", self.joined(self.git_subcommand(at))))
    }

    /// Where commands may start that this word runs.
    fn starts_behind(&self, at: usize) -> Vec<usize> {
        let behind = at + 1..self.words.len();
        let text = |at: usize| self.words[at].text.as_str();
        match self.program(at) {
            "find" => behind.skip(1).filter(|at| FIND_ACTIONS.contains(&text(at - 1))).collect(),
            program if RUNNERS_IN.contains(&program) => self.operands(behind.start, 2),
            program if RUNNERS.contains(&program) => self.operands(behind.start, 1),
            program if SHELLS.contains(&program) => {
                let option = behind.clone().find(|at| is_script_option(text(*at)));
                option.map(|option| self.operands(option + 1, 1)).unwrap_or_default()
            }
            _ if KEYWORDS.contains(&text(at)) || is_assignment(text(at)) => behind.take(1).collect(),
            _ => Vec::new(),
        }
    }

    /// The arguments that may be a command: up to `most` plain ones, and all that may be the value of an option,
    /// because it is unknown which options take values.
    fn operands(&self, from: usize, most: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut plain = 0;
        let mut may_be_value = false;
        for (at, word) in self.words.iter().enumerate().skip(from) {
            let text = word.text.as_str();
            if text.starts_with('-') {
                may_be_value = text != "--" && !text.contains('=');
                continue;
            }
            found.push(at);
            let is_number = text.starts_with(|c: char| c.is_ascii_digit());
            plain += usize::from(!(may_be_value || is_number || is_assignment(text)));
            if plain == most {
                break;
            }
            may_be_value = false;
        }
        found
    }

    fn git_subcommand(&self, git: usize) -> usize {
        let mut at = git + 1;
        while let Some(word) = self.words.get(at).filter(|word| word.text.starts_with('-')) {
            at += if GIT_OPTIONS.contains(&word.text.as_str()) { 2 } else { 1 };
        }
        at
    }

    fn program(&self, at: usize) -> &str {
        without_directory(&self.words[at].text)
    }

    fn joined(&self, from: usize) -> String {
        let texts: Vec<_> = self.words.iter().skip(from).map(|word| word.text.as_str()).collect();
        texts.join(" ")
    }
}

/// The text without white space, quotes and brackets at its ends.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ')' | '}' | '\\'))
}

/// `rm x` for `/bin/rm x`.
fn without_directory(command: &str) -> &str {
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    command[..end].rfind('/').map_or(command, |slash| &command[slash + 1..])
}

/// `-c`, alone or among other short options, like `-lc`.
fn is_script_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
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
            "trap 'rm -rf x' EXIT",
            "busybox rm -rf x",
            "unshare -r rm -rf x",
            "chroot / rm -rf x",
            "script -qc 'rm -rf x' f",
            "script f -c 'rm -rf x'",
        ] {
            assert!(may_run(line, &|command| command == "rm -rf x"), "{line}");
        }
    }

    #[test]
    fn commands_are_found_behind_redirections() {
        for line in [
            "> /tmp/o rm -rf x",
            ">/tmp/o rm -rf x",
            "</dev/null rm -rf x",
            "ls; >/dev/null rm -rf x",
            "2>f rm -rf x",
            "2>&1 rm -rf x",
            "2>& 1 >>f rm -rf x",
            "&>f rm -rf x",
            "ls &>f rm -rf x",
            ">|f rm -rf x",
            "<<<w rm -rf x",
            "<<< 'a b' rm -rf x",
            "<<-E rm -rf x",
            "{fd}>f rm -rf x",
            "> 'a b' rm -rf x",
            "> a\\ b rm -rf x",
            ">$(echo f) rm -rf x",
            "> >(rm -rf x) ls",
            "FOO=1 >f rm -rf x",
            "sudo 2>f rm -rf x",
            "rm 2>f -rf >&2 x",
            "sh -c '>f rm -rf x'",
            "echo \"$(2>&1 rm -rf x)\"",
            "cat <<X\nit's\nX\n>f rm -rf x",
        ] {
            assert!(may_run(line, &|command| command == "rm -rf x"), "{line}");
        }
        for line in ["echo 'a > b rm x'", "echo \\> f rm x", "ls 2>&1 >f"] {
            assert!(!may_run(line, &|command| command.starts_with("rm")), "{line}");
        }
    }

    #[test]
    fn a_word_that_is_only_an_argument_is_no_command() {
        for line in [
            "git rm x",
            "echo rm x",
            "echo 'rm x'",
            "echo \\'rm x",
            "make rm",
            "grep -c rm x",
            "cat sh -c rm",
            "sudo docker rm x",
            "timeout 5 git rm x",
            "A='b rm x' make",
            "find . -name rm",
            "git -C rm status",
            "bash rm",
        ] {
            assert!(!may_run(line, &|command| command.starts_with("rm")), "{line}");
        }
    }

    #[test]
    fn a_command_is_found_in_every_plain_spelling() {
        for line in [
            "git  push",
            "git\tpush",
            "git \\\n push",
            "'git' push",
            "\"git\" push",
            "g''it push",
            "\\git push",
            "git 'push'",
            "git -C . push",
            "git --no-pager push",
            "git -c a.b=c --git-dir x push",
            "/usr/bin/git -C . push",
            "sudo -u x git push",
            "sudo -u $USER git push",
            "sudo -E git push",
            "sudo -p '(x)' -- git push",
            "bash -c -- 'git push'",
            "bash -o pipefail -c 'git push' name",
            "bash -c \"echo 'a;b' && 'git' push\"",
            "sh -ec 'git push'",
            "sh -ce 'git push'",
            "sudo -u x sh -c 'git push'",
            "eval 'git  push'",
            "env -S 'git push'",
            "case a in a) git push;; esac",
            "case a in b) true;; 'a') git push;; esac",
            "f() { git push; }; f",
            "find . -exec git push {} ;",
            "find . -type f -execdir sh -c 'git push' \\;",
            "flock f git push",
            "flock -w 5 f git push",
            "flock f -c 'git push'",
            "timeout 5 git push",
            "timeout -s KILL 5m git push",
            "env -i A=b git push",
            "nice -n 5 git push",
            "nohup git push",
            "xargs git push",
            "xargs -I {} git push",
            "cat <<X\nit's\nX\ngit push",
        ] {
            assert!(may_run(line, &|command| command.starts_with("git push")), "{line}");
        }
    }
}
