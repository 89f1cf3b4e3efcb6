//! Gemini CLI without ACP.

mod support;

use support::{FILE, error, loaded};
use towline_agent::{Kind, Permission};

fn agent(lines: &str) -> String {
    format!("[agents.mine]\nkind = \"gemini\"\ncommand = [\"gemini\"]\n{lines}")
}

#[test]
fn a_command_is_all_that_must_be_set() {
    let loaded = loaded(&agent("model = \"m\"\npermission = \"bypass\"\nallow = [\"Bash\"]\ndeny = []"));
    let mine = &loaded.config.agents["mine"];
    assert_eq!((mine.kind, mine.permission), (Kind::Gemini, Permission::Bypass));
    assert_eq!((mine.command.as_slice(), mine.model.as_deref()), (&["gemini".to_owned()][..], Some("m")));
    assert_eq!(loaded.warnings, []);
    // The agent of that name speaks ACP.
    assert_eq!(loaded.config.agents["gemini"].kind, Kind::Acp);
}

#[test]
fn it_can_be_held_to_reading() {
    let loaded = loaded(&agent("permission = \"read-only\""));
    assert_eq!(loaded.config.agents["mine"].permission, Permission::ReadOnly);
}

#[test]
fn what_it_could_not_be_held_to_is_refused_with_the_way_out() {
    for (lines, wanted) in [
        ("permission = \"ask\"", "`agents.mine.permission` does not go"),
        ("permission = \"deny\"", "`agents.mine.permission` does not go"),
        ("permission = \"edits\"", "`agents.mine.permission` does not go"),
        ("deny = [\"WebFetch\"]", "`agents.mine.deny` does not go"),
        ("mcp = { x = { command = [\"x\"] } }", "`agents.mine.mcp` does not go"),
    ] {
        let column = if lines.starts_with("mcp") { 9 } else { 1 };
        let wanted = format!(
            "{wanted} with the kind `gemini` in FILE (line 4, column {column}); \
             Gemini CLI supports it with `kind = \"acp\"` and `command = [\"gemini\", \"--acp\"]`"
        );
        let problem = error(&agent(lines)).replace(FILE, "FILE");
        assert_eq!(problem, wanted, "{lines}");
    }
}
