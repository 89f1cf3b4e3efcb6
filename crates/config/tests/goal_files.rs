//! Goals as files: what they set, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use towline_config::{
    GoalFile, GoalOrigin, NamedPrerequisite, WorkspaceSettings, fill_in_template, read_goal_file,
};
use towline_core::{BaselineMode, Budget, Check, CheckKind, Confirm, MicroUsd, Need, Tokens, WorkspaceMode};

fn read(name: &str, text: &str) -> GoalFile {
    read_goal_file(Path::new(name), text).unwrap_or_else(|error| panic!("{error}"))
}

/// What is wrong with a file.
fn error(name: &str, text: &str) -> String {
    read_goal_file(Path::new(name), text)
        .map_or_else(|error| error.to_string(), |file| panic!("no error: {file:#?}"))
}

fn map(value: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

fn after(goal: &str, need: Need) -> NamedPrerequisite {
    NamedPrerequisite { goal: goal.to_owned(), need }
}

/// Every key that a goal may have, but for `prompt`.
const TOML: &str = r#"
title = "Mend the login"
agents = ["codex", "claude"]
model = "opus"
permission = "ask"
allow = ["Edit"]
deny = ["WebFetch"]
system_append = "Be brief."
dirs = ["../docs"]
max_turns = 9
mcp = { docs = { command = ["docs-mcp", "-v"] }, web = { url = "https://example.org/mcp", headers = { Authorization = "Bearer ${T}" } } }
mcp_file = "servers.json"
args = ["--fast"]
briefing = false
red_first = true
unprotect = ["tests/login.rs"]
labels = ["login", "urgent"]
template = true
after = ["1a2b3c4d", { goal = "schema.md", need = "merged" }, { goal = "5e" }]
priority = -3
touches = ["src/login/**"]

[context]
who = "Ada"

[metadata]
ticket = 7
when = 2026-11-15

[origin]
channel = "chat"
thread = "t-1"
by = "ada"

[[checks]]
name = "tests"
run = "cargo test"
timeout = "5m"

[budget]
turns = 1
attempts = 2
wall = "3h"
tokens = 4
usd = 0.5
errors = 6
denials = 7

[protect]
paths = ["tests/**"]

[workspace]
mode = "in-place"
base = "main"
setup = ["npm ci"]
copy = [".env"]
generated = ["src/schema.rs"]
pass_env = ["DATABASE_URL"]
warm = ["node_modules"]
confirm = "never"
"#;

const YAML: &str = r#"
title: Mend the login
agents: [codex, claude]
model: opus
permission: ask
allow:
  - Edit
deny: [WebFetch]
system_append: Be brief.
dirs: ["../docs"]
max_turns: 9
mcp:
  docs:
    command: [docs-mcp, -v]
  web:
    url: https://example.org/mcp
    headers: {Authorization: "Bearer ${T}"}
mcp_file: servers.json
args: [--fast]
briefing: false
baseline: red
unprotect: [tests/login.rs]
labels: [login, urgent]
template: true
after: [1a2b3c4d, {goal: schema.md, need: merged}, {goal: 5e}]
priority: -3
touches: [src/login/**]
context: {who: Ada}
metadata: {ticket: 7, when: 2026-11-15}
origin: {channel: chat, thread: t-1, by: ada}
checks:
  - name: tests
    run: cargo test
    timeout: 5m
budget: {turns: 1, attempts: 2, wall: 3h, tokens: 4, usd: 0.5, errors: 6, denials: 7}
protect:
  paths: ["tests/**"]
workspace:
  mode: in-place
  base: main
  setup: [npm ci]
  copy: [.env]
  generated: [src/schema.rs]
  pass_env: [DATABASE_URL]
  warm: [node_modules]
  confirm: never
"#;

fn expected() -> GoalFile {
    GoalFile {
        prompt: Some("Help Ada.\n\n{# left out #}Soon.".replace("{# left out #}", "")),
        title: Some("Mend the login".to_owned()),
        agents: Some(strings(&["codex", "claude"])),
        model: Some("opus".to_owned()),
        agent_settings: map(json!({
            "permission": "ask", "allow": ["Edit"], "deny": ["WebFetch"], "system_append": "Be brief.",
            "dirs": ["../docs"], "max_turns": 9, "mcp_file": "servers.json", "args": ["--fast"],
            "mcp": {
                "docs": {"command": ["docs-mcp", "-v"]},
                "web": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${T}"}},
            },
        })),
        checks: Some(vec![Check::new(
            "tests",
            CheckKind::Command { run: "cargo test".to_owned(), stdout: None },
            Duration::from_secs(300),
        )]),
        budget: Some(Budget {
            turns: Some(1),
            attempts: Some(2),
            wall: Some(Duration::from_secs(3 * 3600)),
            tokens: Some(Tokens(4)),
            usd: Some(MicroUsd(500_000)),
            errors: Some(6),
            denials: Some(7),
        }),
        template: None,
        after: vec![after("1a2b3c4d", Need::Done), after("schema.md", Need::Merged), after("5e", Need::Done)],
        priority: Some(-3),
        touches: strings(&["src/login/**"]),
        protect: Some(strings(&["tests/**"])),
        unprotect: strings(&["tests/login.rs"]),
        workspace: WorkspaceSettings {
            mode: Some(WorkspaceMode::InPlace),
            base: Some("main".to_owned()),
            setup: Some(strings(&["npm ci"])),
            copy: Some(strings(&[".env"])),
            generated: Some(strings(&["src/schema.rs"])),
            pass_env: Some(strings(&["DATABASE_URL"])),
            warm: Some(strings(&["node_modules"])),
            confirm: Some(Confirm::Never),
        },
        briefing: Some(false),
        baseline: Some(BaselineMode::Red),
        labels: strings(&["login", "urgent"]),
        metadata: map(json!({"ticket": 7, "when": "2026-11-15"})),
        origin: GoalOrigin {
            channel: Some("chat".to_owned()),
            thread: Some("t-1".to_owned()),
            by: Some("ada".to_owned()),
        },
        warnings: Vec::new(),
    }
}

const BODY: &str = "\nHelp {{ who }}.\n\n{# left out #}Soon.\n";

#[test]
fn an_id_that_looks_like_a_number_needs_no_quotes() {
    let file = read(
        "goal.md",
        "---\nafter: [12345678, 12e45678, {goal: 00000007}, {goal: 1e999999}]\n---\nDo it.\n",
    );
    let names = ["12345678", "12e45678", "00000007", "1e999999"];
    assert_eq!(file.after, names.map(|name| after(name, Need::Done)));
}

#[test]
fn all_three_ways_to_write_a_goal_give_the_same_goal() {
    let toml = read("goal.toml", &format!("prompt = '''{BODY}'''\n{TOML}"));
    let toml_front_matter = read("goal.md", &format!("+++{TOML}+++\n{BODY}"));
    let yaml_front_matter = read("goal.md", &format!("---{YAML}---\n{BODY}"));
    for file in [toml, toml_front_matter, yaml_front_matter] {
        assert_eq!(file, expected());
    }
}

#[test]
fn markdown_without_front_matter_is_only_a_prompt() {
    let text = "# Mend the login\n\nIt fails for {{ nobody }}.\n";
    let only = GoalFile { prompt: Some(text.trim().to_owned()), ..GoalFile::default() };
    assert_eq!(read("goal.md", text), only);
    assert_eq!(
        read("goal.txt", &format!("\u{feff}{}", text.replace('\n', "\r\n"))).prompt.unwrap().lines().count(),
        3
    );
    assert_eq!(read("goal.md", "---\n---\n \n"), GoalFile::default());
    assert_eq!(read("goal.toml", "model = \"opus\"").prompt, None);
}

#[test]
fn a_context_without_a_template_is_warned_about_by_name() {
    let file = read("goal.md", "+++\n[context]\na = 1\n+++\nDo {{ a }}.\n");
    let warnings: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    let expected = ["`context` has no effect without `template = true`; set in goal.md (line 2, column 2)"];
    assert_eq!(warnings, expected);
    assert_eq!(file.prompt.unwrap(), "Do {{ a }}.");
}

#[test]
fn a_prompt_that_uses_prerequisites_is_filled_in_later_and_their_texts_are_data() {
    let body = "{{ who }}: {% for p in prerequisites %}{{ p.id }} {{ p.summary }}{% endfor %}";
    let file = read("goal.md", &format!("---\ntemplate: true\ncontext: {{who: Ada}}\n---\n{body}\n"));
    assert_eq!(file.prompt.as_deref(), Some(body));
    let mut context = file.template.unwrap();
    assert_eq!(context, map(json!({"who": "Ada"})));
    context.extend(map(json!({"prerequisites": [{"id": "1a", "summary": "{{ who }} {% raw %}"}]})));
    assert_eq!(fill_in_template(body, &context).unwrap(), "Ada: 1a {{ who }} {% raw %}");
    context.remove("prerequisites");
    let refused = fill_in_template(body, &context).unwrap_err();
    assert!(refused.contains("`prerequisites`") && refused.contains("line 1"), "{refused}");
}

/// The name and text of a goal's file, and its error.
const ERRORS: &[(&str, &str, &str)] = &[
    (
        "g.toml",
        "prompt = \"x\"\nmodle = \"opus\"\n",
        "unknown key `modle` in g.toml (line 2, column 1); did you mean `model`?",
    ),
    (
        "g.md",
        "---\nmodel: opus\nlables: [a]\n---\nDo it.\n",
        "unknown key `lables` in g.md (line 3, column 1); did you mean `labels`?",
    ),
    (
        "g.md",
        "+++\nmodel = 'ä'\n  budget.usdd = 1\n+++\nDo it.\n",
        "unknown key `budget.usdd` in g.md (line 3, column 10); did you mean `budget.usd`?",
    ),
    (
        "g.md",
        "---\ncheck: cargo test\n---\nDo it.\n",
        "unknown key `check` in g.md (line 2, column 1); did you mean `checks`?",
    ),
    (
        "g.md",
        "---\nchecks:\n  - run: x\n    tiemout: 5m\n---\nDo it.\n",
        "unknown key `checks.tiemout` in g.md (line 4, column 5); did you mean `checks.timeout`?",
    ),
    (
        "g.md",
        "---\nusd: 5\n---\nDo it.\n",
        "unknown key `usd` in g.md (line 2, column 1); did you mean `budget.usd`?",
    ),
    (
        "g.md",
        "---\nbudget:\n  day: {usd: 5}\n---\nDo it.\n",
        "unknown key `budget.day` in g.md (line 3, column 3); known keys there: turns, attempts, wall, tokens, usd, errors, \
             denials",
    ),
    (
        "g.md",
        "---\nafter: 1a2b3c4d\n---\nDo it.\n",
        "`after` cannot be a string in g.md (line 2, column 8); write an array of goals, such as \
         `[\"1a2b3c4d\", { goal = \"schema.md\", need = \"merged\" }]`",
    ),
    (
        "g.toml",
        "prompt = \"x\"\nafter = [{ gaol = \"a\" }]",
        "`after` cannot be a table with `gaol` in g.toml (line 2, column 12); known keys there: goal, need; did you mean `goal`?",
    ),
    (
        "g.toml",
        "prompt = \"x\"\nafter = [{ need = \"done\" }]",
        "`after` cannot be a table without `goal` in g.toml (line 2, column 10); name the goal, such as \
         `{ goal = \"1a2b3c4d\", need = \"merged\" }`",
    ),
    (
        "g.toml",
        "prompt = \"x\"\nafter = [{ goal = \"a\", need = \"merge\" }]",
        "`after` cannot be `merge` in g.toml (line 2, column 31); use one of done, merged; did you mean `merged`?",
    ),
    (
        "g.md",
        "---\npriority: 5000\n---\nDo it.\n",
        "`priority` cannot be `5000` in g.md (line 2, column 11); write a whole number from -1000 to 1000, such as `1`",
    ),
    (
        "g.md",
        "---\ntemplate: true\n---\n{% for p in prerequisites %}{{ p.sumary }}{% endfor %}\n",
        "the prompt's template uses `p.sumary`, which is not in `context` (line 1 of the prompt) in g.md \
         (line 4, column 1); add it to `context` (it has prerequisites)",
    ),
    (
        "g.md",
        "---\ntemplate: true\ncontext: {prerequisites: 1}\n---\n{{ prerequisites }}\n",
        "`context` has a value `prerequisites`, which Towline fills in in g.md (line 3, column 1); give it another name",
    ),
    (
        "g.md",
        "---\nmax_turns: lots\n---\nDo it.\n",
        "`max_turns` cannot be a string in g.md (line 2, column 12); write a whole number from 0 to 4294967295, such as `10`",
    ),
    (
        "g.md",
        "---\nbaseline: green\n---\nDo it.\n",
        "`baseline` cannot be `green` in g.md (line 2, column 11); use one of auto, red, off",
    ),
    (
        "g.md",
        "---\nred_first: yes\n---\nDo it.\n",
        "`red_first` cannot be a string in g.md (line 2, column 12); write `true` or `false`",
    ),
    (
        "g.md",
        "---\npermission: sure\n---\nDo it.\n",
        "`permission` cannot be `sure` in g.md (line 2, column 13); use one of bypass, ask, deny, edits, read-only",
    ),
    (
        "g.md",
        "---\nagents: []\n---\nDo it.\n",
        "`agents` is empty in g.md (line 2, column 1); name one, or leave the key out",
    ),
    (
        "g.md",
        "---\nprompt: Do that.\n---\nDo it.\n",
        "`prompt` in front matter in g.md (line 2, column 1); take it out: the text below the settings is the prompt",
    ),
    (
        "g.md",
        "---\nmodel: opus\n",
        "the front matter that begins with `---` does not end in g.md (line 1, column 1); add a line `---` after \
             the settings; if it is none, begin the file with an empty line",
    ),
    (
        "g.yaml",
        "prompt: x",
        "a goal cannot be written as `.yaml` in g.yaml (line 1, column 1); write it as TOML (`.toml`), or as \
             Markdown (`.md`) with its settings between `---` lines",
    ),
    (
        "g.md",
        "---\ntemplate: true\ncontext: {who: Ada}\n---\n\nHelp\n{{ whom }}.\n",
        "the prompt's template uses `whom`, which is not in `context` (line 3 of the prompt) in g.md (line 6, column 1); \
             add it to `context` (it has who)",
    ),
    (
        "g.md",
        "---\nmetadata: {far: 99999999999999999999}\n---\nDo it.\n",
        "`metadata` cannot be `99999999999999999999` in g.md (line 2, column 17); \
             write a number that programs can hold, or a string",
    ),
];

#[test]
fn every_error_has_its_place_and_its_fix() {
    for (name, text, expected) in ERRORS {
        assert_eq!(error(name, text), *expected, "{text}");
    }
}

#[test]
fn what_is_neither_toml_nor_yaml_is_refused_where_it_stops_to_be() {
    for (text, expected) in [
        ("---\nmodel: [\n---\nDo it.\n", "invalid YAML in g.md (line 3, column 1); "),
        (
            "---\nmodel: x\nmodel: y\n---\nDo it.\n",
            "invalid YAML in g.md (line 3, column 1); `model` is set twice",
        ),
        ("+++\nmodel = \n+++\nDo it.\n", "invalid TOML in g.md (line 2, column "),
    ] {
        assert!(error("g.md", text).starts_with(expected), "{}", error("g.md", text));
    }
}

#[test]
fn everything_that_is_wrong_is_reported_at_once_from_the_top() {
    let text = "+++\nzzz = 1\nmodel = 1\nallow = 1\n+++\nDo it.";
    assert_eq!(error("g.md", text).lines().count(), 3);
    let long = "x".repeat(2 * 1024 * 1024);
    assert!(
        error("g.md", &long).starts_with("2097152 bytes are too much for a goal in g.md"),
        "{}",
        error("g.md", &long)
    );
}

proptest! {
    #[test]
    fn whatever_a_file_contains_it_is_read_or_each_problem_names_it(
        name in prop::sample::select(vec!["g.md", "g.toml", "g"]),
        fence in prop::sample::select(vec!["---", "+++", ""]),
        settings in "([a-z_]{1,9}[.]?[ ]?[:=][ ]?[\"'\\[{&*!|>-]?[a-z0-9.{}\\]]{0,9}\n[ -]{0,4}){0,6}",
        anything in any::<String>(),
        body in "([{%} a-z\n]{0,9}){0,4}",
    ) {
        for text in [format!("{fence}\n{settings}\n{fence}\n{body}"), format!("{fence}\ntemplate{settings}{anything}"), anything.clone()] {
            if let Err(error) = read_goal_file(Path::new(name), &text) {
                prop_assert!(error.to_string().contains(&format!(" in {name} (line ")), "{error}");
            }
        }
    }
}
