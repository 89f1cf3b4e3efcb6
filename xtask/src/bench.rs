//! `cargo xtask bench`: runs all benchmarks, puts their figures side by side, and fails when a ratio is missed.
//!
//! `python` installs what we are compared with, `machine` describes where it ran, `report` is the tables. The benchmarks
//! themselves are with the crates that they measure; each prints its figures as JSON, one on a line.

mod machine;
mod python;
mod report;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{Places, command, print_line, setup};
use report::Report;

/// The page that keeps the figures.
const PAGE: &str = "docs/performance.md";

/// Whether the page with the figures is brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Docs {
    Leave,
    Write,
}

/// Runs all of it.
pub(crate) fn run(places: &Places, docs: Docs) -> Result<()> {
    setup::install(places)?;
    let folder = places.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let python = python::install(&places.root, &folder)?;
    let mix = folder.join("claude.ndjson");
    let decode = ["--python", path(&python)?, "--file", path(&mix)?];
    let benches: [(&str, &str, &[&str]); 9] = [
        ("towline-fuzzing", "decode", &decode),
        ("towline-store", "append", &[]),
        ("towline-cli", "attempt", &[]),
        ("towline-cli", "goals", &[]),
        ("towline-cli", "footprint", &[]),
        ("towline-cli", "pool", &[]),
        ("towline-cli", "page", &[]),
        ("towline-cli", "builtin", &[]),
        ("towline-cli", "warm", &[]),
    ];
    let mut report = Report::default();
    let mut commands = Vec::new();
    for (package, bench, arguments) in benches {
        let mut cargo = command::cargo(&places.root);
        cargo.args(["bench", "--quiet", "--package", package, "--bench", bench, "--"]).args(arguments);
        print_line(&format!("bench: {package} {bench}"));
        report.add(&String::from_utf8_lossy(&command::output(&mut cargo)?))?;
        commands.push(format!("cargo bench --package {package} --bench {bench}"));
    }
    let tables = format!("{}\n\n{}", machine::described(&commands), report.tables());
    writeln!(std::io::stdout(), "{tables}").context("cannot print the figures")?;
    if docs == Docs::Write {
        let page = places.root.join(PAGE);
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let text = report::in_page(&text, &tables).with_context(|| format!("cannot change {PAGE}"))?;
        fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
        print_line(&format!("bench: the figures are in {PAGE}"));
    }
    let missed = report.missed();
    if !missed.is_empty() {
        bail!("ratios that were missed: {}", missed.join("; "));
    }
    Ok(())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not text", path.display()))
}
