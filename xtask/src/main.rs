//! The project's own chores: `cargo xtask setup`, `test`, `agents`, `cheats`, `fuzz`, `bench`, `pictures` and `words`.
//!
//! `setup` installs what the tests need, `agents` looks for newer agent CLIs, `bench` measures, `checks` is the list of steps that must pass, `words` checks the language, `command` starts programs.
//! Nothing here is part of the product.

mod agents;
mod bench;
mod checks;
mod command;
mod setup;
mod words;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use agents::Newer;
use bench::Docs;

const HELP: &str = "\
The project's own chores.

Usage: cargo xtask <COMMAND>

Commands:
  setup            Install the pinned agent CLIs (agents/package-lock.json) into target/agents, a jest
                   (agents/jest) into target/jest, what builds and tests the page (web/package-lock.json)
                   into target/page, a pytest (agents/requirements.txt) into target/python and clients of the
                   HTTP interface (agents/clients) into target/clients; as root on Debian also the programs
                   of the system that the tests start
  test [-- ARGS]   Run setup, then everything that must pass: formatting, the page, clippy, rustdoc,
                   doc tests, build, tests. ARGS go to the test runner (nextest if there, else cargo test)
  agents [--run]   Report which pinned agent CLIs npm has newer versions of. --run installs those into
                   target/agents-newest and runs the conformance suite on them
  fuzz [TARGET] [--seconds N] [--seed S] [--case K]
                   Feed damaged recordings to everything that reads bytes: each target for N seconds (60),
                   with a new seed that is printed. --seed repeats a run, --case one case of it
  cheats [--write-docs]
                   Run the hostile agents of the cheat matrix. --write-docs writes docs/cheats.md from their
                   list instead
  bench [--write-docs]
                   Measure everything that is to be fast or small, next to what it is compared with; fails
                   when a ratio is missed. --write-docs keeps the figures in docs/performance.md
  pictures         Make the pictures of the README anew: the recording of the demo, and the page
  words [PATH...]  Report phrases that are not plain English and doc comments of one or two words, in the
                   files below each PATH (default: all finished folders)
  help             Show this text

Examples:
  cargo xtask test                       All of it, as the continuous integration does
  cargo xtask test -- -p towline-core    The same, with the tests of one package only
  cargo xtask test -- resume             The same, with the tests whose name contains `resume`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    if asks_for_help(arguments) {
        return std::io::stdout().write_all(HELP.as_bytes()).context("cannot write the help text");
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["setup"] => setup::install(&Places::find()?),
        ["setup", first, ..] => bail!("`cargo xtask setup` takes no arguments, and got `{first}`"),
        ["test"] => checks::run_all(&Places::find()?, &[]),
        ["test", "--", for_runner @ ..] => checks::run_all(&Places::find()?, for_runner),
        ["test", rest @ ..] => {
            let rest = rest.join(" ");
            bail!(
                "`cargo xtask test` has no options; for the test runner, write `cargo xtask test -- {rest}`"
            )
        }
        ["agents"] => agents::run(&Places::find()?, Newer::Report),
        ["agents", "--run"] => agents::run(&Places::find()?, Newer::Run),
        ["agents", first, ..] => {
            bail!("`cargo xtask agents` takes nothing but `--run`, and got `{first}`")
        }
        ["fuzz", rest @ ..] => chore(
            &Places::find()?,
            &["run", "--quiet", "--profile", "fuzz", "--package", "towline-fuzzing", "--"],
            rest,
        ),
        ["cheats"] => checks::run_cheats(&Places::find()?, Docs::Leave),
        ["cheats", "--write-docs"] => checks::run_cheats(&Places::find()?, Docs::Write),
        ["cheats", first, ..] => {
            bail!("`cargo xtask cheats` takes nothing but `--write-docs`, and got `{first}`")
        }
        ["bench"] => bench::run(&Places::find()?, Docs::Leave),
        ["bench", "--write-docs"] => bench::run(&Places::find()?, Docs::Write),
        ["bench", first, ..] => {
            bail!("`cargo xtask bench` takes nothing but `--write-docs`, and got `{first}`")
        }
        ["pictures"] => checks::run_pictures(&Places::find()?),
        ["pictures", first, ..] => bail!("`cargo xtask pictures` takes no arguments, and got `{first}`"),
        ["words", paths @ ..] => words::run(&Places::find()?.root, paths),
        [other, ..] => bail!("`{other}` is no command of xtask; `cargo xtask help` shows them"),
        [] => unreachable!("an empty command line asks for help"),
    }
}

/// Runs cargo in the root of the workspace.
fn chore(places: &Places, arguments: &[&str], more: &[&str]) -> Result<()> {
    let mut command = command::cargo(&places.root);
    let status = command::status(command.args(arguments).args(more))?;
    if !status.success() {
        bail!("`{}` failed ({status})", command::shown(&command));
    }
    Ok(())
}

/// Help is asked for by an empty command line too, but not by arguments after `--`.
fn asks_for_help(arguments: &[String]) -> bool {
    let mut own = arguments.iter().take_while(|argument| *argument != "--");
    arguments.is_empty() || own.any(|argument| ["help", "--help", "-h"].contains(&argument.as_str()))
}

/// Where things are in this checkout.
struct Places {
    /// The workspace's root.
    root: PathBuf,
    /// Where cargo puts what it builds.
    target: PathBuf,
    /// Where the agent CLIs are installed.
    agents: PathBuf,
    /// The virtual environment with pytest in it. The tests look for it beside the agent CLIs.
    python: PathBuf,
    /// The virtual environment with clients of the HTTP interface and readers of proofs in it, also beside the agent CLIs.
    clients: PathBuf,
    /// Where jest is installed, also beside the agent CLIs.
    jest: PathBuf,
    /// Where the packages of the page are installed.
    page: PathBuf,
}

impl Places {
    fn find() -> Result<Self> {
        // The folder at run time, not the one at compile time: checkouts may share a target folder.
        let running = std::env::var_os("CARGO_MANIFEST_DIR");
        let manifest = running.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("xtask has no folder above it")?.to_path_buf();
        let metadata =
            command::output(command::cargo(&root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: serde_json::Value = serde_json::from_slice(&metadata)
            .context("`cargo metadata` printed something that is not JSON")?;
        let target =
            metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
        let target = PathBuf::from(target);
        Ok(Self {
            root,
            agents: target.join("agents"),
            python: target.join("python"),
            clients: target.join("clients"),
            jest: target.join("jest"),
            page: target.join("page"),
            target,
        })
    }
}

/// Prints a line for the person who waits. A terminal that is gone is no reason to stop.
fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
