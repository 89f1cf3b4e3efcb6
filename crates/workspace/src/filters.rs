//! Filters that run a part of the repository. Towline's own git runs the user's filters on the agent's files, so a program
//! that the agent can change would decide what is judged, outside of any supervisor.

use std::collections::BTreeSet;
use std::path::Path;

use towline_core::{Commit, GitSettings};

use crate::settings::{Filter, filters};
use crate::tree::Files;
use crate::{Repository, WorkspaceError};

/// Programs whose plain arguments are the names of what they do.
const WITH_SUBCOMMANDS: [&str; 3] = ["git", "git-lfs", "git-crypt"];

/// Programs that take expressions such as `s/a/b/`.
const WITH_EXPRESSIONS: [&str; 3] = ["sed", "gsed", "perl"];

/// How paths begin that lead out of every repository.
const HOME: [&str; 3] = ["~/", "$HOME/", "${HOME}/"];

impl Repository {
    /// Fails if the attributes of a commit name a filter that runs something inside the repository.
    pub fn refuse_filters_inside(&self, base: &Commit, settings: &GitSettings) -> Result<(), WorkspaceError> {
        let suspects: Vec<Filter<'_>> =
            filters(settings).filter(|filter| !words(filter.command).is_empty()).collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let repository = self.clone().with_settings(settings);
        let files = repository.files_of(base)?;
        let attributes = repository.attributes_of(&files)?;
        let used: BTreeSet<&str> =
            attributes.split_whitespace().filter_map(|word| word.strip_prefix("filter=")).collect();
        for filter in suspects.iter().filter(|filter| used.contains(filter.name)) {
            let leads_inside = |word: &String| leads_inside(word, &files, self.root());
            if let Some(word) = words(filter.command).into_iter().find(leads_inside) {
                return Err(WorkspaceError::FilterInside {
                    setting: format!("filter.{}.{}", filter.name, filter.key),
                    command: filter.command.to_owned(),
                    word,
                });
            }
        }
        Ok(())
    }
}

/// Whether a word of a command names something in the repository.
fn leads_inside(word: &str, files: &Files, root: &Path) -> bool {
    // `--file=tools/x`, and `TOOL=tools/x` before a command.
    let path = word.rsplit_once('=').map_or(word, |(_, value)| value);
    if HOME.iter().any(|home| path.starts_with(home)) || path.contains("://") {
        return false;
    }
    if path.starts_with('/') {
        let real = Path::new(path).canonicalize();
        return Path::new(path).starts_with(root) || real.is_ok_and(|real| real.starts_with(root));
    }
    // The output of `$(…)` or backticks is not known; what follows it is a part of the word.
    path.contains('/') || files.contains_key(path.trim_matches(['$', '(', ')', '`']).as_bytes())
}

/// The words of a command that may be paths: neither plain names of programs, which the shell looks up, nor expressions.
fn words(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    for words in simple_commands(command) {
        let Some(at) = words.iter().position(|word| !is_assignment(word)) else { continue };
        let program = words[at].rsplit('/').next().unwrap_or_default();
        for (number, word) in words.iter().enumerate() {
            let is_name = !word.contains('/') && (number == at || WITH_SUBCOMMANDS.contains(&program));
            if is_name || (WITH_EXPRESSIONS.contains(&program) && is_expression(word)) {
                continue;
            }
            if word.contains(char::is_whitespace) {
                // A command in a command, as in `sh -c 'tools/clean --all'`.
                found.extend(self::words(word));
            } else {
                found.push(word.clone());
            }
        }
    }
    found
}

/// Whether a word sets a variable of the command that follows.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Whether a word replaces something by something: `s/a/b/`.
fn is_expression(word: &str) -> bool {
    ["s/", "y/", "tr/"].iter().any(|start| word.starts_with(start)) && word.matches('/').count() >= 3
}

/// The words of each command in a line of shell, without their quotation marks.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, ';' | '|' | '&' | '\n') => {
                commands.last_mut().unwrap_or(&mut Vec::new()).extend(word.take());
                commands.push(Vec::new());
            }
            (None, ' ' | '\t' | '<' | '>') => {
                commands.last_mut().unwrap_or(&mut Vec::new()).extend(word.take());
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    commands.last_mut().unwrap_or(&mut Vec::new()).extend(word);
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Mode, TrackedFile};

    fn found(command: &str) -> Option<String> {
        let entry = || TrackedFile { mode: Mode::File, id: String::new() };
        let paths = ["clean.py", "clean", "sed", "tools/x"];
        let files: Files = paths.into_iter().map(|path| (path.as_bytes().to_vec(), entry())).collect();
        words(command).into_iter().find(|word| leads_inside(word, &files, Path::new("/project")))
    }

    #[test]
    fn installed_programs_are_outside_the_repository() {
        for command in [
            "",
            "cat",
            "git-lfs clean -- %f",
            "git-lfs filter-process",
            "git lfs clean -- %f",
            "\"git-crypt\" clean --key-name=team",
            "nbstripout",
            "\"/usr/bin/python3\" -m nbstripout",
            "~/bin/strip --all %f",
            "$HOME/bin/strip",
            "sed -e 's/secret word/xxx/g'",
            "sed s/a/b/",
            "perl -pe 's/\\$Date[^\\$]*\\$/\\$Date\\$/'",
            "jq --indent 1 '.cells[] | select(.x)'",
            "cat > /dev/null; curl https://example.org/a/b",
            "LC_ALL=C sort",
        ] {
            assert_eq!(found(command), None, "{command}");
        }
    }

    #[test]
    fn relative_paths_and_tracked_files_are_inside_the_repository() {
        for (command, word) in [
            ("tools/x", "tools/x"),
            ("./x %f", "./x"),
            ("../project/x", "../project/x"),
            ("sh new/smudge.sh", "new/smudge.sh"),
            ("python3 clean.py", "clean.py"),
            ("python3 -- \"clean.py\" %f", "clean.py"),
            ("cat | sh 'clean.py'", "clean.py"),
            ("sh -c 'tools/x --all' --", "tools/x"),
            ("sh -c \"cat | sh clean.py\"", "clean.py"),
            ("sh $(git rev-parse --show-toplevel)/clean.py", "--show-toplevel)/clean.py"),
            ("echo $(sh clean.py)", "clean.py)"),
            ("\"$(git rev-parse --show-toplevel)\"/tools/x", "--show-toplevel)/tools/x"),
            ("\"$PWD\"/tools/x", "$PWD/tools/x"),
            ("awk --file=tools/x.awk", "--file=tools/x.awk"),
            ("awk -f clean.py", "clean.py"),
            ("RULES=tools/rules strip", "RULES=tools/rules"),
            ("sed -f s/a", "s/a"),
            ("bash s/a/b/c", "s/a/b/c"),
            ("/project/tools/x", "/project/tools/x"),
            ("git-lfs clean < tools/x", "tools/x"),
            ("sh cl\\ean", "clean"),
        ] {
            assert_eq!(found(command).as_deref(), Some(word), "{command}");
        }
    }
}
