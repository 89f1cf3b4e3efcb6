//! Agents that are no more than a program.

mod support;

use support::{FILE, at, error, loaded};
use towline_agent::{CliSettings, PromptBy, WindowSize};
use towline_config::{Warning, WarningKind};

fn agent(lines: &str) -> String {
    format!("[agents.mine]\nkind = \"command\"\n{lines}")
}

fn problem(lines: &str) -> String {
    error(&agent(lines)).replace(FILE, "FILE")
}

#[test]
fn a_command_is_all_that_must_be_set() {
    let loaded = loaded(&agent("command = [\"mine\"]\nturn_timeout = \"2h\"\npermission = \"bypass\""));
    let mine = &loaded.config.agents["mine"];
    assert_eq!(mine.cli, CliSettings::default());
    assert_eq!(mine.cli.prompt, PromptBy::Stdin);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn every_key_reaches_the_agent() {
    let loaded = loaded(&agent(
        "command = [\"mine\", \"-f\", \"{prompt_file}\"]
         prompt = \"file\"
         resume = [\"--resume\", \"{session}\"]
         session_pattern = \"id: (.+)\"
         cost_pattern = \"(?:cost|price): (.+)\"
         limit_pattern = \"quota\"
         terminal = true
         columns = 200",
    ));
    let wanted = CliSettings {
        prompt: PromptBy::File,
        resume: vec!["--resume".into(), "{session}".into()],
        session_pattern: Some("id: (.+)".into()),
        cost_pattern: Some("(?:cost|price): (.+)".into()),
        limit_pattern: Some("quota".into()),
        terminal: Some(WindowSize { columns: 200, rows: 40 }),
    };
    assert_eq!(loaded.config.agents["mine"].cli, wanted);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn a_prompt_in_the_arguments_is_warned_of() {
    let loaded = loaded(&agent("command = [\"mine\", \"{prompt}\"]\nprompt = \"argument\""));
    assert_eq!(loaded.config.agents["mine"].cli.prompt, PromptBy::Argument);
    let kind = WarningKind::VisiblePrompt;
    let warning = Warning { key: "agents.mine.prompt".into(), place: at(4, 1), kind };
    assert_eq!(loaded.warnings, [warning]);
    assert_eq!(
        loaded.warnings[0].to_string().replace(FILE, "FILE"),
        "`agents.mine.prompt` shows the prompt to everybody on this machine who lists processes; \"stdin\" and \
         \"file\" do not; set in FILE (line 4, column 1)"
    );
}

#[test]
fn what_does_not_fit_together_is_refused_with_the_way_out() {
    for (lines, wanted) in [
        (
            "command = [\"mine\"]\nprompt = \"file\"",
            "`agents.mine.prompt` is \"file\" and no word marks the place in FILE (line 4, column 1); \
             add the word `{prompt_file}` to `command` where the prompt belongs",
        ),
        (
            "command = [\"mine\", \"{prompt}\"]",
            "`agents.mine.command` has the word `{prompt}`, which has no meaning here in FILE (line 3, column 1); \
             set `prompt = \"argument\"`, or take the word out",
        ),
        (
            "command = [\"mine\"]\nargs = [\"{prompt_file}\"]",
            "`agents.mine.args` has the word `{prompt_file}`, which has no meaning here in FILE (line 4, column 1); \
             set `prompt = \"file\"`, or take the word out",
        ),
        (
            "command = [\"mine\"]\nresume = [\"{session}\"]",
            "`agents.mine.resume` names `{session}`, and nothing defines it in FILE (line 4, column 1); \
             add a `session_pattern` that finds the id in the program's output",
        ),
        (
            "command = [\"mine\"]\ncost_pattern = \"cost\"",
            "`agents.mine.cost_pattern` must have exactly one group in FILE (line 4, column 1); \
             put the amount, and nothing else, into one group `(…)`; others are `(?:…)`",
        ),
        (
            "command = [\"mine\"]\nterminal = false\nrows = 24",
            "`agents.mine.rows` is the size of a terminal, and there is none in FILE (line 5, column 1); \
             set `terminal = true`, or take it out",
        ),
        (
            "command = [\"mine\"]\nterminal = true\ncolumns = 0",
            "`agents.mine.columns` cannot be `0` in FILE (line 5, column 11); \
             write a whole number from 1, such as `120`",
        ),
        (
            "command = [\"mine\"]\ndeny = [\"Bash\"]",
            "`agents.mine.deny` does not go with the kind `command` in FILE (line 4, column 1); \
             Towline cannot enforce it for a plain program: set the program's own options in `command` or `args`",
        ),
        (
            "command = [\"mine\"]\nmcp = { x = { command = [\"x\"] } }",
            "`agents.mine.mcp` does not go with the kind `command` in FILE (line 4, column 9); \
             configure the program itself",
        ),
    ] {
        assert_eq!(problem(lines), wanted, "{lines}");
    }
}

#[test]
fn its_keys_are_refused_for_other_kinds() {
    for (key, value) in [
        ("prompt", "\"stdin\""),
        ("resume", "[\"--continue\"]"),
        ("session_pattern", "\"(x)\""),
        ("cost_pattern", "\"(x)\""),
        ("limit_pattern", "\"x\""),
        ("terminal", "true"),
        ("columns", "120"),
        ("rows", "40"),
    ] {
        let wanted = format!(
            "`agents.claude.{key}` does not go with the kind `claude` in {FILE} (line 2, column 1); \
             it is for agents of the kind `command`"
        );
        assert_eq!(error(&format!("[agents.claude]\n{key} = {value}")), wanted);
    }
}
