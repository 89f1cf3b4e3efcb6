//! A plain program: a shell script that plays the lines of the scripted model.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use towline_testkit::model::Reply;

use crate::stage::Line;
use crate::subject::{Conversations, Facts, Subject, When, is_around};

/// Where it keeps its prompts, below the home.
const PROMPTS: &str = "prompts";

struct Plain;

/// A shell script of the kind `command`.
pub(crate) fn plain() -> &'static dyn Subject {
    &Plain
}

impl Subject for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn settings(&self) -> String {
        "kind = \"command\"\n".to_owned()
    }

    fn prepare(&self, home: &Path, _server_url: &str, lines: &[Line]) -> Vec<(String, String)> {
        let program = home.join("plain.sh");
        std::fs::write(&program, script(lines)).expect("a script");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let command = format!("[{:?}]", program.display().to_string());
        vec![("TOWLINE_SET_agents__plain__command".to_owned(), command)]
    }

    fn is_it(&self, command: &str) -> bool {
        command.contains("plain.sh") && !is_around(command)
    }

    /// It has no model, so this is never called.
    fn shell_call(&self, _command: &str) -> Reply {
        Reply::text("nothing")
    }

    fn write_call(&self, _path: &Path, _content: &str) -> Reply {
        Reply::text("nothing")
    }

    fn ask_tool(&self) -> &'static str {
        ""
    }

    fn used_up_quota(&self) -> Reply {
        Reply::text("nothing")
    }

    fn prompts(&self, home: &Path) -> Option<Vec<String>> {
        let homes = home.with_file_name("towline").join("homes");
        let homes = std::fs::read_dir(homes).expect("private homes").flatten();
        let prompts = homes.map(|home| home.path().join("home").join(PROMPTS)).find(|folder| folder.exists());
        let read = |n: usize| std::fs::read_to_string(prompts.as_ref()?.join(n.to_string())).ok();
        Some((1..).map_while(read).collect())
    }

    /// It has none.
    fn forget_conversations(&self) -> &'static str {
        "true"
    }

    fn facts(&self) -> Facts {
        // It reports nothing by itself.
        Facts { conversations: Conversations::AreNone, reports_usage: When::AtItsEnd, ..Facts::USUAL }
    }
}

/// Keeps the prompt, and plays the first line whose words are in it.
fn script(lines: &[Line]) -> String {
    let mut script = format!(
        "#!/bin/sh\nprompts=$HOME/{PROMPTS}\nmkdir -p \"$prompts\"\nn=$(($(ls \"$prompts\" | wc -l) + 1))\ncat > \"$prompts/$n\"\n"
    );
    for line in lines {
        let prompted = quoted(line.prompted);
        let runs = line.runs.as_deref().unwrap_or(":");
        let answers = quoted(line.answers.unwrap_or_default());
        writeln!(
            script,
            "if grep -qF -e {prompted} \"$prompts/$n\"; then\n{runs}\necho\necho {answers}\nexit\nfi"
        )
        .expect("written");
    }
    script
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
