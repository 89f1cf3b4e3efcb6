//! The text of a `towline.toml`: the plan, and comments on the other settings.

use super::plan::{Command, Plan, Protection};

/// Where a project's agents come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Agents {
    /// These are installed, in order of preference.
    Installed(Vec<String>),
    /// The user's own configuration names them.
    OfTheUser(Vec<String>),
    /// None is installed.
    None,
}

/// The whole text.
pub(super) fn text(plan: &Plan, agents: &Agents) -> String {
    let parts = [
        HEADER.to_owned(),
        agents_part(agents),
        checks_part(plan),
        BASELINE.to_owned(),
        protect_part(plan),
        workspace_part(plan),
        BUDGET.to_owned(),
        permission_part(agents),
    ];
    parts.join("\n")
}

const HEADER: &str = "\
# Settings of Towline for this repository.
# Lines that begin with `#` are defaults or examples. `towline doctor` shows the settings in force.
";

const BASELINE: &str = "\
# The checks also run on the base. If they pass there, \"auto\" prints a note and \"red\" fails the goal.
# [baseline]
# mode = \"auto\"
";

const BUDGET: &str = "\
# Limits of a goal. A goal that reaches one fails and keeps its work; `towline retry --budget` continues it with more.
[budget]
attempts = 6
usd = 5.0
# tokens = 2_000_000   # for agents that report no price
# wall = \"8h\"          # waiting for a provider's limit counts, too
";

fn agents_part(agents: &Agents) -> String {
    let list = match agents {
        Agents::Installed(names) => format!("agents = {}", list(names)),
        Agents::OfTheUser(names) => {
            format!("# agents = {}   # as your own configuration has it", list(names))
        }
        Agents::None => {
            "# agents = [\"claude\"]   # no agent was found; `towline init` printed how to install one"
                .to_owned()
        }
    };
    format!(
        "[defaults]\n# In order of preference: the next one takes over when one is limited, signed out or down.\n{list}\n"
    )
}

fn checks_part(plan: &Plan) -> String {
    let mut text = "\
# Checks that must pass before a goal is done. Towline runs each one with `sh -c` in the root of a clean checkout of
# the work, and sends failures to the agent.
"
    .to_owned();
    if plan.checks.is_empty() {
        text.push_str("# Nothing to run was found. Without a check a goal can end as unproven at best.\n");
        let example = Command { name: "tests".to_owned(), run: "./test.sh".to_owned() };
        text.push_str(&commented(&check(&example)));
    }
    let checks: Vec<String> = plan.checks.iter().map(check).collect();
    text.push_str(&checks.join("\n"));
    if !checks.is_empty() {
        text.push_str("# timeout = \"30m\"\n");
    }
    if !plan.suggestions.is_empty() {
        text.push_str("\n# Could be checked, too. Take the `#` off where it passes today.\n");
        let suggestions: Vec<String> =
            plan.suggestions.iter().map(|suggestion| commented(&check(suggestion))).collect();
        text.push_str(&suggestions.join("#\n"));
    }
    text
}

fn check(command: &Command) -> String {
    format!("[[checks]]\nname = {}\nrun = {}\n", quoted(&command.name), quoted(&command.run))
}

fn protect_part(plan: &Plan) -> String {
    let part = |part: &Protection| {
        let paths: String = part.paths.iter().map(|path| format!("    {},\n", quoted(path))).collect();
        format!("    # {}\n{paths}", part.what)
    };
    let parts: String = plan.protect.iter().map(part).collect();
    let paths = if parts.is_empty() { "[]".to_owned() } else { format!("[\n{parts}]") };
    format!(
        "\
# Whatever an agent does to these, they are judged and merged as they were: it cannot pass by changing a test or what runs it.
# Of a file with a `#`, only that section is protected: a change of it fails the check `protected`. `towline.toml`, every
# `.gitattributes` and every `.lfsconfig` are always protected. A goal that is to write tests lifts a path: towline run --unprotect \"tests/**\"
[protect]
paths = {paths}
"
    )
}

fn workspace_part(plan: &Plan) -> String {
    let setup = line("setup", &plan.setup, "[\"make deps\"]");
    let copy = line("copy", &plan.copy, "[\".env\"]");
    let warm = line("warm", &plan.warm, "[\"build\"]");
    format!(
        "\
[workspace]
# Commands that make a clean checkout ready, the agent's and each one that is checked.
{setup}
# Ignored files of yours that both need.
{copy}
# Packages and build output that a red verdict leaves for the next one. A green one is confirmed in a clean checkout.
{warm}
"
    )
}

fn line(key: &str, items: &[String], example: &str) -> String {
    if items.is_empty() { format!("# {key} = {example}") } else { format!("{key} = {}", list(items)) }
}

fn permission_part(agents: &Agents) -> String {
    let name = match agents {
        Agents::Installed(names) | Agents::OfTheUser(names) => names.first().map_or("claude", String::as_str),
        Agents::None => "claude",
    };
    let example = format!(
        "\
[agents.{name}]
permission = \"ask\"    # asks you about all that `allow` does not name; \"deny\" refuses it
allow = [\"Edit\", \"Write\", \"Bash(git *)\"]
deny = [\"WebFetch\"]
"
    );
    format!(
        "\
# An agent runs any command without asking you, in a sandbox where this machine has one (`towline doctor`). To restrict it,
# uncomment this; `allow` and `deny` count after `towline trust`:
{}",
        commented(&example)
    )
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

fn list(items: &[String]) -> String {
    toml::Value::from(items.to_vec()).to_string()
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
