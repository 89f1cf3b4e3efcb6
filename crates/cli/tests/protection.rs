//! What a goal protects, what it lifts, and what people and programs see of it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::Desk;
use towline_testkit::hostile;

const NOTE: &str = "note: tests are not protected (run towline init, or set [protect] paths)";

const PACKAGE: &str = r#"{"scripts": {"test": "sh test.sh"}, "dependencies": {}}"#;

/// A project whose test is green once `work.txt` is there, and an agent that runs these commands.
fn desk(commands: &'static str) -> Desk {
    let desk = Desk::with_script(move |dir| hostile::doing(dir, commands));
    desk.project.write("tests/run.sh", "test -e work.txt\n");
    desk.project.write("package.json", PACKAGE);
    desk.project.commit("a project");
    desk
}

fn protect(desk: &Desk, paths: &str) {
    desk.project.write("towline.toml", format!("[protect]\npaths = [{paths}]\n"));
    desk.project.commit("settings");
}

/// Whether the store has this text.
fn is_stored(desk: &Desk, text: &str) -> bool {
    ["towline.db", "towline.db-wal"].iter().any(|name| {
        let bytes = std::fs::read(desk.home.towline().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    })
}

#[test]
fn a_goal_that_protects_nothing_prints_that_at_its_start_and_its_end() {
    let desk = desk("touch work.txt");
    let run = ["run", "do it", "--check", "sh tests/run.sh"];
    let noted = |text: &str| text.lines().filter(|line| *line == NOTE).count();
    let ran = desk.towline(run);
    assert_eq!((ran.code, noted(&ran.stderr), noted(&ran.stdout)), (Some(0), 1, 1), "{ran:?}");
    protect(&desk, "\"towline.toml\", \".gitattributes\"");
    let ran = desk.towline(run);
    assert_eq!((ran.code, noted(&ran.stderr), noted(&ran.stdout)), (Some(0), 1, 1), "{ran:?}");
    let ran = desk.towline([&run[..], &["--json"]].concat());
    assert_eq!((ran.code, noted(&ran.stderr), ran.json()["phase"].as_str()), (Some(0), 0, Some("done")));

    protect(&desk, "\"tests/**\"");
    let ran = desk.towline(run);
    assert_eq!((ran.code, noted(&ran.stderr), noted(&ran.stdout)), (Some(0), 0, 0), "{ran:?}");
}

#[test]
fn a_lifted_path_is_the_agents_to_change_for_one_goal() {
    let desk = desk("echo true > tests/run.sh; echo true > tests/new.sh; touch work.txt");
    protect(&desk, "\"tests/**\"");
    desk.project.write("goal.toml", "prompt = \"do it\"\nunprotect = [\"tests/run.sh\"]\n");
    let run = ["run", "--file", "goal.toml", "--check", "sh tests/run.sh", "--json"];
    let report = desk.towline(run).json();
    assert_eq!(report["attempts"][0]["verdict"]["restored"], json!(["tests/new.sh"]));
    assert_eq!((&report["protect"], &report["unprotect"]), (&json!(["tests/**"]), &json!(["tests/run.sh"])));

    let report = desk.towline([&run[..], &["--unprotect", "tests/new.sh"]].concat()).json();
    assert_eq!(report["attempts"][0]["verdict"]["restored"], json!([]));
    let goal = report["id"].as_str().expect("an id");
    assert_eq!(report["unprotect"], json!(["tests/run.sh", "tests/new.sh"]));
    let shown = desk.towline(["show", goal]).stdout;
    assert!(shown.contains("\n  protected  tests/**\n  lifted     tests/run.sh, tests/new.sh\n"), "{shown}");
}

#[test]
fn what_is_always_protected_is_restored_and_cannot_be_lifted() {
    let desk = desk(
        "echo '* filter=x' > .gitattributes; mkdir sub; cp .gitattributes sub; touch towline.toml work.txt",
    );
    for path in ["towline.toml", "sub/.gitattributes"] {
        let ran = desk.towline(["run", "do it", "--unprotect", path]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let message =
            format!("error: `{path}` is always protected; make the change yourself, outside of the goal");
        assert!(ran.stderr.starts_with(&message), "{ran:?}");
    }
    let report = desk.towline(["run", "do it", "--check", "sh tests/run.sh", "--json"]).json();
    assert_eq!(report["phase"], "done");
    let restored = json!([".gitattributes", "sub/.gitattributes", "towline.toml"]);
    assert_eq!(report["attempts"][0]["verdict"]["restored"], restored);
}

#[test]
fn a_changed_section_is_not_done_and_the_agent_gets_the_difference() {
    let desk = desk("sed -i 's/sh test.sh/true/' package.json; date +%N > work.txt");
    protect(&desk, "\"package.json#scripts\"");
    let run = ["run", "do it", "--check", "sh tests/run.sh", "--budget", "attempts=2", "--json"];
    let ran = desk.towline(run);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let verdict = &ran.json()["attempts"][0]["verdict"];
    let names: Vec<&Value> =
        verdict["checks"].as_array().expect("checks").iter().map(|check| &check["met"]).collect();
    assert_eq!(
        (names, &verdict["checks"][0]["name"]),
        (vec![&json!(false), &json!(true)], &json!("protected"))
    );
    let prompts = hostile::received(&desk.home.path().join("doing"));
    let prompt: Value = serde_json::from_str(&prompts[1]).expect("a message");
    let text = prompt["message"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("- scripts.test = \"sh test.sh\"\n+ scripts.test = \"true\"\n"), "{text}");
}

#[test]
fn an_agent_that_adds_a_dependency_is_done() {
    let desk = desk("sed -i 's/{}/{\"left-pad\": \"1\"}/' package.json; touch work.txt");
    protect(&desk, "\"package.json#scripts\", \"tests/**\"");
    let report = desk.towline(["run", "do it", "--check", "sh tests/run.sh", "--json"]).json();
    assert_eq!(report["phase"], "done");
    assert_eq!(desk.towline(["merge", report["id"].as_str().expect("an id")]).code, Some(0));
    assert_eq!(desk.project.read("package.json"), PACKAGE.replace("{}", "{\"left-pad\": \"1\"}"));
}

#[test]
fn generated_files_and_passed_variables_are_frozen_into_the_goal() {
    let desk = desk("touch work.txt");
    desk.project.write(
        "towline.toml",
        "[workspace]\nmode = \"worktree\"\ngenerated = [\"schema.rs\"]\npass_env = [\"A_TOKEN\"]\n",
    );
    assert_eq!(desk.towline(["trust", "--yes"]).code, Some(0));
    desk.towline(["run", "do it"]);
    assert!(is_stored(&desk, r#""generated":["schema.rs"],"pass_env":["A_TOKEN"]"#));
    assert!(is_stored(&desk, r#""mode":"clone""#));
    let own = "prompt = \"do it\"\n[workspace]\ngenerated = []\npass_env = [\"B_TOKEN\"]\n";
    desk.project.write("goal.toml", own);
    desk.towline(["run", "--file", "goal.toml"]);
    assert!(is_stored(&desk, r#""generated":[],"pass_env":["B_TOKEN"]"#));
}
