//! A reader with a machine of their own, who types the commands of a page.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use towline_testkit::agents::AgentCli;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{Home, clean_command};

use crate::page::{Block, Page};
use crate::support::{Ran, finish};

/// Commands that are not typed here: how they begin, and why.
pub(crate) const NOT_TYPED: [(&str, &str); 4] = [
    ("cargo install --path crates/cli", "the program under test is on the path already"),
    ("cargo xtask test", "it is what runs this test"),
    ("cargo nextest run", "these are tests beside this one"),
    ("cargo xtask bench", "it measures for minutes, and nothing that a test could hold it to"),
];

/// The server of a page runs beside the shell, on a free port, until the page stops it or the shell ends.
const UP: &str =
    "towline up --listen 127.0.0.1:0 > up.log 2>&1 & trap 'towline down > down.log 2>&1 || true' EXIT
until towline open > opened.log 2>&1; do sleep 0.05; done
address=$(towline open --json | grep address | grep --only-matching '127[.]0[.]0[.]1:[0-9]*')";
/// A command that follows events does so until it is stopped, here after a moment.
const FOLLOWING: (&str, &str) = ("curl -sN ", "curl -sN --max-time 2 ");

/// Where the pages have it.
const ADDRESS: &str = "127.0.0.1:8689";

/// The same program as `towline`, from a clone.
const FROM_THE_CLONE: &str = "cargo run --release -- ";

/// The bug of the pages, and its fix.
const BROKEN: &str = "pub fn shout(text: &str) -> String {\n    format!(\"{text}!\")\n}\n";
const MEND: &str = r#"sed -i 's/format!("{text}!")/format!("{}!", text.to_uppercase())/' src/lib.rs"#;
const TEST: &str =
    "#[test]\nfn shouts() {\n    assert_eq!(shout::shout(\"land ahoy\"), \"LAND AHOY!\");\n}\n";

/// The shell in which the pages' commands are typed: `ID` is the newest goal.
const PREAMBLE: &str = r#"newest() { towline ls --all --json | grep --only-matching '"id": *"[^"]*"' | head --lines 1 | cut --delimiter '"' --fields 4; }
"#;

/// A person with Towline, Claude Code and Codex on their path, and a model that knows how to mend the sample project.
pub(crate) struct Reader {
    home: Home,
    _model: ModelServer,
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Reader {
    /// Without any project.
    pub(crate) fn with_nothing() -> Self {
        let home = Home::new();
        let model = ModelServer::start([
            Rule::when(Matcher::after_tool_result()).reply(Reply::text("It shouts now.")),
            Rule::always().reply(Reply::tool("Bash", json!({"command": MEND, "description": "mend it"}))),
        ]);
        let mut variables = home.env();
        for cli in [AgentCli::Claude, AgentCli::Codex] {
            variables.extend(cli.prepare(&home.path(), &model.url()));
        }
        let path = search_path(&home);
        let git = home.path().join(".gitconfig");
        fs::write(
            &git,
            "[user]\nname = Reader\nemail = reader@example.invalid\n[init]\ndefaultBranch = main\n",
        )
        .expect("a configuration for git");
        let others = [("PATH", path), ("GIT_CONFIG_GLOBAL", git.display().to_string())];
        variables.extend(others.map(|(name, value)| (name.to_owned(), value)));
        let folder = home.path().join("work");
        fs::create_dir(&folder).expect("a folder to work in");
        Self { home, _model: model, folder, variables }
    }

    /// In the repository of the sample project, whose test fails.
    pub(crate) fn with_the_sample_project() -> Self {
        let mut reader = Self::with_nothing();
        reader.type_in("cargo new --quiet --lib shout && mkdir shout/tests");
        reader.folder = reader.folder.join("shout");
        fs::write(reader.folder.join("src/lib.rs"), BROKEN).expect("the bug");
        fs::write(reader.folder.join("tests/shout.rs"), TEST).expect("the test");
        reader.type_in("git add --all && git commit --quiet --message 'a shout that only whispers'");
        reader
    }

    /// In the same, with a goal that is done.
    pub(crate) fn with_a_proven_goal() -> Self {
        let reader = Self::with_the_sample_project();
        reader.type_in("towline run 'shout() does not shout' --check 'cargo test'");
        reader
    }

    /// Types all commands of a page, one block after the other, in one shell.
    pub(crate) fn follow(&self, page: &Page) {
        let script: String = page.commands().map(|block| step(&page.name, block)).collect();
        self.type_in(&script);
    }

    /// The error for a command or a flag that the program does not know. Whether it can be carried out is another matter,
    /// and so is what is left out in passing.
    pub(crate) fn misunderstood(&self, command: &str) -> Option<String> {
        // A server would not come to its end.
        let more = if command.starts_with("towline up") { " --help" } else { "" };
        let ran = finish(self.shell(&format!("{command}{more} < /dev/null")).spawn().expect("a shell"));
        let unknown = ["unrecognized subcommand", "unexpected argument"];
        unknown.iter().any(|words| ran.stderr.contains(words)).then(|| format!("{command}: {}", ran.stderr))
    }

    /// What is wrong with a configuration, in the file where it belongs.
    pub(crate) fn complaints_about_configuration(&self, text: &str) -> Vec<String> {
        let of_all_projects =
            ["[retention]", "[caps]", "[notify]", "[server]"].iter().any(|part| text.starts_with(part));
        let user = self.home.config().join("towline");
        fs::create_dir_all(&user).expect("a folder for the user's configuration");
        let written = [
            (user.join("config.toml"), of_all_projects),
            (self.folder.join("towline.toml"), !of_all_projects),
        ];
        for (file, belongs) in written {
            fs::write(file, if belongs { text } else { "" }).expect("a configuration");
        }
        // Whether it needs trust is no mistake in it.
        finish(self.shell("towline trust --yes").spawn().expect("a shell"));
        let doctor = finish(self.shell("HOOK_SECRET=secret towline doctor --json").spawn().expect("a shell"));
        let report: Value = serde_json::from_str(&doctor.stdout).expect("a report");
        let findings = report["findings"].as_array().expect("findings");
        let about = findings.iter().filter(|finding| finding["section"] == "configuration");
        about.map(|finding| finding["what"].to_string()).collect()
    }

    /// How many goals are merged.
    pub(crate) fn merged_goals(&self) -> usize {
        let list = self.type_in("towline ls --all --json").stdout;
        let goals: Vec<Value> = serde_json::from_str(&list).expect("a list");
        let merged = |goal: &&Value| {
            let id = goal["id"].as_str().expect("an id");
            let report = self.type_in(&format!("towline show {id} --json")).stdout;
            let report: Value = serde_json::from_str(&report).expect("a report");
            !report["merged"].is_null()
        };
        goals.iter().filter(merged).count()
    }

    fn type_in(&self, script: &str) -> Ran {
        let ran = finish(self.shell(script).spawn().expect("a shell"));
        assert_eq!(
            ran.code,
            Some(0),
            "{}\n--- printed\n{}\n--- on stderr\n{}",
            script,
            ran.stdout,
            ran.stderr
        );
        ran
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = clean_command("bash");
        shell.args(["--norc", "-eu", "-c", &format!("{PREAMBLE}{script}")]);
        shell.env_clear().envs(self.variables.clone()).current_dir(&self.folder);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }
}

/// A block as the shell gets it: it prints its place, and fails if it does not end as the page promises.
fn step(page: &str, block: &Block) -> String {
    let typed: String = block.text.lines().filter_map(typed).map(|line| line + "\n").collect();
    let place = format!("{page}:{}", block.line);
    match block.exit_code {
        0 => format!("echo '== {place}' >&2\n{typed}"),
        code => format!(
            "echo '== {place}' >&2\nset +e\n{typed}ended=$?\nset -e\n\
             [ $ended = {code} ] || {{ echo \"{place} exits with $ended instead of {code}\" >&2; exit 1; }}\n"
        ),
    }
}

/// The line as it is typed here, if it is.
fn typed(line: &str) -> Option<String> {
    if NOT_TYPED.iter().any(|(beginning, _)| line.starts_with(beginning)) {
        return None;
    }
    let line = line.strip_prefix(FROM_THE_CLONE).map_or(line.to_owned(), |rest| format!("towline {rest}"));
    if line == "towline up" || line.starts_with("towline up ") {
        return Some(UP.to_owned());
    }
    let line = line.replace(ADDRESS, "$address").replace(FOLLOWING.0, FOLLOWING.1);
    if !line.starts_with("towline ") {
        return Some(line);
    }
    let words = line.split(' ').map(|word| if word == "ID" { "\"$(newest)\"" } else { word });
    Some(words.collect::<Vec<_>>().join(" "))
}

/// A path with `towline`, the agents, and the cargo that runs this test.
fn search_path(home: &Home) -> String {
    let programs = home.path().join("bin");
    fs::create_dir(&programs).expect("a folder for programs");
    symlink(env!("CARGO_BIN_EXE_towline"), programs.join("towline")).expect("towline on the path");
    for cli in [AgentCli::Claude, AgentCli::Codex] {
        symlink(cli.program(), programs.join(cli.name())).expect("an agent on the path");
    }
    let cargo = PathBuf::from(std::env::var_os("CARGO").expect("cargo runs the tests"));
    let toolchain = cargo.parent().expect("the folder of cargo").display().to_string();
    let usual = std::env::var("PATH").expect("a path");
    format!("{}:{toolchain}:{usual}", programs.display())
}
