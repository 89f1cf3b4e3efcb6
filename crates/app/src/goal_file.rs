//! Reading the file that a goal is written in. What is in it is `towline-config`'s business.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use towline_config::{GoalFile, LONGEST_GOAL_FILE, read_goal_file};

use crate::error::{Action, Error};

/// Reads a goal's file, which is named from `directory`.
pub(crate) fn read(directory: &Path, path: &Path) -> Result<GoalFile, Error> {
    Ok(read_goal_file(path, &text(&directory.join(path), path)?)?)
}

/// A stream that a person names, like `/dev/stdin` or the `<(…)` of a shell, is read to its end. Anything else has to be a
/// regular file: nobody would know what is waited for.
fn open(path: &Path) -> io::Result<File> {
    let is_stream = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if is_stream { File::open(path) } else { towline_files::open_following(path) }
}

fn text(path: &Path, shown: &Path) -> Result<String, Error> {
    let failed =
        |why: &dyn std::fmt::Display| Error::usage(format!("cannot read {}: {why}", shown.display()));
    let open = open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            failed(&"there is no such file").hint([("a task in plain words needs no `--file`", Action::Run)])
        }
        _ => failed(&error),
    })?;
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to know that it is too long, however long it is.
    let read = open.take(LONGEST_GOAL_FILE as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(&error))?;
    if bytes.len() > LONGEST_GOAL_FILE {
        return Err(failed(&format_args!("it has more than {LONGEST_GOAL_FILE} bytes"))
            .hint("shorten the prompt, and name files that the agent should read"));
    }
    String::from_utf8(bytes).map_err(|_| failed(&"it is no text in UTF-8"))
}
