//! The sample project that the demo repairs: two failing tests, and a script that needs two attempts.
//!
//! It needs nothing but `sh`. The first attempt leaves half of the work undone, so that the demo shows what a verdict
//! is for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The command of the goal's only check, run in the project's root.
pub const CHECK: &str = "sh tests/run.sh";

/// The goal's prompt.
pub const PROMPT: &str =
    "greet.sh does not print what README.md promises. Fix it; leave the tests as they are.";

/// The script that repairs the project in two attempts.
pub const SCRIPT: &str = include_str!("../demo/script.toml");

const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/README.md")),
    ("greet.sh", include_str!("../demo/greet.sh")),
    ("tests/run.sh", include_str!("../demo/tests/run.sh")),
];

/// Writes the project's files into `directory`. The caller creates the repository.
pub fn write_project(directory: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// Makes the project in `folder`, with a configuration whose agent is the script, played by `program`. Returns its directory.
pub fn make(folder: &Path, program: &Path) -> io::Result<PathBuf> {
    let project = folder.join("greeter");
    fs::create_dir_all(&project)?;
    write_project(&project)?;
    let script = folder.join("agent.toml");
    fs::write(&script, SCRIPT)?;
    let quoted = |path: &Path| serde_json::to_string(&path.display().to_string());
    let configuration = format!(
        "# The demo's agent is a script inside towline; with a real one this is all it takes:\n\
         #   [defaults]\n\
         #   agents = [\"claude\"]\n\
         [defaults]\n\
         agents = [\"scripted\"]\n\n\
         [agents.scripted]\n\
         kind = \"script\"\n\
         command = [{}, \"script\", {}]\n\n\
         [[checks]]\n\
         name = \"tests\"\n\
         run = \"{CHECK}\"\n\n\
         [protect]\n\
         paths = [\"tests/**\", \"towline.toml\"]\n",
        quoted(program)?,
        quoted(&script)?,
    );
    fs::write(project.join("towline.toml"), configuration)?;
    Ok(project)
}
