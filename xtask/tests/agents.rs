//! `cargo xtask agents`, with an npm and a cargo that only pretend.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use support::{Machine, PRETENDING_NPM, error_of};

/// Has this version of every package but Claude Code, which has the other one.
fn npm_with(others: &str, claude: &str) -> String {
    let view = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n'view @anthropic-ai/claude-code') echo '\"{claude}\"' ;;\nview*) echo '\"{others}\"' ;;\nesac\n"
    );
    view + PRETENDING_NPM
}

/// Writes down which tests it was asked to run, on which agents.
fn cargo_that_pretends() -> String {
    let real = env!("CARGO");
    format!(
        "#!/bin/sh\n[ \"$1\" != metadata ] || exec '{real}' \"$@\"\n\
         echo \"${{TOWLINE_TEST_AGENTS_DIR##*/}} $*\" >> \"${{0%/*}}/../cargo.log\"\n"
    )
}

fn reported(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_npm_has_newer_is_reported_and_nothing_is_installed() {
    let machine = Machine::new("newer").with_npm(&npm_with("0.0.1", "9.0.0"));
    let report = reported(&machine.xtask(&["agents"]));
    let claude = report.lines().find(|line| line.starts_with("@anthropic-ai/claude-code ")).expect("a line");
    assert!(claude.ends_with("npm has 9.0.0"), "{claude}");
    assert_eq!(report.lines().filter(|line| line.ends_with(" newest")).count(), 3, "{report}");
    assert!(!report.contains("claude-code-older"), "the older one is pinned on purpose: {report}");
    assert!(report.contains("`cargo xtask agents --run`"), "{report}");
    assert!(!machine.folder.join("target/agents-newest").exists());
}

#[test]
fn the_conformance_suite_is_run_on_the_newer_ones_in_a_folder_of_their_own() {
    let machine = Machine::new("run").with_npm(&npm_with("0.0.1", "9.0.0"));
    let machine = machine.with("cargo", &cargo_that_pretends());
    reported(&machine.xtask(&["agents", "--run"]));
    let folder = machine.folder.join("target/agents-newest");
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("package.json")).expect("a manifest")).expect("JSON");
    let pinned = &manifest["dependencies"];
    assert_eq!(pinned["@anthropic-ai/claude-code"], "9.0.0");
    assert_eq!(pinned["claude-code-older"], "npm:@anthropic-ai/claude-code@2.1.197");
    let installs = fs::read_to_string(folder.join("npm.log")).expect("a log");
    let install = "install --no-audit --no-fund --ignore-scripts --omit-lockfile-registry-resolved\n";
    assert_eq!(installs, install);
    let asked = fs::read_to_string(machine.folder.join("cargo.log")).expect("a log");
    let suite = |line: &&str| {
        line.starts_with("agents-newest ") && line.ends_with("--package towline-cli --test conformance")
    };
    assert_eq!(asked.lines().filter(suite).count(), 1, "{asked}");
    assert!(!machine.folder.join("target/agents").exists(), "the pinned ones stay as they are");
}

#[test]
fn where_nothing_is_newer_nothing_is_run() {
    let machine = Machine::new("same").with_npm(&npm_with("0.0.1", "2.0.0"));
    let machine = machine.with("cargo", &cargo_that_pretends());
    let report = reported(&machine.xtask(&["agents", "--run"]));
    assert!(report.ends_with("every pinned agent CLI is the newest\n"), "{report}");
    assert!(!machine.folder.join("cargo.log").exists());
}

#[test]
fn without_a_network_or_npm_the_error_names_the_cause() {
    let closed = Machine::new("closed").with_npm("#!/bin/sh\n[ \"$1\" != view ] || exit 1\n");
    let error = error_of(&closed.xtask(&["agents"]));
    assert!(error.contains("npm does not report the newest "), "{error}");
    assert!(error.contains("the network may be closed: `npm view "), "{error}");
    let error = error_of(&Machine::new("none").xtask(&["agents"]));
    assert!(error.starts_with("error: `npm` was not found"), "{error}");
    let odd = Machine::new("odd").with_npm("#!/bin/sh\n[ \"$1\" != view ] || echo none\n");
    let error = error_of(&odd.xtask(&["agents"]));
    assert!(error.contains("npm printed no version of ") && error.ends_with(": none\n"), "{error}");
    assert!(!Path::new(&closed.folder.join("target/agents-newest")).exists());
}
