//! Words given on the command line, or on standard input by `-`.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use towline_app::{Error, quoted};

/// The words as one text, trimmed; `what` names them in errors.
pub(crate) fn words(words: &[String], what: &str) -> Result<String, Error> {
    let text = if words == ["-"] {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Error::usage(format!("cannot read the {what} from standard input: {error}")))?;
        text
    } else {
        words.join(" ")
    };
    match text.trim() {
        "" => Err(Error::usage(format!("the {what} is empty"))),
        text => Ok(text.to_owned()),
    }
}

/// Like [`words`], for the task that is given to `command`. A single word that looks like a path names a file or folder; `instead` is
/// what to do. From standard input, any text is a task.
pub(crate) fn prompt(given: &[String], command: &str, instead: &str) -> Result<String, Error> {
    let text = words(given, "prompt").map_err(|error| error.hint(instead))?;
    if given != ["-"] && looks_like_path(&text) {
        let what = format!("`{text}` is no task: it looks like a file or folder");
        return Err(Error::usage(what).hint(format!("{instead}; {}", as_task(&text, command))));
    }
    Ok(text)
}

/// How to give a word as a task that looks like a path.
pub(crate) fn as_task(word: &str, command: &str) -> String {
    format!("if it is a task all the same: echo {} | towline {command} -", quoted(word))
}

/// The endings of files that people write tasks into.
const TEXTS: &[&str] = &["md", "markdown", "toml", "txt", "yaml", "yml", "json"];

fn looks_like_path(text: &str) -> bool {
    let ending = Path::new(text).extension().and_then(OsStr::to_str);
    let is_text = ending.is_some_and(|ending| TEXTS.iter().any(|known| ending.eq_ignore_ascii_case(known)));
    !text.contains(char::is_whitespace) && (text.contains('/') || is_text)
}

/// The longest message. Longer texts belong in a file that the agent reads.
const LONGEST_MESSAGE: usize = 256 * 1024;

/// Like [`words`], for a message to a working agent.
pub(crate) fn message(given: &[String], what: &str) -> Result<String, Error> {
    let text = words(given, what)?;
    if text.len() > LONGEST_MESSAGE {
        return Err(Error::usage(format!(
            "the {what} has {} bytes; {LONGEST_MESSAGE} are the most",
            text.len()
        ))
        .hint("put it into a file, and name the file in the message"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_word_that_looks_like_a_path_is_no_task() {
        for path in ["goals.txt", "goals/", "a/b.rs", "GOAL.MD", "ci.yml"] {
            let refused = prompt(&[path.to_owned()], "add", "give a file").expect_err(path);
            let wanted = format!("give a file; if it is a task all the same: echo {path} | towline add -");
            assert!(refused.message().contains(path), "{refused}");
            assert_eq!(refused.way_out(), Some(wanted.as_str().into()));
        }
        for task in [&["fix"][..], &["Node.js"], &["v1.2"], &["read goals.txt"], &["read", "goals.txt"]] {
            let given: Vec<String> = task.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(prompt(&given, "add", "").expect("a task"), task.join(" "));
        }
    }
}
