//! Everything that must pass before a change lands, in the order in which a failure is cheapest.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::Docs;
use crate::{Places, command, print_line, setup};

/// One thing that must pass.
struct Step {
    name: &'static str,
    command: Command,
}

/// Runs set-up and all steps; stops at the first that fails.
pub(crate) fn run_all(places: &Places, runner_arguments: &[&str]) -> Result<()> {
    let mut times = Vec::new();
    let begun = Instant::now();
    setup::install(places)?;
    times.push(("setup", begun.elapsed()));

    for mut step in steps(places, runner_arguments) {
        let shown = command::shown(&step.command);
        print_line(&format!("\n==> {}: {shown}", step.name));
        let begun = Instant::now();
        let status = command::status(&mut step.command)?;
        let took = begun.elapsed();
        if !status.success() {
            bail!("step `{}` failed after {} ({status}); to repeat it: {shown}", step.name, seconds(took));
        }
        print_line(&format!("==> {} passed in {}", step.name, seconds(took)));
        times.push((step.name, took));
    }
    print_line(&summary(&times));
    Ok(())
}

/// Runs the cheat matrix alone, or writes its page.
pub(crate) fn run_cheats(places: &Places, docs: Docs) -> Result<()> {
    setup::install(places)?;
    let mut tests = suite(places, "cheats", &places.agents);
    if matches!(docs, Docs::Write) {
        tests.env("TOWLINE_WRITE_CHEATS", "1").arg("page::");
    }
    run_suite(places, tests)
}

/// Makes the pictures of the README anew: the recording of the demo, and the page.
pub(crate) fn run_pictures(places: &Places) -> Result<()> {
    setup::install(places)?;
    for (name, test) in [("recording", "the_recording"), ("page", "every_view")] {
        let mut tests = suite(places, name, &places.agents);
        tests.env("TOWLINE_WRITE_PICTURES", "1").arg(test);
        run_suite(places, tests)?;
    }
    let (taken, shown) =
        (places.target.join("tmp/page/inbox-light.png"), places.root.join("docs/images/page.png"));
    std::fs::copy(&taken, &shown).with_context(|| format!("cannot copy {}", taken.display()))?;
    Ok(())
}

/// Runs the conformance suite alone, on the agent CLIs in a folder.
pub(crate) fn run_conformance(places: &Places, agents: &Path) -> Result<()> {
    run_suite(places, suite(places, "conformance", agents))
}

fn suite(places: &Places, name: &str, agents: &Path) -> Command {
    let mut tests = command::cargo(&places.root);
    tests.args(test_runner(places)).args(["--package", "towline-cli", "--test", name]);
    tests.env("TOWLINE_TEST_AGENTS_DIR", agents);
    tests
}

/// Builds the program that the tests start, and runs them.
fn run_suite(places: &Places, mut tests: Command) -> Result<()> {
    let mut build = command::cargo(&places.root);
    build.args(["build", "--package", "towline-cli"]);
    for command in [&mut build, &mut tests] {
        let status = command::status(command)?;
        if !status.success() {
            bail!("`{}` failed ({status})", command::shown(command));
        }
    }
    Ok(())
}

fn steps(places: &Places, runner_arguments: &[&str]) -> Vec<Step> {
    let cargo = |arguments: &[&str]| {
        let mut command = command::cargo(&places.root);
        command.args(arguments);
        command
    };
    let mut tests = cargo(test_runner(places));
    if !runner_arguments.iter().any(|argument| chooses_packages(argument)) {
        tests.arg("--workspace");
    }
    tests.args(runner_arguments).env("TOWLINE_TEST_AGENTS_DIR", &places.agents);
    let mut docs = cargo(&["doc", "--workspace", "--all-features", "--no-deps"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let mut page = command::program("npm", &places.root.join("web"));
    page.args(["run", "--silent", "verify"]);

    vec![
        Step { name: "format", command: cargo(&["fmt", "--all", "--check"]) },
        Step { name: "words", command: cargo(&["xtask", "words"]) },
        Step { name: "page", command: page },
        Step {
            name: "clippy",
            command: cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ]),
        },
        Step { name: "docs", command: docs },
        Step { name: "doc tests", command: cargo(&["test", "--workspace", "--all-features", "--doc"]) },
        // Before the tests, because some start programs of other packages from the target folder.
        Step { name: "build", command: cargo(&["build", "--workspace", "--all-features"]) },
        // At the end, so that its summary is the last that is read.
        Step { name: "tests", command: tests },
    ]
}

/// Nextest when it is installed; both run everything but the doc tests.
fn test_runner(places: &Places) -> &'static [&'static str] {
    if command::is_there(command::cargo(&places.root).arg("nextest")) {
        &["nextest", "run", "--all-features"]
    } else {
        &["test", "--tests", "--all-features"]
    }
}

/// Whether an argument already selects packages.
fn chooses_packages(argument: &str) -> bool {
    argument.starts_with("-p") || argument.starts_with("--package") || argument == "--workspace"
}

fn summary(times: &[(&str, Duration)]) -> String {
    let mut lines = vec!["\nall passed:".to_owned()];
    let total = times.iter().map(|(_, took)| *took).sum();
    lines.extend(
        times
            .iter()
            .copied()
            .chain([("total", total)])
            .map(|(name, took)| format!("  {name:<10} {:>8}", seconds(took))),
    );
    lines.join("\n")
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
