//! Protected sections of files must have the values that they have in the base.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::{Bench, check};
use towline_core::CheckResult;

const PACKAGE: &str = r#"{
  "name": "a",
  "scripts": {"test": "jest"},
  "dependencies": {"x": "1"}
}
"#;

fn protecting(files: &[(&str, &str)], sections: &[&str]) -> Bench {
    let mut bench = Bench::new(files);
    bench.goal.checks = vec![check("tests", "true")];
    bench.goal.protect = sections.iter().map(|section| (*section).to_owned()).collect();
    bench
}

/// What failed; the checks of the goal always pass here.
async fn failed(bench: &Bench) -> Vec<(String, String, String)> {
    let results = bench.results().await;
    assert!(results.iter().any(|result| result.name == "tests" && result.met), "{results:?}");
    let failed = results.into_iter().filter(|result| !result.met);
    failed.map(|CheckResult { name, problem, evidence, .. }| (name, problem.unwrap(), evidence)).collect()
}

fn not_met(problem: &str, evidence: &str) -> Vec<(String, String, String)> {
    vec![("protected".to_owned(), problem.to_owned(), evidence.to_owned())]
}

const SCRIPTS: &str = "package.json#scripts is protected and differs from the base";

#[tokio::test]
async fn an_agent_may_change_the_rest_of_the_file() {
    let bench = protecting(&[("package.json", PACKAGE)], &["package.json#scripts", "package.json#jest"]);
    assert_eq!(failed(&bench).await, []);
    bench.work(
        "package.json",
        &PACKAGE.replace(r#"{"x": "1"}"#, r#"{"x": "1", "y": "2"}"#).replace("  ", "\t"),
    );
    bench.work("new.json", r#"{"scripts": {"test": "true"}}"#);
    assert_eq!(failed(&bench).await, []);
}

#[tokio::test]
async fn a_section_with_another_value_fails_the_verdict_and_shows_the_difference() {
    let bench = protecting(&[("package.json", PACKAGE)], &["package.json#scripts", "package.json#jest"]);
    bench.work("package.json", &PACKAGE.replace("\"jest\"", "\"true\""));
    let difference = "package.json#scripts:\n- scripts.test = \"jest\"\n+ scripts.test = \"true\"\n";
    assert_eq!(failed(&bench).await, not_met(SCRIPTS, difference));

    bench.work(
        "package.json",
        &PACKAGE.replace("\"scripts\": {", "\"jest\": {\"bail\": 1}, \"scripts\": {\"pretest\": \"x\", "),
    );
    let difference =
        "package.json#scripts:\n+ scripts.pretest = \"x\"\npackage.json#jest:\n+ jest.bail = 1\n";
    assert_eq!(failed(&bench).await, not_met("2 protected sections differ from the base", difference));

    // The last of two keys wins for node, the first for others.
    bench.work(
        "package.json",
        &PACKAGE.replace("\"scripts\":", "\"scripts\": {\"test\": \"true\"}, \"scripts\":"),
    );
    let difference = "package.json#scripts:\n+ scripts.test = \"true\"\n";
    assert_eq!(failed(&bench).await, not_met(SCRIPTS, difference));
}

#[tokio::test]
async fn a_file_that_cannot_be_compared_fails_the_verdict() {
    let bench = protecting(&[("package.json", PACKAGE), ("other.json", PACKAGE)], &["package.json#scripts"]);
    let with = |after: &str| format!("package.json#scripts:\n- scripts.test = \"jest\"\n{after}");
    bench.work("package.json", "{");
    let after = "+ (it cannot be parsed: EOF while parsing an object at line 1 column 1)\n";
    assert_eq!(failed(&bench).await, not_met(SCRIPTS, &with(after)));

    fs::remove_file(bench.workspace().join("package.json")).unwrap();
    assert_eq!(failed(&bench).await, not_met(SCRIPTS, &with("")));

    symlink("other.json", bench.workspace().join("package.json")).unwrap();
    assert_eq!(failed(&bench).await, not_met(SCRIPTS, &with("+ (it is not a regular file)\n")));

    fs::remove_file(bench.workspace().join("package.json")).unwrap();
    bench.work("package.json", &format!("{PACKAGE}{}", " ".repeat(4 << 20)));
    assert_eq!(failed(&bench).await, not_met(SCRIPTS, &with("+ (the file is too large to compare)\n")));
}

#[tokio::test]
async fn new_files_bring_no_protected_section_along() {
    let bench = protecting(
        &[("a", "a")],
        &["**/package.json#scripts", "setup.cfg#tool:pytest", "pyproject.toml#tool.pytest"],
    );
    fs::create_dir(bench.workspace().join("web")).unwrap();
    bench.work("web/package.json", r#"{"name": "web"}"#);
    bench.work("setup.cfg", "[metadata]\nname = a\n");
    bench.work("pyproject.toml", "[tool.black]\n");
    assert_eq!(failed(&bench).await, []);

    bench.work("web/package.json", r#"{"scripts": {}}"#);
    bench.work("setup.cfg", "[tool:pytest]\naddopts = --co\n");
    bench.work("pyproject.toml", "[tool.pytest.ini_options]\naddopts = \"--co\"\n");
    let difference = "web/package.json#scripts:\n+ scripts = {}\n\
                      setup.cfg#tool:pytest:\n+ [tool:pytest]\n+ addopts = --co\n\
                      pyproject.toml#tool.pytest:\n+ tool.pytest.ini_options.addopts = \"--co\"\n";
    assert_eq!(failed(&bench).await, not_met("3 protected sections differ from the base", difference));
}

#[tokio::test]
async fn a_section_can_be_lifted_for_a_goal() {
    let mut bench = protecting(&[("package.json", PACKAGE)], &["package.json#scripts"]);
    bench.goal.unprotect = vec!["package.json#scripts".into()];
    bench.work("package.json", "{}");
    assert_eq!(failed(&bench).await, []);
}
