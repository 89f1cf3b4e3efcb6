//! Errors have their place and their fix.

mod support;

use proptest::prelude::*;
use support::{FILE, error, error_of, loaded, repository, repository_name, user};
use towline_agent::Permission;
use towline_config::{ConfigError, load};
use towline_core::Visibility;

/// A table of files and the messages about them.
fn assert_messages(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(error(text), expected.replace("FILE", FILE), "{text}");
    }
}

#[test]
fn unknown_keys_are_named_with_their_place_and_the_nearest_known_key() {
    assert_messages(&[
        (
            "[budget]\nusd = 1\n[[chekcs]]\nrun = \"x\"",
            "unknown key `chekcs` in FILE (line 3, column 3); did you mean `checks`?",
        ),
        (
            "[[checks]]\nrun = \"x\"\n  tiemout = \"5m\"",
            "unknown key `checks.tiemout` in FILE (line 3, column 3); did you mean `checks.timeout`?",
        ),
        (
            "\n[agents.claude]\nmcp = { docs = { comand = [\"x\"] } }",
            "unknown key `agents.claude.mcp.docs.comand` in FILE (line 3, column 18); \
             did you mean `agents.claude.mcp.docs.command`?",
        ),
        (
            "model = \"opus\"",
            "unknown key `model` in FILE (line 1, column 1); did you mean `agents.NAME.model`?",
        ),
        (
            "[notify]\nsms = 1",
            "unknown key `notify.sms` in FILE (line 2, column 1); known keys there: command, webhook, secret_env, channels",
        ),
        (
            "budget.day.tokens = 1",
            "unknown key `budget.day.tokens` in FILE (line 1, column 12); known keys there: usd; or did you mean `budget.tokens`?",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_type_are_refused_with_what_to_write() {
    assert_messages(&[
        (
            "[budget]\nattempts = \"ten\"",
            "`budget.attempts` cannot be a string in FILE (line 2, column 12); \
             write a whole number from 0, such as `10`",
        ),
        (
            "baseline.mode = \"rde\"",
            "`baseline.mode` cannot be `rde` in FILE (line 1, column 17); \
             use one of auto, red, off; did you mean `red`?",
        ),
        (
            "defaults.briefing = 1",
            "`defaults.briefing` cannot be an integer in FILE (line 1, column 21); write `true` or `false`",
        ),
        (
            "defaults.agents = \"claude\"",
            "`defaults.agents` cannot be a string in FILE (line 1, column 19); \
             write an array of strings, such as `[\"…\"]`",
        ),
        (
            "protect.paths = [\n  \"a\",\n  1,\n]",
            "`protect.paths` cannot be an integer in FILE (line 3, column 3); write a string, in quotes",
        ),
        (
            "checks = [1]",
            "`checks` cannot be an integer in FILE (line 1, column 11); \
             write each check as a `[[checks]]` table with `run = \"…\"`",
        ),
        (
            "[checks]\nrun = \"x\"",
            "`checks` cannot be a table in FILE (line 1, column 1); \
             write each check as a `[[checks]]` table with `run = \"…\"`",
        ),
        (
            "budget = 5",
            "`budget` cannot be an integer in FILE (line 1, column 10); \
             it holds other keys: write it as `[budget]`",
        ),
        (
            "agents.claude.env.TOKEN = 1234",
            "`agents.claude.env.TOKEN` cannot be an integer in FILE (line 1, column 27); \
             write a string, in quotes",
        ),
    ]);
}

#[test]
fn bad_values_are_refused_with_what_to_write() {
    assert_messages(&[
        (
            "workspace.mode = \"container\"",
            "`workspace.mode` cannot be `container` in FILE (line 1, column 18); use one of clone, in-place",
        ),
        (
            "workspace.generated = [\"../a\"]",
            "`workspace.generated` cannot be `../a` in FILE (line 1, column 24); \
             name a path from the repository's root, without `..`, such as `\"src/**\"`",
        ),
        (
            "workspace.pass_env = [\"A=1\"]",
            "`workspace.pass_env` cannot be `A=1` in FILE (line 1, column 23); \
             write the name of an environment variable, such as `\"DATABASE_URL\"`",
        ),
        (
            "workspace.warm = [\"../a\"]",
            "`workspace.warm` cannot be `../a` in FILE (line 1, column 19); \
             name a directory by its path from the repository's root, without `..` and not `.git`, such as `\"target\"`",
        ),
        (
            "workspace.warm = [\"/a\"]",
            "`workspace.warm` cannot be `/a` in FILE (line 1, column 19); \
             name a directory by its path from the repository's root, without `..` and not `.git`, such as `\"target\"`",
        ),
        (
            "workspace.warm = [\"a/.git/b\"]",
            "`workspace.warm` cannot be `a/.git/b` in FILE (line 1, column 19); \
             name a directory by its path from the repository's root, without `..` and not `.git`, such as `\"target\"`",
        ),
        (
            "workspace.warm = [\".\"]",
            "`workspace.warm` cannot be `.` in FILE (line 1, column 19); \
             name a directory by its path from the repository's root, without `..` and not `.git`, such as `\"target\"`",
        ),
        (
            "workspace.confirm = \"always\"",
            "`workspace.confirm` cannot be `always` in FILE (line 1, column 21); use one of clean, never",
        ),
        (
            "[[checks]]\nrun = \"x\"\ntimeout = \"5 parsecs\"",
            "`checks.timeout` cannot be `5 parsecs` in FILE (line 3, column 11); \
             write a duration with its unit, such as `\"45s\"`, `\"30m\"` or `\"4h\"`",
        ),
        (
            "agents.claude.idle_timeout = 60",
            "`agents.claude.idle_timeout` cannot be an integer in FILE (line 1, column 30); \
             write a duration with its unit, such as `\"45s\"`, `\"30m\"` or `\"4h\"`",
        ),
        (
            "budget.wall = \"0s\"",
            "`budget.wall` cannot be `0s` in FILE (line 1, column 15); \
             write a duration above zero, such as `\"30m\"`",
        ),
        (
            "budget.turns = -1",
            "`budget.turns` cannot be `-1` in FILE (line 1, column 16); \
             write a whole number from 0, such as `10`",
        ),
        (
            "budget.usd = -0.5",
            "`budget.usd` cannot be `-0.5` in FILE (line 1, column 14); \
             write an amount of dollars from 0, such as `2.50`",
        ),
        (
            "budget.usd = inf",
            "`budget.usd` cannot be `inf` in FILE (line 1, column 14); \
             write an amount of dollars from 0, such as `2.50`",
        ),
        (
            "agents.claude.max_turns = 4_294_967_296",
            "`agents.claude.max_turns` cannot be `4294967296` in FILE (line 1, column 27); \
             write a whole number from 0 to 4294967295, such as `10`",
        ),
        (
            "agents.claude.kind = \"claud\"",
            "`agents.claude.kind` cannot be `claud` in FILE (line 1, column 22); \
             use one of claude, codex, acp, builtin, gemini, command, script; did you mean `claude`?",
        ),
        (
            "agents.claude.permission = \"yolo\"",
            "`agents.claude.permission` cannot be `yolo` in FILE (line 1, column 28); \
             use one of bypass, ask, deny, edits, read-only",
        ),
        (
            "[[checks]]\nrun = \"x\"\nstdout = \"(\"",
            "`checks.stdout` cannot be `(` in FILE (line 3, column 10); \
             write a regular expression (unclosed group)",
        ),
        (
            "agents.claude.command = []",
            "`agents.claude.command` cannot be empty in FILE (line 1, column 25); \
             write the program and its arguments, such as `[\"claude\"]`",
        ),
        (
            "workspace.base = \" \"",
            "`workspace.base` cannot be empty in FILE (line 1, column 18); \
             write a text, or leave the key out",
        ),
    ]);
}

#[test]
fn whatever_must_finish_needs_time_but_a_stop_may_be_immediate() {
    let agent = |key: &str| format!("agents.claude.{key} = \"0s\"");
    for key in ["startup_timeout", "idle_timeout", "turn_timeout"] {
        assert!(error(&agent(key)).contains("write a duration above zero"), "{key}");
    }
    assert!(error("checks = [{ run = \"x\", timeout = \"0s\" }]").contains("write a duration above zero"));
    assert!(loaded(&agent("stop_grace")).config.agents["claude"].stop_grace.is_zero());
}

#[test]
fn a_part_of_the_context_is_above_nothing_and_at_most_all() {
    let threshold = |value: &str| format!("agents.claude.context_threshold = {value}");
    for value in ["0", "0.0", "-0.5", "1.5", "2", "nan", "inf"] {
        let expected = format!(
            "`agents.claude.context_threshold` cannot be `{value}` in FILE (line 1, column 35); \
             write a number above 0 and up to 1, such as `0.7`"
        );
        assert_messages(&[(&threshold(value), &expected)]);
    }
    for (value, wanted) in [("1", 1.0), ("1.0", 1.0), ("0.001", 0.001)] {
        let settings = &loaded(&threshold(value)).config.agents["claude"];
        assert_eq!(settings.sessions.context_threshold, wanted);
    }
}

#[test]
fn limits_of_sessions_are_durations() {
    for key in ["session_idle_limit", "session_age_limit"] {
        let message = error(&format!("agents.claude.{key} = \"soon\""));
        assert!(message.starts_with(&format!("`agents.claude.{key}` cannot be `soon`")), "{message}");
    }
}

#[test]
fn every_permission_is_taken() {
    let permission = |word: &str| {
        loaded(&format!("agents.claude.permission = \"{word}\"")).config.agents["claude"].permission
    };
    let all =
        [Permission::Bypass, Permission::Ask, Permission::Deny, Permission::Edits, Permission::ReadOnly];
    assert_eq!(Permission::NAMES.map(permission), all);
}

#[test]
fn values_of_keys_without_effect_are_checked_all_the_same() {
    let message = error("defaults.max_parallel = \"x\"");
    assert!(message.starts_with("`defaults.max_parallel` cannot be "), "{message}");
}

#[test]
fn settings_of_a_pool_are_refused_with_what_to_write() {
    let user_error = |text: &str| error_of(&[user(text)]).replace("/home/config.toml", "FILE");
    for (text, expected) in [
        (
            "caps.pool = 0",
            "`caps.pool` cannot be `0` in FILE (line 1, column 13); write a whole number from 1, such as `2`",
        ),
        (
            "caps.agnets.x = 1",
            "unknown key `caps.agnets` in FILE (line 1, column 6); did you mean `caps.agents`?",
        ),
        (
            "caps.labels = 1",
            "`caps.labels` cannot be an integer in FILE (line 1, column 15); it holds other keys: write it as `[caps.labels]`",
        ),
        (
            "budget.day.usd = \"x\"",
            "`budget.day.usd` cannot be a string in FILE (line 1, column 18); write an amount of dollars from 0, such as `2.50`",
        ),
        (
            "retention.free = \"2\"",
            "`retention.free` cannot be `2` in FILE (line 1, column 18); write an amount with its unit, such as `\"500MB\"` or `\"2GB\"`",
        ),
        (
            "server.listen = \"localhost\"",
            "`server.listen` cannot be `localhost` in FILE (line 1, column 17); write an IP address with its port, such as `\"127.0.0.1:8689\"`",
        ),
        (
            "notify.webhook = \"example.org/hush\"",
            "`notify.webhook` cannot be this text in FILE (line 1, column 18); write an address such as `\"https://example.org/hook\"`",
        ),
        (
            "notify.secret_env = \"1 2\"",
            "`notify.secret_env` cannot be `1 2` in FILE (line 1, column 21); write the name of an environment variable, such as `\"DATABASE_URL\"`",
        ),
    ] {
        assert_eq!(user_error(text), expected);
    }
}

#[test]
fn agents_must_have_a_kind_and_have_a_proper_name() {
    assert_messages(&[
        (
            "[agents.fast]",
            "`agents.fast` has no `kind` in FILE (line 1, column 9); a new agent needs `kind` and `command`, \
             such as `kind = \"claude\"` and `command = [\"claude\"]`",
        ),
        (
            "agents.cluade.model = \"opus\"",
            "`agents.cluade` has no `kind` in FILE (line 1, column 8); \
             a new agent needs `kind` and `command`, \
             such as `kind = \"claude\"` and `command = [\"claude\"]`; did you mean `agents.claude`?",
        ),
        (
            "[agents.fast]\nkind = \"script\"",
            "`agents.fast` has no `command` in FILE (line 1, column 9); \
             add the program to start, such as `command = [\"script\"]`",
        ),
        (
            "[agents.Fast]\nkind = \"script\"",
            "`Fast` is no name for an agent in FILE (line 1, column 9); \
             use lower-case letters, digits, `-` and `_`",
        ),
        (
            "agents.claude.mcp.docs = {}",
            "`agents.claude.mcp.docs` has neither a `command` nor a `url` in FILE (line 1, column 19); \
             give it a program to start, `docs = { command = [\"…\"] }`, or an address, \
             `docs = { url = \"https://…\" }`",
        ),
        (
            "agents.claude.mcp.towline = { command = [\"mine\"] }",
            "`agents.claude.mcp` has a server `towline`, which is the name of Towline's own in FILE \
             (line 1, column 19); give it another name",
        ),
        (
            "defaults.agents = [\"calude\"]",
            "unknown agent `calude` in FILE (line 1, column 10); \
             known agents: claude, codex, gemini, opencode; did you mean `claude`?",
        ),
        (
            "defaults.agents = []",
            "no agent in `defaults.agents` in FILE (line 1, column 10); \
             name at least one, such as `agents = [\"claude\"]`",
        ),
    ]);
    assert!(
        loaded("agents.a-b_1 = { kind = \"script\", command = [\"x\"] }").config.agents.contains_key("a-b_1")
    );
}

#[test]
fn checks_need_something_to_check_and_names_of_their_own() {
    assert_messages(&[
        (
            "[[checks]]\nname = \"a\"",
            "the check `a` does not name what to check in FILE (line 1, column 1); add one of `run`, `file`, \
             `untouched`, `committed`, `program` and `judge`, such as `run = \"cargo test\"`",
        ),
        (
            "[[checks]]",
            "a check does not name what to check in FILE (line 1, column 1); add one of `run`, `file`, \
             `untouched`, `committed`, `program` and `judge`, such as `run = \"cargo test\"`",
        ),
        (
            "[[checks]]\nname = \"a\"\nrun = \"x\"\n[[checks]]\nrun = \"y\"\nname = \"a\"",
            "two checks with the name `a` in FILE (line 6, column 1); give each check a name of its own",
        ),
    ]);
}

#[test]
fn a_check_is_of_one_kind_and_its_keys_go_with_that() {
    assert_messages(&[
        (
            "[[checks]]\nname = \"a\"\nrun = \"x\"\nfile = \"y\"",
            "the check `a` has both `run` and `file` in FILE (line 4, column 1); \
             write a `[[checks]]` table for each of them",
        ),
        (
            "[[checks]]\nfile = \"y\"\nstdout = \"ok\"",
            "a check has `stdout` without `run` in FILE (line 3, column 1); \
             take it out: it goes with `run` only",
        ),
        (
            "[[checks]]\nrun = \"x\"\nmatches = \"ok\"",
            "a check has `matches` without `file` in FILE (line 3, column 1); \
             take it out: it goes with `file` only",
        ),
        (
            "[[checks]]\nrun = \"x\"\nagent = \"claude\"",
            "a check has `agent` without `judge` in FILE (line 3, column 1); \
             take it out: it goes with `judge` only",
        ),
        (
            "[[checks]]\nname = \"a\"\ncommitted = false",
            "the check `a` has `committed = false` in FILE (line 3, column 1); \
             write `committed = true`, or leave the check out",
        ),
        (
            "[[checks]]\nfile = \"y\"\nfloor = false",
            "a check has `floor` without `run` in FILE (line 3, column 1); take it out: it goes with `run` only",
        ),
        (
            "[[checks]]\nname = \"a\"\nrun = \"x\"\nfiles = [\"~/t\"]",
            "the check `a` has `files` without `hidden` in FILE (line 4, column 1); \
             take it out: it goes with `hidden` only",
        ),
        (
            "[[checks]]\nname = \"a\"\nrun = \"x\"\nprobe = \"refert\"",
            "the check `a`: `checks.probe` cannot be `refert` in FILE (line 4, column 9); \
             use one of revert; did you mean `revert`?",
        ),
        (
            "[[checks]]\nname = \"a\"\nrun = \"x\"\nhidden = \"yes\"",
            "the check `a`: `checks.hidden` cannot be `yes` in FILE (line 4, column 10); \
             write `true`, `false` or `\"best-effort\"`",
        ),
        (
            "[[checks]]\nname = \"a\"\nkind = \"file\"\nfile = \"y\"",
            "the check `a`: unknown key `checks.kind` in FILE (line 3, column 1); \
             known keys there: name, run, timeout, stdout, file, matches, untouched, committed, program, judge, agent, hidden, files, floor, probe; or did you mean `agents.NAME.kind`?",
        ),
    ]);
}

#[test]
fn paths_and_patterns_of_checks_are_refused_where_they_are() {
    let root =
        "name a file by its path from the repository's root, without `..`, such as `\"docs/CHANGES.md\"`";
    for path in ["/etc/passwd", "../a", "a/../../b", "."] {
        assert_eq!(
            error(&format!("[[checks]]\nname = \"a\"\nfile = \"{path}\"")),
            format!("the check `a`: `checks.file` cannot be `{path}` in {FILE} (line 3, column 8); {root}")
        );
    }
    let root = "name a path from the repository's root, without `..`, such as `\"src/**\"`";
    for path in ["../a", "a/../b", "/", "."] {
        assert_eq!(
            error(&format!("[[checks]]\nname = \"a\"\nuntouched = [\"src\", \"{path}\"]")),
            format!(
                "the check `a`: `checks.untouched` cannot be `{path}` in {FILE} (line 3, column 21); {root}"
            )
        );
    }
    assert_messages(&[
        (
            "[[checks]]\nname = \"a\"\nuntouched = [\"src/[\"]",
            "the check `a`: `checks.untouched` cannot be `src/[` in FILE (line 3, column 14); \
             write a pattern of paths (unclosed character class; missing ']')",
        ),
        (
            "[[checks]]\nuntouched = []",
            "`checks.untouched` cannot be empty in FILE (line 2, column 13); \
             name paths from the repository's root, such as `[\"src/**\"]`",
        ),
        (
            "[[checks]]\nuntouched = \"src\"",
            "`checks.untouched` cannot be a string in FILE (line 2, column 13); \
             name paths from the repository's root, such as `[\"src/**\"]`",
        ),
        (
            "[[checks]]\nname = \"a\"\nfile = \"b\"\nmatches = \"(\"",
            "the check `a`: `checks.matches` cannot be `(` in FILE (line 4, column 11); \
             write a regular expression (unclosed group)",
        ),
        (
            "[[checks]]\nprogram = []",
            "`checks.program` cannot be empty in FILE (line 2, column 11); \
             write the program and its arguments, such as `[\"claude\"]`",
        ),
        (
            "[[checks]]\nprogram = \"judge\"",
            "`checks.program` cannot be a string in FILE (line 2, column 11); \
             write an array of strings, such as `[\"…\"]`",
        ),
    ]);
}

#[test]
fn checks_without_a_name_get_one_that_no_other_has() {
    let text = r#"checks = [
        { run = "cargo test --lib" },
        { run = "cargo test --doc" },
        { name = "cargo test", run = "true" },
    ]"#;
    let names: Vec<_> = loaded(text).config.checks.into_iter().map(|check| check.name).collect();
    assert_eq!(names, ["cargo test 2", "cargo test 3", "cargo test"]);
}

#[test]
fn all_problems_of_a_file_are_reported_from_its_top() {
    let text = "zzz = 1\n[budget]\nturns = -1\n[agents.claude]\nkind = \"x\"";
    let lines: Vec<_> =
        error(text).lines().map(|line| line.split(" in ").next().unwrap_or("").to_owned()).collect();
    assert_eq!(
        lines,
        ["unknown key `zzz`", "`budget.turns` cannot be `-1`", "`agents.claude.kind` cannot be `x`"]
    );
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_place() {
    for (text, place) in [
        ("[budget]\nturns = 4h", "(line 2, column "),
        ("[budget]\nturns = 1\nturns = 2", "(line 3, column 1)"),
        ("[budget", "(line 1, column "),
    ] {
        let message = error(text);
        assert!(message.starts_with(&format!("invalid TOML in {FILE} {place}")), "{message}");
    }
}

/// Lines that are mostly TOML and often near to something known.
fn nearly_a_file() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "[agents]",
        "[agents.claude]",
        "[[checks]]",
        "[checks]",
        "agents",
        "agents.x.kind",
        "checks",
        "run",
        "mcp",
        "mcp.x",
        "env.\"ä.\"",
        "budget.usd",
        "budget",
        "defaults.agents",
        "\"\"",
        "ü",
    ]);
    let value = prop::sample::select(vec![
        "",
        "= 1",
        "= -1.5",
        "= \"x\"",
        "= \"\"",
        "= []",
        "= [{}]",
        "= [{ run = \"a\" }, 1]",
        "= {}",
        "= { x = {} }",
        "= { command = [] }",
        "= 1979-05-27",
        "= [\"claude\"]",
        "= 'ä\u{1F600}",
        "= 99999999999999999999",
    ]);
    prop::collection::vec((key, value), 0..6)
        .prop_map(|lines| lines.iter().map(|(key, value)| format!("{key} {value}\n")).collect())
}

proptest! {
    #[test]
    fn whatever_a_file_contains_each_problem_names_the_file_and_a_line_it_has(text in nearly_a_file()) {
        if let Err(ConfigError::Problems(problems)) = load(&[repository(&text)]) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                let line = problem.place.position.map_or(0, |position| position.line);
                prop_assert!((1..=text.lines().count() + 1).contains(&line), "{problem}");
                prop_assert!(problem.place.layer == repository_name() && !problem.fix.is_empty(), "{problem}");
            }
        }
    }
}

#[test]
fn a_hidden_check_is_refused_in_the_file_of_a_repository() {
    for (hidden, is_refused) in [("true", true), ("\"best-effort\"", true), ("false", false)] {
        let layer = repository(&format!("[[checks]]\nname = \"a\"\nrun = \"x\"\nhidden = {hidden}\n"));
        let expected = format!(
            "the check `a` cannot be hidden in {} (line 4, column 1); the agent reads this file in its clone: put the \
             check into the goal's own file outside of the repository, or into your own file, usually \
             ~/.config/towline/config.toml",
            repository_name()
        );
        let message = load(&[layer]).err().map(|error| error.to_string());
        assert_eq!(message, is_refused.then_some(expected), "{hidden}");
    }
}

#[test]
fn the_files_of_a_hidden_check_are_named_by_paths_that_depend_on_no_directory() {
    let written = |path: &str| format!("[[checks]]\nrun = \"x\"\nhidden = true\nfiles = [\"{path}\"]");
    for path in ["tests", "../tests", "~", "/", "~/../tests", "~user/tests", ""] {
        assert!(error_of(&[user(&written(path))]).contains("`checks.files` cannot be "), "{path}");
    }
    for path in ["~/tests", "/srv/tests/a.py"] {
        let check = load(&[user(&written(path))]).expect("loads").config.checks.remove(0);
        assert_eq!((check.hidden, check.files), (Visibility::Hidden, vec![path.to_owned()]));
    }
}
