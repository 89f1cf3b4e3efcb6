//! Words given on the command line, or on standard input by `-`.

use std::io::Read;

use towline_app::Error;

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

/// Like [`words`], for a task. A single word with a slash is the name of a file or folder that is not there; `instead` is what to do.
pub(crate) fn prompt(given: &[String], instead: &str) -> Result<String, Error> {
    let text = words(given, "prompt")?;
    if text.contains('/') && !text.contains(char::is_whitespace) {
        return Err(
            Error::usage(format!("`{text}` is no task: it looks like a file or folder")).hint(instead)
        );
    }
    Ok(text)
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
