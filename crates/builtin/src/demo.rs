//! The sample project that the demo repairs: two failing tests, and a script that needs two attempts.
//!
//! It needs nothing but `sh`. The first attempt ends in good faith with half of the work, so that the demo shows
//! what a verdict is for.

use std::fs;
use std::io;
use std::path::Path;

/// How the demo's goal is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoCheck {
    /// The check's name.
    pub name: &'static str,
    /// Its command, run in the project's root.
    pub command: &'static str,
}

/// The demo's one check.
pub const CHECK: DemoCheck = DemoCheck { name: "tests", command: "sh tests/run.sh" };

/// What the agent is asked to do.
pub const PROMPT: &str =
    "greet.sh does not say what README.md promises. Fix it; leave the tests as they are.";

/// The script that does it in two attempts.
pub const SCRIPT: &str = include_str!("../demo/script.toml");

const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/README.md")),
    ("greet.sh", include_str!("../demo/greet.sh")),
    ("tests/run.sh", include_str!("../demo/tests/run.sh")),
];

/// Writes the project's files into `directory`. Making a repository of it is up to the caller.
pub fn write_project(directory: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}
