//! What an agent is handed, and how: the prompt by its input alone, of the environment what it needs, and the
//! repository's own settings.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::File;
use std::path::Path;

use serde_json::Value;
use support::{Desk, finish};
use towline_testkit::hostile;

/// The prompts that the script of [`hostile::doing`] was sent.
fn prompts(desk: &Desk) -> Vec<String> {
    let received = hostile::received(&desk.home.path().join("doing"));
    let text = |line: &String| {
        let message: Value = serde_json::from_str(line).expect("a message");
        message["message"]["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    received.iter().map(text).collect()
}

#[test]
fn a_megabyte_that_begins_like_a_flag_reaches_the_agent_whole_and_is_in_no_argument() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo done > done.txt"));
    let prompt = format!("--version {}", "0123456789abcdef".repeat(65_536));
    let file = desk.home.path().join("prompt.txt");
    std::fs::write(&file, &prompt).expect("a prompt");
    let mut command = desk.command(["run", "-", "--check", "test -f done.txt", "--json"]);
    command.stdin(File::open(&file).expect("the prompt"));
    let ran = finish(command.spawn().expect("towline starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);

    let heard = prompts(&desk);
    assert_eq!(heard.len(), 1);
    assert!(heard[0].contains(&prompt), "the prompt did not arrive whole");
    let report = ran.json();
    let dir = Path::new(report["attempts"][0]["dir"].as_str().expect("a directory"));
    let launch = std::fs::read_to_string(dir.join("launch.json")).expect("the launch");
    assert!(!launch.contains("0123456789abcdef"), "the prompt is an argument");
}

#[test]
fn of_the_environment_an_agent_gets_what_it_needs_and_what_its_settings_name() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "env > \"$HOME/environment\""));
    desk.agent_settings("pass_env = [\"PASSED\"]\nenv = { GIVEN = \"given\" }");
    for name in ["PASSED", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "TOWLINE_TOKEN", "ANTHROPIC_API_KEY"] {
        desk.set(name, &format!("the value of {name}"));
    }
    let ran = desk.towline(["run", "look around", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let seen = std::fs::read_to_string(desk.home.path().join("environment")).expect("the environment");
    for wanted in
        ["PASSED=the value of PASSED", "GIVEN=given", "ANTHROPIC_API_KEY=the value of ANTHROPIC_API_KEY"]
    {
        assert!(seen.lines().any(|line| line == wanted), "no {wanted} in {seen}");
    }
    for name in ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "TOWLINE_HOME"] {
        assert!(!seen.lines().any(|line| line.starts_with(&format!("{name}="))), "{name} in {seen}");
    }
    // It has a token of its own, for its own attempt, and not the one of whoever started Towline.
    let token = seen.lines().find_map(|line| line.strip_prefix("TOWLINE_TOKEN=")).expect("a token");
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
}

#[test]
fn a_repositorys_settings_of_goals_have_their_effect_and_others_cause_a_warning() {
    let work = "cat .env setup.txt > seen.txt; echo mine > protected.txt";
    let desk = Desk::with_script(|dir| hostile::doing(dir, work));
    desk.project.write("protected.txt", "yours\n");
    desk.project.write(".gitignore", ".env\nsetup.txt\n");
    desk.project.write(
        "towline.toml",
        r#"
        [defaults]
        briefing = false
        max_parallel = 3
        [budget]
        attempts = 1
        [workspace]
        base = "beginning"
        setup = ["cp base.txt setup.txt"]
        copy = [".env"]
        [protect]
        paths = ["protected.txt"]
        [[checks]]
        name = "all of it"
        run = "echo $(cat seen.txt .env setup.txt protected.txt) && test ! -e later.txt && false"
        "#,
    );
    desk.project.write("base.txt", "base\n");
    desk.project.commit("the beginning");
    desk.project.git(["tag", "beginning"]);
    desk.project.write("later.txt", "later\n");
    desk.project.commit("something later");
    desk.project.write(".env", "secret\n");

    let ran = desk.towline(["run", "look around", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("`defaults.max_parallel` is not used by this version"), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(report["reason"], "budget: attempts");
    let verdict = &report["attempts"][0]["verdict"];
    assert_eq!(verdict["checks"][0]["name"], "all of it");
    assert_eq!(verdict["checks"][0]["evidence"], "secret base secret base yours\n", "{verdict}");
    assert_eq!(verdict["restored"][0], "protected.txt");
    assert!(prompts(&desk)[0].starts_with("# Goal\n\nlook around"), "{:?}", prompts(&desk));
}
